"""Exact search for tree ensembles: on a hypercube they are multilinear polynomials in few bits.

The trees are reduced to the splits that separate start and goal, summed into one polynomial, and the cheapest set of
bits that brings it below the threshold is found by branch and bound. What is too large for that goes to an integer
program.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fewest.engine.search._blocks import small_block, tree_changes, tree_costs, tree_sizes
from fewest.engine.search._gaussians import floor_for, pack_body
from fewest.engine.search._joint import spread
from fewest.engine.search._program import improve, some_set
from fewest.engine.search._reduce import COLUMN, LEFT, RIGHT
from fewest.engine.search._run import pack, run, time_for
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

    Up to ``small`` leaves per tree the whole polynomial is tried first; after ``patience`` nodes ``program`` is asked
    to improve what is known of a cube that was given up.
    """
    wide, plain = spread(structure, problem)
    trees = pack_trees(wide, plain)
    found, retry = search(structure, plain, trees, min(problem.budget.nodes, patience), n_jobs, small)
    if retry.any():
        cubes = pack(plain, structure.reading.cut, structure.reading.tolerance, True)
        with (
            leaf_lists.borrow(depth(trees)) as leaves,
            works.borrow(problem.n_units, 0, 0, 1) as work,
            time_for(work.tally, cubes.node_cap, problem.budget.deadline),
        ):
            for i in np.flatnonzero(retry).tolist():
                program(structure, problem, cubes, trees, found, i, leaves, work)
        rest = np.flatnonzero(retry & (found.outcome == Outcome.STOPPED))
        if len(rest) and problem.budget.nodes > patience:
            again, _ = search(structure, plain.take(rest), trees, problem.budget.nodes, n_jobs, small)
            _merge(found, again, rest)
    return found


def search(
    structure: Ensemble, problem: Problem, trees: Trees, node_cap: int, n_jobs: int, leaves_per_tree: int = SMALL
) -> tuple[Found, Bools]:
    """Branch and bound on all cubes, under the floor where there is one; the second value marks those given up."""
    small = int((trees.link[:, COLUMN] < 0).sum()) <= leaves_per_tree * len(trees.root)
    cubes = pack(problem, structure.reading.cut, structure.reading.tolerance, small)._replace(node_cap=node_cap)
    deepest, body = depth(trees), pack_body(problem)
    changes = np.zeros((problem.n_cubes, problem.n_units))
    constants = np.zeros(problem.n_cubes)
    bends = np.zeros((problem.n_cubes, len(trees.root)), dtype=bool)
    ceiling = cubes.limit.copy()
    if problem.cost is not None and not small and body is None:
        _lower_ceilings(problem, cubes, trees, ceiling)

    def kernel(first: int, last: int, work: Work, out: WorkAnswers) -> None:
        tree_changes(first, last, trees, cubes, work, changes, constants, bends)
        if body is None:
            small_block(first, last, changes, constants, cubes, work, out)
        else:
            out.todo[first:last] = True
        if not out.todo[first:last].any():
            return
        with leaf_lists.borrow(deepest) as leaves:
            rest = (trees, cubes, leaves, work, out, floor_for(body, cubes))
            if problem.cost is None:
                tree_sizes(first, last, changes, constants, bends, *rest)
            else:
                tree_costs(first, last, changes, constants, bends, ceiling, *rest)

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


def _lower_ceilings(problem: Problem, cubes: WorkCubes, trees: Trees, ceiling: Floats) -> None:
    """Cost of some set per cube, where no rule stands in the way: the polynomial need not reach beyond it."""
    if len(cubes.implies) or len(cubes.banned):
        return
    for i in range(len(ceiling)):
        flipped = None if problem.budget.expired() else some_set(cubes, trees, i)
        if flipped is not None:
            ceiling[i] = min(ceiling[i], cubes.cost[i, flipped].sum())


def pack_trees(structure: Ensemble, problem: Problem) -> Trees:
    """The trees as contiguous arrays, each node with the unit it tests."""
    column = structure.column
    unit = np.where(column >= 0, np.append(problem.unit_of, -1)[column], -1)
    missing = bool(np.isnan(problem.start).any() or np.isnan(problem.goal).any())
    number = np.where(column >= 0, structure.threshold, structure.value).astype(np.float64)[:, None]
    link = np.column_stack([column, unit, structure.left, structure.right, number.view(np.int32)]).astype(np.int32)
    return Trees(
        link=link,
        number=link.view(np.float64),
        missing_left=np.ascontiguousarray(structure.missing_left, dtype=bool),
        category=np.ascontiguousarray(structure.category, dtype=np.int32),
        left_levels=np.ascontiguousarray(structure.left_levels, dtype=bool),
        root=np.ascontiguousarray(structure.root, dtype=np.int32),
        plain=not missing and bool((structure.category < 0).all()),
        base=float(structure.base),
    )


def depth(trees: Trees) -> int:
    """Most splits on any path, level by level."""
    column, left, right = trees.link[:, COLUMN], trees.link[:, LEFT], trees.link[:, RIGHT]
    level, deepest = trees.root[column[trees.root] >= 0], 0
    while len(level):
        deepest += 1
        level = np.concatenate((left[level], right[level]))
        if len(level) > len(column):  # nodes with several parents
            level = np.unique(level)
        level = level[column[level] >= 0]
    return deepest
