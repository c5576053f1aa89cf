"""Exact search for any model: vertices of many cubes, level by level, in few large score calls.

Nothing is assumed of the score, so a size is ruled out only by looking at all its sets; what makes this bearable is
the batching, and that the last level is walked in order of distance and left as soon as nothing closer can follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import comb

import numpy as np

from fewest.engine.search._by_cost import by_cost
from fewest.engine.search._greedy import give_up
from fewest.engine.search._subsets import TurnedSubsets, acceptable, as_rows, combinations, end_beyond, unit_lists
from fewest.engine.search._ties import round_significant
from fewest.engine.search.floor import combined
from fewest.engine.search.problem import Found, Outcome, Problem
from fewest.tables.arrays import Bools, Floats, Ints

Score = Callable[[Ints, Bools], Floats]

_ORDERED = 2**16  # sets per cube and level up to which they are sorted by distance first
_HELD = 2**22  # sorted positions held at a time, over all cubes


class _ExpiredError(Exception):
    """The deadline passed between two score calls."""


def solve(score: Score, problem: Problem, tolerance: float, batch: int = 65536) -> Found:
    """Cheapest turned set of each cube, by looking at vertices only.

    Parameters
    ----------
    score : callable
        Cube numbers (v,) and sets (v, u) -> signed scores ``sign * (raw - cut)`` (v,), row by row: a row's score may
        not depend on the other rows.
    problem : Problem
        ``start`` and ``goal`` are not read. Where there is a floor, vertices below it do not count as turned.
    tolerance : float
        A vertex is turned when its signed score is below this.
    batch : int
        Most vertices per score call. The answer does not depend on it.

    Returns
    -------
    Found
        ``nodes`` counts the sets looked at. A level that does not fit ``budget.nodes`` any more is not begun; a greedy
        descent (at most u * u further vertices) then gives the set of a STOPPED cube, or proves it if it is as small
        as the level reached.

    Examples
    --------
    >>> problem = Problem(
    ...     start=np.zeros((1, 3)), goal=np.ones((1, 3)), goal_of=np.zeros(1, dtype=np.int32),
    ...     unit_of=np.arange(3, dtype=np.int32), movable=np.ones((1, 3), dtype=bool), distance=np.ones((1, 3)),
    ...     limit=np.full(1, np.inf),
    ... )
    >>> solve(lambda cubes, moved: 1.5 - moved @ np.array([0.4, 1.0, 0.6]), problem, 0.0).moved.tolist()
    [[False, True, True]]
    """
    found = Found.blank(problem)
    score = combined(score, problem, tolerance)
    if problem.cost is None:
        _by_count(score, problem, tolerance, batch, found)
    else:
        by_cost(score, problem, problem.cost, tolerance, batch, found)
    return found


def _by_count(score: Score, problem: Problem, tolerance: float, batch: int, found: Found) -> None:
    """All sets of one unit, then of two, and so on, for all unresolved cubes together."""
    sizes = problem.movable.sum(axis=1)
    active = np.arange(problem.n_cubes)
    k = 0
    while len(active) and not problem.budget.expired():
        k += 1
        active = end_beyond(problem, found, active, k)
        ways = np.array([comb(int(m), k) for m in range(problem.n_units + 1)], dtype=object)
        fits = (found.nodes[active] + ways[sizes[active]] <= problem.budget.nodes).astype(bool)
        give_up(score, problem, tolerance, batch, found, active[~fits])
        active = _level(score, problem, tolerance, batch, found, active[fits], k)


def _level(score: Score, problem: Problem, tolerance: float, batch: int, found: Found, active: Ints, k: int) -> Ints:
    """Look at the sets of k units of the cubes ``active``; settle those turned and return the others."""
    sizes = problem.movable.sum(axis=1)
    ways = np.array([comb(int(m), k) for m in sizes[active]], dtype=np.int64)
    # Cubes with equally many movable units stand together: they share one table of combinations.
    active = active[np.argsort(sizes[active], kind="stable")]
    held = np.cumsum(np.sort(ways)) // _HELD
    for piece in np.split(active, np.nonzero(np.diff(held))[0] + 1) if len(active) else []:
        turned = TurnedSubsets(problem)
        groups = [_Group(problem, piece[sizes[piece] == m], int(m), k) for m in np.unique(sizes[piece])]
        seen = np.zeros(problem.n_cubes, dtype=bool)
        try:
            while groups:
                pairs = (pair for group in groups for pair in group.wave(batch))
                for cubes, rows, scores in _scored(score, problem, pairs, batch):
                    hit = scores < tolerance
                    turned.add(cubes[hit], rows[hit], scores[hit])
                best = turned.best_distance(problem.n_cubes)
                groups = [group for group in groups if group.advance(best, found, seen)]
        except _ExpiredError:
            turned.settle(found, None, seen)
            break
        turned.settle(found, None)
    return np.asarray(active[found.outcome[active] == Outcome.STOPPED])


class _Group:
    """The sets of k units of cubes that have m movable units each, in waves.

    A wave takes the nearest sets of every cube. Sets of larger summed distance than a turned one cannot rank first,
    so a cube leaves after the wave that holds its answer; with ``all_sets`` there is one wave.
    """

    def __init__(self, problem: Problem, cubes: Ints, m: int, k: int) -> None:
        self._problem, self._cubes, self._m, self._k = problem, cubes, m, k
        self._units = unit_lists(problem.movable, cubes)
        self._ways = comb(m, k)
        self._at = 0
        self._table = combinations(m, k) if self._ways <= _ORDERED else None
        self._order = None
        if self._table is not None and not problem.all_sets and self._ways > 64:
            near = problem.distance[cubes[:, None], self._units]
            total = np.zeros((len(cubes), self._ways))
            for position in range(k):
                total += near[:, self._table[:, position]]
            self._total = round_significant(total)
            self._order = np.argsort(self._total, axis=1, kind="stable").astype(np.int32)
        self._next = self._end()

    def _end(self) -> int:
        """Where the wave that begins at ``_at`` ends."""
        return self._ways if self._order is None else min(max(64, 4 * self._at, self._ways // 16), self._ways)

    def wave(self, batch: int) -> Iterator[tuple[Ints, Bools]]:
        """Cubes and rows of this wave, in pieces of about a batch."""
        width = self._next - self._at
        step = max(1, batch // max(width, 1))
        for first in range(0, len(self._cubes), step):
            cubes, units = self._cubes[first : first + step], self._units[first : first + step]
            for low in range(self._at, self._next, batch):
                high = min(low + batch, self._next)
                if self._order is not None and self._table is not None:
                    choice = self._table[self._order[first : first + step, low:high]]
                else:
                    part = combinations(self._m, self._k, low, high) if self._table is None else self._table[low:high]
                    choice = np.broadcast_to(part, (len(cubes), *part.shape))
                lists = np.take_along_axis(units[:, None, :], choice, axis=2).reshape(-1, self._k)
                yield np.repeat(cubes, high - low), as_rows(lists, self._problem.n_units)

    def advance(self, best: Floats, found: Found, seen: Bools) -> bool:
        """Drop the cubes that are done after this wave; whether any is left."""
        found.nodes[self._cubes] += self._next - self._at
        if self._next == self._ways:
            seen[self._cubes] = True
            return False
        assert self._order is not None
        following = self._total[np.arange(len(self._cubes)), self._order[:, self._next]]
        stay = following <= best[self._cubes]
        self._cubes, self._units = self._cubes[stay], self._units[stay]
        self._order, self._total = self._order[stay], self._total[stay]
        self._at = self._next
        self._next = self._end()
        return len(self._cubes) > 0


def _scored(
    score: Score, problem: Problem, pairs: Iterable[tuple[Ints, Bools]], batch: int
) -> Iterator[tuple[Ints, Bools, Floats]]:
    """Score the sets that are acceptable, gathered into calls of ``batch`` vertices."""
    held: list[tuple[Ints, Bools]] = []
    count = 0
    for cubes, rows in pairs:
        fine = acceptable(problem, cubes, rows) if problem.rules or problem.rejected else slice(None)
        held.append((cubes[fine], rows[fine]))
        count += len(held[-1][0])
        if count >= batch:
            yield from _calls(score, problem, held, batch)
            held, count = [], 0
    if count:
        yield from _calls(score, problem, held, batch)


def _calls(
    score: Score, problem: Problem, held: list[tuple[Ints, Bools]], batch: int
) -> Iterator[tuple[Ints, Bools, Floats]]:
    """The calls themselves; the deadline is looked at before each."""
    all_cubes = np.concatenate([cubes for cubes, _ in held])
    all_rows = np.concatenate([rows for _, rows in held])
    for low in range(0, len(all_cubes), batch):
        if problem.budget.expired():
            raise _ExpiredError
        cubes, rows = all_cubes[low : low + batch], all_rows[low : low + batch]
        yield cubes, rows, np.asarray(score(cubes, rows), dtype=np.float64)
