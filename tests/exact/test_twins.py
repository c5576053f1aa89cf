"""Negative controls: each broken twin of the engine must be caught by the same checks that the engine passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import random_models as rm

import fewest as fw
from fewest import checks, constraints, decision
from fewest.engine.cubes import Engine
from fewest.engine.encoding import Encoding
from fewest.engine.model_reading import ModelReading
from fewest.engine.points import ENGINE
from fewest.engine.search import Found, Outcome, Problem
from fewest.errors import VerificationError
from fewest.tables import closeness

MAKERS = (rm.boolean_function, rm.linear, rm.tree_ensemble)


@cache
def made(seed: int) -> tuple[rm.Setting, Any]:
    """A fitted model, and the state of the generator after it; all tests look at the same ones."""
    random = np.random.default_rng([seed, 77])
    return MAKERS[seed % len(MAKERS)](random), random.bit_generator.state


def settings(count: int, first: int = 0) -> Iterator[tuple[np.random.Generator, rm.Setting]]:
    for seed in (*range(first, count), *range(first)):
        setting, state = made(seed)
        random = np.random.default_rng()
        random.bit_generator.state = state
        yield random, setting


def run_checks(engine: Engine = ENGINE, count: int = 45, rule: Any = None, first: int = 0) -> None:
    """The engine's own acceptance: as in test_random_models, on a smaller sample, or on what has such a rule.

    ``first`` is looked at first: few models show what is wrong.
    """
    for random, setting in settings(count, first):
        subject = rm.random_explainer(random, setting, engine=engine)
        if rule is not None and not subject.constraints.of(rule):
            continue
        out = subject.explain(setting.cases, alternatives=200)
        checks.check_turns(out)
        checks.check_exact(subject, out)


def caught(engine: Engine = ENGINE, run: Callable[..., None] = run_checks, **options: Any) -> bool:
    try:
        run(engine, **options)
    except VerificationError:
        return True
    return False


def twin_of_solve(
    change: Callable[[Problem, Found], None], before: Callable[[Problem], Problem] = lambda problem: problem
) -> Engine:
    def solve(structure: Any, problem: Problem, own_score: Any, near: float, n_jobs: int = 1) -> Found:
        found = ENGINE.solve(structure, before(problem), own_score, near, n_jobs)
        change(problem, found)
        return found

    return replace(ENGINE, solve=solve)


def believing(engine: Engine) -> Engine:
    """The engine, which asks the user's own model about no answer."""
    return replace(engine, confirm=lambda attempt, cubes: cubes[:0])


def nothing(problem: Problem, found: Found) -> None:
    """No change."""


def test_the_engine_itself_passes() -> None:
    assert not caught(count=15)


def test_a_set_that_is_one_too_large_is_caught() -> None:
    def pad(problem: Problem, found: Found) -> None:
        for cube in np.flatnonzero(found.outcome == Outcome.FOUND):
            spare = np.flatnonzero(problem.movable[cube] & ~found.moved[cube])
            if len(spare):
                found.moved[cube, spare[0]] = True

    assert caught(twin_of_solve(pad))


def test_an_off_by_one_bound_is_caught() -> None:
    def shift(problem: Problem, found: Found) -> None:
        found.lower += 1
        found.cost += 1

    assert caught(twin_of_solve(shift))


def test_a_search_that_begins_at_two_is_caught() -> None:
    def widen(problem: Problem) -> Problem:
        singles = np.eye(problem.n_units, dtype=bool)
        return replace(problem, rejected=dict.fromkeys(range(problem.n_cubes), singles))

    assert caught(twin_of_solve(nothing, widen))


def test_a_feature_that_is_never_tried_is_caught() -> None:
    def drop(problem: Problem) -> Problem:
        movable = problem.movable.copy()
        movable[:, 0] = False
        return replace(problem, movable=movable)

    assert caught(twin_of_solve(nothing, drop))


def test_all_features_for_unreachable_is_caught() -> None:
    def all_features(problem: Problem, found: Found) -> None:
        none = found.outcome == Outcome.NONE
        found.outcome[none] = Outcome.FOUND
        found.known[none] = True
        found.moved[none] = problem.movable[none]
        found.cost[none] = problem.movable[none].sum(axis=1)

    assert caught(believing(twin_of_solve(all_features)))


def test_a_missing_alternative_is_caught() -> None:
    def shorten(problem: Problem, found: Found) -> None:
        assert found.sets is not None
        found.sets = [sets[:-1] if len(sets) > 1 else sets for sets in found.sets]

    assert caught(twin_of_solve(shorten))


def test_less_or_equal_for_less_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = decision.Decision.settle

    def settle(self: fw.Decision, *args: Any) -> decision.Verdicts:
        verdicts = honest(self, *args)
        return decision.Verdicts(verdicts.score, verdicts.score > self.cut)

    monkeypatch.setattr(decision.Decision, "settle", settle)
    assert caught()


def test_an_unverified_answer_is_caught() -> None:
    """A set that does not turn the case gets through when nobody asks the model."""

    def loosen(problem: Problem, found: Found) -> None:
        first = np.argmax(problem.movable, axis=1)
        for cube in np.flatnonzero(found.outcome == Outcome.FOUND):
            found.moved[cube] = False
            found.moved[cube, first[cube]] = True
            found.cost[cube] = found.lower[cube] = 1

    assert caught(believing(twin_of_solve(loosen)))


