"""How much is enough: the values of each changed feature that still change the outcome, the others as shown.

The user's own model is asked, so the claim holds for any model: up to `MOST_VALUES` values of a number one by one; of a
finer grid that many, evenly spread, and the ends to the last step. For many answers of a model that was read, runs of
values are computed instead, and the model is asked about their ends and the values just outside of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
FEW = 64  # answers below which the model is asked about every value, whatever was read of it
BLOCK = 2_048  # answers that are worked on at once

# Rows (n, columns), the features asked about (n, p) and values of some features: which values (rows, values) surely
# have the other outcome, by feature; nothing where that is not known.
Profiles = Callable[[pd.DataFrame, Bools, Mapping[int, Floats]], Mapping[int, Bools]]


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
        Whether every value between the ends changes the outcome: asked of the model, or read of it and asked at the
        ends; else values evenly spread were asked, and the ends.
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


def enough_by_row(
    decision: Decision, schema: Schema, turned: pd.DataFrame, moved: Bools, profiles: Profiles | None = None
) -> list[tuple[Enough, ...]]:
    """For each turned row (n, columns) what is enough of each feature that was moved (n, p)."""
    if len(turned) > BLOCK:
        blocks = [slice(first, first + BLOCK) for first in range(0, len(turned), BLOCK)]
        return [one for at in blocks for one in enough_by_row(decision, schema, turned.iloc[at], moved[at], profiles)]
    out: list[list[Enough]] = [[] for _ in range(len(turned))]
    known = {} if profiles is None or len(turned) < FEW else _known_runs(decision, schema, turned, moved, profiles)
    for j in np.flatnonzero(moved.any(axis=0)).tolist():
        rows = np.flatnonzero(moved[:, j])
        found = _enough_of(decision, schema.features[j], turned, rows, known.get(j))
        for row, part in zip(rows.tolist(), found, strict=True):
            out[row].append(part)
    return [tuple(parts) for parts in out]


def _enough_of(
    decision: Decision, feature: Feature, turned: pd.DataFrame, rows: Ints, known: Floats | None
) -> list[Enough]:  # fmt: skip
    """The values of a feature that leave the outcome of some turned rows changed, row by row.

    ``known`` holds the ends of runs (rows, 2) that need not be asked for, NaN elsewhere.
    """
    cells = Cells({column: turned[column].array for column in feature.columns})
    shown = [cells.value(row, feature) for row in rows.tolist()]
    words = feature.title, feature.unit
    if feature.is_numeric:
        there = np.flatnonzero([value is not None for value in shown])
        ends = np.full((len(there), 2), np.nan) if known is None else known[there]
        numbers = as_numbers(turned[feature.columns[0]].iloc[rows[there]], feature)
        runs = iter(_runs(decision, feature, turned, rows[there], numbers, ends) if len(there) else ())
        missing = (None, None, True, None)
        found = [missing if value is None else next(runs) for value in shown]
        return [
            Enough(feature.name, value, low, high, (), whole, *words, seen)
            for value, (low, high, whole, seen) in zip(shown, found, strict=True)
        ]
    levels = feature.columns if feature.kind == "indicators" else feature.levels
    if not levels or feature.kind in ("datetime", "group"):
        return [Enough(feature.name, value, value, value, (), True, *words) for value in shown]
    whole = turned.iloc[rows].reset_index(drop=True)
    fits = np.column_stack([_fit_level(decision, whole, _level_cells(feature, level)) for level in levels])
    return [
        Enough(feature.name, value, None, None,
               tuple(typed(level, feature) for level, fit in zip(levels, row, strict=True) if fit), True, *words)
        for value, row in zip(shown, fits, strict=True)
    ]  # fmt: skip


def _level_cells(feature: Feature, level: Any) -> dict[str, Any]:
    if feature.kind == "indicators":
        return {column: int(level == column) for column in feature.columns}
    return {feature.columns[0]: level}


def _fit_level(decision: Decision, turned: pd.DataFrame, cells: Mapping[str, Any]) -> Bools:
    """Whether the outcome stays changed with a level in place of the one shown."""
    held = {column: pd.Series([value] * len(turned)).astype(turned[column].dtype) for column, value in cells.items()}
    return ~decision.refuses(turned.assign(**held))


def _step(feature: Feature) -> float:
    """Steps of the feature's grid in one unit."""
    return float(10.0**feature.decimals) if feature.kind == "number" else 1.0


