"""Which datasets are here, and where to get the others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fewest.datasets._books import NAMES, Book, book
from fewest.datasets._german import load_german
from fewest.datasets._load import INSIDE, load, locate, place_of
from fewest.errors import DataError


@dataclass(frozen=True)
class ListedDataset:
    """What is known of a dataset on this machine.

    Attributes
    ----------
    name : str
    found : bool
        Whether it is here and can be loaded.
    where : str
        Place of the file, empty where there is none.
    problem : str
        Why a file that is here cannot be loaded.
    rows, features : int
        Of the table loaded; those it should have where it is not.
    positives : int, optional
        Likewise; None where nobody knows.
    licence, get : str
        Terms, and where to get it.

    Examples
    --------
    >>> from fewest.datasets import catalogue
    >>> german = catalogue("/no/such/folder")[0]
    >>> german.name, german.found, german.where, german.rows, german.positives
    ('german', True, 'inside the package', 1000, 300)
    """

    name: str
    found: bool
    where: str
    problem: str
    rows: int
    features: int
    positives: int | None
    licence: str
    get: str


def catalogue(path: str | Path | None = None) -> list[ListedDataset]:
    """All datasets, and which of them can be loaded from here; those that are found are loaded to see.

    Parameters
    ----------
    path : path, optional
        As in `load`: a folder.

    Examples
    --------
    >>> from fewest.datasets import catalogue
    >>> [(one.name, one.found) for one in catalogue("/no/such/folder")][:2]
    [('german', True), ('adult', False)]
    """
    return [_listed(book(name), path) for name in NAMES]


def _listed(known: Book, path: str | Path | None) -> ListedDataset:
    place = place_of(path)
    inside = known.name == "german"
    file = locate(known, place) if place is not None and not inside else None
    where = INSIDE if inside else str(file or "")
    problem, rows, features, positives = "", known.rows, len(known.columns), known.positives
    if where:
        try:
            data = load_german() if inside else load(known.name, path)
            (rows, features), positives = data.X.shape, int(data.y.sum())
        except DataError as error:
            problem = error.message
    found = bool(where) and not problem
    return ListedDataset(known.name, found, where, problem, rows, features, positives, known.licence, known.get)
