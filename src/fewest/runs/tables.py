"""One part of the answers as files: a Parquet table (JSON lines where pyarrow is absent) and certificates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.results.explanation import STATUSES, Change, Status
from fewest.results.explanations import Explanations
from fewest.runs.cells import booleans, goal_cells, lines, moved_cells, names, numbers
from fewest.runs.row_hashes import row_hashes
from fewest.tables.saved_schema import plain

COLUMNS = (
    "row", "hash", "status", "sev", "cost", "features", "from", "to", "score", "score_after", "margin", "lower_bound",
    "proved", "strategy", "nodes", "reference", "l_inf", "log_density", "alternatives",
    "all_listed",
)  # fmt: skip
CERTIFICATE = (
    "row", "hash", "status", "sev", "set", "reference", "lower_bound", "proved", "by", "nodes", "score", "score_after",
)  # fmt: skip


@dataclass(frozen=True)
class Answered:
    """The answers of consecutive rows, column by column.

    Attributes
    ----------
    first : int
        Number of the first row.
    out : Explanations
    hashes : (n,) uint64
    before, after : list of str
        JSON text of the moved cells, row by row, as they are and as they would have been.
    """

    first: int
    out: Explanations
    hashes: npt.NDArray[np.uint64]
    before: list[str]
    after: list[str]

    @classmethod
    def read(cls, out: Explanations, first: int) -> Answered:
        """Take explanations apart."""
        a, schema = out.answers, out.schema
        case = moved_cells(schema, out.frame, a.moved)
        if out.reach is None:
            reference = goal_cells(schema, out.references.frame, a.reference, a.moved)
        else:  # a leaf is a box: each case enters it with values of its own
            reference = moved_cells(schema, out.turned(), a.moved)
        before, after = (reference, case) if out.plus else (case, reference)
        return cls(first, out, row_hashes(schema, out.frame), before, after)

    def __len__(self) -> int:
        return len(self.out)

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Row numbers."""
        return np.arange(self.first, self.first + len(self), dtype=np.int64)

    @property
    def explained(self) -> npt.NDArray[np.bool_]:
        """Which rows have a SEV."""
        return np.asarray(self.out.answers.status == STATUSES.index(Status.EXPLAINED))

    @property
    def turned(self) -> npt.NDArray[np.bool_]:
        """Which rows have an answer, proved or not."""
        return np.asarray(self.out.answers.moved.any(axis=1))

    @property
    def margin(self) -> npt.NDArray[np.float64]:
        """How far beyond the threshold each answer leads."""
        gap = self.out.references.decision.cut - self.out.answers.score_after
        return np.asarray(-gap if self.out.plus else gap)

    def sets(self) -> list[str]:
        """The features of each row's answer as a JSON list."""
        return _set_texts(self.out.answers.moved, self.out.schema.names)

    def alternatives(self) -> list[list[str]]:
        """The sets listed for each row, as JSON lists; towards leaves or several references as objects with values."""
        sets = self.out.answers.alternatives
        out: list[list[str]] = [[] for _ in range(len(self))]
        for row, moved in sets.items():
            own = row not in self.out.answers.towards
            out[row] = _set_texts(moved, self.out.schema.names) if own else _ways(self.out[row].alternatives)
        return out

    def tally(self) -> dict[str, Any]:
        """Counts by status, by SEV and by feature: sums of parts are those of the table."""
        moved = self.out.answers.moved[self.explained]
        sizes = np.bincount(moved.sum(axis=1), minlength=1)
        return {
            "counts": self.out.counts(),
            "sev": {str(size): int(count) for size, count in enumerate(sizes) if count and size},
            "features": {
                name: int(count) for name, count in zip(self.out.schema.names, moved.sum(axis=0), strict=True) if count
            },
        }


def _set_texts(moved: npt.NDArray[np.bool_], features: Sequence[str]) -> list[str]:
    """Each row's set as a JSON list; equal sets are written once."""
    packed = np.packbits(moved, axis=1)
    keys = pd.Series(packed.view(f"S{packed.shape[1]}").ravel() if len(moved) else [], dtype=object)
    codes, _ = pd.factorize(keys)
    _, where = np.unique(codes, return_index=True)
    known = [json.dumps([features[j] for j in np.flatnonzero(moved[k]).tolist()], ensure_ascii=False) for k in where]
    return np.array([*known, ""], dtype=object)[codes].tolist()  # type: ignore[no-any-return]


def _ways(sets: Sequence[Sequence[Change]]) -> list[str]:
    """What each set changes features to: every leaf has values of its own."""
    return [
        json.dumps({change.feature: plain(change.after) for change in changes}, ensure_ascii=False) for changes in sets
    ]


