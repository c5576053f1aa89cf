"""Exact search for additive models: each unit adds its own change, so sorting the changes is exact.

The shortest prefix of the sorted changes that turns the score is optimal; only the choice among equally small sets,
costs and rules need a search.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import entry
from fewest.engine.search import first_answers
from fewest.engine.search._blocks import additive_costs, additive_sizes, small_block
from fewest.engine.search._gaussians import floor_for, pack_body
from fewest.engine.search._run import pack, run, share_out
from fewest.engine.search._sorted_effects import solve_block, unit_sums
from fewest.engine.search._work import Work, WorkAnswers, by_unit
from fewest.engine.search.problem import Found, Problem
from fewest.engine.structure.base import Additive

BLOCK = 4096  # cubes between two looks at the clock


@entry
def _changes(start, goal, goal_of, unit_of, coef, intercept, cut, sign, n_units):  # type: ignore[no-untyped-def]
    """What moving each unit adds to the signed score (n, u), and the signed score of each start (n,)."""
    n, d = start.shape
    changes = np.zeros((n, n_units))
    constants = np.empty(n)
    for i in range(n):
        total = intercept
        r = goal_of[i]
        for c in range(d):
            total += start[i, c] * coef[c]
            u = unit_of[c]
            if u >= 0:
                changes[i, u] += sign * coef[c] * (goal[r, c] - start[i, c])
        constants[i] = sign * (total - cut)
    return changes, constants


def solve(structure: Additive, problem: Problem, n_jobs: int = 1) -> Found:
    """Cheapest sets of units that turn each cube and, under a floor, end at it or above; proved."""
    if problem.is_plain:
        return _by_sorting(structure, problem, n_jobs)
    body = pack_body(problem)
    cubes = pack(problem, structure.reading.cut, structure.reading.tolerance, True)
    changes, constants = _changes(
        cubes.start, cubes.goal, cubes.goal_of, np.ascontiguousarray(problem.unit_of, dtype=np.int32),
        np.ascontiguousarray(structure.coef, dtype=np.float64), float(structure.intercept), cubes.cut, cubes.sign,
        problem.n_units,
    )  # fmt: skip
    search = additive_sizes if problem.cost is None else additive_costs

    def kernel(first: int, last: int, work: Work, out: WorkAnswers) -> None:
        if body is None:
            small_block(first, last, changes, constants, cubes, work, out)
        else:
            out.todo[first:last] = True
        if out.todo[first:last].any():
            search(first, last, changes, constants, cubes, work, out, floor_for(body, cubes))

    return run(problem, cubes, kernel, n_jobs)[0]


def _by_sorting(structure: Additive, problem: Problem, n_jobs: int) -> Found:
    """The plain question, answered by sorting: a few additions and comparisons per column."""
    found = Found.blank(problem)
    order, span = by_unit(problem.unit_of, problem.n_units)
    coef = np.ascontiguousarray(structure.coef, dtype=np.float64)
    few = first_answers.FEW if problem.budget.nodes >= first_answers.LEAST else -1
    sets = first_answers.counts(problem.n_units, first_answers.FEW)
    goal_sum = unit_sums(np.ascontiguousarray(problem.goal), order, span, coef)

    def work_on(first: int, last: int) -> None:
        while first < last and not problem.budget.expired():
            end = min(first + BLOCK, last)
            solve_block(
                first, end, problem.start, goal_sum, problem.goal_of, order, span, coef, float(structure.intercept),
                float(structure.reading.cut), float(problem.sign), float(structure.reading.tolerance), problem.movable,
                problem.distance, problem.limit, problem.budget.nodes, found.outcome, found.moved, found.known,
                found.cost, found.lower, found.nodes, sets, few,
            )  # fmt: skip
            first = end

    share_out(work_on, problem.n_cubes, min(n_jobs, problem.n_cubes // BLOCK + 1))
    return found
