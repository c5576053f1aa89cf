"""The steps from each original file to its table; what a column is called and coded as is in its codebook."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.datasets._books import Book, Dataset, dataset
from fewest.datasets._cells import digest, outcomes, read_bytes, read_cells, refuse_missing, typed
from fewest.errors import DataError, FewestWarning

Prepare = Callable[[pd.DataFrame], pd.DataFrame]


def _as_it_is(cells: pd.DataFrame) -> pd.DataFrame:
    return cells


def _screened(cells: pd.DataFrame) -> pd.DataFrame:
    """COMPAS: people screened near an arrest, with their juvenile offences summed."""
    kept = cells[cells["days_b_screening_arrest"] != ""]
    parts = kept[["juv_fel_count", "juv_misd_count", "juv_other_count"]].apply(pd.to_numeric, errors="coerce")
    return kept.assign(juvenile_crimes=parts.sum(axis=1, skipna=False).astype("str"))


def _complete(cells: pd.DataFrame) -> pd.DataFrame:
    """MIMIC-III: stays without a gap."""
    return cells[(cells != "").all(axis=1)]


@dataclass(frozen=True)
class Steps:
    """How one original is read.

    ``label`` is the column of the outcome, the last one of a file without a heading, and ``positive`` and ``negative``
    what it says; ``missing`` are texts that stand for an empty cell, ``also`` columns needed beside features and label,
    to which ``prepare`` happens before they are typed; ``hint`` says what to do when columns are missing.
    """

    label: str
    positive: tuple[str, ...] = ("1",)
    negative: tuple[str, ...] = ("0",)
    heading: bool = True
    separator: str = ","
    missing: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    prepare: Prepare = _as_it_is
    any_case: bool = False
    hint: str = ""


STEPS = {
    "german": Steps("class", ("2",), ("1",), heading=False, separator=" "),
    "adult": Steps("income", (">50K",), ("<=50K",), heading=False, missing=("?",)),
    "compas": Steps("two_year_recid", also=("days_b_screening_arrest", "juv_other_count"), prepare=_screened),
    "diabetes": Steps("readmitted", ("<30", ">30"), ("NO",), missing=("?",)),
    "fico": Steps("RiskPerformance", ("Bad", "1"), ("Good", "0")),
    "headline": Steps("y"),
    "mimic": Steps(
        "hospital_expire_flag", ("1", "1.0"), ("0", "0.0"), missing=("NULL", "null", "NaN", "nan", "NA"),
        prepare=_complete, any_case=True,
        hint="take the lowest and highest values of the first day; the finished oasis table has one of each only",
    ),
    "mimic_demo": Steps("target"),
}  # fmt: skip


def load_original(book: Book, file: Path) -> Dataset:
    """Read an original file and check that it is the edition the package knows."""
    X, y = decode(book, read_bytes(file, book).content, file.name)
    if not book.digest:
        _tell_size(book, X)
    else:
        check(book, X, y, file.name)
    return dataset(book, X, y)


def decode(book: Book, content: bytes, file: str) -> tuple[pd.DataFrame, npt.NDArray[np.int64]]:
    """The table that the bytes of an original hold, after the steps; the name of the file is for errors."""
    steps = STEPS[book.name]
    sources = {
        entry.get("source_name", entry["name"]): entry["name"] for entry in book.columns if not entry.get("made")
    }
    cells = read_cells(content, file, steps.separator, None if steps.heading else [*sources, steps.label])
    if steps.any_case:
        cells = cells.rename(columns=str.lower)
        twice = cells.columns[cells.columns.duplicated()]
        if len(twice):
            raise DataError(f'{file} has the column "{twice[0]}" twice', do="keep one of them")
    needed = [*sources, steps.label, *steps.also]
    refuse_missing([name for name in needed if name not in cells], file, steps.hint)
    cells = steps.prepare(cells[needed].replace(dict.fromkeys(steps.missing, "")))
    if len(cells) == 0:
        raise DataError(f"{file} has no rows that can be used", do=f"get it again: {book.get}")
    y = outcomes(cells[steps.label], file, steps.positive, steps.negative)
    cells = cells.rename(columns=sources)
    for entry in book.columns:
        if "codes" in entry:
            cells[entry["name"]] = _labels(cells[entry["name"]], entry["codes"])
    return typed(cells, book.columns, file).reset_index(drop=True), y


def _labels(cells: pd.Series[Any], codes: dict[str, str]) -> pd.Series[Any]:
    """Codes as the labels they stand for; what is not a code stays, and is judged with the levels."""
    return cells.map({cell: codes.get(cell, cell) for cell in cells.unique()}).astype("str")


def check(book: Book, X: pd.DataFrame, y: npt.NDArray[np.int64], file: str) -> None:
    """Refuse a table that is not the known edition: its rows first, then all it says."""
    if len(X) != book.rows:
        raise DataError(
            f"{file} gives {len(X):,} rows where there should be {book.rows:,}", do=f"get the whole file: {book.get}"
        )
    if digest(X, y) != book.digest:
        raise DataError(
            f'{file} is not the known edition of "{book.name}": the checksum of its values differs',
            do=f"get the original: {book.get}",
        )


def _tell_size(book: Book, X: pd.DataFrame) -> None:
    """Where everybody derives a table of their own, its size can only be compared."""
    if len(X) != book.rows:
        warnings.warn(
            f"{len(X):,} complete stays; the paper has {book.rows:,}, so its figures are of other rows",
            FewestWarning,
            stacklevel=4,
        )