def test_the_wrong_reference_row_is_caught() -> None:
    """Two references: the search goes to the other one than the answer names."""

    def run(engine: Engine) -> None:
        for _, setting in settings(20):
            two = pd.concat([setting.references.frame, setting.cases.iloc[[0]]], ignore_index=True)
            refs = fw.references.supplied(setting.decision, two, schema=setting.references.schema, on_positive="allow")
            subject = fw.Explainer(setting.decision, refs, n_jobs=1, engine=engine)
            out = subject.explain(setting.cases)
            checks.check_turns(out)
            checks.check_exact(subject, out)

    run(ENGINE)

    def shifted(task: Any, towards: Any, *rest: Any) -> Any:
        return ENGINE.set_up(task, replace(towards, reference=(1 - towards.reference).astype(np.int32)), *rest)

    assert caught(replace(ENGINE, set_up=shifted), run)


def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Believe whatever was read of a model."""
    monkeypatch.setattr(Encoding, "agrees", lambda *_: True)
    monkeypatch.setattr(ModelReading, "check_decisions", lambda *_: None)


def test_a_stale_cache_of_the_reference_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoded reference of an earlier explainer is used again for a new one."""
    kept: dict[int, np.ndarray] = {}

    def stale(task: Any, *rest: Any) -> Any:
        goals = kept.setdefault(task.goals.shape[1], task.goals)
        return ENGINE.set_up(replace(task, goals=goals), *rest)

    engine = replace(ENGINE, set_up=stale)
    with pytest.raises(fw.FewestWarning, match="does not reproduce its decisions"):  # explain notices by itself
        run_checks(engine, 150)
    blind(monkeypatch)
    assert caught(engine, count=150)


def one_hot_setting() -> tuple[fw.Decision, fw.Explainer, pd.DataFrame]:
    from sklearn.linear_model import LogisticRegression

    random = np.random.default_rng(3)
    levels = random.integers(0, 4, 300)
    X = pd.DataFrame(np.eye(4)[levels], columns=["own", "rent", "free", "other"])
    X["debt"] = random.normal(size=300).round(1)
    y = ((levels == 1) | (X["debt"] > 1)).astype(int)
    model = fw.Decision(LogisticRegression(C=100).fit(X, y))
    groups = {"housing": ["own", "rent", "free", "other"]}
    refs = fw.references.single(model, X, y, groups=groups)
    return model, fw.Explainer(model, refs, n_jobs=1), X


def test_a_split_one_hot_block_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a one-hot block moves: the explanation would have two levels, or none."""
    _, subject, X = one_hot_setting()
    out = subject.explain(X.iloc[:60])
    assert checks.check_turns(out) > 10
    assert checks.check_exact(subject, out) > 10
    honest = Encoding.read.__func__  # type: ignore[attr-defined]

    def read(cls: Any, model: fw.Decision, schema: fw.Schema) -> Encoding:
        found = honest(cls, model, schema)
        split = found.feature_of.copy()
        split[1] = split.max()
        return replace(found, feature_of=split)

    monkeypatch.setattr(Encoding, "read", classmethod(read))
    with pytest.warns(fw.FewestWarning, match="do not belong to single features"):
        subject.with_(n_jobs=1).explain(X.iloc[:60])
    blind(monkeypatch)

    def run(engine: Engine) -> None:
        broken = subject.with_(engine=engine)
        checks.check_exact(broken, broken.explain(X.iloc[:60]))

    assert caught(run=run)


@pytest.mark.parametrize(
    ("owner", "first"), [(constraints.Immutable, 26), (constraints.Only, 87), (constraints.Range, 18)]
)
def test_an_ignored_constraint_is_caught(monkeypatch: pytest.MonkeyPatch, owner: Any, first: int) -> None:
    """The twin ignores the constraint in the engine only; the oracle reads it honestly."""
    honest = owner.permits

    def broken(self: Any, schema: Any, start: Any, goal: Any) -> Any:
        return np.ones(len(start), dtype=bool)

    def set_up(task: Any, *rest: Any) -> Any:
        monkeypatch.setattr(owner, "permits", broken)
        try:
            return ENGINE.set_up(task, *rest)
        finally:
            monkeypatch.setattr(owner, "permits", honest)

    assert caught(replace(ENGINE, set_up=set_up), count=240, rule=owner, first=first)


@pytest.mark.parametrize("kind", ["implies", "forbidden"])
def test_an_ignored_set_rule_is_caught(kind: str) -> None:
    def drop(problem: Problem) -> Problem:
        empty = np.empty((0, 2), dtype=np.int32) if kind == "implies" else ()
        return replace(problem, rules=replace(problem.rules, **{kind: empty}))

    rule, first = (constraints.Implies, 7) if kind == "implies" else (constraints.Forbidden, 32)
    assert caught(twin_of_solve(nothing, drop), count=240, rule=rule, first=first)


def test_an_ignored_limit_is_caught() -> None:
    unlimited = twin_of_solve(nothing, lambda problem: replace(problem, limit=np.full_like(problem.limit, np.inf)))
    assert caught(unlimited, count=240, rule=constraints.AtMost, first=17)


def test_ignored_weights_are_caught() -> None:
    assert caught(twin_of_solve(nothing, lambda problem: replace(problem, cost=None)))


def test_the_farthest_instead_of_the_closest_is_caught() -> None:
    assert caught(twin_of_solve(nothing, lambda problem: replace(problem, distance=-problem.distance)))


def test_a_wrong_sign_in_sev_plus_is_caught() -> None:
    assert caught(twin_of_solve(nothing, lambda problem: replace(problem, sign=1)), count=120)


def test_a_difference_that_is_overlooked_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = closeness.Distances.between

    def blind(self: closeness.Distances, rows: Any, goal_of: Any) -> np.ndarray:
        far = honest(self, rows, goal_of)
        far[far < 1.0] = 0.0
        return far

    monkeypatch.setattr(closeness.Distances, "between", blind)
    assert caught()
