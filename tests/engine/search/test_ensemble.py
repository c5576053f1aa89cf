"""The tree-ensemble search against enumeration of every vertex."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from slow_cases import few_or_all

from fewest.engine.search import ensemble
from fewest.engine.search._run import time_for
from fewest.engine.search._set_off import STALLED
from fewest.engine.search._work import NODE_CAP, works
from fewest.engine.search.problem import Budget, Found, Outcome, Problem, Rules
from fewest.engine.structure.base import Ensemble, Reading, as_floats

TOLERANCE = 1e-9


class Forest:
    """Grows random trees into the flat arrays of an Ensemble."""

    def __init__(self, rng, n_columns, integers, categorical):
        self.rng, self.n_columns, self.integers = rng, n_columns, integers
        self.categorical = categorical
        self.nodes, self.root, self.levels = [], [], []

    def leaf(self):
        value = self.rng.integers(-6, 7) / 4 if self.integers else self.rng.normal()
        self.nodes.append([-1, 0.0, -1, -1, False, -1, float(value)])
        return len(self.nodes) - 1

    def grow(self, depth, one_sided, stop=0.15):
        if depth == 0 or self.rng.random() < stop:
            return self.leaf()
        at = len(self.nodes)
        column = int(self.rng.integers(self.n_columns))
        node = [column, float(self.rng.integers(0, 5)) - 0.5, -1, -1, bool(self.rng.random() < 0.5), -1, 0.0]
        if self.categorical[column]:
            node[5] = len(self.levels)
            self.levels.append(self.rng.random(4) < 0.5)
        self.nodes.append(node)
        node[2] = self.grow(depth - 1, one_sided, stop) if not one_sided or self.rng.random() < 0.5 else self.leaf()
        node[3] = self.grow(depth - 1, one_sided, stop)
        return at

    def ensemble(self, base, cut):
        columns = list(zip(*self.nodes, strict=True))
        kinds = (np.int32, float, np.int32, np.int32, bool, np.int32, float)
        column, threshold, left, right, missing, category, value = (
            np.array(c, dtype=k) for c, k in zip(columns, kinds, strict=True)
        )
        levels = np.array(self.levels, dtype=bool).reshape(-1, 4)
        reading = Reading(cut, TOLERANCE, as_floats, np.arange(self.n_columns, dtype=np.int32))
        return Ensemble(
            reading, column, threshold, left, right, missing, category, levels, value,
            np.array(self.root, dtype=np.int32), base,
        )  # fmt: skip


def random_case(seed, options=(), n_cubes=6, n_units=7, n_trees=6, depth=4):
    """An ensemble and a problem; ``options`` switch the extras on."""
    rng = np.random.default_rng(seed)
    n_columns = n_units + int(rng.integers(0, 4))
    unit_of = np.concatenate([np.arange(n_units), rng.integers(-1, n_units, n_columns - n_units)]).astype(np.int32)
    rng.shuffle(unit_of)
    integers = bool(rng.random() < 0.6)
    forest = Forest(rng, n_columns, integers, rng.random(n_columns) < 0.25)
    one_sided = bool(rng.random() < 0.5)
    for _ in range(n_trees):
        forest.root.append(forest.grow(depth + (4 if one_sided else 0), one_sided, 0.05 if one_sided else 0.15))
    model = forest.ensemble(float(rng.integers(-2, 3)) / 4, 0.0)

    def rows(n):
        values = rng.integers(-1, 6, (n, n_columns)).astype(float)
        values[rng.random(values.shape) < 0.08] = np.nan
        return values

    start, goal = rows(n_cubes), rows(3)
    sign = -1 if rng.random() < 0.5 else 1
    signed = sign * model.raw(start)
    cut = float(sign * (np.min(signed) - rng.choice([0.0, 0.25, 1.0]))) if rng.random() < 0.8 else 0.0
    model = replace(model, reading=replace(model.reading, cut=cut))
    goal_of = rng.integers(0, 3, n_cubes).astype(np.int32)
    limit = np.full(n_cubes, np.inf)
    if "limit" in options:
        limit = rng.integers(0, 5, n_cubes).astype(float)
    cost = None
    if "cost" in options:
        cost = (
            rng.integers(1, 5, (n_cubes, n_units)).astype(float)
            if rng.random() < 0.5
            else rng.uniform(0.5, 3.0, (n_cubes, n_units))
        )
    rules = Rules()
    if "rules" in options:
        pairs = rng.permuted(np.tile(np.arange(n_units), (2, 1)), axis=1).T[: rng.integers(0, 3)]
        forbidden = tuple(
            rng.choice(n_units, rng.integers(1, 3), replace=False).astype(np.int32) for _ in range(rng.integers(0, 3))
        )
        binds = np.random.default_rng([seed, 1]).random((n_cubes, len(pairs) + len(forbidden))) < 0.7
        rules = Rules(pairs.astype(np.int32).reshape(-1, 2), forbidden, binds if seed % 2 else None)
    movable = rng.random((n_cubes, n_units)) < 0.9
    distance = (
        rng.integers(0, 4, (n_cubes, n_units)).astype(float) if rng.random() < 0.7 else rng.random((n_cubes, n_units))
    )
    problem = Problem(
        start, goal, goal_of, unit_of, movable, distance, limit, cost, sign, rules,
        all_sets=int(rng.integers(1, 9)) if "all_sets" in options else 0,
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
    ("rejected", "cost"), ("rules", "rejected", "limit"), ("all_sets", "cost"), ("all_sets", "rules", "rejected"),
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids="+".join)
@pytest.mark.parametrize("count", few_or_all(20, 60))
def test_every_answer_is_the_one_enumeration_gives(brute, options, count):
    for seed in range(count):
        model, problem = random_case(seed, options)
        if "rejected" in options:
            problem = with_rejected(brute, model, problem, seed)
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        assert brute.disagreement(problem, truth, ensemble.solve(model, problem)) is None, f"seed {seed}"


def among_many(problem, others=60):
    """The same cubes among units that never move: too many for the bits of one word."""

    def wide(part, value):
        return np.hstack([part, np.full((len(part), others), value)])

    return replace(
        problem,
        movable=wide(problem.movable, False),
        distance=wide(problem.distance, 1.0),
        cost=None if problem.cost is None else wide(problem.cost, 1.0),
        rejected={cube: wide(sets, False) for cube, sets in problem.rejected.items()},
    )


@pytest.mark.parametrize("options", OPTIONS, ids="+".join)
def test_units_that_do_not_fit_into_a_word_get_the_same_answers(brute, options):
    for seed in range(15):
        model, problem = random_case(seed, options)
        if "rejected" in options:
            problem = with_rejected(brute, model, problem, seed)
        problem = among_many(problem)
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        assert brute.disagreement(problem, truth, ensemble.solve(model, problem)) is None, f"seed {seed}"
        assert brute.disagreement(problem, truth, staged(model, problem)) is None, f"seed {seed}, in stages"


@pytest.mark.parametrize("options", [(), ("rules",), ("all_sets", "rules", "rejected")], ids="+".join)
def test_answers_of_three_and_more_units(brute, options):
    sizes = []
    for seed in range(20):
        model, problem = random_case(seed, options, n_units=9, n_trees=20)
        cut = model.reading.cut - problem.sign * 3.0  # farther away, so that pairs do not do
        model = replace(model, reading=replace(model.reading, cut=cut))
        if "rejected" in options:
            problem = with_rejected(brute, model, problem, seed)
        truth = brute.solve(problem, model.raw, cut, TOLERANCE)
        assert brute.disagreement(problem, truth, ensemble.solve(model, problem)) is None, f"seed {seed}"
        assert brute.disagreement(problem, truth, staged(model, problem)) is None, f"seed {seed}, in stages"
        sizes += truth.cost[truth.known].tolist()
    assert {3, 4, 5} <= set(sizes)


@pytest.mark.parametrize("count", few_or_all(4, 8))
def test_more_than_sixty_four_units(brute, count):
    compared = 0
    for seed in range(count):
        model, problem = random_case(seed, n_cubes=3, n_units=70, n_trees=50, depth=5)
        problem = replace(problem, limit=np.full(3, 3.0))
        cut = model.reading.cut - problem.sign * 2.0  # farther away, so that single flips do not do
        model = replace(model, reading=replace(model.reading, cut=cut))
        truth = brute.solve(problem, model.raw, cut, TOLERANCE, largest=3)
        assert brute.disagreement(problem, truth, ensemble.solve(model, problem)) is None, f"seed {seed}"
        assert brute.disagreement(problem, truth, staged(model, problem)) is None, f"seed {seed}, in stages"
        compared += int((truth.cost >= 2).sum())
    assert compared >= count // 2


@pytest.mark.parametrize("options", [(), ("rules", "rejected"), ("all_sets",)], ids="+".join)
def test_searches_of_many_nodes_give_the_same_answers(brute, options):
    many = 0
    for seed in (0, 2, 4):
        model, problem = random_case(seed, options, n_cubes=3, n_units=11, n_trees=60, depth=7)
        cut = model.reading.cut - problem.sign * 8.0
        model = replace(model, reading=replace(model.reading, cut=cut))
        if "rejected" in options:
            problem = with_rejected(brute, model, problem, seed)
        truth = brute.solve(problem, model.raw, cut, TOLERANCE)
        found = ensemble.solve(model, problem)
        assert brute.disagreement(problem, truth, found) is None, f"seed {seed}"
        many += int((found.nodes > STALLED).sum())
    assert many >= (1 if options else 2)


def test_deep_one_sided_trees_are_not_answered_from_a_truncated_polynomial(brute):
    # One path per tree that only a long conjunction of flips reaches: everything happens at the highest degrees.
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p = 9
        forest = Forest(rng, p, True, np.zeros(p, dtype=bool))
        for _ in range(5):
            columns = rng.permutation(p)[: rng.integers(3, p + 1)]
            at = len(forest.nodes)
            forest.root.append(at)
            for depth, column in enumerate(columns.tolist()):
                node = at + 2 * depth
                forest.nodes.append([column, 0.5, node + 1, node + 2, False, -1, 0.0])
                forest.leaf()
            forest.leaf()
        model = forest.ensemble(0.0, 0.0)
        start, goal = np.zeros((4, p)), np.ones((1, p))
        start[rng.random(start.shape) < 0.15] = 1.0
        cut = float(model.raw(start).min() - 0.25)
        model = replace(model, reading=replace(model.reading, cut=cut))
        problem = Problem(
            start, goal, np.zeros(4, dtype=np.int32), np.arange(p, dtype=np.int32), start != goal,
            rng.integers(0, 3, (4, p)).astype(float), np.full(4, np.inf),
        )  # fmt: skip
        truth = brute.solve(problem, model.raw, cut, TOLERANCE)
        assert brute.disagreement(problem, truth, ensemble.solve(model, problem)) is None, f"seed {seed}"
        assert brute.disagreement(problem, truth, staged(model, problem)) is None, f"seed {seed}, in stages"


def staged(model, problem):
    """The search as for large trees: degree 3, then 6, then all."""
    return ensemble.solve(model, problem, small=-1)


@pytest.mark.parametrize("options", [(), ("cost",), ("rules", "rejected", "limit"), ("all_sets",)], ids="+".join)
@pytest.mark.parametrize("count", few_or_all(12, 30))
def test_stages_of_the_polynomial_give_the_same_answers(brute, options, count):
    for seed in range(count):
        model, problem = random_case(seed, options, n_units=9)
        if "rejected" in options:
            problem = with_rejected(brute, model, problem, seed)
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        assert brute.disagreement(problem, truth, staged(model, problem)) is None, f"seed {seed}"


def test_threads_do_not_change_the_answer():
    model, problem = random_case(5, ("all_sets",), n_cubes=120, n_units=10, n_trees=12)
    one, two = ensemble.solve(model, problem), ensemble.solve(model, problem, n_jobs=2)
    for name in ("outcome", "moved", "known", "lower", "nodes", "complete"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert all(np.array_equal(a, b) for a, b in zip(one.sets, two.sets, strict=True))


def test_nothing_begins_after_the_deadline():
    model, problem = random_case(1)
    found = ensemble.solve(model, replace(problem, budget=Budget(deadline=0.0)))
    assert (found.outcome == Outcome.STOPPED).all()
    assert (found.lower == 0).all()


@pytest.mark.parametrize("options", [(), ("cost",), ("all_sets",)], ids="+".join)
def test_a_deadline_in_the_middle_of_a_cube_leaves_true_answers_and_true_bounds(options):
    model, problem = random_case(3, options, n_cubes=150, n_units=14, n_trees=40, depth=6)
    whole = ensemble.solve(model, problem)
    stopped = 0
    for k in range(24):
        budget = Budget(deadline=time.monotonic() + 2e-4 * 1.4**k)
        found = ensemble.solve(model, replace(problem, budget=budget), program=lambda *_: None)
        ended = found.outcome != Outcome.STOPPED
        assert np.array_equal(found.outcome[ended], whole.outcome[ended])
        # A least size is proved before all sets of it were seen; which of them is shown is only a matter of ranking.
        assert np.array_equal(found.cost[ended], whole.cost[ended], equal_nan=True)
        assert np.array_equal(found.moved[found.complete], whole.moved[found.complete])
        assert (found.lower[~ended] <= whole.lower[~ended]).all()
        stopped += int((~ended).sum())
    assert stopped > 0


def test_when_the_time_is_up_kernels_are_told_and_the_next_search_is_not():
    model, problem = random_case(3)
    whole = ensemble.solve(model, problem)
    with works.borrow(problem.n_units, 0, 0, 1) as work, time_for(work.tally, 10**9, time.monotonic()):
        while work.tally[NODE_CAP]:
            time.sleep(0.001)
    again = ensemble.solve(model, problem)
    assert np.array_equal(again.outcome, whole.outcome)
    assert np.array_equal(again.nodes, whole.nodes)


@pytest.mark.parametrize("options", [(), ("cost",), ("rules",), ("limit",)], ids="+".join)
def test_running_out_of_nodes_leaves_true_bounds_or_the_integer_program_settles_it(brute, options):
    settled = 0
    for seed in range(12):
        model, problem = random_case(seed, options, n_units=9, n_trees=10, depth=5)
        problem = replace(problem, budget=Budget(nodes=1))
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        found = ensemble.solve(model, problem)
        least = np.where(truth.known, truth.cost, np.inf)
        assert (found.lower <= least * (1 + 1e-6)).all(), f"seed {seed}"
        proved = found.outcome != Outcome.STOPPED
        assert np.array_equal(found.outcome[proved], truth.outcome[proved]), f"seed {seed}"
        assert np.allclose(found.cost[proved], truth.cost[proved], equal_nan=True), f"seed {seed}"
        settled += int(proved.sum())
    assert settled > 0


def test_a_second_search_takes_over_what_the_first_gave_up(brute):
    for seed in range(15):
        model, problem = random_case(seed, ("all_sets",) if seed % 2 else (), n_units=9, n_trees=10)
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        found = ensemble.solve(model, problem, patience=1, program=lambda *_: None)
        assert brute.disagreement(problem, truth, found) is None, f"seed {seed}"


def test_monomials_that_become_equal_after_a_flip_count_as_one(brute):
    # Small dense polynomials of high degree: the case in which a bound that counted them twice lost the answer.
    for seed in range(400):
        model, problem = random_case(20_000 + seed, n_units=5, n_trees=9, depth=5)
        truth = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        assert brute.disagreement(problem, truth, ensemble.solve(model, problem)) is None, f"seed {seed}"


def drop_a_unit(model, problem):
    movable = problem.movable.copy()
    movable[:, 0] = False
    return ensemble.solve(model, replace(problem, movable=movable))


def stop_one_short(model, problem):
    found = ensemble.solve(model, problem)
    return ensemble.solve(model, replace(problem, limit=np.where(found.known, found.cost - 1, np.inf)))


def take_ties_for_positive(model, problem):
    broken = replace(model, reading=replace(model.reading, tolerance=-TOLERANCE))
    return ensemble.solve(broken, problem)


def ignore_distance(model, problem):
    return ensemble.solve(model, replace(problem, distance=np.zeros_like(problem.distance)))


@pytest.mark.parametrize("broken", [drop_a_unit, stop_one_short, take_ties_for_positive, ignore_distance])
def test_the_oracle_catches_a_broken_twin(brute, broken):
    caught = 0
    for seed in range(30):
        model, problem = random_case(seed)
        truth: Found = brute.solve(problem, model.raw, model.reading.cut, TOLERANCE)
        caught += brute.disagreement(problem, truth, broken(model, problem)) is not None
    assert caught >= 3
