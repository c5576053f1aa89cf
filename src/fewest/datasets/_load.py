"""Find a dataset by name: the embedded one, a table of a data folder, or an original file of the user's."""

from __future__ import annotations

import os
from pathlib import Path

from fewest.datasets._books import NAMES, Book, book
from fewest.datasets._dataset import Dataset
from fewest.datasets._folder import SCHEMA, describe_folder, load_table
from fewest.datasets._german import load_german
from fewest.datasets._originals import load_original
from fewest.errors import DataError

ENVIRONMENT = "FEWEST_DATA"
INSIDE = "inside the package"


def names() -> tuple[str, ...]:
    """Names that `load` knows.

    Examples
    --------
    >>> from fewest.datasets import names
    >>> names()
    ('german', 'adult', 'compas', 'diabetes', 'fico', 'headline', 'mimic', 'mimic_demo')
    """
    return NAMES


def load(name: str, path: str | Path | None = None) -> Dataset:
    """Load a dataset, checked for its columns, its number of rows and its checksum.

    Parameters
    ----------
    name : str
        One of `names()`. ``german`` is inside the package.
    path : path, optional
        The original file, a folder that holds it, or a data folder of tables with their ``schema.json``; default: the
        folder that FEWEST_DATA names. With a path, ``german`` is read from there as well.

    Returns
    -------
    Dataset

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
    """
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
        raise _nothing(wanted, place)
    return load_table(wanted, file.parent) if _is_table(wanted, file) else load_original(wanted, file)


def place_of(path: str | Path | None) -> Path | None:
    """The file or folder to look at: the one named, or what the variable names."""
    chosen = path or os.environ.get(ENVIRONMENT)
    return Path(chosen) if chosen else None


def _is_table(wanted: Book, file: Path) -> bool:
    """Whether a file is a table that the schema beside it describes."""
    try:
        return describe_folder(wanted, file.parent).file == file
    except DataError:
        return False


def locate(wanted: Book, place: Path) -> Path | None:
    """The file to read: the one named, or a folder's table, or an original in it; None where there is neither."""
    if place.is_file():
        return place
    try:
        table = [describe_folder(wanted, place).file]
    except DataError:
        table = []
    return next((file for file in [*table, *(place / name for name in wanted.files)] if file.is_file()), None)


def _nothing(wanted: Book, folder: Path) -> DataError:
    """The error for a folder that has neither the table nor the original."""
    do = f"get it: {wanted.get}"
    if (folder / SCHEMA).exists():
        return DataError(f"there is no file {describe_folder(wanted, folder).file.name} in {folder}", do=do)
    return DataError(f"there is neither {' or '.join(wanted.files)} nor a {SCHEMA} in {folder}", do=do)
