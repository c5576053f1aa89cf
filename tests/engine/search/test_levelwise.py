"""The level-wise search against plain enumeration of random Boolean functions, and controls that must fail."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fewest.engine.search import _subsets, _ties, levelwise
from fewest.engine.search.problem import Budget, Found, Outcome, Problem, Rules

TOLERANCE = 0.0
Values = np.ndarray


def rounded(value: float) -> float:
    return float(f"{value:.11e}")


class Case:
    """Random cubes over truth tables: every set has a stored score."""

    def __init__(self, seed: int, **changes: object) -> None:
        random = np.random.default_rng(seed)
        n, u = int(random.integers(1, 7)), int(random.integers(1, 8))
        self.table = random.choice([-1.0, -0.5, 0.5, 1.0], p=[0.1, 0.1, 0.4, 0.4], size=(n, 2**u))
        for cube in range(n):  # no small answers in some cubes
            small = [mask for mask in range(2**u) if mask.bit_count() <= int(random.integers(0, u + 1))]
            self.table[cube, small] = np.abs(self.table[cube, small])
        self.problem = Problem(
            start=np.zeros((n, u)),
            goal=np.ones((1, u)),
            goal_of=np.zeros(n, dtype=np.int32),
            unit_of=np.arange(u, dtype=np.int32),
            movable=random.random((n, u)) < 0.9,
            distance=random.integers(0, 3, (n, u)) * 0.1,
            limit=np.where(random.random(n) < 0.7, np.inf, random.integers(0, 5, n) + 0.5),
            cost=random.choice([0.1, 0.2, 0.3, 1.0], size=(n, u)) if seed % 2 else None,
            rules=random_rules(random, n, u) if seed % 3 == 0 else Rules(),
            rejected={0: random.random((5, u)) < 0.3} if seed % 5 == 0 else {},
            all_sets=int(random.choice([0, 1, 3, 1000])),
        )
        self.problem = replace(self.problem, **changes)  # type: ignore[arg-type]
        self.calls: list[int] = []

    def score(self, cubes: Values, moved: Values) -> Values:
        self.calls.append(len(cubes))
        return self.table[cubes, (moved * 2 ** np.arange(moved.shape[1])).sum(axis=1)]

    def solve(self, batch: int = 65536) -> Found:
        return levelwise.solve(self.score, self.problem, TOLERANCE, batch)


def random_rules(random: np.random.Generator, n: int, u: int) -> Rules:
    pairs = random.integers(0, u, (2, 2)).astype(np.int32)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    binds = random.random((n, len(pairs) + 1)) < 0.7 if random.random() < 0.5 else None
    return Rules(pairs, (np.unique(random.integers(0, u, 2)).astype(np.int32),), binds)


def ranked_sets(case: Case, cube: int, stop: Callable[[float], bool] = lambda value: value < TOLERANCE) -> list[tuple]:
    """All acceptable turned sets of a cube as (cost, distance, score, units), cheapest and best-ranked first."""
    problem = case.problem
    weights = np.ones(problem.n_units) if problem.cost is None else problem.cost[cube]
    rows = []
    movable = np.nonzero(problem.movable[cube])[0].tolist()
    for size in range(1, len(movable) + 1):
        for units in itertools.combinations(movable, size):
            row = np.zeros(problem.n_units, dtype=bool)
            row[list(units)] = True
            cost = sum(weights[unit] for unit in units)
            rules = problem.rules
            hit = [a in units and b not in units and b in movable for a, b in rules.implies]
            hit += [set(group.tolist()) <= set(units) for group in rules.forbidden]
            broken = any(hit) if rules.binds is None else any(rules.binds[cube] & hit)
            broken |= any((row == refused).all() for refused in problem.rejected.get(cube, ()))
            value = float(case.score(np.array([cube]), row[None])[0])
            if not broken and stop(value) and cost <= problem.limit[cube] + 1e-9:
                distance = rounded(sum(problem.distance[cube, unit] for unit in units))
                rows.append((round(cost, 9), distance, rounded(value), units))
    return sorted(rows)


def differences(case: Case, found: Found, **how: object) -> list[str]:
    """What in ``found`` contradicts enumeration. Used on right and on broken searches alike."""
    wrong = []
    problem = case.problem
    for cube in range(problem.n_cubes):
        truth = ranked_sets(case, cube, **how)  # type: ignore[arg-type]
        outcome, units = found.outcome[cube], tuple(np.nonzero(found.moved[cube])[0].tolist())
        if not truth:
            if outcome != Outcome.NONE or found.known[cube] or not np.isnan(found.cost[cube]):
                wrong.append(f"{cube}: {outcome} {units}, but there is none")
            if found.lower[cube] <= problem.limit[cube] and found.lower[cube] < math.inf:
                wrong.append(f"{cube}: lower {found.lower[cube]} says less than the limit")
            continue
        if outcome != Outcome.FOUND or units != truth[0][3] or not math.isclose(found.cost[cube], truth[0][0]):
            wrong.append(f"{cube}: {outcome} {units}, not {truth[0]}")
        if found.lower[cube] != found.cost[cube]:
            wrong.append(f"{cube}: lower {found.lower[cube]} is not the cost")
        if found.sets is not None:
            same = [row[3] for row in truth if row[0] == truth[0][0]]
            listed = [tuple(np.nonzero(row)[0].tolist()) for row in found.sets[cube]]
            if listed != same[: problem.all_sets] or found.complete[cube] != (len(same) <= problem.all_sets):
                wrong.append(f"{cube}: lists {listed}, not {same}")
    return wrong


def as_tuple(found: Found) -> tuple:
    sets = None if found.sets is None else [rows.tolist() for rows in found.sets]
    arrays = (found.outcome, found.moved, found.known, found.cost, found.lower, found.nodes, found.complete)
    return (*(np.where(array == array, array, -1).tolist() for array in arrays), sets)


@pytest.mark.parametrize("seed", range(120))
def test_equals_enumeration_for_random_boolean_functions(seed: int) -> None:
    case = Case(seed)
    assert differences(case, case.solve()) == []


@pytest.mark.parametrize("seed", range(40))
def test_the_batch_size_changes_nothing(seed: int) -> None:
    case = Case(seed)
    assert as_tuple(case.solve(1)) == as_tuple(case.solve(7)) == as_tuple(case.solve())


@pytest.mark.parametrize("seed", range(60))
def test_a_spent_budget_is_said_and_its_bound_holds(seed: int) -> None:
    for nodes in (0, 1, 5, 20, 60):
        case = Case(seed, budget=Budget(nodes=nodes), all_sets=0)
        found = case.solve()
        whole = Case(seed, all_sets=0)
        truth = whole.solve()
        for cube in range(case.problem.n_cubes):
            true_cost = truth.cost[cube] if truth.known[cube] else math.inf
            assert found.lower[cube] <= true_cost + 1e-9 or found.outcome[cube] == Outcome.NONE
            if found.known[cube]:
                assert case.score(np.array([cube]), found.moved[cube][None])[0] < TOLERANCE
                assert _subsets.acceptable(case.problem, np.array([cube]), found.moved[cube][None])[0]
                assert found.cost[cube] >= true_cost - 1e-9
            if found.outcome[cube] == Outcome.FOUND:
                assert math.isclose(found.cost[cube], true_cost)
            if found.outcome[cube] == Outcome.NONE:
                assert truth.outcome[cube] == Outcome.NONE


def test_vertices_of_many_cubes_share_a_call() -> None:
    case = Case(2, rules=Rules(), rejected={}, all_sets=0)
    case.solve()
    assert len(case.calls) <= case.problem.n_units


def test_a_passed_deadline_leaves_cubes_stopped() -> None:
    found = Case(4, budget=Budget(deadline=time.monotonic() - 1.0)).solve()
    assert (found.outcome == Outcome.STOPPED).all()
    assert not found.known.any()


def test_the_last_level_is_left_once_nothing_closer_can_follow() -> None:
    u = 20
    problem = replace(
        Case(0).problem, start=np.zeros((1, u)), movable=np.ones((1, u), dtype=bool), rejected={}, rules=Rules(),
        distance=np.arange(1.0, u + 1)[None], limit=np.full(1, np.inf), cost=None, all_sets=0,
    )  # fmt: skip
    found = levelwise.solve(lambda cubes, moved: 2.5 - moved.sum(axis=1), problem, 0.0)
    assert np.nonzero(found.moved[0])[0].tolist() == [0, 1, 2]
    assert found.nodes[0] < 20 + 190 + 200


def test_the_nodes_are_the_sets_that_had_to_be_looked_at() -> None:
    found = wide_cubes()[0]
    assert (found.nodes[found.cost == 1] == 14).all()
    assert (found.nodes[found.cost == 3] >= 14 + 91 + 1).all()
    assert (found.nodes[found.cost == 3] < 14 + 91 + 364).any()


def wide_cubes(n: int = 60) -> tuple[Found, list[int]]:
    """Cubes that one of few units turns, or three of them or of others together; and the rows of each call."""
    random = np.random.default_rng(5)
    problem = replace(
        Case(0).problem, start=np.zeros((n, 14)), goal_of=np.zeros(n, dtype=np.int32),
        movable=np.ones((n, 14), dtype=bool), rejected={}, rules=Rules(), distance=random.random((n, 14)).round(2),
        limit=np.full(n, np.inf), cost=None, all_sets=0, sign=1,
    )  # fmt: skip
    calls: list[int] = []

    def score(cubes: np.ndarray, moved: np.ndarray) -> np.ndarray:
        calls.append(len(cubes))
        most = np.maximum(moved[:, 9:13].sum(axis=1), np.where(cubes % 3 == 0, moved[:, :4].sum(axis=1), 0))
        return np.where(cubes % 3 == 0, 2.5, 0.5) - most

    return levelwise.solve(score, problem, 0.0), calls


def test_a_small_level_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, calls = wide_cubes(6)
    assert calls == [6 * 14, 2 * 91, 2 * 364]
    monkeypatch.setattr(levelwise, "_ONE_CALL", 0)
    waves, more = wide_cubes(6)
    assert len(more) > len(calls)
    assert as_tuple(waves) == as_tuple(whole)


def test_units_that_turned_other_cubes_are_tried_early_and_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    learned, calls = wide_cubes()
    monkeypatch.setattr(levelwise._Group, "_likely", lambda self: iter(()))
    plain, more = wide_cubes()
    assert as_tuple(learned) == as_tuple(plain)
    assert len(calls) <= len(more)
    assert sum(calls) < 0.95 * sum(more)


def test_control_sets_tried_early_and_believed_at_once_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin ends a cube's search with the first set that turns it."""
    learned = wide_cubes()[0]
    advance = levelwise._Group.advance

    def hasty(self: levelwise._Group, best: np.ndarray, found: Found, seen: np.ndarray) -> bool:
        going = advance(self, best, found, seen)
        if going:
            self._need[best[self._cubes] < np.inf] = 0
        return going

    monkeypatch.setattr(levelwise._Group, "advance", hasty)
    assert as_tuple(wide_cubes()[0])[1] != as_tuple(learned)[1]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_any_slice_of_the_table_equals_itertools(k: int) -> None:
    table = list(itertools.combinations(range(7), k))
    assert [tuple(row) for row in _subsets.combinations(7, k).tolist()] == table
    assert [tuple(row) for row in _subsets.combinations(7, k, 3, 6).tolist()] == table[3:6]


