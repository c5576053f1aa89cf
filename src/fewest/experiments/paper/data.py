"""The paper's data as its experiments take them: raw tables, stratified splits, nothing learned from test rows."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest import datasets
from fewest.errors import DataError, UsageError
from fewest.experiments.paper.own_data import MISSING, TEST_SHARE, OwnData

SCHEMA = "schema.json"
Place = str | Path | OwnData | None  # a folder of the paper's data (default: FEWEST_DATA), or a table of yours


class Rows(NamedTuple):
    """A table of raw features, cut in two, and its labels: 1 is the class being explained."""

    X_train: pd.DataFrame
    X_test: pd.DataFrame
    y_train: npt.NDArray[np.int64]
    y_test: npt.NDArray[np.int64]

    def first(self, count: int) -> Rows:
        """The first rows of both parts."""
        return Rows(*(part[:count] for part in self))


def data_folder(named: str | Path | None = None) -> Path | None:
    """Where the paper's files are: the folder named, or the one FEWEST_DATA names; None if they are not there.

    No other place is looked at: which files are read does not depend on the working directory.

    Examples
    --------
    >>> data_folder("/no/such/folder") is None
    True
    """
    chosen = named or os.environ.get("FEWEST_DATA")
    return Path(chosen) if chosen and (Path(chosen) / SCHEMA).is_file() else None


def load_split(name: str, split: int, folder: Place = None) -> Rows:
    """Training and test rows of one of the paper's datasets: four fifths and one fifth, stratified by label.

    A missing level of a text column is a level of its own; rows with a missing number are left out, as the authors do.
    The name is one of `fewest.datasets.names()`, the split the seed of it: the paper's are 0 to 9. The folder is where
    the files are; default: FEWEST_DATA. ``german`` needs none. In its place can be a table of yours, by its own name.

    Examples
    --------
    >>> rows = load_split("german", 0)
    >>> len(rows.X_train), len(rows.X_test), float(rows.y_train.mean()), float(rows.y_test.mean())
    (800, 200, 0.3, 0.3)
    """
    from sklearn.model_selection import train_test_split

    if isinstance(folder, OwnData):
        return Rows(*_own(name, folder).parts(split))
    X, y = load_whole(name, folder)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=TEST_SHARE, stratify=y, random_state=split)
    return Rows(X_train, X_test, y_train, y_test)


def checksum(name: str, folder: Place = None) -> str:
    """What tells one edition of a table from another, without loading it."""
    if isinstance(folder, OwnData):
        return _own(name, folder).checksum
    place = _folder_of(name, folder)
    if place is None:
        return "embedded"
    original = _original(name, place)
    if not (place / SCHEMA).is_file() and original is not None:
        return hashlib.sha256(original.read_bytes()).hexdigest()
    try:
        return str(json.loads((place / SCHEMA).read_text(encoding="utf-8"))["datasets"][name]["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f'{SCHEMA} in {place} does not describe "{name}"', do="name the folder with it") from error


def _folder_of(name: str, folder: str | Path | None) -> Path | None:
    """The folder a table is read from; None for the one inside the package."""
    if name not in datasets.names():
        raise UsageError(
            f'there is no dataset "{name}"',
            do=f"choose from {', '.join(datasets.names())}, or pass a table of yours: fewest.experiments.paper.OwnData",
        )
    if name == "german":
        return None
    place = data_folder(folder)
    if place is None and (original := _original(name, folder)) is not None:
        return original.parent
    if place is None:
        looked = f"{folder} has no {SCHEMA}" if folder else "no folder with the paper's data is known"
        raise DataError(
            f'the dataset "{name}" is not inside the package, and {looked}',
            do="set FEWEST_DATA or pass --data-dir (see `fewest.datasets`); german works without",
        )
    return place


def _original(name: str, folder: str | Path | None) -> Path | None:
    """The original file of a dataset, where a folder holds it."""
    chosen = folder or os.environ.get("FEWEST_DATA")
    files = [Path(chosen) / file for file in datasets.book(name).files] if chosen else []
    return next((file for file in files if file.is_file()), None)


def load_whole(name: str, folder: Place = None) -> tuple[pd.DataFrame, npt.NDArray[np.int64]]:
    """All rows of one of the paper's datasets, as `load_split` cuts them in two."""
    if isinstance(folder, OwnData):
        return _own(name, folder).X, folder.y
    return _table(name, _folder_of(name, folder))


def _own(name: str, data: OwnData) -> OwnData:
    """The table of yours, if that is what was asked for."""
    if name != data.name:
        raise UsageError(f'there is no dataset "{name}" beside yours', do=f"choose {data.name}")
    return data


@lru_cache(maxsize=2)
def _table(name: str, folder: Path | None) -> tuple[pd.DataFrame, npt.NDArray[np.int64]]:
    """The whole table; the last two are kept, because splits of one dataset follow each other."""
    data = datasets.load(name) if folder is None else datasets.load(name, folder)
    X = _as_the_paper(data.X, datasets.book(name).columns)
    text = [column for column in X if not pd.api.types.is_numeric_dtype(X[column].dtype)]
    whole = X.drop(columns=text).notna().all(axis=1).to_numpy()
    X = X.assign(**{column: X[column].astype(object).fillna(MISSING).astype("str") for column in text})
    return X[whole], data.y[whole]


def _as_the_paper(X: pd.DataFrame, columns: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The columns marked as the paper's, where some are; ids as the integers that the labels were made from."""
    marked = [entry for entry in columns if entry.get("paper_set")]
    if not marked:
        return X
    X = X[[entry["name"] for entry in marked]]
    for entry in marked:
        if str(entry.get("source_name", "")).endswith("_id") and "codes" in entry:
            name, codes = entry["name"], entry["codes"]
            # The smallest where the source has two codes for one label.
            code_of = {codes[str(code)]: code for code in sorted(map(int, codes), reverse=True)}
            X = X.assign(**{name: X[name].map(code_of).astype(np.int64)})
    return X
