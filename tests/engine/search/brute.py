"""Brute-force oracle: every set of movable units, cheapest first, each scored by the model itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from fewest.engine.search.problem import Found, Outcome, Problem

SAME = 1e-9


def significant(value: float) -> float:
    return float(f"{value:.11e}")


def vertices(problem: Problem, cube: int, sets: np.ndarray) -> np.ndarray:
    """Rows of the cube's vertices for sets (s, u) -> (s, d)."""
    start, goal = problem.start[cube], problem.goal[problem.goal_of[cube]]
    taken = np.zeros((len(sets), len(start)), dtype=bool)
    units = np.asarray(problem.unit_of)
    taken[:, units >= 0] = sets[:, units[units >= 0]]
    return np.where(taken, goal, start)


def acceptable_sets(
    problem: Problem, cube: int, raw: Callable[[np.ndarray], np.ndarray], cut: float, tolerance: float, largest: int
) -> list[tuple[float, float, float, tuple[int, ...]]]:
    """All acceptable sets of at most ``largest`` units as (cost, distance, score, units)."""
    units = np.flatnonzero(problem.movable[cube])
    subsets = [s for size in range(min(largest, len(units)) + 1) for s in itertools.combinations(units.tolist(), size)]
    sets = np.zeros((len(subsets), problem.n_units), dtype=bool)
    for row, subset in enumerate(subsets):
        sets[row, list(subset)] = True
    weights = np.ones(problem.n_units) if problem.cost is None else problem.cost[cube]
    score = problem.sign * (raw(vertices(problem, cube, sets)) - cut)
    cost = sets @ weights
    fine = (
        (score < tolerance)
        & (cost <= problem.limit[cube] * (1 + SAME))
        & problem.rules.take([cube]).allow(sets, problem.movable[cube])
    )
    for rejected in problem.rejected.get(cube, np.zeros((0, problem.n_units), dtype=bool)):
        fine &= (sets != rejected).any(axis=1)
    far = np.where(sets, problem.distance[cube], 0.0).sum(axis=1)
    return [
        (float(cost[i]), significant(far[i]), significant(score[i]), subsets[i]) for i in np.flatnonzero(fine).tolist()
    ]


def solve(
    problem: Problem,
    raw: Callable[[np.ndarray], np.ndarray],
    cut: float,
    tolerance: float,
    largest: int = 64,
) -> Found:
    """Answer the problem by enumeration; ``sets`` lists all cheapest sets, whatever ``all_sets`` says."""
    found = Found.blank(problem)
    found.sets = [np.zeros((0, problem.n_units), dtype=bool) for _ in range(problem.n_cubes)]
    for i in range(problem.n_cubes):
        sets = acceptable_sets(problem, i, raw, cut, tolerance, largest)
        if not sets:
            found.outcome[i] = Outcome.NONE
            continue
        least = min(s[0] for s in sets)
        cheapest = sorted((s for s in sets if s[0] <= least * (1 + SAME)), key=lambda s: s[1:])
        rows = np.zeros((len(cheapest), problem.n_units), dtype=bool)
        for row, (*_, subset) in enumerate(cheapest):
            rows[row, list(subset)] = True
        found.sets[i] = rows
        found.outcome[i] = Outcome.FOUND
        found.moved[i] = rows[0]
        found.known[i] = True
        found.cost[i] = found.lower[i] = least
    return found


def disagreement(problem: Problem, truth: Found, answer: Found) -> str | None:
    """The first difference between an answer and the oracle's, in words; None where there is none."""
    assert truth.sets is not None
    for i in range(problem.n_cubes):
        if answer.outcome[i] != truth.outcome[i]:
            return f"cube {i}: outcome {answer.outcome[i]}, truth {truth.outcome[i]}"
        if answer.known[i] != truth.known[i] or not np.array_equal(answer.moved[i], truth.moved[i]):
            return f"cube {i}: set {np.flatnonzero(answer.moved[i])}, truth {np.flatnonzero(truth.moved[i])}"
        if truth.known[i]:
            if not np.isclose(answer.cost[i], truth.cost[i], rtol=1e-9):
                return f"cube {i}: cost {answer.cost[i]}, truth {truth.cost[i]}"
            if not np.isclose(answer.lower[i], truth.cost[i], rtol=1e-9):
                return f"cube {i}: lower bound {answer.lower[i]}, truth {truth.cost[i]}"
        elif not answer.lower[i] >= min(problem.limit[i], 1e9):
            return f"cube {i}: lower bound {answer.lower[i]} of nothing within {problem.limit[i]}"
        if problem.all_sets:
            assert answer.sets is not None
            if not np.array_equal(answer.sets[i], truth.sets[i][: problem.all_sets]):
                return f"cube {i}: lists {answer.sets[i].astype(int)}, truth {truth.sets[i].astype(int)}"
            if answer.complete[i] != (len(truth.sets[i]) <= problem.all_sets):
                return f"cube {i}: complete {answer.complete[i]} of {len(truth.sets[i])}"
    return None
