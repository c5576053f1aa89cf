"""One pass over a run of any size: a bounded draw of its cases, the hardest, the open ones, the references used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.results.explanation import Status
from fewest.runs import Run
from fewest.tables.closeness import feature_distances
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import decoded

COLUMNS = ("row", "status", "sev", "score", "margin", "l_inf", "log_density", "reference")
DRAWN, HARDEST, OPEN = 1000, 10, 20
OPEN_ENDS = (Status.UNREACHABLE.value, Status.NOT_CREDIBLE.value, Status.BUDGET.value)


@dataclass(frozen=True)
class Survey:
    """What one pass over the parts keeps, however many there are.

    Attributes
    ----------
    drawn : (at most 1000, columns)
        Explained cases drawn with the seed, the first drawn first.
    hardest : tuple of int
        Rows with the largest SEV, in the order of the table among equals.
    open_ends : tuple of int
        The first rows without a proved answer.
    used : Counter
        Name of a reference -> cases compared with it.
    """

    drawn: pd.DataFrame
    hardest: tuple[int, ...]
    open_ends: tuple[int, ...]
    used: Counter[str]

    @classmethod
    def of(cls, tables: Iterable[pd.DataFrame], random_state: int = 0) -> Survey:
        """Look at every part once.

        Parameters
        ----------
        tables : iterable of frames
            The parts, with `COLUMNS`.
        random_state : int
            Of the draw, which depends on it and on the row numbers alone: not on how the table was cut.
        """
        drawn = hardest = pd.DataFrame()
        open_ends: list[int] = []
        used: Counter[str] = Counter()
        for table in tables:
            explained = table[table["status"] == Status.EXPLAINED.value]
            ticket = tickets(explained["row"].to_numpy(dtype=np.int64), random_state)
            drawn = _least(drawn, explained.assign(ticket=ticket), ["ticket"], DRAWN)
            hard = explained[["row"]].assign(ease=-explained["sev"].astype("int64"))
            hardest = _least(hardest, hard, ["ease", "row"], HARDEST)
            if len(open_ends) < OPEN:
                open_ends += table.loc[table["status"].isin(OPEN_ENDS), "row"].tolist()[: OPEN - len(open_ends)]
            used.update(table["reference"].value_counts().to_dict())
        return cls(drawn, tuple(hardest.get("row", ())), tuple(open_ends), used)

    def examples(self, random: int = 5, hard: int = 5) -> list[tuple[int, str]]:
        """Rows to show and why each was chosen: some drawn, then the hardest of the rest."""
        rows = self.drawn["row"].tolist()[:random] if len(self.drawn) else []
        rest = [row for row in self.hardest if row not in rows]
        return [(int(row), "drawn at random") for row in sorted(rows)] + [
            (int(row), "most features changed") for row in rest[:hard]
        ]


def _least(kept: pd.DataFrame, more: pd.DataFrame, by: list[str], count: int) -> pd.DataFrame:
    """The least of both, at most so many."""
    both = more if kept.empty else pd.concat([kept, more])
    return both.sort_values(by, kind="stable").head(count)


def distances(run: Run, rows: Sequence[int]) -> dict[int, float]:
    """How far the answers of some rows lead, summed over what changes; measured as answers are chosen by."""
    table = run.records(rows, ("row", "features", "from", "to"))
    far = {int(row): 0.0 for row in table["row"]}
    moves: dict[str, list[tuple[int, Any, Any]]] = {}
    for row, names, start, end in table.itertuples(index=False):
        for name, before, after in zip(names, start, end, strict=True):
            moves.setdefault(name, []).append((int(row), before, after))
    for name, moved in moves.items():
        feature = run.schema.features[run.schema.index(name)]
        alone = Schema((feature,), run.schema.dtypes)
        start, goal = (
            alone.conform(_columns([move[side] for move in moved], feature, run.schema), "allow") for side in (1, 2)
        )
        steps = feature_distances(alone, start, goal, np.arange(len(moved)))
        for (row, _, _), step in zip(moved, steps[:, 0].tolist(), strict=True):
            far[row] += step
    return far


def _columns(values: Sequence[Any], feature: Feature, schema: Schema) -> pd.DataFrame:
    """The columns of one feature, from its values as a part holds them."""
    if feature.kind == "indicators":
        return pd.DataFrame({column: [int(value == column) for value in values] for column in feature.columns})
    known = [decoded(value, feature, schema) for value in values]
    if len(feature.columns) == 1:
        return pd.DataFrame({feature.columns[0]: known})
    return pd.DataFrame({column: [value[column] for value in known] for column in feature.columns})


def tickets(rows: npt.NDArray[np.int64], random_state: int) -> npt.NDArray[np.uint64]:
    """A number for each row that looks random and depends on the row and the seed alone.

    Examples
    --------
    >>> bool((tickets(np.arange(5), 0) == tickets(np.arange(5), 0)).all()), len(set(tickets(np.arange(99), 1).tolist()))
    (True, 99)
    """
    with np.errstate(over="ignore"):
        word = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(random_state % 2**64) * np.uint64(
            0xD1B54A32D192ED03
        )
        word = (word ^ (word >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        word = (word ^ (word >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.asarray(word ^ (word >> np.uint64(32)))
