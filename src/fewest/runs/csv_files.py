"""CSV in pieces, strictly: a row that is too short or too long, a wrong encoding or a NUL byte is an error."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pandas as pd

from fewest.errors import DataError, FewestError
from fewest.runs.storage import need_arrow
from fewest.tables.schema import Schema

MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
TRUE, FALSE = ("True", "TRUE", "true", "1"), ("False", "FALSE", "false", "0")
BLOCK = 1 << 20


def column_kind(dtype: Any) -> str:
    """How the cells of a column are read: ``text``, ``whole``, ``number`` or ``truth``."""
    if isinstance(dtype, pd.CategoricalDtype):
        inner = dtype.categories.dtype
        return "whole" if pd.api.types.is_integer_dtype(inner) else column_kind(inner)
    if dtype is not None and pd.api.types.is_bool_dtype(dtype):
        return "truth"
    return "number" if dtype is not None and pd.api.types.is_numeric_dtype(dtype) else "text"


def pieces(path: Path, schema: Schema) -> Iterator[Any]:
    """A CSV file as Arrow batches."""
    need_arrow(f"reading {path.name} in pieces")
    header = _header(path)
    check_columns(path, header, schema)
    kinds = {column: column_kind(schema.dtypes.get(column)) for column in schema.columns}
    try:
        yield from _batches(path, kinds)
    except FewestError:
        raise
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"it is not UTF-8 text ({error.reason})") from error
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
    """The bytes of a file, unpacked, and refused where one is NUL: it is not text."""

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


def _batches(path: Path, kinds: dict[str, str]) -> Iterator[Any]:
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