def _grid(feature: Feature, low: float, high: float) -> tuple[Floats, bool]:
    """The values of the feature's grid between two ends, and whether they are all."""
    step = _step(feature)
    first, last = np.ceil(np.round(low * step, 6)), np.floor(np.round(high * step, 6))
    count = max(0, int(last - first) + 1)
    places = first + np.unique(np.linspace(0, max(count - 1, 0), min(count, MOST_VALUES)).round())
    return np.round(places / step, max(feature.decimals, 0)), count <= MOST_VALUES


def _range_of(feature: Feature, shown: Floats) -> tuple[Floats, Floats]:
    """The range seen, and the values shown where they lie outside of it."""
    low, high = (
        np.where(np.isfinite(end), pick(shown, end), shown)
        for end, pick in ((feature.minimum, np.minimum), (feature.maximum, np.maximum))
    )
    return low, high


def _known_runs(
    decision: Decision, schema: Schema, turned: pd.DataFrame, moved: Bools, profiles: Profiles
) -> dict[int, Floats]:
    """The ends of runs that were read of the model and that it confirms, by feature; NaN where it does not."""
    grids = {}
    for j in np.flatnonzero(moved.any(axis=0)).tolist():
        feature = schema.features[j]
        if feature.is_numeric and np.isfinite([feature.minimum, feature.maximum]).all():
            grid, whole = _grid(feature, feature.minimum, feature.maximum)
            if whole and len(grid):
                grids[j] = grid
    runs: dict[int, list[Floats]] = {}
    rows_of = {j: np.flatnonzero(moved[:, j]) for j in grids}
    for j, fits in profiles(turned, moved, grids).items():
        feature, grid = schema.features[j], grids[j]
        shown = as_numbers(turned[feature.columns[0]].iloc[rows_of[j]], feature)
        runs[j] = _around(grid, fits, shown, np.full(len(shown), grid[0]), np.full(len(shown), grid[-1]))
        outside = ~((shown >= feature.minimum) & (shown <= feature.maximum))
        for end in runs[j]:
            end[outside] = np.nan
        # The value shown was confirmed with the answer.
        runs[j] += [np.where(end == shown, np.nan, end) for end in runs[j][:2]]
    asked = [(j, part, np.flatnonzero(~np.isnan(runs[j][part]))) for j in runs for part in (2, 3, 4, 5)]
    cells = [(schema.features[j].columns[0], rows_of[j][at], runs[j][part][at]) for j, part, at in asked]
    for (j, part, at), turns in zip(asked, _asked(decision, turned, cells), strict=True):
        wrong = at[turns != (part > 3)]
        runs[j][0][wrong] = np.nan
    return {j: np.column_stack(parts[:2]) for j, parts in runs.items()}


def _runs(
    decision: Decision, feature: Feature, turned: pd.DataFrame, rows: Ints, shown: Floats, ends: Floats
) -> list[tuple[Any, Any, bool, tuple[Any, Any]]]:  # fmt: skip
    """Ends of the run of values around those shown, whether every value does, and the range asked about."""
    seen, whole = _range_of(feature, shown), np.ones(len(shown), dtype=bool)
    left = np.flatnonzero(np.isnan(ends).any(axis=1))
    if len(left):
        low, high = (end[left] for end in seen)
        ends[left], whole[left] = _asked_runs(decision, feature, turned.iloc[rows[left]], shown[left], low, high)
    columns = *ends.T, *seen
    as_typed = {value: typed(value, feature) for value in np.unique(columns)}  # few of them differ
    first, last, least, most = ([as_typed[value] for value in column] for column in columns)
    return list(zip(first, last, whole.tolist(), zip(least, most, strict=True), strict=True))


