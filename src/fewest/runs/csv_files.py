"""CSV in pieces, strictly: a row that is too short or too long, a wrong encoding or a NUL byte is an error.

Parsed by Arrow where it is installed, otherwise by the standard library; both give the same numbers and the same
missing values.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from fewest.errors import DataError, FewestError
from fewest.tables.schema import Schema

MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
TRUE, FALSE = ("True", "TRUE", "true", "1"), ("False", "FALSE", "false", "0")
BLOCK = 1 << 20
PLAIN_ROWS = 5_000


def column_kind(dtype: Any) -> str:
    """How the cells of a column are read: ``text``, ``whole``, ``number`` or ``truth``.

    Examples
    --------
    >>> column_kind(np.dtype("int64")), column_kind(pd.CategoricalDtype(["a"])), column_kind(np.dtype("bool"))
    ('number', 'text', 'truth')
    """
    if isinstance(dtype, pd.CategoricalDtype):
        inner = dtype.categories.dtype
        return "whole" if pd.api.types.is_integer_dtype(inner) else column_kind(inner)
    if dtype is not None and pd.api.types.is_bool_dtype(dtype):
        return "truth"
    return "number" if dtype is not None and pd.api.types.is_numeric_dtype(dtype) else "text"


def pieces(path: Path, schema: Schema, arrow: bool) -> Iterator[Any]:
    """Pieces of a CSV file: Arrow batches, or frames where Arrow is not installed."""
    header = _header(path)
    check_columns(path, header, schema)
    kinds = {column: column_kind(schema.dtypes.get(column)) for column in schema.columns}
    try:
        yield from _by_arrow(path, kinds) if arrow else _plainly(path, header, kinds)
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"it is not UTF-8 text ({error.reason})") from error
    except FewestError:
        raise
    except (OSError, EOFError, ValueError, csv.Error) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        named = re.sub(r"CSV column #(\d+)", lambda found: f'column "{header[int(found[1])]}"', first)
        raise _unreadable(path, named) from error


def check_columns(path: Path, header: Sequence[str], schema: Schema) -> None:
    """Refuse a table in which a column stands twice, or lacks; further columns and another order are fine."""
    twice = [name for k, name in enumerate(header) if name in header[:k]]
    if twice:
        raise DataError(f'{path.name} has the column "{twice[0]}" more than once', do="keep one of them")
    lacking = [column for column in schema.columns if column not in header]
    if lacking:
        shown = ", ".join(lacking[:5]) + (f" and {len(lacking) - 5} more" if len(lacking) > 5 else "")
        raise DataError(
            f"{path.name}: the table lacks {len(lacking)} of {len(schema.columns)} columns: {shown}", do="add them"
        )


def _unreadable(path: Path, why: str) -> DataError:
    return DataError(f"{path.name} cannot be read as a table: {why}", do="check that it is whole, UTF-8 and regular")


def _header(path: Path) -> list[str]:
    try:
        with io.TextIOWrapper(io.BufferedReader(_Checked(path)), encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), None)
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"it is not UTF-8 text ({error.reason})") from error
    except (OSError, EOFError, csv.Error) as error:
        raise _unreadable(path, str(error)) from error
    if not header:
        raise _unreadable(path, "it is empty")
    return header


class _Checked(io.RawIOBase):
    """The bytes of a file, unpacked, and refused where one is NUL: it is no text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.file: IO[bytes] = gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb")  # type: ignore[assignment]  # noqa: SIM115

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.file.read(len(buffer))
        if b"\0" in data:
            raise _unreadable(self.path, "it has NUL bytes")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self.file.close()
        super().close()


def _by_arrow(path: Path, kinds: dict[str, str]) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    types = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    convert = arrow_csv.ConvertOptions(
        column_types={column: types[kind] for column, kind in kinds.items()}, include_columns=list(kinds),
        null_values=list(MISSING), strings_can_be_null=True, true_values=list(TRUE), false_values=list(FALSE),
    )  # fmt: skip
    with io.BufferedReader(_Checked(path), BLOCK) as file:
        yield from arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(block_size=BLOCK, use_threads=False),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=convert,
        )


def _plainly(path: Path, header: list[str], kinds: dict[str, str]) -> Iterator[pd.DataFrame]:
    with io.TextIOWrapper(io.BufferedReader(_Checked(path), BLOCK), encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        filled = (row for row in reader if row)
        while rows := list(islice(filled, PLAIN_ROWS)):
            for row in rows:
                if len(row) != len(header):
                    raise ValueError(f"Row #{reader.line_num}: Expected {len(header)} columns, got {len(row)}")
            cells = dict(zip(header, zip(*rows, strict=True), strict=True))
            yield pd.DataFrame({column: _typed(cells[column], kind) for column, kind in kinds.items()})


def _typed(cells: Sequence[str], kind: str) -> Any:
    """Cells as numbers or truth where all are; otherwise text, and the schema names the one that is not."""
    text = np.array(cells, dtype=object)
    missing = np.isin(text, MISSING)
    if kind == "truth":
        known = {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}
        return pd.Series([None if gap else known.get(cell, cell) for cell, gap in zip(cells, missing, strict=True)])
    text[missing] = None if kind == "text" else np.nan
    if kind == "text" or any("_" in cell for cell in cells):
        return pd.Series(text.tolist(), dtype="str")
    try:
        values = text.astype(np.float64)
    except ValueError:
        return pd.Series(text.tolist(), dtype=object)
    return values.astype(np.int64) if kind == "whole" and not missing.any() and (values % 1 == 0).all() else values
