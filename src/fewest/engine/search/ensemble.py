"""Exact search for tree ensembles: on a hypercube they are multilinear polynomials in few bits.

The trees are reduced to the splits that separate start and goal, summed into one polynomial, and the cheapest set of
bits that brings it below the threshold is found by branch and bound. What is too large for that goes to an integer
program.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fewest.engine.search._blocks import greedy, small_block, tree_changes, tree_costs, tree_sizes
from fewest.engine.search._program import improve
from fewest.engine.search._run import pack, run
from fewest.engine.search._work import Trees, Work, WorkAnswers, WorkCubes, leaf_lists, works
from fewest.engine.search.problem import Found, Outcome, Problem
from fewest.engine.structure.base import Ensemble
from fewest.tables.arrays import Bools, Floats, Ints

PATIENCE = 30_000  # nodes before the integer program is asked
SMALL = 40  # leaves per tree up to which the whole polynomial is tried first


def solve(
    structure: Ensemble,
    problem: Problem,
    n_jobs: int = 1,
    *,
    small: int = SMALL,
    patience: int = PATIENCE,
    program: Callable[..., None] = improve,
) -> Found:
    """Cheapest sets of units that turn each cube of the problem, proved.

    Parameters
    ----------
    structure : Ensemble
        The model; its ``cut`` and ``tolerance`` decide.
    problem : Problem
        The hypercubes and what is wanted of them.
    n_jobs : int
        Cubes are shared out among this many threads; the answer does not depend on it.
    small, patience : int
        Leaves per tree up to which the whole polynomial is tried first; nodes before ``program`` is asked.
    program : callable
        Improves what is known of a cube that was given up.
    """
    trees = pack_trees(structure, problem)
    found, retry = _search(structure, problem, trees, min(problem.budget.nodes, patience), n_jobs, small)
    if retry.any():
        cubes = pack(problem, structure.reading.cut, structure.reading.tolerance, True)
        with leaf_lists.borrow(depth(trees)) as leaves, works.borrow(problem.n_units, 0, 0, 1) as work:
            for i in np.flatnonzero(retry).tolist():
                program(structure, problem, cubes, trees, found, i, leaves, work)
        rest = np.flatnonzero(retry & (found.outcome == Outcome.STOPPED))
        if len(rest) and problem.budget.nodes > patience:
            rejected = {j: problem.rejected[i] for j, i in enumerate(rest.tolist()) if i in problem.rejected}
            again, _ = _search(structure, problem.take(rest, rejected), trees, problem.budget.nodes, n_jobs, small)
            _merge(found, again, rest)
    return found


def _search(
    structure: Ensemble, problem: Problem, trees: Trees, node_cap: int, n_jobs: int, leaves_per_tree: int
) -> tuple[Found, Bools]:
    """Branch and bound on all cubes; the second value marks those given up."""
    small = is_small(trees, leaves_per_tree)
    cubes = pack(problem, structure.reading.cut, structure.reading.tolerance, small)._replace(node_cap=node_cap)
    deepest = depth(trees)
    changes = np.zeros((problem.n_cubes, problem.n_units))
    constants = np.zeros(problem.n_cubes)
    bends = np.zeros((problem.n_cubes, len(trees.root)), dtype=bool)
    ceiling = cubes.limit.copy()
    if problem.cost is not None and not small:
        _lower_ceilings(cubes, trees, ceiling)

    def kernel(first: int, last: int, work: Work, out: WorkAnswers) -> None:
        tree_changes(first, last, trees, cubes, work, changes, constants, bends)
        small_block(first, last, changes, constants, cubes, work, out)
        if not out.todo[first:last].any():
            return
        with leaf_lists.borrow(deepest) as leaves:
            if problem.cost is None:
                tree_sizes(first, last, changes, constants, bends, trees, cubes, leaves, work, out, None)
            else:
                tree_costs(first, last, changes, constants, bends, ceiling, trees, cubes, leaves, work, out, None)

    return run(problem, cubes, kernel, n_jobs)


def _merge(found: Found, again: Found, rows: Ints) -> None:
    """Take over what a second search of the cubes ``rows`` knows better."""
    for j, i in enumerate(rows.tolist()):
        found.nodes[i] += again.nodes[j]
        found.lower[i] = max(found.lower[i], again.lower[j])
        proved = again.outcome[j] != Outcome.STOPPED
        if proved:
            found.outcome[i], found.lower[i], found.complete[i] = again.outcome[j], again.lower[j], again.complete[j]
            if found.sets is not None and again.sets is not None:
                found.sets[i] = again.sets[j]
        if proved or (again.known[j] and not again.cost[j] >= found.cost[i]):
            found.known[i], found.cost[i], found.moved[i] = again.known[j], again.cost[j], again.moved[j]


def _lower_ceilings(cubes: WorkCubes, trees: Trees, ceiling: Floats) -> None:
    """Cost of some set per cube, where no rule stands in the way: the polynomial need not reach beyond it."""
    if len(cubes.implies) or len(cubes.banned):
        return
    for i in range(len(ceiling)):
        flipped = np.zeros(cubes.movable.shape[1], dtype=bool)
        goal = cubes.goal[cubes.goal_of[i]]
        args = (cubes.start[i], goal, cubes.movable[i], cubes.sign, cubes.cut, cubes.tolerance, trees, flipped)
        if greedy(*args):
            ceiling[i] = min(ceiling[i], cubes.cost[i, flipped].sum())


def pack_trees(structure: Ensemble, problem: Problem) -> Trees:
    """The trees as contiguous arrays, each node with the unit it tests."""
    column = np.ascontiguousarray(structure.column, dtype=np.int32)
    unit_of = np.asarray(problem.unit_of, dtype=np.int32)
    unit = np.where(column >= 0, unit_of[np.maximum(column, 0)], -1) if len(unit_of) else np.full(len(column), -1)
    missing = bool(np.isnan(problem.start).any() or np.isnan(problem.goal).any())
    return Trees(
        column=column,
        threshold=np.ascontiguousarray(structure.threshold, dtype=np.float64),
        left=np.ascontiguousarray(structure.left, dtype=np.int32),
        right=np.ascontiguousarray(structure.right, dtype=np.int32),
        missing_left=np.ascontiguousarray(structure.missing_left, dtype=bool),
        category=np.ascontiguousarray(structure.category, dtype=np.int32),
        left_levels=np.ascontiguousarray(structure.left_levels, dtype=bool),
        value=np.ascontiguousarray(structure.value, dtype=np.float64),
        root=np.ascontiguousarray(structure.root, dtype=np.int32),
        unit=np.ascontiguousarray(unit, dtype=np.int32),
        link=np.ascontiguousarray(np.column_stack([column, unit, structure.left, structure.right]), dtype=np.int32),
        plain=not missing and bool((structure.category < 0).all()),
        base=float(structure.base),
    )


def is_small(trees: Trees, small: int = SMALL) -> bool:
    """Whether trying the whole polynomial first pays."""
    return int((trees.column < 0).sum()) <= small * len(trees.root)


def depth(trees: Trees) -> int:
    """Most splits on any path, level by level."""
    level, deepest = trees.root[trees.column[trees.root] >= 0], 0
    while len(level):
        deepest += 1
        level = np.concatenate((trees.left[level], trees.right[level]))
        level = level[trees.column[level] >= 0]
    return deepest