def _asked_runs(
    decision: Decision, feature: Feature, turned: pd.DataFrame, shown: Floats, low: Floats, high: Floats
) -> tuple[Floats, bool]:
    """Ends of runs (n, 2) as the model has them, and whether it was asked about every value."""
    grid, whole = _grid(feature, low.min(), high.max())
    inside = (grid >= low[:, None]) & (grid <= high[:, None])
    fits = inside & _fits(decision, feature.columns[0], turned, np.broadcast_to(grid, inside.shape), inside)
    *ends, out_low, out_high = _around(grid, fits, shown, low, high)
    for side, beyond in enumerate((out_low, out_high)):
        ends[side] = _to_the_step(decision, feature, turned, ends[side], beyond, _step(feature))
    return np.column_stack(ends), whole


def _around(grid: Floats, fits: Bools, shown: Floats, low: Floats, high: Floats) -> list[Floats]:
    """First and last value of the run around the one shown, and the values next to it outside; NaN: there is none."""
    at, number = np.searchsorted(grid, shown), np.arange(len(grid))
    above = at + (grid[np.minimum(at, max(len(grid) - 1, 0))] == shown if len(grid) else 0)
    below_end = np.where(~fits & (number < at[:, None]), number, -1).max(axis=1, initial=-1) + 1
    above_end = np.where(~fits & (number >= above[:, None]), number, len(grid)).min(axis=1, initial=len(grid)) - 1
    padded, ends, outside = np.concatenate([grid, [np.nan]]), [], []
    for end, way, nothing in ((below_end, -1, below_end >= at), (above_end, 1, above_end < above)):
        ends.append(np.where(nothing, shown, padded[np.clip(end, 0, len(grid))]))
        next_out = padded[np.clip(end + way, -1, len(grid))]
        beyond = (end + way < 0) | (end + way >= len(grid))
        limit = low if way < 0 else high
        outside.append(np.where(beyond | (next_out * way > limit * way), np.nan, next_out))
    return ends + outside


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
        (does,) = _asked(decision, turned, [(feature.columns[0], rows, middle[rows])])
        inside, outside = inside.copy(), outside.copy()
        inside[rows[does]], outside[rows[~does]] = middle[rows[does]], middle[rows[~does]]


def _fits(decision: Decision, column: str, turned: pd.DataFrame, values: Floats, where: Bools) -> Bools:
    """Whether the outcome stays changed with each of these values (n, m), where it is asked."""
    out = np.zeros(values.shape, dtype=bool)
    rows, places = np.nonzero(where)
    for first in range(0, len(rows), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        cells = [(column, rows[part], values[rows[part], places[part]])]
        (out[rows[part], places[part]],) = _asked(decision, turned, cells)
    return out


def _asked(
    decision: Decision, turned: pd.DataFrame, cells: Sequence[tuple[str, Ints, Floats]]
) -> list[Bools]:  # fmt: skip
    """Whether the outcome of rows stays changed with other numbers in one column, asked in one call."""
    ends = np.cumsum([0, *(len(rows) for _, rows, _ in cells)])
    if ends[-1] == 0:
        return [np.zeros(0, dtype=bool) for _ in cells]
    asked = turned.iloc[np.concatenate([rows for _, rows, _ in cells])].reset_index(drop=True)
    for column in {column for column, *_ in cells}:
        dtype, parts = asked[column].dtype, [k for k, (name, *_) in enumerate(cells) if name == column]
        numbers = np.concatenate([cells[k][2] for k in parts])
        dtype = dtype if dtype.kind == "f" or bool((numbers % 1 == 0).all()) else np.dtype(float)
        held = asked[column].astype(dtype).array.copy()
        held[np.concatenate([np.arange(ends[k], ends[k + 1]) for k in parts])] = pd.array(numbers).astype(dtype)
        asked[column] = held
    turns = ~decision.refuses(asked)
    return [turns[first:last] for first, last in pairwise(ends)]
