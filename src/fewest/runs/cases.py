"""The cases to explain: files larger than memory, cut into parts at rows that depend on nothing but the part size."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pandas as pd

from fewest.errors import DataError, FewestError, UsageError
from fewest.runs.storage import file_digest, first_line, need_arrow
from fewest.tables.schema import Schema

CSV, PARQUET = (".csv", ".csv.gz"), (".parquet", ".pq")
BATCH = 20_000
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
TRUE, FALSE = ("True", "TRUE", "true", "1"), ("False", "FALSE", "false", "0")
BLOCK = 1 << 20


def find(data: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """The files that are meant by a file, a folder or several of both; those of a folder ordered by name."""
    named = [Path(data)] if isinstance(data, str | Path) else [Path(one) for one in data]
    files: list[Path] = []
    for path in named:
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if _is_table(file) and not file.name.startswith((".", "_")))
            if not inside:
                raise DataError(f"the folder {path} holds no table", do="put .csv, .csv.gz or .parquet files into it")
            files += inside
        elif not path.is_file():
            raise DataError(f"there is no file {path}", do="check the path")
        elif not _is_table(path):
            raise DataError(f"{path.name} is of no known kind of table", do="pass .csv, .csv.gz or .parquet")
        else:
            files.append(path)
    if not files:
        raise UsageError("no table is named", do="pass a file or a folder")
    return tuple(files)


def _is_table(path: Path) -> bool:
    return path.name.lower().endswith((*CSV, *PARQUET))


def fingerprints(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Name, size and SHA-256 of each file."""
    return [{"name": path.name, "bytes": path.stat().st_size, "sha256": file_digest(path)} for path in paths]


@dataclass(frozen=True)
class RawPart:
    """Consecutive rows as they were read; small enough to be sent to another process."""

    number: int  # The part's place; it starts at row ``number * part_rows``
    first: int  # Number of its first row
    pieces: list[Any]  # Arrow batches


@dataclass(frozen=True)
class Cases:
    """Tables on disk as one table, read from front to back."""

    paths: tuple[Path, ...]
    schema: Schema  # What the rows are conformed to
    part_rows: int = 20_000
    unseen: Literal["error", "allow"] = "error"  # As in `Explainer`

    def count(self) -> int | None:
        """Rows in all, where that can be known without reading them."""
        if any(not _is_parquet(path) for path in self.paths):
            return None
        return sum(int(_parquet(path).metadata.num_rows) for path in self.paths)

    def parts(self, wanted: Callable[[int], bool] = lambda _: True) -> Iterator[RawPart]:
        """The parts that are wanted, in order."""
        size, number, kept = self.part_rows, -1, 0
        pieces: list[Any] = []
        for start, piece in self._stream(wanted):
            at, rows = 0, len(piece)
            while at < rows:
                part, inside = divmod(start + at, size)
                take = min(size - inside, rows - at)
                if wanted(part):
                    if part != number:
                        number, pieces, kept = part, [], 0
                    pieces.append(piece.slice(at, take))
                    kept += take
                    if kept == size:
                        yield RawPart(number, number * size, pieces)
                        pieces = []
                at += take
        if pieces:
            yield RawPart(number, number * size, pieces)

    def head(self, rows: int) -> pd.DataFrame:
        """The first rows, typed."""
        for part in Cases(self.paths, self.schema, rows, self.unseen).parts():
            return self.typed(part)
        raise DataError(f"{self.paths[0].name} has no rows", do="pass at least one row besides the header")

    def _stream(self, wanted: Callable[[int], bool]) -> Iterator[tuple[int, Any]]:
        """Pieces with the number of their first row; groups of rows that nobody wants may be left out."""
        start = 0
        for path in self.paths:
            if _is_parquet(path):
                start = yield from self._groups(path, start, wanted)
                continue
            for piece in pieces(path, self.schema):
                yield start, piece
                start += len(piece)

    def _groups(self, path: Path, start: int, wanted: Callable[[int], bool]) -> Generator[tuple[int, Any], None, int]:
        file = _parquet(path)
        check_columns(path, file.schema_arrow.names, self.schema)
        try:
            for group in range(file.metadata.num_row_groups):
                end = start + file.metadata.row_group(group).num_rows
                if end > start and any(map(wanted, range(start // self.part_rows, (end - 1) // self.part_rows + 1))):
                    batches = file.iter_batches(
                        BATCH, row_groups=[group], columns=list(self.schema.columns), use_threads=False
                    )
                    for batch in batches:
                        yield start, batch
                        start += len(batch)
                start = end
        except (OSError, ValueError) as error:
            raise _damaged(path, error) from error
        return start

    def typed(self, part: RawPart) -> pd.DataFrame:
        """The rows in the schema's columns and dtypes, labelled by their numbers; an error names the cell."""
        frames, first = [], part.first
        for piece in part.pieces:
            frame = piece.to_pandas()
            frame.index = pd.RangeIndex(first, first + len(frame))
            frames.append(self._conform(frame))
            first += len(frame)
        frame = frames[0] if len(frames) == 1 else self._conform(pd.concat(frames))
        _refuse_infinite(frame)
        return frame

    def _conform(self, frame: pd.DataFrame) -> pd.DataFrame:
        try:
            return self.schema.conform(frame, unseen=self.unseen)
        except DataError as error:
            raise DataError(f"{within(frame)}: {error.message}", error.do) from error
        except FewestError:
            raise
        except (ValueError, TypeError, OverflowError) as error:
            raise DataError(f"{within(frame)}: {first_line(error)}", do="correct the cell") from error


def within(frame: pd.DataFrame) -> str:
    """Which rows of the data these are."""
    return f"rows {frame.index[0]:,} to {frame.index[-1]:,} of the data"


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(PARQUET)


def _parquet(path: Path) -> Any:
    need_arrow(f"reading {path.name}")
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(f"{path.name} cannot be read as a table: {first_line(error)}", do="check that it is whole")


def _refuse_infinite(frame: pd.DataFrame) -> None:
    for column in frame.columns:
        if pd.api.types.is_float_dtype(frame[column].dtype):
            infinite = np.isinf(frame[column].to_numpy(dtype=float, na_value=np.nan))
            if infinite.any():
                row = frame.index[int(np.flatnonzero(infinite)[0])]
                raise DataError(f'row {row:,} of the data, column "{column}": it is infinite', do="write a number")


def column_kind(dtype: Any) -> str:
    """How the cells of a column are read: ``text``, ``whole``, ``number`` or ``truth``."""
    if isinstance(dtype, pd.CategoricalDtype):
        inner = dtype.categories.dtype
        return "whole" if pd.api.types.is_integer_dtype(inner) else column_kind(inner)
    if dtype is not None and pd.api.types.is_bool_dtype(dtype):
        return "truth"
    return "number" if dtype is not None and pd.api.types.is_numeric_dtype(dtype) else "text"


def pieces(path: Path, schema: Schema) -> Iterator[Any]:
    """A CSV file as Arrow batches, strictly: a row of another length, another encoding or a NUL byte is an error."""
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
        named = re.sub(r"CSV column #(\d+)", lambda found: f'column "{header[int(found[1])]}"', first_line(error))
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
    why = re.sub(r"(Expected \d+ columns, got \d+): .*", r"\1", why)  # what follows is somebody's whole row
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
