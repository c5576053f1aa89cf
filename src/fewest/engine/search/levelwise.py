"""Exact search for any model: vertices of many cubes, level by level, in few large score calls.

Nothing is assumed of the score, so a size is ruled out only by looking at all its sets; what makes this bearable is
the batching, and that the last level is walked in order of distance and left as soon as nothing closer can follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import heappop, heappush
from math import comb

import numpy as np

from fewest.engine.search._greedy import give_up
from fewest.engine.search._subsets import TurnedSubsets, acceptable, as_rows, combinations, end_beyond, unit_lists
from fewest.engine.search._ties import as_cheap, round_significant
from fewest.engine.search.problem import Found, Outcome, Problem, Score, combined
from fewest.tables.arrays import Bools, Floats, Ints

_ORDERED = 2**16  # sets per cube and level up to which they are sorted by distance first
_HELD = 2**22  # sorted positions held at a time, over all cubes
_BATCH = 2**16  # vertices of a score call
_ONE_CALL = 2**11  # vertices of all cubes that are not worth a second call
_MANY = 256  # sets of a cube and level from which on some are tried early
_MORE = 2  # units beyond the size asked for, of those that turned most cubes, whose sets are tried early
_FIRST, _MOST = 16, 4096  # sets by cost that a cube brings to a round: doubling from the one to the other


class _ExpiredError(Exception):
    """The deadline passed between two score calls."""


Level = Callable[[Found, Ints, int], Ints]  # found, cubes, size: settle those that sets of this size turn; the others


def solve(score: Score, problem: Problem, tolerance: float, batch: int = _BATCH, level: Level | None = None) -> Found:
    """Cheapest turned set of each cube, by looking at vertices only; ``start`` and ``goal`` are not read.

    A vertex is turned when its signed score is below the tolerance. No score call has more than ``batch`` vertices; the
    answer does not depend on it. ``nodes`` counts the sets that had to be looked at: all smaller ones, and of the size
    of the answer those as near as it. A level that does not fit ``budget.nodes`` any more is not begun; a greedy
    descent (at most u * u further vertices) then gives the set of a STOPPED cube, or proves it if it is as small as the
    level reached. ``level`` looks at all sets of one size in its own way.
    """
    found = Found.blank(problem)
    score = combined(score, problem, tolerance)
    if problem.cost is None:
        _by_count(score, problem, tolerance, batch, found, level or partial(_level, score, problem, tolerance, batch))
    else:
        _by_cost(score, problem, problem.cost, tolerance, batch, found)
    return found


def _by_count(score: Score, problem: Problem, tolerance: float, batch: int, found: Found, level: Level) -> None:
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
        active = level(found, active[fits], k)


def look_at_size(score: Score, problem: Problem, tolerance: float, found: Found, active: Ints, size: int) -> Ints:
    """Settle those of the cubes ``active``, known to need this many units, that sets of this size turn; the others."""
    return _level(score, problem, tolerance, _BATCH, found, end_beyond(problem, found, active, size), size)


def _level(score: Score, problem: Problem, tolerance: float, batch: int, found: Found, active: Ints, k: int) -> Ints:
    """Look at the sets of k units of the cubes ``active``; settle those turned and return the others."""
    sizes = problem.movable.sum(axis=1)
    ways = np.array([comb(int(m), k) for m in sizes[active]], dtype=np.int64)
    # Cubes with equally many movable units stand together: they share one table of combinations.
    active = active[np.argsort(sizes[active], kind="stable")]
    held, whole = np.cumsum(np.sort(ways)) // _HELD, int(ways.sum()) <= _ONE_CALL
    turns = np.bincount(np.nonzero(found.moved)[1], minlength=problem.n_units)
    for piece in np.split(active, np.nonzero(np.diff(held))[0] + 1) if len(active) else []:
        turned = TurnedSubsets(problem)
        groups = [_Group(problem, piece[sizes[piece] == m], int(m), k, turns, whole) for m in np.unique(sizes[piece])]
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
            for group in groups:
                group.leave(found)
            turned.settle(found, None, seen)
            break
        turned.settle(found, None)
    return np.asarray(active[found.outcome[active] == Outcome.STOPPED])


class _Group:
    """The sets of k units of cubes that have m movable units each, in waves.

    A wave takes the nearest sets of every cube. Sets of larger summed distance than a turned one cannot rank first,
    so those are left out; with ``all_sets``, or where a ``whole`` level is a small call, there is one wave. The first
    of several waves also tries the sets of the units that turned most cubes so far (``turns``): that shows early how
    far one has to look, and changes no answer.
    """

    def __init__(self, problem: Problem, cubes: Ints, m: int, k: int, turns: Ints, whole: bool) -> None:
        self._problem, self._cubes, self._m, self._k, self._turns = problem, cubes, m, k, turns
        self._units = unit_lists(problem.movable, cubes)
        self._ways = comb(m, k)
        self._at = 0
        self._table = combinations(m, k) if self._ways <= _ORDERED else None
        self._order = None
        self._need = np.full(len(cubes), self._ways)  # how many of its sets a cube has to look at
        self._total: Floats | None = None
        if self._table is not None and not problem.all_sets and self._ways > 64:
            near = problem.distance[cubes[:, None], self._units]
            total = np.zeros((len(cubes), self._ways))
            for position in range(k):
                total += near[:, self._table[:, position]]
            self._total = round_significant(total)
            if not whole:
                self._order = np.argsort(self._total, axis=1, kind="stable").astype(np.int32)
        self._next = self._end()

    def _end(self) -> int:
        """Where the wave that begins at ``_at`` ends."""
        return self._ways if self._order is None else min(max(64, 4 * self._at, self._ways // 16), self._ways)

    def wave(self, batch: int) -> Iterator[tuple[Ints, Bools]]:
        """Cubes and rows of this wave, in pieces of about a batch."""
        width = self._next - self._at
        step = max(1, batch // max(width, 1))
        if self._at == 0 and self._next < self._ways:
            yield from self._likely()
        for first in range(0, len(self._cubes), step):
            cubes, units = self._cubes[first : first + step], self._units[first : first + step]
            for low in range(self._at, self._next, batch):
                high = min(low + batch, self._next)
                if self._order is not None and self._table is not None:
                    choice = self._table[self._order[first : first + step, low:high]]
                else:
                    part = combinations(self._m, self._k, low, high) if self._table is None else self._table[low:high]
                    choice = np.broadcast_to(part, (len(cubes), *part.shape))
                lists = np.take_along_axis(units[:, None, :], choice, axis=2)
                needed = np.arange(low, high) < self._need[first : first + step, None]
                yield np.repeat(cubes, needed.sum(axis=1)), as_rows(lists[needed], self._problem.n_units)

    def _likely(self) -> Iterator[tuple[Ints, Bools]]:
        """Sets of the units that turned most cubes; those that are among the nearest come later, with these."""
        if not self._turns.any() or self._m < self._k + _MORE or self._ways < _MANY:
            return
        often = np.argsort(-self._turns[self._units], axis=1, kind="stable")[:, : self._k + _MORE]
        best = np.take_along_axis(self._units, often, axis=1)
        table = combinations(self._k + _MORE, self._k)
        yield np.repeat(self._cubes, len(table)), as_rows(best[:, table].reshape(-1, self._k), self._problem.n_units)

    def leave(self, found: Found) -> None:
        """Count what was looked at where there is no time for the rest."""
        found.nodes[self._cubes] += self._at

    def advance(self, best: Floats, found: Found, seen: Bools) -> bool:
        """Drop the cubes that are done after this wave; whether any is left."""
        nearest = best[self._cubes]
        if self._total is not None:
            self._need = np.where(nearest < np.inf, (self._total <= nearest[:, None]).sum(axis=1), self._ways)
        done = self._need <= self._next
        found.nodes[self._cubes[done]] += self._need[done]
        seen[self._cubes[done & (self._need == self._ways)]] = True
        if done.all():
            return False
        assert self._order is not None
        assert self._total is not None
        self._cubes, self._units, self._need = self._cubes[~done], self._units[~done], self._need[~done]
        self._order, self._total = self._order[~done], self._total[~done]
        self._at = self._next
        self._next = int(self._need.max()) if (nearest[~done] < np.inf).all() else self._end()
        return True


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


class _Queue:
    """The subsets of one cube, cheapest first: a heap.

    With the units sorted by cost, a subset whose dearest unit is number i has two children, "also i + 1" and "i + 1
    instead of i"; every subset is met once and no child is cheaper than its parent.
    """

    def __init__(self, units: Ints, cost: Floats) -> None:
        order = np.argsort(cost[units], kind="stable")
        self._units = [int(unit) for unit in units[order]]
        self._cost = [float(value) for value in cost[units][order]]
        self._heap: list[tuple[float, tuple[int, ...]]] = [(self._cost[0], (0,))] if self._cost else []

    def cheapest(self) -> float:
        """Cost of the next subset; inf when all were taken."""
        return self._heap[0][0] if self._heap else float("inf")

    def take(self) -> tuple[float, list[int]]:
        """The next subset, as units."""
        total, places = heappop(self._heap)
        last = places[-1]
        if last + 1 < len(self._cost):
            heappush(self._heap, (total + self._cost[last + 1], (*places, last + 1)))
            swapped = (*places[:-1], last + 1)
            heappush(self._heap, (sum(self._cost[place] for place in swapped), swapped))
        return total, [self._units[place] for place in places]


def _by_cost(score: Score, problem: Problem, cost: Floats, tolerance: float, batch: int, found: Found) -> None:
    """Cheapest turned set of every cube where units have costs; answers go into ``found``."""
    queues = {cube: _Queue(np.nonzero(problem.movable[cube])[0], cost[cube]) for cube in range(problem.n_cubes)}
    best = np.full(problem.n_cubes, np.inf)  # cost of the cheapest turned set met
    done = np.zeros(problem.n_cubes, dtype=bool)  # all sets of the best cost were looked at
    turned = TurnedSubsets(problem)
    for cube, queue in queues.items():
        found.lower[cube] = queue.cheapest()
    width = _FIRST
    while queues and not problem.budget.expired():
        cubes, rows, costs = _round(problem, queues, best, width, found)
        width = min(2 * width, _MOST)
        fine = acceptable(problem, cubes, rows)
        cubes, rows, costs = cubes[fine], rows[fine], costs[fine]
        for low in range(0, len(cubes), batch):
            if problem.budget.expired():
                break
            part = slice(low, low + batch)
            scores = np.asarray(score(cubes[part], rows[part]), dtype=np.float64)
            hit = scores < tolerance
            np.minimum.at(best, cubes[part][hit], costs[part][hit])
            close = hit.copy()
            close[hit] = costs[part][hit] <= as_cheap(best[cubes[part][hit]])
            turned.add(cubes[part][close], rows[part][close], scores[close])
        else:
            _close(score, problem, tolerance, batch, queues, best, done, found)
    turned.settle(found, cost, done)


def _round(
    problem: Problem, queues: dict[int, _Queue], best: Floats, width: int, found: Found
) -> tuple[Ints, Bools, Floats]:
    """The next subsets of all cubes: as many as the width, the limit, the budget and the best set found ask for."""
    cubes: list[int] = []
    costs: list[float] = []
    places: list[int] = []
    units: list[int] = []
    for cube, queue in queues.items():
        most = min(as_cheap(problem.limit[cube]), as_cheap(best[cube]))
        left = min(width, problem.budget.nodes - int(found.nodes[cube]))
        taken = 0
        while taken < left and queue.cheapest() <= most and queue.cheapest() < np.inf:
            total, members = queue.take()
            places.extend([len(cubes)] * len(members))
            units.extend(members)
            cubes.append(cube)
            costs.append(total)
            taken += 1
        found.nodes[cube] += taken
    rows = np.zeros((len(cubes), problem.n_units), dtype=bool)
    rows[places, units] = True
    return np.array(cubes, dtype=np.int64), rows, np.array(costs, dtype=np.float64)


def _close(
    score: Score, problem: Problem, tolerance: float, batch: int, queues: dict[int, _Queue], best: Floats,
    done: Bools, found: Found,
) -> None:  # fmt: skip
    """After a round: let go of cubes that are answered, beyond the limit or out of budget."""
    stopped: list[int] = []
    for cube, queue in list(queues.items()):
        following = queue.cheapest()
        found.lower[cube] = min(following, best[cube])
        spent = found.nodes[cube] >= problem.budget.nodes
        if best[cube] < np.inf:
            done[cube] = following > as_cheap(best[cube])
            if not done[cube] and not spent:
                continue
        elif following > as_cheap(problem.limit[cube]) or following == np.inf:
            found.outcome[cube] = Outcome.NONE
            found.complete[cube] = problem.all_sets > 0
        elif spent:
            stopped.append(cube)
        else:
            continue
        del queues[cube]
    if stopped:
        give_up(score, problem, tolerance, batch, found, np.array(stopped, dtype=np.int64))
