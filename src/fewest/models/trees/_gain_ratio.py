"""The tests C4.5 chooses between, and how it chooses: gain ratio among tests of at least average gain.

Quinlan, "C4.5: Programs for Machine Learning" (1993), Sections 2.2-2.4 and 3; "Improved Use of Continuous Attributes
in C4.5" (JAIR 1996) for the price of a threshold. All information is in bits; rows whose value is missing scale the
gain by the known share and count as one more outcome of the test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

EPSILON = 1e-10  # gains closer than this are equal: they are sums of rounded logarithms
MOST_IN_A_BRANCH = 25  # Release 8 asks no more rows than this of a branch at a threshold


@dataclass(frozen=True)
class Test:
    """One test of one feature at one node.

    Attributes
    ----------
    feature : int
    gain : float
        Information the test gives on the class, threshold's price taken off.
    split_info : float
        Information of the test's outcome itself.
    codes : tuple of int
        Levels tested: one is set against all others; several have a branch each. Empty for a threshold.
    low, high : float
        Neighbouring values of the node that a threshold falls between.
    """

    __test__ = False  # not a test case, whatever its name makes pytest think

    feature: int
    gain: float
    split_info: float
    codes: tuple[int, ...] = ()
    low: float = np.nan
    high: float = np.nan

    @property
    def ratio(self) -> float:
        """Gain per bit of the test's own information."""
        return self.gain / self.split_info

    def branches(self, column: Floats) -> tuple[npt.NDArray[np.intp], int]:
        """Branch of each row (n,), and the heaviest one, where rows go whose value is missing."""
        if not self.codes:
            branch = np.where(column <= self.low, 0, 1)
        elif len(self.codes) == 1:
            branch = np.where(column == self.codes[0], 0, 1)
        else:
            branch = np.searchsorted(self.codes, column)
        known = ~np.isnan(column)
        heaviest = int(np.argmax(np.bincount(branch[known])))
        return np.where(known, branch, heaviest).astype(np.intp), heaviest


def information(counts: npt.ArrayLike) -> Any:
    """Total information of counts along the last axis: rows times entropy, in bits.

    Examples
    --------
    >>> float(information([2, 2]))
    4.0
    """
    table = np.asarray(counts, dtype=float)
    return _xlogx(table.sum(axis=-1)) - _xlogx(table).sum(axis=-1)


def threshold_test(feature: int, column: Floats, positive: Bools, min_leaf: int) -> Test | None:
    """The threshold of largest gain, less the price of choosing it; None where it gains nothing."""
    known = ~np.isnan(column)
    values, labels = column[known], positive[known]
    rows, total = len(values), len(column)
    order = np.argsort(values, kind="stable")
    values, hits = values[order], np.cumsum(labels[order])
    # Release 8: a tenth of the rows per class in each branch, within [min_leaf, 25].
    least = max(min(0.1 * rows / 2, MOST_IN_A_BRANCH), min_leaf)
    below = np.arange(1, rows)
    cuts = np.flatnonzero((values[:-1] < values[1:]) & (below >= least) & (rows - below >= least))
    if len(cuts) == 0:
        return None
    left, left_hits = below[cuts], hits[cuts]
    right, right_hits = rows - left, hits[-1] - left_hits
    before = information([rows - hits[-1], hits[-1]])
    after = information(np.stack([left - left_hits, left_hits], axis=-1)) + information(
        np.stack([right - right_hits, right_hits], axis=-1)
    )
    gains = (before - after) / total  # known share times gain per known row
    best = int(np.argmax(gains))
    gain = float(gains[best] - np.log2(len(cuts)) / total)
    if gain <= EPSILON:
        return None
    split_info = float(information([left[best], right[best], total - rows])) / total
    return Test(feature, gain, split_info, low=float(values[cuts[best]]), high=float(values[cuts[best] + 1]))


def level_tests(
    feature: int, column: Floats, positive: Bools, levels: int, min_leaf: int, multiway: bool
) -> list[Test]:
    """Tests of a feature's levels: all at once, or each against the others (once where there are but two)."""
    known = ~np.isnan(column)
    codes = column[known].astype(np.intp)
    table = np.bincount(2 * codes + positive[known], minlength=2 * levels).reshape(-1, 2)
    rows, total = table.sum(axis=1), len(column)
    if multiway:
        present = np.flatnonzero(rows)
        # At least two branches must be worth having.
        if (rows >= min_leaf).sum() < 2:
            return []
        groups = [(tuple(present.tolist()), table[present])]
    else:
        single = [1] if levels == 2 else range(levels)
        groups = [((code,), np.stack([table[code], table.sum(axis=0) - table[code]])) for code in single]
        groups = [(group, branches) for group, branches in groups if (branches.sum(axis=1) >= min_leaf).all()]
    before = information(table.sum(axis=0))
    tests = []
    for group, branches in groups:
        gain = float(before - information(branches).sum()) / total
        split_info = float(information([*branches.sum(axis=1), total - len(codes)])) / total
        tests.append(Test(feature, gain, split_info, group))
    return tests


def choose(tests: Sequence[Test]) -> Test | None:
    """The test of largest gain ratio among those of at least average gain; the first of equals."""
    if not tests:
        return None
    average = sum(test.gain for test in tests) / len(tests)
    worth = [test for test in tests if test.gain >= average - EPSILON and test.gain > EPSILON]
    best: Test | None = None
    for test in worth:
        if best is None or test.ratio > best.ratio + EPSILON:
            best = test
    return best


def _xlogx(counts: Any) -> Any:
    return counts * np.log2(np.maximum(counts, 1.0))
