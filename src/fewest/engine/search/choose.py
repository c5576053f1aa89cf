"""Pick the search that fits the model's structure; all have the same signature and the same words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from fewest.engine.search.problem import Found, Problem
from fewest.engine.structure.base import Additive, Composite, Ensemble, Network, Opaque, Structure
from fewest.tables.arrays import Bools, Floats, Ints

Scorer = Callable[[Ints, Bools], Floats]


def strategy_name(structure: Structure | Opaque, floor: Literal["none", "bounded", "asked"] = "none") -> str:
    """The strategy a structure is searched with, as `Proof` names it.

    Parameters
    ----------
    structure : Structure or Opaque
    floor : str
        ``bounded`` where vertices have to be credible and the density can be bounded, ``asked`` where it can only be
        asked for vertex by vertex.
    """
    if floor != "none":
        searched = strategy_name(structure)
        if floor == "asked" and isinstance(structure, Additive | Ensemble):
            searched = "levelwise"
        return f"{searched}, above the floor"
    if isinstance(structure, Additive):
        return "additive"
    if isinstance(structure, Ensemble):
        return "ensemble"
    if isinstance(structure, Network):
        return "network"
    return "levelwise"


def solve(
    structure: Structure | Opaque, problem: Problem, own_score: Scorer, own_tolerance: float, n_jobs: int = 1
) -> Found:
    """Search all cubes of a problem exactly.

    Parameters
    ----------
    structure : Structure or Opaque
        What is known of the model's inside.
    problem : Problem
    own_score : callable
        (cubes, moved) -> signed scores through the user's own model, for structures that cannot be searched.
    own_tolerance : float
        Band in which those scores do not decide.
    n_jobs : int
        Cubes are shared out among this many threads; the answers do not depend on it.
    """
    if problem.floor is not None:
        return _solve_above(structure, problem, own_score, own_tolerance, n_jobs)
    return _solve(structure, problem, own_score, own_tolerance, n_jobs)


def _solve_above(
    structure: Structure | Opaque, problem: Problem, own_score: Scorer, own_tolerance: float, n_jobs: int
) -> Found:
    """Search under the problem's floor."""
    from fewest.engine.search import credible, levelwise

    bounded = problem.floor is not None and problem.floor.bodies is not None
    if isinstance(structure, Additive | Ensemble):
        score = mixing_scorer(structure, problem)
        if bounded:
            return credible.solve(structure, problem, score, n_jobs)
        return levelwise.solve(score, problem, structure.reading.tolerance)
    if not bounded:
        return _solve(structure, problem, own_score, own_tolerance, n_jobs)

    def rest(part: Problem, cubes: Ints) -> Found:
        return _solve(structure, part, lambda local, moved: own_score(cubes[local], moved), own_tolerance, n_jobs)

    return credible.screened(rest, problem, n_jobs)


def _solve(
    structure: Structure | Opaque, problem: Problem, own_score: Scorer, own_tolerance: float, n_jobs: int
) -> Found:
    """The search of each structure; those that look at vertices keep the floor by themselves."""
    if isinstance(structure, Additive):
        from fewest.engine.search import additive

        return additive.solve(structure, problem, n_jobs)
    if isinstance(structure, Ensemble):
        from fewest.engine.search import ensemble

        return ensemble.solve(structure, problem, n_jobs)
    if isinstance(structure, Network):
        from fewest.engine.search import network

        return network.solve(structure, problem, n_jobs)
    from fewest.engine.search import levelwise

    if isinstance(structure, Composite):
        return levelwise.solve(mixing_scorer(structure, problem), problem, structure.reading.tolerance)
    return levelwise.solve(own_score, problem, own_tolerance)


def mixing_scorer(structure: Structure, problem: Problem) -> Scorer:
    """Signed scores of vertices by the structure's own arithmetic on mixed prepared rows."""

    def score(cubes: Ints, moved: Bools) -> Floats:
        rows = vertex_rows(problem, cubes, moved)
        return np.asarray(problem.sign * (structure.raw(rows) - structure.reading.cut))

    return score


def vertex_rows(problem: Problem, cubes: Ints, moved: Bools) -> Floats:
    """Prepared rows of vertices: the columns of moved units come from the goal."""
    from_goal = np.where(problem.unit_of >= 0, moved[:, problem.unit_of], False)
    return np.where(from_goal, problem.goal[problem.goal_of[cubes]], problem.start[cubes])