def _common(answered: Answered) -> dict[str, list[str]]:
    """Columns that both files have, as JSON text."""
    a = answered.out.answers
    sev = np.where(answered.explained, a.moved.sum(axis=1), np.nan)
    return {
        "row": numbers(answered.rows),
        "hash": [f'"{word:016x}"' for word in answered.hashes.tolist()],
        "status": names([status.value for status in STATUSES], a.status),
        "sev": [text.removesuffix(".0") for text in numbers(sev)],
        "reference": names(list(answered.out.references.names), a.reference),
        "lower_bound": numbers(a.lower),
        "proved": booleans(a.proved),
        "by": names(list(answered.out.strategies), a.strategy),
        "nodes": numbers(a.nodes),
        "score": numbers(a.score),
        "score_after": numbers(np.where(answered.turned, a.score_after, np.nan)),
        "set": answered.sets(),
    }


def certificates(answered: Answered) -> bytes:
    """One JSON line per row: what is claimed of it, and what proves it. A bound of null: no set at all."""
    columns = _common(answered)
    return lines({name: columns[name] for name in CERTIFICATE})


def as_lines(answered: Answered) -> bytes:
    """The table as JSON lines."""
    a, columns = answered.out.answers, _common(answered)
    ends = np.cumsum(a.moved.sum(axis=1)).tolist()
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    columns |= {"features": columns["set"], "strategy": columns["by"]}
    columns["cost"] = numbers(np.where(answered.explained, a.cost, np.nan))
    columns["from"] = [f"[{', '.join(answered.before[low:high])}]" for low, high in spans]
    columns["to"] = [f"[{', '.join(answered.after[low:high])}]" for low, high in spans]
    columns["margin"] = numbers(np.where(answered.turned, answered.margin, np.nan))
    columns["l_inf"] = numbers(np.where(answered.turned, a.l_inf, np.nan))
    columns["log_density"] = numbers(np.where(answered.turned, a.log_density, np.nan))
    columns["alternatives"] = [f"[{', '.join(sets)}]" for sets in answered.alternatives()]
    columns["all_listed"] = booleans(a.complete)
    return lines({name: columns[name] for name in COLUMNS})


def as_parquet(answered: Answered) -> bytes:
    """The table as a Parquet file of one row group; the same bytes for the same answers."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(as_arrow(answered), sink, compression="zstd", row_group_size=max(1, len(answered)))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def as_arrow(answered: Answered) -> Any:
    """The table as a pyarrow Table with the columns of `COLUMNS`; ``from`` and ``to`` hold JSON text."""
    import pyarrow as pa

    a, turned, explained = answered.out.answers, answered.turned, answered.explained
    offsets = pa.array(np.concatenate([[0], np.cumsum(a.moved.sum(axis=1))]), pa.int32())
    moved = pa.array(np.nonzero(a.moved)[1], pa.int32())
    features = pa.array(answered.out.schema.names, pa.string()).take(moved)

    def listed(values: Any) -> Any:
        return pa.ListArray.from_arrays(offsets, values)

    def figures(values: npt.NDArray[Any], known: npt.NDArray[np.bool_], kind: Any = None) -> Any:
        return pa.array(values, kind or pa.float64(), mask=~known)

    def coded(codes: npt.NDArray[Any], levels: Sequence[str]) -> Any:
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, pa.int32(), mask=codes < 0), pa.array(list(levels), pa.string())
        )

    columns = {
        "row": pa.array(answered.rows),
        "hash": pa.array(answered.hashes),
        "status": coded(a.status, [status.value for status in STATUSES]),
        "sev": figures(a.moved.sum(axis=1), explained, pa.int32()),
        "cost": figures(a.cost, explained),
        "features": listed(features),
        "from": listed(pa.array(answered.before, pa.string())),
        "to": listed(pa.array(answered.after, pa.string())),
        "score": pa.array(a.score),
        "score_after": figures(a.score_after, turned),
        "margin": figures(answered.margin, turned),
        "lower_bound": pa.array(a.lower),
        "proved": pa.array(a.proved),
        "strategy": coded(a.strategy, answered.out.strategies),
        "nodes": pa.array(a.nodes),
        "reference": coded(a.reference, answered.out.references.names),
        "l_inf": figures(a.l_inf, turned),
        "log_density": figures(a.log_density, turned & ~np.isnan(a.log_density)),
        "alternatives": _alternatives(answered),
        "all_listed": pa.array(a.complete),
    }
    return pa.table(columns)


def _alternatives(answered: Answered) -> Any:
    """Lists of sets; a million empty ones cost nothing."""
    import pyarrow as pa

    if answered.out.answers.alternatives:
        return pa.array(answered.alternatives(), pa.list_(pa.string()))
    nowhere = pa.array(np.zeros(len(answered) + 1, dtype=np.int32))
    return pa.ListArray.from_arrays(nowhere, pa.array([], pa.string()))
