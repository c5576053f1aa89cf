"""How much is enough: the values of each changed feature that still change the outcome, the others as shown.

Every value is asked of the user's own model, so the claim holds for any model: up to `MOST_VALUES` values of a number
one by one; of a finer grid that many, evenly spread, and the ends to the last step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.tables.arrays import Bools, Floats
from fewest.tables.schema import Feature
from fewest.tables.values import Cells, typed
from fewest.tables.wording import listed, show_measured, show_name

MOST_VALUES = 2_000


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

    Examples
    --------
    >>> str(Enough("duration", 18, 4, 33, (), True, unit="months"))
    'duration from 4 months to 33 months'
    """

    feature: str
    shown: Any
    low: Any
    high: Any
    levels: tuple[Any, ...]
    whole: bool
    title: str | None = None
    unit: str | None = None

    def __str__(self) -> str:
        name = show_name(self.title or self.feature)
        if self.levels:
            return (
                f"{name} {listed([show_measured(level, self.unit) for level in self.levels]).replace(' and ', ' or ')}"
            )
        if self.low == self.high:
            return f"{name} {show_measured(self.low, self.unit)}"
        return f"{name} from {show_measured(self.low, self.unit)} to {show_measured(self.high, self.unit)}"


def enough_of(decision: Decision, feature: Feature, turned: pd.DataFrame) -> Enough:
    """The values of a feature that leave the outcome of one turned row (1, columns) changed."""
    shown = Cells.of(turned).value(0, feature)
    if feature.is_numeric and shown is not None:
        low, high, whole = _run(decision, feature, turned, float(shown))
        least, most = (typed(np.float64(end), feature) for end in (low, high))
        return Enough(feature.name, shown, least, most, (), whole, feature.title, feature.unit)
    known = feature.columns if feature.kind == "indicators" else feature.levels
    if not known or feature.kind in ("datetime", "group"):
        return Enough(feature.name, shown, shown, shown, (), True, feature.title, feature.unit)
    rows = turned.iloc[np.zeros(len(known), dtype=int)].reset_index(drop=True)
    for column in feature.columns:
        cells = [int(level == column) for level in known] if feature.kind == "indicators" else list(known)
        rows[column] = pd.Series(cells).astype(turned[column].dtype)
    fits = ~decision.verdicts(rows).positive
    levels = tuple(typed(level, feature) for level, fit in zip(known, fits, strict=True) if fit)
    return Enough(feature.name, shown, None, None, levels, True, feature.title, feature.unit)


def _run(decision: Decision, feature: Feature, turned: pd.DataFrame, shown: float) -> tuple[float, float, bool]:
    """Ends of the run of values around the one shown, and whether every value of it was asked."""
    low, high = min(shown, feature.minimum), max(shown, feature.maximum)
    low, high = (end if np.isfinite(end) else shown for end in (low, high))
    step = 10.0**feature.decimals if feature.kind == "number" else 1.0
    first, last = np.ceil(np.round(low * step, 6)), np.floor(np.round(high * step, 6))
    count = int(last - first) + 1
    places = first + np.unique(np.linspace(0, max(count - 1, 0), min(max(count, 1), MOST_VALUES)).round())
    grid = np.union1d(np.round(places / step, max(feature.decimals, 0)), [shown])
    fits = _asked(decision, feature, turned, grid)
    at = int(np.searchsorted(grid, shown))
    below, above = at - _length(fits[at::-1]), at + _length(fits[at:])
    least = _end(decision, feature, turned, grid, below, -1, step)
    most = _end(decision, feature, turned, grid, above, 1, step)
    return least, most, count <= MOST_VALUES


def _length(fits: Bools) -> int:
    """How far the run of the first value goes."""
    return len(fits) - 1 if fits.all() else int(np.argmin(fits)) - 1


def _end(
    decision: Decision, feature: Feature, turned: pd.DataFrame, grid: Floats, at: int, way: int, step: float
) -> float:
    """The last value of a run, to the last step between two values that were asked."""
    inside = float(grid[at])
    if not 0 <= at + way < len(grid):
        return inside
    outside = float(grid[at + way])
    while abs(np.round((outside - inside) * step)) > 1:
        middle = float(np.round(np.round((inside + outside) / 2 * step) / step, max(feature.decimals, 0)))
        if middle in (inside, outside):
            break
        if _asked(decision, feature, turned, np.array([middle]))[0]:
            inside = middle
        else:
            outside = middle
    return inside


def _asked(decision: Decision, feature: Feature, turned: pd.DataFrame, values: Floats) -> Bools:
    """Whether the outcome stays changed with each of these values."""
    rows = turned.iloc[np.zeros(len(values), dtype=int)].reset_index(drop=True)
    dtype = turned[feature.columns[0]].dtype
    whole = bool((values % 1 == 0).all())
    rows[feature.columns[0]] = pd.Series(values).astype(dtype if whole or dtype.kind == "f" else float)
    return np.asarray(~decision.verdicts(rows).positive)
