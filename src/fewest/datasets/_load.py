"""Find a dataset by name: the embedded one, a table of a data folder, or an original file of the user's.

The embedded one is German Credit: UCI Statlog (German Credit Data), donated by H. Hofmann, CC BY 4.0.
A data folder has a CSV for each table, with rows and checksums in the ``schema.json`` beside them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from fewest.datasets._books import NAMES, Book, Dataset, book, dataset
from fewest.datasets._originals import decode, load_original, outcomes, read_bytes, read_cells, refuse_missing, typed
from fewest.errors import DataError

ENVIRONMENT = "FEWEST_DATA"
INSIDE = "inside the package"
SCHEMA = "schema.json"
FILE = "german.data.gz"
SHA256 = "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"  # of german.data as UCI gives it out


def names() -> tuple[str, ...]:
    """Names that `load` knows.

    Examples
    --------
    >>> from fewest.datasets import names
    >>> names()
    ('german', 'adult', 'compas', 'diabetes', 'fico', 'headline', 'mimic', 'mimic_demo')
    """
    return NAMES


def load(name: str, path: str | Path | None = None, *, categories: bool = False) -> Dataset:
    """Load a dataset, checked for its columns, its number of rows and its checksum.

    Parameters
    ----------
    name : str
        One of `names()`. ``german`` is inside the package.
    path : path, optional
        The original file, a folder that holds it, or a data folder of tables with their ``schema.json``; default: the
        folder that FEWEST_DATA names. With a path, ``german`` is read from there as well.
    categories : bool
        Give columns of text the dtype ``category``, as models that take categories want them.

    Examples
    --------
    >>> from fewest.datasets import load
    >>> german = load("german")
    >>> german.X[["checking_status", "duration_months", "purpose"]].head(2)
      checking_status  duration_months           purpose
    0      below 0 DM                6  radio/television
    1     0 to 200 DM               48  radio/television
    >>> german.y[:2].tolist()
    [0, 1]
    >>> str(load("german", categories=True).X["purpose"].dtype)
    'category'
    """
    if categories:
        plain = load(name, path)
        X = plain.X.astype(dict.fromkeys(plain.X.select_dtypes(exclude="number"), "category"))
        return replace(plain, X=X, schema=replace(plain.schema, dtypes=dict(X.dtypes)))
    wanted = book(name)
    if name == "german" and path is None:
        return load_german()
    place = place_of(path)
    if place is None:
        raise DataError(
            f'the dataset "{name}" is not {INSIDE}', do=f"pass path= or set {ENVIRONMENT}; get it: {wanted.get}"
        )
    if not place.exists():
        raise DataError(f"there is no file or folder {place}", do=f"check the path; get it: {wanted.get}")
    file = locate(wanted, place)
    if file is None:
        lacking = f"neither {' or '.join(wanted.files)} nor a {SCHEMA}"
        if (place / SCHEMA).exists():
            lacking = f"no file {describe_folder(wanted, place).file.name}"
        raise DataError(f"there is {lacking} in {place}", do=f"get it: {wanted.get}")
    described = _described(wanted, file.parent)
    if described is not None and described.file == file:
        return load_table(wanted, described)
    return load_original(wanted, file)


def place_of(path: str | Path | None) -> Path | None:
    """The file or folder to look at: the one named, or what the variable names."""
    chosen = path or os.environ.get(ENVIRONMENT)
    return Path(chosen) if chosen else None


def _described(wanted: Book, folder: Path) -> Described | None:
    """What a folder's schema says of a dataset, if anything."""
    try:
        return describe_folder(wanted, folder)
    except DataError:
        return None


def locate(wanted: Book, place: Path) -> Path | None:
    """The file to read: the one named, or a folder's table, or an original in it; None where there is neither."""
    if place.is_file():
        return place
    described = _described(wanted, place)
    table = [] if described is None else [described.file]
    return next((file for file in [*table, *(place / name for name in wanted.files)] if file.is_file()), None)


def load_german() -> Dataset:
    """The embedded table: 1,000 rows, 20 features, 1 = bad credit."""
    german = book("german")
    raw = gzip.decompress((resources.files("fewest.datasets") / FILE).read_bytes())
    if hashlib.sha256(raw).hexdigest() != SHA256:
        raise DataError("the embedded German Credit file is damaged", do="install the package again")
    return dataset(german, *decode(german, raw, FILE))


class Described(NamedTuple):
    """What a folder's schema says of one table."""

    file: Path
    sha256: str
    rows: int | None
    target: str


def describe_folder(book: Book, folder: Path) -> Described:
    """What the folder's schema says of a dataset, or an error that says why that cannot be known."""
    file = folder / SCHEMA
    try:
        schema = json.loads(file.read_text(encoding="utf-8"))
        entry: dict[str, Any] = schema["datasets"][book.name]
        return Described(folder / entry["file"], entry["sha256"], entry.get("rows"), schema["target_column"])
    except FileNotFoundError:
        raise DataError(f"there is no {SCHEMA} in {folder}", do="name the folder with the tables") from None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise DataError(
            f'{file} does not describe a dataset "{book.name}": {type(error).__name__}',
            do="use the schema.json that came with the tables",
        ) from error


def load_table(book: Book, described: Described) -> Dataset:
    """Read one table of a data folder and check it against the folder's schema."""
    file = described.file
    content, sha256 = read_bytes(file, book)
    if sha256 != described.sha256:
        raise DataError(
            f"{file.name} in {file.parent} is not the file {SCHEMA} describes (its sha256 differs)",
            do=f"get it: {book.get}",
        )
    cells = read_cells(content, file.name)
    refuse_missing([name for name in (*book.names, described.target) if name not in cells], file.name)
    if described.rows is not None and len(cells) != described.rows:
        raise DataError(
            f"{file.name} has {len(cells):,} rows where {SCHEMA} says {described.rows:,}", do=f"get it: {book.get}"
        )
    y = outcomes(cells[described.target], file.name)
    return dataset(book, typed(cells, book.columns, file.name), y)


@dataclass(frozen=True)
class ListedDataset:
    """What is known of a dataset on this machine.

    Attributes
    ----------
    found : bool
        Whether it is here and can be loaded.
    where : str
        Place of the file, empty where there is none.
    problem : str
        Why a file that is here cannot be loaded.
    rows, features, positives : int
        Of the table loaded; those it should have where it is not, None where nobody knows.
    licence, get : str
        Terms, and where to get it.
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

    ``path`` is a folder, as in `load`.

    Examples
    --------
    >>> from fewest.datasets import catalogue
    >>> [(one.name, one.found) for one in catalogue("/no/such/folder")][:2]
    [('german', True), ('adult', False)]
    """
    return [_look_for(book(name), path) for name in NAMES]


def _look_for(known: Book, path: str | Path | None) -> ListedDataset:
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
