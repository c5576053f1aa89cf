"""The cases to explain: files larger than memory, cut into parts at rows that depend on nothing but the part size."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from fewest.errors import DataError, FewestError, UsageError
from fewest.runs import csv_files
from fewest.runs.storage import file_digest, need_arrow
from fewest.tables.schema import Schema

CSV, PARQUET = (".csv", ".csv.gz"), (".parquet", ".pq")
BATCH = 20_000


def find(data: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """The files that are meant by a file, a folder or several of both; those of a folder in the order of their names.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("b.csv", "a.csv", "notes.txt"):
    ...     _ = (folder / name).write_text("x")
    >>> [path.name for path in find(folder)]
    ['a.csv', 'b.csv']
    """
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
            for piece in csv_files.pieces(path, self.schema):
                yield start, piece
                start += len(piece)

    def _groups(self, path: Path, start: int, wanted: Callable[[int], bool]) -> Generator[tuple[int, Any], None, int]:
        file = _parquet(path)
        csv_files.check_columns(path, file.schema_arrow.names, self.schema)
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
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise DataError(f"{within(frame)}: {first}", do="correct the cell") from error


def within(frame: pd.DataFrame) -> str:
    """Which rows of the data these are.

    Examples
    --------
    >>> within(pd.DataFrame({"a": [1, 2]}, index=[5000, 5001]))
    'rows 5,000 to 5,001 of the data'
    """
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
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return DataError(f"{path.name} cannot be read as a table: {first}", do="check that it is whole")


def _refuse_infinite(frame: pd.DataFrame) -> None:
    for column in frame.columns:
        if pd.api.types.is_float_dtype(frame[column].dtype):
            infinite = np.isinf(frame[column].to_numpy(dtype=float, na_value=np.nan))
            if infinite.any():
                row = frame.index[int(np.flatnonzero(infinite)[0])]
                raise DataError(f'row {row:,} of the data, column "{column}": it is infinite', do="write a number")
