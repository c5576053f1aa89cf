"""Exact search under a floor: the smallest set that is turned AND credible, for additive models and tree ensembles.

Only a mixture can be bounded; under any other density the level-wise search looks at the vertices. For models without
a polynomial the mixture alone is searched first: a cube in which nothing is credible needs no vertex of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fewest.engine.search import additive, ensemble, levelwise
from fewest.engine.search._greedy import give_up
from fewest.engine.search._joint import spread
from fewest.engine.search.problem import Found, Outcome, Problem, Score, combined
from fewest.engine.structure.base import Additive, Ensemble, Reading, as_floats
from fewest.tables.arrays import Ints

BATCH = 65536


def solve(structure: Additive | Ensemble, problem: Problem, score: Score, n_jobs: int = 1) -> Found:
    """Cheapest sets that turn each cube and end at the floor or above, proved.

    ``score`` gives signed scores of vertices by the structure, for what the search leaves over.
    """
    if isinstance(structure, Additive):
        found = additive.solve(structure, problem, n_jobs)
    else:
        wide, plain = spread(structure, problem)
        trees = ensemble.pack_trees(wide, plain)
        found, _ = ensemble.search(structure, plain, trees, problem.budget.nodes, n_jobs)
    finish(problem, found, score, structure.reading.tolerance)
    return found


def finish(problem: Problem, found: Found, score: Score, tolerance: float) -> None:
    """What is still known about the cubes that were stopped."""
    stopped = np.flatnonzero((found.outcome == Outcome.STOPPED) & ~found.known)
    if not len(stopped) or problem.budget.expired():
        return
    # Those that were stopped without spending their nodes have too large a polynomial: their vertices are looked at.
    large = stopped[found.nodes[stopped] < problem.budget.nodes]
    if len(large):
        found.put(
            large, levelwise.solve(lambda cubes, moved: score(large[cubes], moved), problem.take(large), tolerance)
        )
    spent = np.setdiff1d(stopped, large)
    give_up(combined(score, problem, tolerance), problem, tolerance, BATCH, found, spent)


def screened(solve_rest: Callable[[Problem, Ints], Found], problem: Problem, n_jobs: int) -> Found:
    """Search with any other strategy, but only the cubes in which some acceptable set is credible at all.

    ``solve_rest`` is given the problem of some cubes and their numbers.
    """
    found = alone(problem, n_jobs)
    rest = np.flatnonzero(found.outcome != Outcome.NONE)
    if len(rest) == 0:
        return found
    least = found.lower[rest]
    searched = solve_rest(problem.take(rest), rest)
    # No smaller set is credible, whatever the model says of it.
    stopped = searched.outcome == Outcome.STOPPED
    searched.lower[stopped] = np.maximum(searched.lower[stopped], least[stopped])
    proved = stopped & searched.known & (searched.cost <= searched.lower)
    searched.outcome[proved] = Outcome.FOUND
    found.put(rest, searched)
    return found


def alone(problem: Problem, n_jobs: int) -> Found:
    """Cheapest credible sets whatever the model says of them: every vertex counts as turned."""
    nowhere = np.empty(0, dtype=np.int32)
    turned = Additive(Reading(0.0, 0.0, as_floats, nowhere), np.empty(0), intercept=-1.0)
    start, goal = np.empty((problem.n_cubes, 0)), np.empty((1, 0))
    found = additive.solve(
        turned,
        replace(problem, all_sets=0, sign=1, start=start, goal=goal, unit_of=nowhere, joint=(), summed=None),
        n_jobs,
    )
    if problem.all_sets:
        found.sets = Found.blank(problem).sets
    return found
