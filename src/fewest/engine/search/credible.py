"""Exact search under a floor: the smallest set that is turned AND credible, for additive models and tree ensembles.

Only a mixture can be bounded; under any other density the level-wise search looks at the vertices. For models without
a polynomial the mixture alone is searched first: a cube in which nothing is credible needs no vertex of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fewest.engine.search import levelwise
from fewest.engine.search._blocks import additive_costs, additive_sizes, tree_changes, tree_costs, tree_sizes
from fewest.engine.search._gaussians import floor_for, pack_body
from fewest.engine.search._greedy import give_up
from fewest.engine.search._run import pack, run
from fewest.engine.search._work import Work, WorkAnswers, leaf_lists
from fewest.engine.search.additive import unit_changes
from fewest.engine.search.ensemble import depth, is_small, pack_trees
from fewest.engine.search.floor import Floor, MixtureCubes, Score, combined
from fewest.engine.search.problem import Found, Outcome, Problem
from fewest.engine.structure.base import Additive, Ensemble
from fewest.tables.arrays import Ints

BATCH = 65536


def solve(structure: Additive | Ensemble, problem: Problem, score: Score, n_jobs: int = 1) -> Found:
    """Cheapest sets that turn each cube and end at the floor or above, proved.

    Parameters
    ----------
    structure : Additive or Ensemble
    problem : Problem
        Its floor has bodies.
    score : callable
        Signed scores of vertices by the structure, for what the search leaves over.
    n_jobs : int
        Cubes are shared out among this many threads; the answer does not depend on it.
    """
    reading = structure.reading
    floor, bodies = _bounded(problem)
    body = pack_body(floor, bodies, problem.n_units)
    trees = pack_trees(structure, problem) if isinstance(structure, Ensemble) else None
    cubes = pack(problem, reading.cut, reading.tolerance, trees is not None and is_small(trees))
    counted = problem.cost is None
    if trees is None:
        assert isinstance(structure, Additive)
        changes, constants = unit_changes(structure, cubes, problem)

        def kernel(first: int, last: int, work: Work, out: WorkAnswers) -> None:
            out.todo[first:last] = True
            search = additive_sizes if counted else additive_costs
            search(first, last, changes, constants, cubes, work, out, floor_for(body, cubes))

    else:
        changes, constants = np.zeros((problem.n_cubes, problem.n_units)), np.zeros(problem.n_cubes)
        bends = np.zeros((problem.n_cubes, len(trees.root)), dtype=bool)
        deepest = depth(trees)

        def kernel(first: int, last: int, work: Work, out: WorkAnswers) -> None:
            tree_changes(first, last, trees, cubes, work, changes, constants, bends)
            out.todo[first:last] = True
            with leaf_lists.borrow(deepest) as leaves:
                rest = (trees, cubes, leaves, work, out, floor_for(body, cubes))
                if counted:
                    tree_sizes(first, last, changes, constants, bends, *rest)
                else:
                    tree_costs(first, last, changes, constants, bends, cubes.limit, *rest)

    found, _ = run(problem, cubes, kernel, n_jobs)
    _finish(problem, found, score, reading.tolerance)
    return found


def _bounded(problem: Problem) -> tuple[Floor, MixtureCubes]:
    if problem.floor is None or problem.floor.bodies is None:
        raise TypeError("only a mixture can be bounded")
    return problem.floor, problem.floor.bodies


def _finish(problem: Problem, found: Found, score: Score, tolerance: float) -> None:
    """What is still known about the cubes that were stopped."""
    stopped = np.flatnonzero((found.outcome == Outcome.STOPPED) & ~found.known)
    if not len(stopped) or problem.budget.expired():
        return
    # Those that were stopped without spending their nodes have too large a polynomial: their vertices are looked at.
    large = stopped[found.nodes[stopped] < problem.budget.nodes]
    if len(large):
        rejected = {j: problem.rejected[i] for j, i in enumerate(large.tolist()) if i in problem.rejected}
        found.put(
            large,
            levelwise.solve(lambda cubes, moved: score(large[cubes], moved), problem.take(large, rejected), tolerance),
        )
    spent = np.setdiff1d(stopped, large)
    give_up(combined(score, problem, tolerance), problem, tolerance, BATCH, found, spent)


def screened(solve_rest: Callable[[Problem, Ints], Found], problem: Problem, n_jobs: int) -> Found:
    """Search with any other strategy, but only the cubes in which some acceptable set is credible at all.

    Parameters
    ----------
    solve_rest : callable
        The problem of some cubes and their numbers -> what was found.
    problem : Problem
        Its floor has bodies.
    n_jobs : int
    """
    found = alone(problem, n_jobs)
    rest = np.flatnonzero(found.outcome != Outcome.NONE)
    if len(rest) == 0:
        return found
    least = found.lower[rest]
    rejected = {j: problem.rejected[i] for j, i in enumerate(rest.tolist()) if i in problem.rejected}
    searched = solve_rest(problem.take(rest, rejected), rest)
    # No smaller set is credible, whatever the model says of it.
    stopped = searched.outcome == Outcome.STOPPED
    searched.lower[stopped] = np.maximum(searched.lower[stopped], least[stopped])
    proved = stopped & searched.known & (searched.cost <= searched.lower)
    searched.outcome[proved] = Outcome.FOUND
    found.put(rest, searched)
    return found


def alone(problem: Problem, n_jobs: int) -> Found:
    """Cheapest credible sets whatever the model says of them: every vertex counts as turned."""
    floor, bodies = _bounded(problem)
    body = pack_body(floor, bodies, problem.n_units)
    question = replace(problem, all_sets=0, start=np.empty((problem.n_cubes, 0)), goal=np.empty((1, 0)))
    cubes = pack(question, 0.0, 0.0, True)
    changes, constants = np.zeros((problem.n_cubes, problem.n_units)), np.full(problem.n_cubes, -1.0)
    search = additive_sizes if problem.cost is None else additive_costs

    def kernel(first: int, last: int, work: Work, out: WorkAnswers) -> None:
        out.todo[first:last] = True
        search(first, last, changes, constants, cubes, work, out, floor_for(body, cubes))

    found, _ = run(question, cubes, kernel, n_jobs)
    if problem.all_sets:
        found.sets = Found.blank(problem).sets
    return found