def test_rounding_keeps_twelve_significant_decimals() -> None:
    values = np.array([0.1 + 0.2, 0.3, -1.23456789012345e-200, 0.0, 9.9999999999996, 1e300, np.inf])
    assert _ties.round_significant(values)[0] == _ties.round_significant(values)[1]
    expected = [rounded(value) for value in values.tolist()]
    assert np.allclose(_ties.round_significant(values)[:-1], expected[:-1], rtol=1e-15)


def caught(break_it: Callable[[Case], Found], **how: object) -> bool:
    return any(differences(case, break_it(case), **how) for case in map(Case, range(30)))


def test_control_a_search_that_skips_a_level_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not caught(Case.solve)
    level = levelwise._level
    monkeypatch.setattr(levelwise, "_level", lambda *args: args[5] if args[6] == 2 else level(*args))
    assert caught(Case.solve)


def test_control_a_search_that_counts_the_threshold_as_turned_is_caught() -> None:
    def inclusive(case: Case) -> Found:
        return levelwise.solve(case.score, case.problem, np.nextafter(0.5, 1.0))

    assert caught(inclusive)
    assert not caught(inclusive, stop=lambda value: value <= 0.5)
    assert caught(lambda case: levelwise.solve(case.score, case.problem, 0.5), stop=lambda value: value <= 0.5)


def test_control_a_wrong_ranking_is_caught() -> None:
    def by_units_only(case: Case) -> Found:
        flat = replace(case.problem, distance=np.zeros_like(case.problem.distance))
        return levelwise.solve(case.score, flat, TOLERANCE)

    assert caught(by_units_only)
