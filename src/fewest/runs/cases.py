"""The cases to explain: files larger than memory, cut into parts at rows that depend on nothing but the part size."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pandas as pd

from fewest.errors import DataError, FewestError, UsageError
from fewest.runs.cell_kinds import FALSE, MISSING, TRUE, column_kinds, readable_cells
from fewest.runs.storage import file_digest, first_line, need_arrow
from fewest.tables.schema import Schema

CSV, PARQUET = (".csv", ".csv.gz"), (".parquet", ".pq")
BATCH = 20_000
BLOCK = 1 << 20
LABEL = "\0label"  # column of the batches of a part that holds what its cases are called


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
    id_column: str | None = None  # The column that says what cases are called
    # Rows of the data that are left out, ascending; None: none, and a cell that cannot be read is an error.
    left_out: tuple[int, ...] | None = None

    def count(self) -> int | None:
        """Rows in all, where that can be known without reading them."""
        if any(not _is_parquet(path) for path in self.paths):
            return None
        return sum(int(_parquet(path).metadata.num_rows) for path in self.paths) - len(self.left_out or ())

    @property
    def columns(self) -> tuple[str, ...]:
        """What is read."""
        return (*self.schema.columns, *(() if self.id_column is None else (self.id_column,)))

    def parts(self, wanted: Callable[[int], bool] = lambda _: True) -> Iterator[RawPart]:
        """The parts that are wanted, in order."""
        size, number, kept = self.part_rows, -1, 0
        pieces: list[Any] = []
        for start, piece in self._kept(wanted):
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
        for part in replace(self, part_rows=rows).parts():
            return self.typed(part)
        raise DataError(f"{self.paths[0].name} has no rows", do="pass at least one row besides the header")

    def _kept(self, wanted: Callable[[int], bool]) -> Iterator[tuple[int, Any]]:
        """The same without the rows that are left out, numbered anew, and with what the cases are called."""
        for start, piece in self.stream(wanted):
            first, kept = self._place(start), piece
            if self.left_out is not None:
                kept = piece = readable_cells(piece, column_kinds(self.schema))[0]
            if self.left_out:
                numbers = np.arange(start, start + len(piece))
                kept = piece.filter(~np.isin(numbers, self.left_out))
                if self.id_column is None:
                    kept = kept.append_column(LABEL, _texts(numbers[~np.isin(numbers, self.left_out)]))
            if self.id_column is not None:
                kept = kept.append_column(LABEL, _texts(kept[self.id_column]))
            if len(kept):
                yield first, kept

    def _place(self, row: int) -> int:
        """The number of a row among those that are kept."""
        return row - int(np.searchsorted(self.left_out or (), row))

    def stream(self, wanted: Callable[[int], bool] = lambda _: True) -> Iterator[tuple[int, Any]]:
        """Pieces with the number of their first row; groups of rows that nobody wants may be left out."""
        start = 0
        for path in self.paths:
            if _is_parquet(path):
                start = yield from self._groups(path, start, wanted)
                continue
            for piece in pieces(path, self.schema, self.id_column, as_text=self.left_out is not None):
                yield start, piece
                start += len(piece)

    def _groups(self, path: Path, start: int, wanted: Callable[[int], bool]) -> Generator[tuple[int, Any], None, int]:
        file = _parquet(path)
        check_columns(path, file.schema_arrow.names, self.schema, self.id_column)
        try:
            for group in range(file.metadata.num_row_groups):
                end = start + file.metadata.row_group(group).num_rows
                first, last = (self._place(row) // self.part_rows for row in (start, end - 1))
                if end > start and any(map(wanted, range(first, last + 1))):
                    batches = file.iter_batches(
                        BATCH, row_groups=[group], columns=list(self.columns), use_threads=False
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
            frame = piece.select(list(self.schema.columns)).to_pandas()
            frame.index = pd.RangeIndex(first, first + len(frame))
            frames.append(self._conform(frame))
            first += len(frame)
        frame = frames[0] if len(frames) == 1 else self._conform(pd.concat(frames))
        _refuse_infinite(frame)
        return frame

    def labels(self, part: RawPart) -> list[str] | None:
        """What the cases of a part are called; None where that is their row."""
        if LABEL not in part.pieces[0].schema.names:
            return None
        return [label for piece in part.pieces for label in piece[LABEL].to_pylist()]

    def check_labels(self) -> None:
        """Refuse a column of names that is a feature, or in which one is empty or there twice."""
        if self.id_column is None:
            return
        if self.id_column in self.schema.columns:
            raise UsageError(f'the column "{self.id_column}" is a feature', do="name cases by another column")
        names = replace(self, schema=Schema((), {}), left_out=())  # this column alone, whatever the others hold
        seen = [np.zeros(0, dtype=np.uint64)]
        for start, piece in names.stream():
            texts = _texts(piece[self.id_column])
            if texts.null_count:
                row = start + texts.is_null().to_pylist().index(True)
                raise DataError(f'row {row}, column "{self.id_column}": it is empty', do="give each case a name")
            seen.append(pd.util.hash_array(texts.to_numpy(zero_copy_only=False)))
        known, counts = np.unique(np.concatenate(seen), return_counts=True)
        twice = set(known[counts > 1].tolist())
        first: dict[str, int] = {}
        for start, piece in names.stream() if twice else ():  # two names of one hash are not yet the same name
            texts = _texts(piece[self.id_column]).to_numpy(zero_copy_only=False)
            for place in np.flatnonzero(np.isin(pd.util.hash_array(texts), list(twice))).tolist():
                before = first.setdefault(texts[place], start + place)
                if before != start + place:
                    what = f"{texts[place]!r} is also in row {before}"
                    raise DataError(f'row {start + place}, column "{self.id_column}": {what}', do="keep one of them")

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


def _texts(values: Any) -> Any:
    """Values as an Arrow column of text."""
    import pyarrow as pa

    return pa.array(values).cast(pa.string())


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


def pieces(path: Path, schema: Schema, id_column: str | None = None, as_text: bool = False) -> Iterator[Any]:
    """A CSV file as Arrow batches, strictly: a row of another length, another encoding or a NUL byte is an error.

    ``as_text`` reads every cell as text, to be looked at one by one.
    """
    need_arrow(f"reading {path.name} in pieces")
    header = _header(path)
    check_columns(path, header, schema, id_column)
    kinds = {**column_kinds(schema), **({} if id_column is None else {id_column: "text"})}
    try:
        yield from _batches(path, dict.fromkeys(kinds, "text") if as_text else kinds)
    except FewestError:
        raise
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"it is not UTF-8 text ({error.reason})") from error
    except (OSError, EOFError, ValueError, csv.Error) as error:
        named = re.sub(r"CSV column #(\d+)", lambda found: f'column "{header[int(found[1])]}"', first_line(error))
        raise _unreadable(path, named) from error


def check_columns(path: Path, header: Sequence[str], schema: Schema, id_column: str | None = None) -> None:
    """Refuse a table in which a column stands twice, or lacks; further columns and another order are fine."""
    twice = [name for k, name in enumerate(header) if name in header[:k]]
    if twice:
        raise DataError(f'{path.name} has the column "{twice[0]}" more than once', do="keep one of them")
    if id_column is not None and id_column not in header:
        raise DataError(f'{path.name} has no column "{id_column}" to name cases by', do="check the name")
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
