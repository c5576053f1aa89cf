"""Subsets by increasing cost: the weighted case of the level-wise search.

Each cube has a heap over its subsets. With the units sorted by cost, a subset whose dearest unit is number i has two
children, "also i + 1" and "i + 1 instead of i"; every subset is met once and no child is cheaper than its parent.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np

from fewest.engine.search._greedy import give_up
from fewest.engine.search._subsets import TurnedSubsets, acceptable
from fewest.engine.search._ties import as_cheap
from fewest.engine.search.problem import Found, Outcome, Problem
from fewest.tables.arrays import Bools, Floats, Ints

Score = Callable[[Ints, Bools], Floats]

_FIRST, _MOST = 16, 4096  # sets a cube brings to a round: doubling from the one to the other


class _Queue:
    """The subsets of one cube, cheapest first."""

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


def by_cost(score: Score, problem: Problem, cost: Floats, tolerance: float, batch: int, found: Found) -> None:
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
