"""Arrow batches in, Arrow batches out: the columns of a run folder, for any engine that speaks Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from fewest.engine.model_reading import SAMPLE
from fewest.errors import DataError, UsageError
from fewest.explainer import Explainer
from fewest.runs.cases import Cases, RawPart, check_columns
from fewest.runs.part_worker import explained
from fewest.runs.parts import as_arrow, row_hashes
from fewest.runs.storage import need_arrow

CHUNK_ROWS = 20_000


def explain_batches(
    batches: Iterable[Any],
    explainer: Explainer,
    *,
    first: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    alternatives: int = 0,
    head: Any = None,
) -> Iterator[Any]:
    """Explain a stream of Arrow batches into a stream of Arrow batches.

    Every row is answered once, in order, with the columns and types of a run folder's part files (without
    ``decimals``: nothing is shown here). The answers do not depend on how the rows are cut into batches, nor on
    ``chunk_rows``. At most one chunk and one batch are held.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Cases in raw columns; further columns are left out, and types may drift as long as the values fit.
    explainer : Explainer
    first : int
        Number of the first row.
    chunk_rows : int
        Rows explained at once, and rows of each batch that comes out: less memory, more time.
    alternatives : int
        As in `Explainer.explain`.
    head : table, optional
        Rows on which the model's inside is tried. Default: the first 48 of the stream; then a stream without rows
        is an error.

    Yields
    ------
    pyarrow.RecordBatch

    Examples
    --------
    >>> import pyarrow as pa
    >>> import fewest as fw
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [20], "age": [50]})
    >>> cases = pa.table({"debt": [10, 90], "age": [30, 40]}).to_batches(max_chunksize=1)
    >>> for batch in explain_batches(cases, fw.Explainer(decision, refs)):
    ...     print(batch.select(["row", "status", "sev", "to"]).to_pylist())
    [{'row': 0, 'status': 'ALREADY_NEGATIVE', 'sev': None, 'to': []},
     {'row': 1, 'status': 'EXPLAINED', 'sev': 1, 'to': ['20']}]
    """
    check_call(chunk_rows)
    return _stream(batches, explainer, first, chunk_rows, alternatives, head)


def check_call(chunk_rows: int) -> None:
    """Refuse what cannot be answered in batches, before the first of them is read."""
    need_arrow("explaining batches")
    if chunk_rows < 1:
        raise UsageError(f"chunk_rows is {chunk_rows}", do="use a number from 1 on")


def _stream(
    batches: Iterable[Any], explainer: Explainer, first: int, chunk_rows: int, alternatives: int, head: Any
) -> Iterator[Any]:
    checked = _checked(batches, explainer)
    if head is None:
        head, checked = _headed(checked, explainer)
    answering = Answering.ready(explainer, head, alternatives)
    for pieces in chunks(checked, chunk_rows):
        table = answering.table(pieces, first)
        first += len(table)
        yield from table.combine_chunks().to_batches()


def _checked(batches: Iterable[Any], explainer: Explainer) -> Iterator[Any]:
    """The columns that are needed, of each batch; a batch in which one lacks, or stands twice, is named."""
    import pyarrow as pa

    schema = explainer.schema
    for number, batch in enumerate(batches):
        if not isinstance(batch, pa.RecordBatch):
            raise UsageError(f"batch {number} is a {type(batch).__name__}", do="pass pyarrow.RecordBatch objects")
        check_columns(Path(f"batch {number}"), batch.schema.names, schema)
        yield batch.select(list(schema.columns))


def _headed(batches: Iterator[Any], explainer: Explainer) -> tuple[pd.DataFrame, Iterator[Any]]:
    """The first rows, however they are cut, and the stream as if nothing had been taken from it."""
    taken: list[Any] = []
    while sum(map(len, taken)) < SAMPLE:
        batch = next(batches, None)
        if batch is None:
            break
        taken.append(batch)
    pieces = next(chunks(taken, SAMPLE), None)
    if pieces is None:
        raise DataError("the batches have no rows", do="pass at least one row")
    return Answering(explainer).typed(pieces, 0), chain(taken, batches)


def chunks(batches: Iterable[Any], rows: int) -> Iterator[list[Any]]:
    """The rows of the batches in lists of pieces that together hold this many; the last list may hold fewer."""
    pieces: list[Any] = []
    held = 0
    for batch in batches:
        at = 0
        while at < len(batch):
            piece = batch.slice(at, rows - held)
            pieces.append(piece)
            at += len(piece)
            held += len(piece)
            if held == rows:
                yield pieces
                pieces, held = [], 0
    if pieces:
        yield pieces


@dataclass(frozen=True)
class Answering:
    """An explainer that answers pieces of Arrow tables."""

    explainer: Explainer
    alternatives: int = 0

    @classmethod
    def ready(cls, explainer: Explainer, head: Any, alternatives: int = 0) -> Answering:
        """With an explainer of its own, whose look inside the model was tried on these rows and no others."""
        own = explainer.with_()
        own.look_inside(head)
        return cls(own, alternatives)

    def typed(self, pieces: Sequence[Any], first: int) -> pd.DataFrame:
        """The rows in the schema's columns and dtypes; an error names the cell."""
        cases = Cases((), self.explainer.schema, unseen=self.explainer.unseen)
        return cases.typed(RawPart(0, first, list(pieces)))

    def table(self, pieces: Sequence[Any], first: int) -> Any:
        """The answers to consecutive rows as a pyarrow Table."""
        frame = self.typed(pieces, first)
        out = explained(self.explainer, frame, self.alternatives)
        return as_arrow(out.answered(first, row_hashes(out.schema, frame))).drop_columns(["decimals"])
