"""The additive search against enumeration of every vertex."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fewest.engine.search import additive
from fewest.engine.search.problem import Budget, Outcome, Problem, Rules
from fewest.engine.structure.base import Additive, Reading, as_floats

TOLERANCE = 1e-9


def random_case(seed, options=(), n_cubes=8, n_units=8):
    rng = np.random.default_rng(seed)
    d = n_units + int(rng.integers(0, 4))
    unit_of = np.concatenate([np.arange(n_units), rng.integers(-1, n_units, d - n_units)]).astype(np.int32)
    rng.shuffle(unit_of)
    exact = bool(rng.random() < 0.6)  # ties occur, and sums carry no rounding
    start = rng.integers(-3, 4, (n_cubes, d)).astype(float) if exact else rng.normal(size=(n_cubes, d))
    goal = rng.integers(-3, 4, (3, d)).astype(float) if exact else rng.normal(size=(3, d))
    coef = rng.integers(-4, 5, d) / 4 if exact else rng.normal(size=d)
    sign = -1 if rng.random() < 0.5 else 1
    signed = sign * (start @ coef + 0.25)
    cut = float(sign * (signed.min() - rng.choice([0.0, 0.5, 2.0])))
    model = Additive(Reading(cut, TOLERANCE, as_floats, np.arange(d, dtype=np.int32)), coef, 0.25)
    cost = None
    if "cost" in options:
        cost = rng.integers(1, 5, (n_cubes, n_units)).astype(float)
        if rng.random() < 0.5:
            cost = rng.uniform(0.5, 3.0, (n_cubes, n_units))
    rules = Rules()
    if "rules" in options:
        pairs = rng.permuted(np.tile(np.arange(n_units), (2, 1)), axis=1).T[: rng.integers(0, 3)]
        forbidden = tuple(
            rng.choice(n_units, rng.integers(1, 3), replace=False).astype(np.int32) for _ in range(rng.integers(0, 3))
        )
        binds = np.random.default_rng([seed, 1]).random((n_cubes, len(pairs) + len(forbidden))) < 0.7
        rules = Rules(pairs.astype(np.int32).reshape(-1, 2), forbidden, binds if seed % 2 else None)
    distance = rng.integers(0, 4, (n_cubes, n_units)).astype(float)
    problem = Problem(
        start, goal, rng.integers(0, 3, n_cubes).astype(np.int32), unit_of, rng.random((n_cubes, n_units)) < 0.9,
        distance if rng.random() < 0.7 else rng.random((n_cubes, n_units)),
        rng.integers(0, 5, n_cubes).astype(float) if "limit" in options else np.full(n_cubes, np.inf),
        cost, sign, rules, all_sets=int(rng.integers(1, 9)) if "all_sets" in options else 0,
    )  # fmt: skip
    return model, problem


def with_rejected(brute, model, problem, seed):
    """The same problem after some of its best sets were turned down."""
    rng = np.random.default_rng(seed)
    truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
    rejected = {i: sets[: rng.integers(1, 4)] for i, sets in enumerate(truth.sets) if len(sets)}
    return replace(problem, rejected=rejected)


OPTIONS = [
    (), ("limit",), ("cost",), ("cost", "limit"), ("rules",), ("rejected",), ("all_sets",), ("rules", "cost"),
    ("rejected", "cost"), ("rules", "rejected", "limit"), ("all_sets", "rules", "rejected"),
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids="+".join)
def test_every_answer_is_the_one_enumeration_gives(brute, options):
    for seed in range(60):
        model, problem = random_case(seed, options)
        if "rejected" in options:
            problem = with_rejected(brute, model, problem, seed)
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        assert brute.disagreement(problem, truth, additive.solve(model, problem)) is None, f"seed {seed}"


def test_the_oracle_catches_a_comparison_that_lets_ties_through(brute):
    caught = 0
    for seed in range(40):
        model, problem = random_case(seed)
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        broken = replace(model, reading=replace(model.reading, tolerance=-TOLERANCE))
        caught += brute.disagreement(problem, truth, additive.solve(broken, problem)) is not None
    assert caught > 5


def test_the_size_is_proved_even_when_the_ranking_runs_out_of_nodes(brute):
    model, problem = random_case(0, n_cubes=20, n_units=12)
    short = additive.solve(model, replace(problem, budget=Budget(nodes=1)))
    full = additive.solve(model, problem)
    assert np.array_equal(short.outcome, full.outcome)
    assert np.array_equal(short.cost, full.cost, equal_nan=True)


def test_threads_do_not_change_the_answer():
    model, problem = random_case(3, n_cubes=200)
    one, two = additive.solve(model, problem), additive.solve(model, problem, n_jobs=2)
    assert np.array_equal(one.moved, two.moved)
    assert np.array_equal(one.nodes, two.nodes)


def test_nothing_begins_after_the_deadline():
    model, problem = random_case(1)
    found = additive.solve(model, replace(problem, budget=Budget(deadline=0.0)))
    assert (found.outcome == Outcome.STOPPED).all()
    assert not found.known.any()


def test_units_of_no_column_and_of_several_are_told_apart():
    """As many columns as units, but not one each: a unit the model does not use beside one with two columns."""
    reading = Reading(0.0, 1e-9, as_floats, np.arange(3, dtype=np.int32))
    structure = Additive(reading, np.array([1.0, 1.0, 1.0]), 0.0)
    problem = Problem(
        start=np.array([[2.0, 2.0, 1.0]]),
        goal=np.array([[-2.0, -2.0, -1.0]]),
        goal_of=np.zeros(1, dtype=np.int32),
        unit_of=np.array([0, 0, 2], dtype=np.int32),
        movable=np.ones((1, 3), dtype=bool),
        distance=np.ones((1, 3)),
        limit=np.full(1, np.inf),
    )
    found = additive.solve(structure, problem)
    assert found.moved[0].tolist() == [True, False, False]


def wide_case(n_units, **changes):
    """All units help alike and are equally far: as many ties as there can be."""
    coef = np.ones(n_units)
    model = Additive(Reading(n_units / 2 + 0.5, TOLERANCE, as_floats, np.arange(n_units, dtype=np.int32)), coef, 0.0)
    problem = Problem(
        np.ones((1, n_units)), np.zeros((1, n_units)), np.zeros(1, dtype=np.int32), np.arange(n_units, dtype=np.int32),
        np.ones((1, n_units), dtype=bool), np.ones((1, n_units)), np.full(1, np.inf),
    )  # fmt: skip
    return model, replace(problem, **changes)


WIDE = {
    "listed": {"all_sets": 2},
    "an implication": {"rules": Rules(np.array([[0, 599]], dtype=np.int32))},
    "a forbidden pair": {"rules": Rules(forbidden=(np.array([0, 1], dtype=np.int32),))},
    "one cost of two": {"cost": np.where(np.arange(600) == 0, 2.0, 1.0)[None]},
    "costs of one to four": {"cost": (1.0 + np.arange(600) % 4)[None]},
    "costs in tenths": {"cost": (0.3 + 0.1 * (np.arange(600) % 5))[None]},
}


@pytest.mark.parametrize("name", WIDE)
def test_ties_among_hundreds_of_units_do_not_hold_up_the_answer(name):
    model, problem = wide_case(600, budget=Budget(nodes=5_000), **WIDE[name])
    found = additive.solve(model, problem)
    assert found.outcome[0] == Outcome.FOUND
    assert found.nodes[0] < 5_000
    wanted = np.arange(300)
    if name == "an implication":
        wanted = np.r_[0:299, 599]
    elif name == "a forbidden pair":
        wanted = np.r_[0, 2:301]
    elif problem.cost is not None:
        wanted = np.lexsort((np.arange(600), problem.cost[0]))[:300]
    assert np.flatnonzero(found.moved[0]).tolist() == sorted(wanted.tolist())


def test_the_least_cost_is_proved_even_when_the_ranking_runs_out_of_nodes(brute):
    random = np.random.default_rng(2)
    model, problem = wide_case(
        40, cost=random.integers(1, 4, (1, 40)).astype(float), distance=random.integers(1, 9, (1, 40)) * 1.0
    )
    full = additive.solve(model, problem)
    short = additive.solve(model, replace(problem, budget=Budget(nodes=40)))
    assert full.nodes[0] > 80
    assert short.outcome[0] == Outcome.FOUND
    assert short.cost[0] == short.lower[0] == full.cost[0]
