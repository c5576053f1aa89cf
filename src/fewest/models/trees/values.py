"""Values a leaf can be entered with: inside its box, of the feature's own type, and short enough to be read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fewest.models.trees.leaf_boxes import Interval
from fewest.tables.schema import Feature

MOST_DECIMALS = 17


def nearest_inside(feature: Feature, side: Interval, target: float, allowed: Sequence[float] | None = None) -> float:
    """The typed value in (low, high] next to a target; NaN where the interval holds none.

    Integers stay whole. Numbers get the feature's decimals, and more only where the interval is narrower than that;
    they keep off the upper end, which belongs to the box but is where libraries round.

    Parameters
    ----------
    feature : Feature
    side : Interval
    target : float
        Where to be; may lie outside, or be infinite.
    allowed : sequence of float, optional
        The only values that may be taken.

    Examples
    --------
    >>> age = Feature("age", "integer", ("age",))
    >>> nearest_inside(age, Interval(20.5, 40.5), 99.0), nearest_inside(age, Interval(20.2, 20.8), 20.0)
    (40.0, nan)
    >>> nearest_inside(Feature("rate", "number", ("rate",), decimals=1), Interval(0.31, 0.34), 0.0)
    0.32
    """
    if allowed is not None:
        inside = [value for value in allowed if side.low < value <= side.high]
        return min(inside, key=lambda value: (abs(value - target), value), default=float("nan"))
    if not side.low < side.high:
        return float("nan")
    target = _finite(target, side)
    if feature.kind == "integer":
        value = np.floor(min(max(np.rint(target), np.floor(side.low) + 1), side.high))
        return float(value) if side.low < value <= side.high else float("nan")
    for decimals in range(feature.decimals, MOST_DECIMALS + 1):
        value = _decimal(target, side, decimals)
        if side.low < value < side.high:
            return value
    return float(np.nextafter(side.low, side.high))


def _finite(target: float, side: Interval) -> float:
    """The target itself where it is a number, otherwise an end of the interval that is one."""
    if np.isfinite(target):
        return target
    ends = [end for end in (side.low, side.high) if np.isfinite(end)]
    if not ends:
        return 0.0
    return ends[0] if target < 0 else ends[-1]


def _decimal(target: float, side: Interval, decimals: int) -> float:
    """The number of so many decimals next to the target that is not at or beyond the ends, as far as rounding goes."""
    step = 10.0**-decimals
    value = round(target, decimals)
    if value <= side.low:
        value = round(np.floor(side.low / step) * step + step, decimals)
        if value <= side.low:
            value = round(value + step, decimals)
    elif value >= side.high:
        value = round(np.ceil(side.high / step) * step - step, decimals)
        if value >= side.high:
            value = round(value - step, decimals)
    return float(value)
