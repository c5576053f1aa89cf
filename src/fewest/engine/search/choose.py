"""Pick the search that fits the model's structure; all have the same signature and the same words."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from fewest.engine.search._equal_cubes import once
from fewest.engine.search.problem import Found, Problem, Score
from fewest.engine.structure.base import (
    Additive,
    Composite,
    Ensemble,
    Module,
    Neighbours,
    Network,
    Opaque,
    Rivals,
    Structure,
)
from fewest.tables.arrays import Bools, Floats, Ints


def strategy_name(
    structure: Structure | Opaque, floor: Literal["none", "bounded", "asked"] = "none", joint: bool = False
) -> str:
    """The strategy a structure is searched with, as `Proof` names it.

    ``floor``: ``bounded`` where vertices have to be credible and the density can be bounded, ``asked`` where it can
    only be asked for vertex by vertex. ``joint``: whether columns depend on several features together.
    """
    if isinstance(structure, Rivals):
        return f"{strategy_name(structure.members[0], floor, joint)}, class by class"
    if floor != "none":
        searched = strategy_name(structure, joint=joint)
        if isinstance(structure, Composite) or (floor == "asked" and isinstance(structure, Additive | Ensemble)):
            searched = "levelwise"
        return f"{searched}, above the floor"
    if joint and isinstance(structure, Network | Neighbours | Composite):
        return "levelwise"
    if isinstance(structure, Composite) and any(isinstance(part, Network | Composite) for part in structure.members):
        return "levelwise"
    names = {
        Additive: "additive", Ensemble: "ensemble", Network: "network", Neighbours: "neighbours",
        Composite: "composite",
    }  # fmt: skip
    return names.get(type(structure), "levelwise")


def solve(
    structure: Structure | Opaque, problem: Problem, own_score: Score, own_tolerance: float, n_jobs: int = 1
) -> Found:
    """Search all cubes of a problem exactly; the answers do not depend on the threads ``n_jobs``.

    ``own_score`` gives signed scores through the user's own model, for structures that cannot be searched;
    ``own_tolerance`` is the band in which those scores do not decide.
    """
    if isinstance(structure, Rivals) and problem.sign > 0:
        from fewest.engine.search import rivals

        def of_member(member: Structure, part: Problem) -> Found:
            return solve(member, part, own_score, own_tolerance, n_jobs)

        return rivals.solve(structure, problem, mixing_scorer(structure, problem), of_member)
    if problem.floor is None:
        return _solve(structure, problem, own_score, own_tolerance, n_jobs)
    from fewest.engine.search import credible, levelwise

    bounded = problem.floor.bodies is not None
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
    structure: Structure | Opaque, problem: Problem, own_score: Score, own_tolerance: float, n_jobs: int
) -> Found:
    """The search of each structure, of equal cubes once; an additive one takes less time than comparing them."""
    if isinstance(structure, Additive):
        return _solve_all(structure, problem, own_score, own_tolerance, n_jobs)

    def search(part: Problem, cubes: Ints) -> Found:
        def score(local: Ints, moved: Bools) -> Floats:
            return own_score(cubes[local], moved)

        return _solve_all(structure, part, score, own_tolerance, n_jobs)

    return once(problem, search)


def _solve_all(
    structure: Structure | Opaque, problem: Problem, own_score: Score, own_tolerance: float, n_jobs: int
) -> Found:
    """The search of each structure; those that look at vertices keep the floor by themselves."""
    from fewest.engine.search import first_answers, levelwise

    unbounded = isinstance(structure, Network) and problem.joint  # each column a table: vertices are looked at
    if isinstance(structure, Additive | Ensemble | Network) and not unbounded:
        compiled = partial(_compiled, structure, n_jobs)
        return first_answers.solve(structure, problem, mixing_scorer(structure, problem), compiled)
    if isinstance(structure, Neighbours) and not problem.joint:
        from fewest.engine.search import neighbours

        if np.isfinite(structure.reading.cut):
            return neighbours.solve(structure, problem, n_jobs)
    if isinstance(structure, Composite | Network | Neighbours | Rivals):
        from fewest.engine.search import composite

        score = mixing_scorer(structure, problem)
        if isinstance(structure, Composite) and composite.is_searched(structure, problem):
            return composite.solve(structure, problem, score, n_jobs)
        return levelwise.solve(score, problem, structure.reading.tolerance)
    if isinstance(structure, Module) and problem.is_plain and problem.summed is None:
        from fewest.engine.search.on_device import ModuleLevels

        level = ModuleLevels(structure, problem, own_tolerance).look
        return levelwise.solve(own_score, problem, own_tolerance, level=level)
    return levelwise.solve(own_score, problem, own_tolerance)


def _compiled(structure: Additive | Ensemble | Network, n_jobs: int, problem: Problem) -> Found:
    """The compiled search of a structure, imported when it is first needed."""
    if isinstance(structure, Additive):
        from fewest.engine.search import additive, credible

        found = additive.solve(structure, problem, n_jobs)
        if problem.joint:
            score = mixing_scorer(structure, problem)
            credible.finish(problem, found, score, structure.reading.tolerance)
        return found
    if isinstance(structure, Ensemble):
        from fewest.engine.search import ensemble

        return ensemble.solve(structure, problem, n_jobs)
    from fewest.engine.search import network

    return network.solve(structure, problem, n_jobs)


def mixing_scorer(structure: Structure, problem: Problem) -> Score:
    """Signed scores of vertices by the structure's own arithmetic on mixed prepared rows."""

    def score(cubes: Ints, moved: Bools) -> Floats:
        raw = structure.raw(problem.vertex_rows(cubes, moved))
        return np.asarray(problem.sign * (raw - structure.reading.cut))

    return score
