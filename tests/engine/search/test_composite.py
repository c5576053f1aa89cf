"""The search over the members of a sum against enumeration of every vertex."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from fewest.engine.search import composite
from fewest.engine.search.choose import mixing_scorer
from fewest.engine.search.problem import Budget, Found, Outcome, Problem
from fewest.engine.structure.base import Additive, Composite, Reading, as_floats

TOLERANCE = 1e-9
LINKS = (
    expit,
    lambda raw: raw,
    lambda raw: np.interp(raw, [-2.0, -1.0, 0.5, 0.51, 3.0], [0.0, 0.2, 0.2, 0.7, 1.0]),
    lambda raw: 0.5 * (raw >= -0.1) + 0.5 * (raw > 0.1),
)


@pytest.fixture
def random_sum(random_case: Any) -> Any:
    """Seed and options -> a sum of functions and a problem."""
    return lambda seed, options=(): made_of(seed, *random_case(seed, options))


def made_of(seed: int, model: Any, problem: Problem) -> tuple[Composite, Problem]:
    """A sum of functions of parts of a random ensemble, one of them additive, some with negative weights."""
    rng = np.random.default_rng([seed, 7])
    n = len(problem.unit_of)
    start, goal = np.nan_to_num(problem.start), np.nan_to_num(problem.goal)
    linear = Additive(Reading(0.0, TOLERANCE, as_floats, np.arange(n, dtype=np.int32)), rng.normal(size=n), 0.3)
    members = (*(replace(model, root=model.root[i::2]) for i in range(2)), linear)
    spans = tuple(slice(i * n, (i + 1) * n) for i in range(3))
    links = tuple(LINKS[k] for k in rng.integers(0, len(LINKS), 3))
    weights = tuple(rng.choice([-1.0, 0.5, 1.0, 2.0], 3).tolist())
    reading = Reading(0.0, TOLERANCE, as_floats, np.tile(np.arange(n, dtype=np.int32), 3))
    made = Composite(reading, members, spans, links, weights)
    wide = replace(problem, start=np.tile(start, 3), goal=np.tile(goal, 3), unit_of=np.tile(problem.unit_of, 3))
    signed = problem.sign * made.raw(wide.start)
    cut = float(problem.sign * (np.min(signed) - rng.choice([0.1, 0.3, 0.8])))
    return replace(made, reading=replace(reading, cut=cut)), wide


def answer(model: Composite, problem: Problem, **asked: int) -> Found:
    assert composite.is_searched(model, problem)
    return composite.solve(model, problem, mixing_scorer(model, problem), **asked)


@pytest.mark.parametrize("options", [(), ("limit",), ("rules",), ("rejected",), ("all_sets",)], ids="+".join)
def test_every_answer_is_the_one_enumeration_gives(brute, random_sum, options):
    sizes = set()
    for seed in range(40):
        model, problem = random_sum(seed, options)
        if "rejected" in options:
            truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
            problem = replace(problem, rejected={i: sets[:2] for i, sets in enumerate(truth.sets) if len(sets)})
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        assert brute.disagreement(problem, truth, answer(model, problem)) is None, f"seed {seed}"
        sizes |= set(truth.cost[truth.known].tolist())
    assert "limit" in options or len(sizes) >= 4


def test_what_is_too_large_for_the_polynomials_is_looked_at_level_by_level(brute, random_sum, monkeypatch):
    monkeypatch.setattr(composite, "EXPANDED", 1)
    monkeypatch.setattr(composite, "DEGREES", (composite.ALL,))
    for seed in range(10):
        model, problem = random_sum(seed)
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        assert brute.disagreement(problem, truth, answer(model, problem)) is None, f"seed {seed}"


def test_threads_do_not_change_the_answer(random_sum):
    model, problem = random_sum(3)
    many = problem.take(np.arange(60) % problem.n_cubes)
    one, two = answer(model, many), answer(model, many, n_jobs=2)
    assert np.array_equal(one.moved, two.moved)
    assert np.array_equal(one.nodes, two.nodes)


def test_running_out_of_nodes_leaves_true_bounds(brute, random_sum):
    stopped = 0
    for seed in range(20):
        model, problem = random_sum(seed)
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        found = answer(model, replace(problem, budget=Budget(nodes=3)))
        assert (found.lower <= np.where(truth.known, truth.cost, np.inf)).all()
        proved = found.outcome == Outcome.FOUND
        assert np.array_equal(found.cost[proved], truth.cost[proved])
        stopped += int((found.outcome == Outcome.STOPPED).sum())
    assert stopped > 0


def read_at_the_upper_end(model: Composite, problem: Problem) -> Found:
    """Tables from above leave out sets that are turned."""
    curves = composite._curves

    def broken(*given):
        made, bound = curves(*given)
        return made._replace(value=made.value + 0.05), bound

    composite._curves = broken
    try:
        return answer(model, problem)
    finally:
        composite._curves = curves


def forget_a_sign(model: Composite, problem: Problem) -> Found:
    return answer(replace(model, weights=tuple(map(abs, model.weights))), problem)


def leave_a_member_out(model: Composite, problem: Problem) -> Found:
    fewer = {name: getattr(model, name)[:2] for name in ("members", "spans", "links", "weights")}
    return answer(replace(model, **fewer), problem)


@pytest.mark.parametrize("broken", [read_at_the_upper_end, forget_a_sign, leave_a_member_out])
def test_the_oracle_catches_a_broken_twin(brute, random_sum, broken):
    caught = 0
    for seed in range(20):
        model, problem = random_sum(seed)
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        caught += brute.disagreement(problem, truth, broken(model, problem)) is not None
    assert caught > 0
