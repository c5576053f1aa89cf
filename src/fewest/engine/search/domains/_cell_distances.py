"""Where a case stands among the cells of whole domains: its side of every split, and how far each allowed cell is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fewest.engine.numba_cache import inner
from fewest.engine.search.domains._leaf_slots import FeatureCells, Tests, Words
from fewest.engine.structure.walk import goes_left
from fewest.tables.arrays import Bools, Floats, Ints

FREE, CHOSEN, SHUT = 0, 1, 2  # what a set may do with a feature


class Standing(NamedTuple):
    """One case among the cells."""

    side: Bools  # (tests,): Whether it goes left
    state: npt.NDArray[np.int8]  # (p + 1,): `FREE` where a change may do something; the last is for columns of none
    far: Floats  # (cells,): Distance from the case; inf where the cell is as the case is, or may not be entered
    least: Floats  # (p,): The least of them
    low: Ints  # (p,), as the three that follow: first and last cell allowed, and those that are as the case is
    high: Ints
    same_low: Ints
    same_high: Ints
    place: Ints  # (p,): First cell that is not below the case
    bits: Words  # (p, words): Cells allowed of features whose leaves ask for sets


def make_standing(tests: Tests, cells: FeatureCells, p: int) -> Standing:
    """Room for one case of p features."""

    def ints() -> Ints:
        return np.zeros(p, dtype=np.int64)

    return Standing(
        np.zeros(len(tests.column), dtype=bool), np.full(p + 1, SHUT, dtype=np.int8), np.zeros(len(cells.low)),
        np.zeros(p), ints(), ints(), ints(), ints(), ints(), np.zeros((p, tests.bits.shape[2]), dtype=np.uint64),
    )  # fmt: skip


@inner()
def stand(tests, cells, asked, here, i):  # type: ignore[no-untyped-def]
    """Fill in where case i stands."""
    p = asked.may.shape[1]
    for f in range(p):
        here.same_low[f], here.same_high[f] = 0, cells.start[f + 1] - cells.start[f] - 1
        here.state[f] = SHUT
        for w in range(here.bits.shape[1]):
            here.bits[f, w] = ~np.uint64(0)
    test, end = 0, tests.column.shape[0]
    while test < end:
        column, f = tests.column[test], tests.feature[test]
        z, ranged, low, high = asked.rows[i, column], f < p and cells.ranged[f], np.int32(0), np.int32(2**31 - 1)
        if f < p and asked.may[i, f]:
            here.state[f] = FREE
        while test < end and tests.column[test] == column:
            category, missing = tests.category[test], tests.missing_left[test]
            left = goes_left(z, tests.threshold[test], missing, category, asked.left_levels)
            here.side[test] = left
            way = 1 if left else 0
            if ranged:
                low, high = max(low, tests.low[test, way]), min(high, tests.high[test, way])
            elif f < p:
                for w in range(here.bits.shape[1]):
                    here.bits[f, w] &= tests.bits[test, way, w]
            test += 1
        if ranged:
            here.same_low[f], here.same_high[f] = max(here.same_low[f], low), min(here.same_high[f], high)
    for f in range(p):
        if here.state[f] == FREE:
            _measure(cells, asked, here, i, f)


@inner()
def _measure(cells, asked, here, i, f):  # type: ignore[no-untyped-def]
    """How far the cells of a feature are, and which of them are left."""
    first, n = cells.start[f], cells.start[f + 1] - cells.start[f]
    own, way, ranged = asked.own[i, f], asked.direction[f], cells.ranged[f]
    measured = asked.measured[f] and not np.isnan(own)
    low, high, place, least = n, -1, 0, np.inf
    for c in range(n):
        at = first + c
        place += cells.high[at] < own
        if ranged:
            fits = c < here.same_low[f] or c > here.same_high[f]
        else:
            fits = (here.bits[f, c // 64] >> np.uint64(c % 64)) & np.uint64(1) == np.uint64(0)
        if way > 0:
            fits &= cells.high[at] > own
        elif way < 0:
            fits &= cells.low[at] < own
        far = 1.0
        if measured:
            far = max(cells.low[at] - own, own - cells.high[at], 0.0) / asked.scale[f]
        here.far[at] = far if fits else np.inf
        if fits:
            low, high, least = min(low, c), max(high, c), min(least, far)
    for w in range(here.bits.shape[1]):
        here.bits[f, w] = np.uint64(0)
    if not ranged:
        for c in range(n):
            if here.far[first + c] < np.inf:
                here.bits[f, c // 64] |= np.uint64(1) << np.uint64(c % 64)
    here.low[f], here.high[f], here.place[f], here.least[f] = low, high, place, least
    if high < 0:
        here.state[f] = SHUT
