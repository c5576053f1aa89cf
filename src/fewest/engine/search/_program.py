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
        self.row: list[int] = []
        self.col: list[int] = []
        self.val: list[float] = []
        self.low: list[float] = []
        self.high: list[float] = []

    def add(self, cols: list[int], values: list[float], low: float, high: float) -> None:
        self.row += [len(self.low)] * len(cols)
        self.col += cols
        self.val += values
        self.low.append(low)
        self.high.append(high)

    def constraint(self, n: int) -> LinearConstraint:
        matrix = coo_array((self.val, (self.row, self.col)), shape=(len(self.low), n)).tocsr()
        return LinearConstraint(matrix, self.low, self.high)


def improve(
    structure: Ensemble,
    problem: Problem,
    cubes: WorkCubes,
    trees: Trees,
    found: Found,
    i: int,
    leaves: WorkLeaves,
    work: Work,
) -> None:
    """Settle cube i if the solver can, otherwise raise its lower bound; the set found by descent is kept as a start."""
    if not found.known[i]:
        _descend(structure, problem, cubes, trees, found, i)
    if problem.budget.expired() or len(problem.rejected.get(i, ())):
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
        _consider(structure, problem, found, i, _flips(problem, i, result.x))
    if found.known[i] and found.cost[i] <= found.lower[i] * (1 + 2 * _CLOSE):
        found.outcome[i] = Outcome.FOUND
        found.lower[i] = found.cost[i]
        if found.sets is not None:
            found.sets[i] = found.moved[i : i + 1].copy()


def _flips(problem: Problem, i: int, x: Floats) -> Bools:
    """The flipped units of a solution."""
    units = np.flatnonzero(problem.movable[i])
    flipped = np.zeros(problem.n_units, dtype=bool)
    flipped[units] = x[: len(units)] > 0.5
    return flipped


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


def _descend(structure: Ensemble, problem: Problem, cubes: WorkCubes, trees: Trees, found: Found, i: int) -> None:
    """Take the set that steepest descent finds."""
    flipped = np.zeros(problem.n_units, dtype=bool)
    goal = cubes.goal[cubes.goal_of[i]]
    args = (cubes.start[i], goal, cubes.movable[i], cubes.sign, cubes.cut, cubes.tolerance, trees, flipped)
    if greedy(*args):
        _consider(structure, problem, found, i, flipped)


def _consider(structure: Ensemble, problem: Problem, found: Found, i: int, flipped: Bools) -> None:
    """Take the set as the best known one if it is acceptable and cheaper."""
    cost = float(flipped.sum() if problem.cost is None else problem.cost[i, flipped].sum())
    if cost > problem.limit[i] * (1 + 1e-9) or (found.known[i] and cost >= found.cost[i]):
        return
    if not problem.rules.take([i]).allow(flipped[None], problem.movable[i])[0]:
        return
    if any(np.array_equal(flipped, s) for s in problem.rejected.get(i, ())):
        return
    unit_of = np.asarray(problem.unit_of)
    taken = np.where(unit_of >= 0, flipped[np.maximum(unit_of, 0)], False)
    vertex = np.where(taken, problem.goal[problem.goal_of[i]], problem.start[i])
    raw = float(structure.raw(np.ascontiguousarray(vertex[None]))[0])
    if problem.sign * (raw - structure.reading.cut) < structure.reading.tolerance:
        found.known[i], found.cost[i], found.moved[i] = True, cost, flipped
