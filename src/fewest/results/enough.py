"""How much is enough: the values of each changed feature that still change the outcome, the others as shown.

Every value is asked of the user's own model, so the claim holds for any model: up to `MOST_VALUES` values of a number
one by one; of a finer grid that many, evenly spread, and the ends to the last step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.tables.arrays import Bools, Floats, Ints
from fewest.tables.closeness import as_numbers
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import Cells, typed
from fewest.tables.wording import listed, show_measured, show_name

MOST_VALUES = 2_000
AT_ONCE = 100_000  # rows that the model is asked about in one call


@dataclass(frozen=True)
class Enough:
    """The values of one changed feature that are enough, with the other changes as shown.

    Attributes
    ----------
    feature : str
        Its name.
    shown : object
        The value in the answer.
    low, high : object
        Ends of the run of numbers around it that change the outcome, inside the range seen; None for levels.
    levels : tuple
        The levels that change the outcome; empty for numbers.
    whole : bool
        Whether every value between the ends was asked of the model; else values evenly spread, and the ends.
    title, unit : str or None
        What people call the feature, and what its numbers count.
    seen : pair or None
        The range that was asked about; None for levels.

    Examples
    --------
    >>> str(Enough("duration", 18, 6, 33, (), True, unit="months", seen=(4, 72)))
    'duration from 6 months to 33 months'
    >>> Enough("duration", 18, 4, 33, (), True, unit="months", seen=(4, 72)).amount
    '33 months or less'
    """

    feature: str
    shown: Any
    low: Any
    high: Any
    levels: tuple[Any, ...]
    whole: bool
    title: str | None = None
    unit: str | None = None
    seen: tuple[Any, Any] | None = None

    @property
    def amount(self) -> str:
        """The values in words; "or less" and "or more" reach to the end of the range seen."""
        if self.levels:
            return listed([show_measured(level, self.unit) for level in self.levels]).replace(" and ", " or ")
        low, high = (show_measured(end, self.unit) for end in (self.low, self.high))
        if self.low == self.high or self.seen is None:
            return high if self.low == self.high else f"from {low} to {high}"
        least, most = self.low <= self.seen[0], self.high >= self.seen[1]
        if least == most:
            return f"from {low} to {high}"
        return f"{high} or less" if least else f"{low} or more"

    def __str__(self) -> str:
        return f"{show_name(self.title or self.feature)} {self.amount}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        ends = {"levels": list(self.levels)} if self.levels else {"low": self.low, "high": self.high}
        held = {"feature": self.feature, "shown": self.shown, **ends, "whole": self.whole}
        return {name: plain(value) for name, value in held.items()}


def enough_by_row(decision: Decision, schema: Schema, turned: pd.DataFrame, moved: Bools) -> list[tuple[Enough, ...]]:
    """For each turned row (n, columns) what is enough of each feature that was moved (n, p)."""
    out: list[list[Enough]] = [[] for _ in range(len(turned))]
    for j in np.flatnonzero(moved.any(axis=0)).tolist():
        rows = np.flatnonzero(moved[:, j])
        found = enough_of(decision, schema.features[j], turned.iloc[rows])
        for row, part in zip(rows.tolist(), found, strict=True):
            out[row].append(part)
    return [tuple(parts) for parts in out]


def enough_of(decision: Decision, feature: Feature, turned: pd.DataFrame) -> list[Enough]:
    """The values of a feature that leave the outcome of turned rows (n, columns) changed, row by row."""
    cells = Cells.of(turned)
    shown = [cells.value(row, feature) for row in range(len(turned))]
    words = feature.title, feature.unit
    if feature.is_numeric:
        known = np.flatnonzero([value is not None for value in shown])
        runs = iter(_runs(decision, feature, turned.iloc[known])) if len(known) else iter(())
        missing = (None, None, True, None)
        found = [missing if value is None else next(runs) for value in shown]
        return [
            Enough(feature.name, value, low, high, (), whole, *words, seen)
            for value, (low, high, whole, seen) in zip(shown, found, strict=True)
        ]
    levels = feature.columns if feature.kind == "indicators" else feature.levels
    if not levels or feature.kind in ("datetime", "group"):
        return [Enough(feature.name, value, value, value, (), True, *words) for value in shown]
    fits = np.column_stack([_asked(decision, turned, _level_cells(feature, level, levels)) for level in levels])
    return [
        Enough(feature.name, value, None, None,
               tuple(typed(level, feature) for level, fit in zip(levels, row, strict=True) if fit), True, *words)
        for value, row in zip(shown, fits, strict=True)
    ]  # fmt: skip


def _level_cells(feature: Feature, level: Any, levels: Sequence[Any]) -> dict[str, list[Any]]:
    if feature.kind == "indicators":
        return {column: [int(level == column)] for column in feature.columns}
    return {feature.columns[0]: [level]}


def _runs(decision: Decision, feature: Feature, turned: pd.DataFrame) -> list[tuple[Any, Any, bool, tuple[Any, Any]]]:
    """Ends of the run of values around those shown, whether every value was asked, and the range asked about."""
    column = feature.columns[0]
    shown = as_numbers(turned[column], feature)
    low, high = (
        np.where(np.isfinite(end), pick(shown, end), shown)
        for end, pick in ((feature.minimum, np.minimum), (feature.maximum, np.maximum))
    )
    step = 10.0**feature.decimals if feature.kind == "number" else 1.0
    first, last = np.ceil(np.round(low.min() * step, 6)), np.floor(np.round(high.max() * step, 6))
    count = max(0, int(last - first) + 1)
    places = first + np.unique(np.linspace(0, max(count - 1, 0), min(count, MOST_VALUES)).round())
    grid = np.round(places / step, max(feature.decimals, 0))
    inside = (grid >= low[:, None]) & (grid <= high[:, None])
    fits = inside & _fits(decision, column, turned, np.broadcast_to(grid, inside.shape), inside)
    at, number = np.searchsorted(grid, shown), np.arange(len(grid))
    above = at + (grid[np.minimum(at, max(len(grid) - 1, 0))] == shown if len(grid) else 0)
    below_end = np.where(~fits & (number < at[:, None]), number, -1).max(axis=1, initial=-1) + 1
    above_end = np.where(~fits & (number >= above[:, None]), number, len(grid)).min(axis=1, initial=len(grid)) - 1
    ends = []
    for end, way, nothing in ((below_end, -1, below_end >= at), (above_end, 1, above_end < above)):
        padded = np.concatenate([grid, [np.nan]])
        last_in = np.where(nothing, shown, padded[np.clip(end, 0, len(grid))])
        next_out = padded[np.clip(end + way, -1, len(grid))]
        beyond = (end + way < 0) | (end + way >= len(grid))
        limit = low if way < 0 else high
        next_out = np.where(beyond | (next_out * way > limit * way), np.nan, next_out)
        ends.append(_to_the_step(decision, feature, turned, last_in, next_out, step))
    return [
        (*(typed(np.float64(end[k]), feature) for end in ends), count <= MOST_VALUES,
         tuple(typed(np.float64(end[k]), feature) for end in (low, high)))
        for k in range(len(shown))
    ]  # fmt: skip


def _to_the_step(
    decision: Decision, feature: Feature, turned: pd.DataFrame, inside: Floats, outside: Floats, step: float
) -> Floats:
    """The last values of runs, to the last step between one that does and one that does not; NaN: there is none."""
    while True:
        middle = np.round(np.round((inside + outside) / 2 * step) / step, max(feature.decimals, 0))
        wide = np.abs(np.round((outside - inside) * step)) > 1
        rows = np.flatnonzero(wide & (middle != inside) & (middle != outside))
        if len(rows) == 0:
            return inside
        does = _fits(decision, feature.columns[0], turned.iloc[rows], middle[rows, None])[:, 0]
        inside, outside = inside.copy(), outside.copy()
        inside[rows[does]], outside[rows[~does]] = middle[rows[does]], middle[rows[~does]]


def _fits(decision: Decision, column: str, turned: pd.DataFrame, values: Floats, where: Bools | None = None) -> Bools:
    """Whether the outcome stays changed with each of these values (n, m), where it is asked."""
    out = np.zeros(values.shape, dtype=bool)
    rows, places = np.nonzero(np.ones(values.shape, dtype=bool) if where is None else where)
    for first in range(0, len(rows), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        cells = values[rows[part], places[part]]
        out[rows[part], places[part]] = _asked(decision, turned, {column: cells}, rows[part])
    return out


def _asked(
    decision: Decision, turned: pd.DataFrame, cells: dict[str, Any], rows: Ints | None = None
) -> Bools:  # fmt: skip
    """Whether the outcome stays changed with these cells in place of those shown."""
    asked = (turned if rows is None else turned.iloc[rows]).reset_index(drop=True)
    for column, values in cells.items():
        dtype = turned[column].dtype
        held = pd.Series(values)
        held = held.iloc[np.zeros(len(asked), dtype=int)].reset_index(drop=True) if len(held) != len(asked) else held
        whole = held.dtype.kind != "f" or bool((held % 1 == 0).all())
        asked[column] = held.astype(dtype if whole or dtype.kind == "f" else float)
    return np.asarray(~decision.verdicts(asked).positive)
