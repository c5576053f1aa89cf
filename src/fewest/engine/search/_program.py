"""The reduced trees of one cube as a mixed-integer program, for cubes on which the polynomial is too large.

Binary s_u flips unit u; each tree picks one of its reachable leaves, and a leaf may be picked only if its flipped units
are flipped and its kept units kept. The score constraint is relaxed a little, so that the bound holds in spite of the
solver's tolerances; what it returns is checked by walking the trees.
"""

from __future__ import annotations

import math
import time
from itertools import pairwise

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from fewest.engine.numba_cache import entry
from fewest.engine.search import _work as w
from fewest.engine.search._blocks import greedy
from fewest.engine.search._cube import ALL
from fewest.engine.search._reduce import collect
from fewest.engine.search._work import Trees, Work, WorkCubes, WorkLeaves
from fewest.engine.search.problem import Found, Outcome, Problem
from fewest.engine.structure.base import Ensemble
from fewest.tables.arrays import Bools, Floats

_NODES = 500  # of the solver: a count, so that the answer does not depend on the machine's load
_SECONDS = 10.0
_RELAX = 1e-6
_CLOSE = 1e-6  # bounds this close below a whole number count as it
_MOST_LEAVES = 60_000


@entry
def list_leaves(i, most, trees, cubes, leaves, work):  # type: ignore[no-untyped-def]
    """Reachable leaves of cube i into ``leaves``; how many, or -1 for too many."""
    for u in range(cubes.movable.shape[1]):
        work.ids[w.STATE, u] = 2
    x, r = cubes.start[i], cubes.goal[cubes.goal_of[i]]
    every = np.ones(trees.root.shape[0], dtype=np.bool_)
    return collect(trees, x, r, cubes.movable[i], most, every, leaves, work)[0]


