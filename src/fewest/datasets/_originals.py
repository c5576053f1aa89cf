"""From bytes to a typed table: cells as text first, so that nothing is guessed, then each column by its codebook."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.datasets._books import Book, Dataset, dataset, is_text, owner
from fewest.errors import DataError, FewestWarning

GZIP = b"\x1f\x8b"


def read_bytes(file: Path, book: Book) -> tuple[bytes, str]:
    """A file, unpacked, and the sha256 of what lies on the disk; refused where it is known to be another dataset."""
    try:
        stored = file.read_bytes()
        content = gzip.decompress(stored) if stored.startswith(GZIP) else stored
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file} cannot be read: {error}", do=f"get it again: {book.get}") from error
    sha256 = hashlib.sha256(stored).hexdigest()
    other = owner(sha256) or owner(hashlib.sha256(content).hexdigest())
    if other is not None and other is not book:
        raise DataError(
            f'{file} is not "{book.name}" but "{other.name}", which has other terms: {other.licence}',
            do=f'load("{other.name}", path), or get the right file: {book.get}',
        )
    return content, sha256


def read_cells(content: bytes, file: str, separator: str = ",", names: Sequence[str] | None = None) -> pd.DataFrame:
    """All cells of a delimited file as text, blanks around them removed; ``names`` are for a file without a heading."""
    do = "get the whole file again"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not a text file: {error.reason} at byte {error.start}", do=do) from error
    if not text.strip():
        raise DataError(f"{file} is empty", do=do)
    width = _width(text, file, separator, names)
    try:
        cells = pd.read_csv(
            io.StringIO(text), sep=separator, header=0 if names is None else None, names=names, dtype="str",
            keep_default_na=False, skipinitialspace=True,
        )  # fmt: skip
    except ValueError as error:
        raise DataError(f"{file} cannot be read as a table: {error}", do=do) from error
    if len(cells) == 0 or cells.shape[1] != width:
        raise DataError(f"{file} has no rows", do=do)
    cells.columns = cells.columns.str.strip()
    return cells.apply(lambda column: column.str.strip())


def _width(text: str, file: str, separator: str, names: Sequence[str] | None) -> int:
    """Number of fields; an error where a line has another number, which pandas would fill up or take for an index."""
    lines = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    width = 0 if names is None else len(names)
    try:
        for row in lines:
            width = width or len(row)
            if row and len(row) != width:
                raise DataError(
                    f"{file}, line {lines.line_num}: {len(row)} fields where there should be {width}",
                    do="get the whole file again",
                )
    except csv.Error as error:
        raise DataError(f"{file}, line {lines.line_num}: {error}", do="get the whole file again") from error
    return width


def typed(cells: pd.DataFrame, columns: Sequence[Mapping[str, Any]], file: str) -> pd.DataFrame:
    """The columns of a codebook, in its order: text as text, whole numbers as integers, empty cells missing."""
    return pd.DataFrame({entry["name"]: _column(cells[entry["name"]], entry, file) for entry in columns})


def refuse_missing(columns: Sequence[str], file: str, hint: str = "") -> None:
    """An error that names the columns a file lacks, if it lacks any."""
    if columns:
        raise DataError(f"{file} lacks {len(columns)} columns: {', '.join(columns)}", do=hint or "get the whole file")


def _column(cells: pd.Series[Any], entry: Mapping[str, Any], file: str) -> pd.Series[Any]:
    empty = cells == ""
    if is_text(entry):
        if "levels" in entry:
            _refuse(~empty & ~cells.isin(entry["levels"]), cells, file, "is not one of the known levels")
        return cells.mask(empty)
    numbers = pd.to_numeric(cells.mask(empty), errors="coerce").astype(float)
    _refuse(~empty & ~np.isfinite(numbers), cells, file, "is not a number")
    if "levels" in entry:
        _refuse(~empty & ~numbers.isin(entry["levels"]), cells, file, "is not one of the known levels")
    whole = not empty.any() and bool((numbers % 1 == 0).all())
    return numbers.astype(np.int64) if whole else numbers


def _refuse(strange: pd.Series[Any], cells: pd.Series[Any], file: str, why: str) -> None:
    if strange.any():
        row = strange.idxmax()
        raise DataError(f'{file}, row {row}, column "{cells.name}": {cells[row]!r} {why}', do="get the right file")


def outcomes(
    cells: pd.Series[Any], file: str, positive: Sequence[str] = ("1",), negative: Sequence[str] = ("0",)
) -> npt.NDArray[np.int64]:
    """1 where a cell says so and 0 where it says the opposite; an error where it says neither."""
    _refuse(~cells.isin([*positive, *negative]), cells, file, f"is none of {', '.join((*positive, *negative))}")
    return np.asarray(cells.isin(positive), dtype=np.int64)


def digest(X: pd.DataFrame, y: npt.NDArray[np.int64]) -> str:
    """A checksum of what a table says, whatever file it came in."""
    digest = hashlib.sha256()
    for name, column in X.items():
        digest.update(f"{name}\n".encode())
        if pd.api.types.is_numeric_dtype(column.dtype):
            digest.update(column.to_numpy(dtype="<f8", na_value=np.nan).tobytes())
        else:
            digest.update("\n".join(column.fillna("").tolist()).encode())
    digest.update(y.astype("<i8").tobytes())
    return digest.hexdigest()


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
    prepare: Callable[[pd.DataFrame], pd.DataFrame] = lambda cells: cells
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
    content, _ = read_bytes(file, book)
    X, y = decode(book, content, file.name)
    if not book.digest:
        if len(X) != book.rows:  # everybody derives a table of their own: its size can only be compared
            warnings.warn(
                f"{len(X):,} complete stays; the paper has {book.rows:,}, so its figures are of other rows",
                FewestWarning,
                stacklevel=3,
            )
    elif len(X) != book.rows:
        raise DataError(
            f"{file.name} gives {len(X):,} rows where there should be {book.rows:,}",
            do=f"get the whole file: {book.get}",
        )
    elif digest(X, y) != book.digest:
        raise DataError(
            f'{file.name} is not the known edition of "{book.name}": the checksum of its values differs',
            do=f"get the original: {book.get}",
        )
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
            # What is not a code stays, and is judged with the levels.
            column, codes = cells[entry["name"]], entry["codes"]
            cells[entry["name"]] = column.map({cell: codes.get(cell, cell) for cell in column.unique()}).astype("str")
    return typed(cells, book.columns, file).reset_index(drop=True), y
