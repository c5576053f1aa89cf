"""Exact search for nearest neighbours: each coordinate of a distance has two values, so sub-cubes bound distances.

Sizes are searched in turn, depth first; a sub-cube is left out when the rows that are near whatever is moved, and the
best of those that may be, do not turn it. Costs, rules and rejected sets are searched level by level, with distances
that are sums as well.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.search import levelwise
from fewest.engine.search._greedy import give_up
from fewest.engine.search._neighbour_sets import (
    CAPPED,
    DONE,
    TOO_MANY,
    NearestRows,
    make_room,
    may_turn,
    open_cube,
    scores_of,
    sets_of_size,
)
from fewest.engine.search._run import share_out, time_for
from fewest.engine.search._subsets import TurnedSubsets, as_rows
from fewest.engine.search._ties import as_cheap
from fewest.engine.search._work import NODE_CAP
from fewest.engine.search.problem import Found, Outcome, Problem, Score, combined
from fewest.engine.structure.base import Neighbours
from fewest.tables.arrays import Bools, Floats, Ints

LISTED = 1 << 14  # sets of one size that may be turned, beyond which a cube is searched level by level
HELD = 1 << 24  # numbers in the tables of steps: training rows times units times sizes
_FIRST = 3  # size up to which tables are made at first
_HOPELESS = 2  # size at which it is asked whether any set would do
_BATCH = 1 << 14
_LATE = -1


def solve(structure: Neighbours, problem: Problem, n_jobs: int = 1) -> Found:
    """Fewest units that turn each cube; ``nodes`` counts vertices and bounded sub-cubes."""
    rows = _rows(structure, problem.sign)
    cubes = (
        np.ascontiguousarray(problem.start), np.ascontiguousarray(problem.goal), problem.goal_of, problem.unit_of,
        np.ascontiguousarray(problem.movable),
    )  # fmt: skip
    tolerance = structure.reading.tolerance

    def score(local: Ints, moved: Bools) -> Floats:
        room = make_room(len(rows.v), problem.n_units, rows.k, 0)
        return np.asarray(scores_of(local, moved, cubes, rows, room))

    if problem.cost is not None or problem.rules or problem.rejected:
        return levelwise.solve(score, problem, tolerance, batch=_BATCH)
    found, turned = Found.blank(problem), TurnedSubsets(problem)
    whole_score = combined(score, problem, tolerance)
    state = np.full(problem.n_cubes, _LATE)
    hits: list[tuple[Ints, Bools]] = []

    def work_on(first: int, last: int) -> None:
        tally = np.zeros(NODE_CAP + 1, dtype=np.int64)
        with time_for(tally, problem.budget.nodes, problem.budget.deadline):
            one = _NeighbourSearch(problem, rows, cubes, tally)
            for cube in range(first, last):
                if problem.budget.expired():
                    return
                state[cube] = one.answer(cube, whole_score, found)
            hits.extend(one.hits)

    share_out(work_on, problem.n_cubes, min(n_jobs, problem.n_cubes // 16))
    if hits:
        numbers, moved = (np.concatenate(parts) for parts in zip(*hits, strict=True))
        scores = whole_score(numbers, moved)
        hit = slice(None) if problem.floor is None else scores < tolerance
        turned.add(numbers[hit], moved[hit], scores[hit])
    turned.settle(found, None)
    give_up(whole_score, problem, tolerance, _BATCH, found, np.flatnonzero(state == CAPPED))
    rest = np.flatnonzero(state == TOO_MANY)
    if len(rest):
        again = levelwise.solve(lambda local, moved: score(rest[local], moved), problem.take(rest), tolerance)
        found.put(rest, again)
    return found


def _rows(structure: Neighbours, sign: int) -> NearestRows:
    size = float((np.abs(structure.rows) ** structure.power).sum(axis=1).max(initial=0.0))
    return NearestRows(
        columns=np.ascontiguousarray(structure.rows.T), v=structure.value - structure.reading.cut, size=size,
        k=structure.count, power=structure.power, weighted=structure.weighted, rounding=structure.rounding,
        sign=float(sign), tolerance=structure.reading.tolerance,
    )  # fmt: skip


class _NeighbourSearch:
    """The search of one thread, cube after cube; sets that may be turned go to ``hits``."""

    def __init__(self, problem: Problem, rows: NearestRows, cubes: tuple[np.ndarray, ...], tally: Ints) -> None:
        self._problem, self._rows, self._cubes, self._tally = problem, rows, cubes, tally
        self._sizes = 0
        self._grow(min(_FIRST, problem.n_units))
        self._listed = np.zeros((LISTED, max(problem.n_units, 1)), dtype=np.int64)
        self.hits: list[tuple[Ints, Bools]] = []

    def _grow(self, sizes: int) -> bool:
        """Make room for sets of this many units; whether that is not too much."""
        n, u = len(self._rows.v), self._problem.n_units
        if sizes > max(self._sizes, _FIRST) and sizes * n * u > HELD:
            return False
        if sizes > self._sizes or not self._sizes:
            self._room, self._sizes = make_room(n, u, self._rows.k, sizes), sizes
        return True

    def answer(self, cube: int, score: Score, found: Found) -> int:
        """Search one cube, size after size; the sets of the first size that turn it are kept."""
        problem = self._problem
        limit = float(np.floor(as_cheap(float(problem.limit[cube]))))
        slack, units = open_cube(cube, self._cubes, self._rows, self._room)
        m = len(units)
        most = int(min(m, max(limit, 0.0)))
        for k in range(1, most + 1):
            if k == _HOPELESS and not may_turn(units, slack, self._rows, self._room):
                break
            found.lower[cube] = k
            if k > self._sizes:
                if not self._grow(k):
                    return TOO_MANY
                open_cube(cube, self._cubes, self._rows, self._room)
            state = self._size(cube, k, units, slack, score, found)
            if state is not None:
                return state
        found.outcome[cube] = Outcome.NONE
        found.lower[cube] = np.inf if m <= limit else max(limit, 0.0) + 1.0
        found.complete[cube] = problem.all_sets > 0
        return DONE

    def _size(self, cube: int, k: int, units: Ints, slack: float, score: Score, found: Found) -> int | None:
        """Look for turned sets of k units; None where there is none, else how the search of the cube ends."""
        problem = self._problem
        one = not problem.all_sets and problem.floor is None
        state, nodes, count = sets_of_size(
            k, units, problem.distance[cube, units], one, slack, int(found.nodes[cube]), self._tally, NODE_CAP,
            self._rows, self._room, self._listed,
        )  # fmt: skip
        found.nodes[cube] += nodes
        if state != DONE:
            return int(state)
        if count == 0:
            return None
        moved = as_rows(units[self._listed[:count, :k]], problem.n_units)
        numbers = np.full(count, cube)
        if problem.floor is not None:
            hit = score(numbers, moved) < self._rows.tolerance
            if not hit.any():
                return None
        self.hits.append((numbers, moved))
        return DONE
