"""Subsets of units as arrays: made in slices of a lexicographic table, ranked by the rule of `Problem`.

Nothing here knows what a score is; both exact searches that look at vertices share it, so that they rank alike.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
import numpy.typing as npt

from fewest.engine.search._ties import as_cheap, round_significant
from fewest.engine.search.problem import Found, Outcome, Problem
from fewest.tables.arrays import Bools, Floats, Ints

_HUGE = 2**62


@lru_cache(maxsize=256)
def _counts(m: int, k: int) -> tuple[Ints, ...]:
    """C(x, q) for x = 0..m, one array for each q = 0..k (clipped: only tables that fit a budget are ever unranked)."""
    return tuple(np.array([min(comb(x, q), _HUGE) for x in range(m + 1)], dtype=np.int64) for q in range(k + 1))


def combinations(m: int, k: int, first: int = 0, last: int | None = None) -> npt.NDArray[np.int16]:
    """Rows first..last of the lexicographic table of k-subsets of range(m): (last - first, k).

    Row r is found without the rows before it, so tables larger than memory can be walked in slices.
    """
    counts = _counts(m, k)
    last = comb(m, k) if last is None else last
    table = np.empty((last - first, k), dtype=np.int16)
    behind = int(counts[k][m]) - np.arange(first, last, dtype=np.int64)  # rows from this one to the end, itself too
    for position in range(k):
        q = k - position
        left = np.searchsorted(counts[q], behind)  # fewest trailing elements that still hold this many rows
        table[:, position] = m - left
        behind = counts[q - 1][left - 1] - (counts[q][left] - behind)
    return table


def unit_lists(movable: Bools, cubes: Ints) -> Ints:
    """Movable units of cubes that all have the same number of them: (cubes, m)."""
    return np.nonzero(movable[cubes])[1].reshape(len(cubes), -1)


def as_rows(units: npt.NDArray[np.integer], n_units: int) -> Bools:
    """Sets given as lists of units (v, k) -> bool rows (v, n_units)."""
    rows = np.zeros((len(units), n_units), dtype=bool)
    rows[np.arange(len(units))[:, None], units] = True
    return rows


def summed(rows: Bools, weights: Floats) -> Floats:
    """Sum of the weights (v, u) over the units each row holds; row by row, whatever the batch."""
    return np.asarray(np.where(rows, weights, 0.0).sum(axis=1))


def rank(cubes: Ints, distance: Floats, score: Floats, rows: Bools) -> Ints:
    """Order that sorts by cube, then rounded distance, rounded score and unit list."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // 64) * 64), dtype=bool)
    padded[:, : rows.shape[1]] = rows
    # Equal sizes, or positive costs: no list is a prefix of another, so "has the earlier unit" decides.
    words = ~np.packbits(padded, axis=1).view(">u8").astype(np.uint64)
    return np.lexsort((*words.T[::-1], round_significant(score), round_significant(distance), cubes))


class TurnedSubsets:
    """The best-ranked turned sets met so far, a bounded number per cube."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._keep = max(problem.all_sets, 1)
        self.count = np.zeros(problem.n_cubes, dtype=np.int64)
        self._clear()

    def _clear(self) -> None:
        self.cubes = np.empty(0, dtype=np.int64)
        self.rows = np.empty((0, self._problem.n_units), dtype=bool)
        self.distance = np.empty(0)
        self.score = np.empty(0)

    def add(self, cubes: Ints, rows: Bools, score: Floats) -> None:
        """Take in turned sets; those the rules or earlier failures forbid are left out."""
        fine = acceptable(self._problem, cubes, rows)
        cubes, rows, score = cubes[fine], rows[fine], score[fine]
        self.count += np.bincount(cubes, minlength=len(self.count))
        cubes = np.concatenate((self.cubes, cubes))
        rows = np.concatenate((self.rows, rows))
        score = np.concatenate((self.score, score))
        distance = summed(rows, self._problem.distance[cubes])
        order = rank(cubes, distance, score, rows)
        kept = order[place_in_run(cubes[order]) < self._keep]
        self.cubes, self.rows, self.score, self.distance = cubes[kept], rows[kept], score[kept], distance[kept]

    def best_distance(self, n_cubes: int) -> Floats:
        """Rounded distance of each cube's best set, inf where there is none."""
        best = np.full(n_cubes, np.inf)
        best[self.cubes[::-1]] = round_significant(self.distance[::-1])
        return best

    def settle(self, found: Found, cost: Floats | None, exhaustive: Bools | None = None) -> None:
        """Write the best sets as proved answers and forget them.

        ``cost`` (u,)-wise is the problem's, or None for counting; ``exhaustive`` says for which cubes all sets of that
        cost were looked at (None: all).
        """
        first = place_in_run(self.cubes) == 0
        cubes, rows = self.cubes[first], self.rows[first]
        record(found, cubes, rows, cost)
        found.outcome[cubes] = Outcome.FOUND
        found.lower[cubes] = found.cost[cubes]
        if found.sets is not None:
            splits = np.split(self.rows, np.nonzero(first)[0][1:])
            for cube, sets in zip(cubes, splits, strict=False):
                found.sets[cube] = sets
            whole = self.count[cubes] <= self._keep
            found.complete[cubes] = whole if exhaustive is None else whole & exhaustive[cubes]
        self._clear()


def record(found: Found, cubes: Ints, rows: Bools, cost: Floats | None) -> None:
    """Write acceptable sets (one per cube) and what they cost."""
    found.moved[cubes] = rows
    found.known[cubes] = True
    found.cost[cubes] = rows.sum(axis=1) if cost is None else summed(rows, cost[cubes])


def acceptable(problem: Problem, cubes: Ints, rows: Bools) -> Bools:
    """Which sets the rules allow and no earlier failure excludes."""
    fine = np.ones(len(rows), dtype=bool)
    if problem.rules:
        fine = problem.rules.take(cubes).allow(rows, problem.movable[cubes])
    for cube in np.unique(cubes[np.isin(cubes, list(problem.rejected))]) if problem.rejected else ():
        here = np.nonzero(cubes == cube)[0]
        refused = np.asarray(problem.rejected[int(cube)], dtype=bool)
        fine[here] &= ~(rows[here, None, :] == refused[None]).all(axis=2).any(axis=1)
    return fine


def place_in_run(cubes: Ints) -> Ints:
    """Position of each entry within its run of equal cube numbers."""
    index = np.arange(len(cubes))
    starts = np.concatenate(([True], cubes[1:] != cubes[:-1])) if len(cubes) else np.zeros(0, dtype=bool)
    return index - np.maximum.accumulate(np.where(starts, index, 0))


def end_beyond(problem: Problem, found: Found, active: Ints, k: int) -> Ints:
    """Before level k: cubes without acceptable sets of k units are NONE; the others are returned, bounded by k."""
    sizes = problem.movable.sum(axis=1)
    whole = np.floor(as_cheap(problem.limit))
    going = np.minimum(whole, sizes)[active] >= k
    over = active[~going]
    found.outcome[over] = Outcome.NONE
    found.lower[over] = np.where(sizes <= whole, np.inf, np.maximum(whole, 0.0) + 1.0)[over]
    found.complete[over] = problem.all_sets > 0
    found.lower[active[going]] = k
    return np.asarray(active[going])