class _Rows:
    """Sparse constraint rows, collected one by one."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, float]] = []
        self.bounds: list[tuple[float, float]] = []

    def add(self, cols: list[int], values: list[float], low: float, high: float) -> None:
        self.entries += [(len(self.bounds), col, value) for col, value in zip(cols, values, strict=True)]
        self.bounds.append((low, high))

    def constraint(self, n: int) -> LinearConstraint:
        row, col, value = zip(*self.entries, strict=True)
        matrix = coo_array((value, (row, col)), shape=(len(self.bounds), n)).tocsr()
        return LinearConstraint(matrix, *np.transpose(self.bounds))


def improve(
    structure: Ensemble, problem: Problem, cubes: WorkCubes, trees: Trees, found: Found, i: int, leaves: WorkLeaves,
    work: Work,
) -> None:  # fmt: skip
    """Settle cube i if the solver can, otherwise raise its lower bound; the set found by descent is kept as a start."""
    if problem.budget.expired():
        return
    flipped = None if found.known[i] else some_set(cubes, trees, i)
    if flipped is not None:
        _consider(structure, problem, found, i, flipped)
    if len(problem.rejected.get(i, ())) or problem.budget.expired():
        return
    n_leaves = int(list_leaves(i, ALL, trees, cubes, leaves, work))
    if not 0 <= n_leaves <= _MOST_LEAVES:
        return
    rows, weights, n_units = _rows(problem, cubes, trees, i, n_leaves, leaves)
    seconds = min(_SECONDS, problem.budget.deadline - time.monotonic())
    result = milp(
        weights,
        integrality=np.arange(len(weights)) < n_units,
        bounds=Bounds(0, 1),
        constraints=rows.constraint(len(weights)),
        options={"time_limit": max(seconds, 0.1), "node_limit": _NODES, "mip_rel_gap": 0.0},
    )
    if result.status == 2:
        found.outcome[i] = Outcome.NONE
        limit = float(problem.limit[i])
        found.lower[i] = math.floor(limit + 1e-9) + 1.0 if math.isfinite(limit) and problem.cost is None else limit
        found.known[i], found.cost[i], found.moved[i], found.complete[i] = False, np.nan, False, True
        return
    bound = float(result.mip_dual_bound) if result.mip_dual_bound is not None else 0.0
    if math.isfinite(bound):
        if problem.cost is None:
            bound = math.ceil(bound - _CLOSE)
        found.lower[i] = max(found.lower[i], bound - (0.0 if problem.cost is None else _CLOSE * abs(bound)))
    if result.x is not None:
        flipped = np.zeros(problem.n_units, dtype=bool)
        flipped[np.flatnonzero(problem.movable[i])] = result.x[:n_units] > 0.5
        _consider(structure, problem, found, i, flipped)
    if found.known[i] and found.cost[i] <= found.lower[i] * (1 + 2 * _CLOSE):
        found.outcome[i] = Outcome.FOUND
        found.lower[i] = found.cost[i]
        if found.sets is not None:
            found.sets[i] = found.moved[i : i + 1].copy()


def _rows(
    problem: Problem, cubes: WorkCubes, trees: Trees, i: int, n_leaves: int, leaves: WorkLeaves
) -> tuple[_Rows, Floats, int]:
    """Constraints, objective and number of unit variables (they come first, then one variable per leaf)."""
    units = np.flatnonzero(problem.movable[i])
    at = {int(u): j for j, u in enumerate(units)}
    cost = np.ones(len(units)) if problem.cost is None else problem.cost[i, units]
    rows = _Rows()
    n = len(units)
    value = cubes.sign * leaves.value[:n_leaves]
    high = cubes.tolerance - cubes.sign * (trees.base - cubes.cut)
    scale = max(1.0, float(np.abs(value).max(initial=0.0)), abs(high))
    rows.add(list(range(n, n + n_leaves)), value.tolist(), -np.inf, high + _RELAX * scale)
    # The first leaf of each tree is the only one that needs no flip.
    edges = [*np.flatnonzero(leaves.span[1, :n_leaves] == 0).tolist(), n_leaves]
    for first, last in pairwise(edges):
        rows.add(list(range(n + first, n + last)), [1.0] * (last - first), 1.0, 1.0)
        need: dict[int, list[int]] = {}
        bar: dict[int, list[int]] = {}
        for leaf in range(first, last):
            begin, end = leaves.span[0, leaf], leaves.span[0, leaf + 1]
            middle = begin + leaves.span[1, leaf]
            for u in leaves.units[begin:middle].tolist():
                need.setdefault(at[u], []).append(n + leaf)
            for u in leaves.units[middle:end].tolist():
                bar.setdefault(at[u], []).append(n + leaf)
        for u, cols in need.items():
            rows.add([*cols, u], [1.0] * len(cols) + [-1.0], -np.inf, 0.0)
        for u, cols in bar.items():
            rows.add([*cols, u], [1.0] * (len(cols) + 1), -np.inf, 1.0)
    implies, forbidden = problem.rules.take([i]).each(1)
    for a, b, here in implies:
        if here[0] and a in at and b in at:
            rows.add([at[a], at[b]], [1.0, -1.0], -np.inf, 0.0)
    for units_, here in forbidden:
        if here[0] and all(int(u) in at for u in units_):
            rows.add([at[int(u)] for u in units_], [1.0] * len(units_), -np.inf, len(units_) - 1.0)
    if math.isfinite(problem.limit[i]):
        rows.add(list(range(n)), cost.tolist(), -np.inf, float(problem.limit[i]) * (1 + 1e-9))
    return rows, np.concatenate((cost, np.zeros(n_leaves))), n


def some_set(cubes: WorkCubes, trees: Trees, i: int) -> Bools | None:
    """The set that steepest descent finds in cube i, if any; rules are not looked at."""
    flipped = np.zeros(cubes.movable.shape[1], dtype=bool)
    goal = cubes.goal[cubes.goal_of[i]]
    args = (cubes.start[i], goal, cubes.movable[i], cubes.sign, cubes.cut, cubes.tolerance, trees, flipped)
    return flipped if greedy(*args) else None


def _consider(structure: Ensemble, problem: Problem, found: Found, i: int, flipped: Bools) -> None:
    """Take the set as the best known one if it is acceptable and cheaper."""
    cost = float(flipped.sum() if problem.cost is None else problem.cost[i, flipped].sum())
    if cost > problem.limit[i] * (1 + 1e-9) or (found.known[i] and cost >= found.cost[i]):
        return
    if not problem.rules.take([i]).allow(flipped[None], problem.movable[i])[0]:
        return
    if any(np.array_equal(flipped, s) for s in problem.rejected.get(i, ())):
        return
    raw = float(structure.raw(problem.vertex_rows(np.array([i]), flipped[None]))[0])
    if problem.sign * (raw - structure.reading.cut) < structure.reading.tolerance:
        found.known[i], found.cost[i], found.moved[i] = True, cost, flipped
