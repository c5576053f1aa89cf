"""Exact search for additive models: each unit adds its own change, so sorting the changes is exact.

The shortest prefix of the sorted changes that turns the score is optimal; only the choice among equally small sets,
costs and rules need a search.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fewest.search._blocks import additive_costs, additive_sizes, small_block
from fewest.search._run import pack, run
from fewest.search._sorted import plain_block
from fewest.search._work import Answers, Work
from fewest.search.problem import Found, Problem
from fewest.structure.base import Additive


@njit(cache=True, nogil=True)
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


def solve(structure: Additive, problem: Problem, threads: int = 1) -> Found:
    """Cheapest sets of units that turn each cube of the problem, proved.

    Parameters
    ----------
    structure : Additive
        The model; its ``cut`` and ``tolerance`` decide.
    problem : Problem
        The hypercubes and what is wanted of them.
    threads : int
        Cubes are shared out among so many threads; the answer does not depend on it.
    """
    cubes = pack(problem, structure.reading.cut, structure.reading.tolerance, True)
    changes, constants = _changes(
        cubes.start, cubes.goal, cubes.goal_of, np.ascontiguousarray(problem.unit_of, dtype=np.int32),
        np.ascontiguousarray(structure.coef, dtype=np.float64), float(structure.intercept), cubes.cut, cubes.sign,
        problem.n_units,
    )  # fmt: skip

    plain = problem.cost is None and not (problem.rules or problem.rejected or problem.all_sets)

    def kernel(first: int, last: int, work: Work, out: Answers) -> None:
        if plain:
            plain_block(first, last, changes, constants, cubes, out)
            return
        small_block(first, last, changes, constants, cubes, work, out)
        if out.todo[first:last].any():
            rest = additive_sizes if problem.cost is None else additive_costs
            rest(first, last, changes, constants, cubes, work, out)

    return run(problem, cubes, kernel, threads)[0]
