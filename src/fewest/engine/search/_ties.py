"""The one rule for ties: what counts as equal when sets are compared, compiled or not.

Cheaper comes first, then closer, then a lower score, then earlier units. Costs are equal within a factor of 1 + `SAME`;
distances and scores after rounding to 12 significant decimals, or, where nothing but the best is kept, within `NOISE`.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from fewest.tables.arrays import Floats

SAME = 1e-9  # costs this close (relatively) are equal
SLACK = 1e-11  # of distances: beyond it the rounded values differ
NOISE = 1e-12  # of distances and scores: what the order of a sum may change

Cost = TypeVar("Cost", float, Floats)


def as_cheap(cost: Cost) -> Cost:
    """The most that a set which is as cheap may cost; a limit, raised by what summing costs may add."""
    return cost * (1.0 + SAME)


def round_significant(values: Floats) -> Floats:
    """Round to 12 significant decimals: what is compared when sets are ranked."""
    size = np.abs(values)
    known = np.isfinite(values) & (size > 1e-290)
    power = 11.0 - np.floor(np.log10(np.where(known, size, 1.0)))
    # A power of ten is exact only up to 1e22, hence dividing where the power is negative.
    up, down = 10.0 ** np.maximum(power, 0.0), 10.0 ** np.maximum(-power, 0.0)
    return np.where(known, np.round(values / down * up) / up * down, np.where(np.isfinite(values), 0.0, values))
