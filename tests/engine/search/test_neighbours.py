"""The search over nearest neighbours against brute force through the structure's own scores, and controls that fail."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from slow_cases import mostly_slow

from fewest.engine.search import levelwise, neighbours
from fewest.engine.search.problem import Budget, Floor, Found, Outcome, Problem, Rules
from fewest.engine.structure.base import Neighbours, Reading


def random_case(seed: int, units: int | None = None, **changes: Any) -> tuple[Neighbours, Problem]:
    """Random training rows, and cubes from rows of high means towards two of low ones."""
    random = np.random.default_rng(seed)
    u = units or int(random.integers(3, 8))
    unit_of = np.concatenate((np.arange(u), random.integers(-1, u, 3))).astype(np.int32)
    n, d = int(random.integers(20, 80)), len(unit_of)
    ties = seed % 5 == 0  # rows on a grid are often equally far
    rows = random.integers(0, 3, (n, d)).astype(float) if ties else random.normal(size=(n, d))
    value = random.normal(size=n) if seed % 3 == 1 else (random.random(n) < 0.5).astype(float)
    k, power = int(random.choice([1, 3, 4, 9, n])), float(random.choice([1.0, 2.0, 3.0]))
    weighted = bool(seed % 2)
    cut = float(np.median(value)) if seed % 3 == 1 else (k // 2 + 0.5) / k if not weighted else 0.45
    reading = Reading(cut, 1e-10, np.asarray, np.arange(d, dtype=np.int32))
    structure = Neighbours(reading, rows, value, k, power, weighted, 1e-12)
    sign = -1 if seed % 4 == 0 else 1
    drawn = random.integers(0, 3, (150, d)).astype(float) if ties else random.normal(size=(150, d))
    drawn = drawn[np.argsort(sign * structure.raw(drawn), kind="stable")]
    start = drawn[-8:]
    problem = Problem(
        start=start,
        goal=drawn[:2],
        goal_of=random.integers(0, 2, len(start)).astype(np.int32),
        unit_of=unit_of,
        movable=random.random((len(start), u)) < 0.95,
        distance=random.integers(0, 4, (len(start), u)) * 0.1,
        limit=np.where(random.random(len(start)) < 0.8, np.inf, 2.0),
        sign=sign,
        all_sets=int(random.choice([0, 2, 1000])),
    )
    return structure, replace(problem, **changes)


def scorer(structure: Neighbours, problem: Problem) -> Any:
    def score(cubes: np.ndarray, moved: np.ndarray) -> np.ndarray:
        return problem.sign * (structure.raw(problem.vertex_rows(cubes, moved)) - structure.reading.cut)

    return score


def by_vertices(structure: Neighbours, problem: Problem) -> Found:
    return levelwise.solve(scorer(structure, problem), problem, structure.reading.tolerance)


def as_tuple(found: Found) -> tuple:
    sets = None if found.sets is None else [rows.tolist() for rows in found.sets]
    arrays = [found.outcome, found.moved, found.known, found.cost, found.lower, found.complete]
    return (*(np.where(a == a, a, -1).tolist() for a in arrays), sets)


def agree(structure: Neighbours, problem: Problem) -> bool:
    return as_tuple(neighbours.solve(structure, problem)) == as_tuple(by_vertices(structure, problem))


@pytest.mark.parametrize("seed", mostly_slow(range(200), range(60)))
def test_equals_the_levelwise_search(seed: int) -> None:
    assert agree(*random_case(seed))


@pytest.mark.parametrize("seed", mostly_slow(range(40), range(10)))
def test_equals_brute_force(seed: int, brute: ModuleType) -> None:
    structure, problem = random_case(seed)
    empty_turns = scorer(structure, problem)(np.arange(8), np.zeros((8, problem.n_units), dtype=bool)) < 1e-10
    problem = problem.take(np.flatnonzero(~empty_turns))
    truth = brute.solve(problem, structure.raw, structure.reading.cut, structure.reading.tolerance)
    assert brute.disagreement(problem, truth, neighbours.solve(structure, problem)) is None


@pytest.mark.parametrize("seed", range(4))
def test_more_units_and_larger_sets(seed: int) -> None:
    assert agree(*random_case(seed, units=12, limit=np.full(8, np.inf)))


@pytest.mark.parametrize("seed", range(12))
def test_costs_rules_rejected_sets_and_floors_are_obeyed(seed: int) -> None:
    random = np.random.default_rng(seed)
    structure, problem = random_case(seed)
    first = by_vertices(structure, problem)
    dense = random.normal(size=(8, problem.n_units))
    for changes in (
        {"cost": random.choice([0.5, 1.0, 2.0], size=(8, problem.n_units))},
        {"rules": Rules(np.array([[0, 1]], dtype=np.int32), (np.array([1, 2], dtype=np.int32),))},
        {"rejected": {cube: first.moved[cube : cube + 1] for cube in range(8) if first.known[cube]}},
        {"floor": Floor(0.3, lambda cubes, moved: (dense[cubes] * moved).sum(axis=1), np.arange(8))},
    ):
        assert agree(structure, replace(problem, **changes))


@pytest.mark.parametrize("seed", range(15))
def test_a_spent_budget_is_said_and_its_bound_holds(seed: int) -> None:
    structure, problem = random_case(seed, units=8, all_sets=0)
    truth = by_vertices(structure, problem)
    true_cost = np.where(truth.known, truth.cost, math.inf)
    for nodes in (0, 10, 40, 100):
        found = neighbours.solve(structure, replace(problem, budget=Budget(nodes=nodes)))
        assert (found.lower <= true_cost).all()
        assert (found.cost[found.known] >= true_cost[found.known]).all()
        assert (found.cost == true_cost)[found.outcome == Outcome.FOUND].all()
        assert (truth.outcome == Outcome.NONE)[found.outcome == Outcome.NONE].all()


def test_a_passed_deadline_leaves_cubes_stopped() -> None:
    structure, problem = random_case(1, budget=Budget(deadline=time.monotonic() - 1.0))
    assert (neighbours.solve(structure, problem).outcome == Outcome.STOPPED).all()


def test_threads_and_small_rooms_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    structure, problem = random_case(7, units=9, all_sets=0)
    many = problem.take(np.tile(np.arange(8), 5))
    whole = as_tuple(neighbours.solve(structure, many))
    assert as_tuple(neighbours.solve(structure, many, n_jobs=2)) == whole
    monkeypatch.setattr(neighbours, "_FIRST", 1)
    assert as_tuple(neighbours.solve(structure, many)) == whole
    monkeypatch.setattr(neighbours, "HELD", 1)
    assert as_tuple(neighbours.solve(structure, many)) == whole


def disagreements() -> int:
    return sum(not agree(*random_case(seed)) for seed in range(20))


def test_control_a_bound_that_is_too_high_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert disagreements() == 0
    rows = neighbours._rows
    monkeypatch.setattr(neighbours, "_rows", lambda *given: rows(*given)._replace(tolerance=-0.2))
    assert disagreements() > 0


def test_control_other_neighbours_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = neighbours._rows
    monkeypatch.setattr(neighbours, "_rows", lambda *given: rows(*given)._replace(power=2.5))
    assert disagreements() > 0


def test_control_a_search_that_gives_up_hope_too_soon_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "may_turn", lambda *_: False)
    assert disagreements() > 0
