"""Many references, bounded all at once: the answers are those of searching each of them, and few are searched."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fewest as fw
from fewest.engine import points, row_turns
from fewest.engine.row_turns import ManyRows
from fewest.engine.search.domains.many_rows import RowBounds, TreeRows

MODELS: dict[str, Any] = {
    "boosted": GradientBoostingClassifier(n_estimators=20, max_depth=4, random_state=0),
    "forest": RandomForestClassifier(15, max_depth=6, random_state=0),
    "missing": HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5, random_state=0),
    "additive": LogisticRegression(max_iter=1000),
}


def subject(kind: str, seed: int = 0, n: int = 320) -> tuple[fw.Decision, pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.integers(0, 12, (n, 6)).astype(float), columns=list("abcdef"))
    X["home"] = random.choice(["own", "rent", "other"], n)
    score = X["a"] + X["b"] - X["c"] + X["d"] * X["e"] / 6 + 3 * (X["home"] == "rent")
    y = (score + random.normal(0, 2, n) > 10).to_numpy().astype(int)
    if kind == "missing":
        X[list("abc")] = X[list("abc")].where(random.random((n, 3)) > 0.1)
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["home"]), remainder="passthrough")
    return fw.Decision(make_pipeline(encoder, MODELS[kind]).fit(X, y), positive=1), X, y


def same(one: fw.Explanations, other: fw.Explanations) -> bool:
    a, b = one.answers, other.answers
    names = ("status", "moved", "reference", "cost", "score_after", "l_inf", "lower", "proved")
    return all(np.array_equal(getattr(a, name), getattr(b, name), equal_nan=name != "moved") for name in names)


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> Any:
    def explain(explainer: fw.Explainer, X: pd.DataFrame) -> fw.Explanations:
        with monkeypatch.context() as patch:
            patch.setattr(points, "_is_bounded", lambda task: False)
            return explainer.explain(X)

    return explain


@pytest.mark.parametrize("kind", list(MODELS))
def test_answers_are_those_of_searching_every_reference(kind: str, one_by_one: Any) -> None:
    for seed in range(2):
        decision, X, y = subject(kind, seed)
        explainer = fw.Explainer(decision, fw.references.accepted(decision, X, y))
        assert len(explainer.references) > row_turns.MANY
        cases = X.iloc[:120]
        out = explainer.explain(cases)
        assert same(out, one_by_one(explainer, cases))
        assert len(np.unique(out.answers.cost[out.answers.proved])) > 1


def counted(explainer: fw.Explainer, X: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> int:
    """Cubes that are searched."""
    cubes = []
    set_up = points.ENGINE.set_up

    def count(task: Any, towards: Any, *rest: Any) -> Any:
        cubes.append(len(towards.case))
        return set_up(task, towards, *rest)

    monkeypatch.setattr(explainer.goals, "_engine", points.replace(points.ENGINE, set_up=count))
    explainer.explain(X)
    return sum(cubes)


def test_most_references_are_never_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    decision, X, y = subject("boosted")
    explainer = fw.Explainer(decision, fw.references.accepted(decision, X, y))
    refused = X[decision.verdicts(X).positive]
    assert counted(explainer, refused, monkeypatch) < 3 * len(refused)


def too_high(self: Any, prepared: Any, *rest: Any) -> RowBounds:
    """A broken bound: every row is said to need more features than it does."""
    n, m = len(prepared), len(self._cell)
    return RowBounds(np.full(n, 7), np.zeros((n, m)))


def test_a_bound_that_is_too_high_is_caught(monkeypatch: pytest.MonkeyPatch, one_by_one: Any) -> None:
    """Negative control: the nearest row is then taken for the best."""
    decision, X, y = subject("boosted")
    explainer = fw.Explainer(decision, fw.references.accepted(decision, X, y))
    monkeypatch.setattr(TreeRows, "bounds", too_high)
    assert not same(explainer.explain(X), one_by_one(explainer, X))


@pytest.mark.parametrize("steps", [0.0, np.inf])
def test_bounds_that_say_nothing_change_no_answer(
    steps: float, monkeypatch: pytest.MonkeyPatch, one_by_one: Any
) -> None:
    """All references are searched then, in several turns; ties are taken by those that are nearer as a whole."""
    decision, X, y = subject("boosted")
    explainer = fw.Explainer(decision, fw.references.accepted(decision, X, y))

    def nothing(self: Any, prepared: Any, *rest: Any) -> RowBounds:
        return RowBounds(np.zeros(len(prepared), dtype=int), np.full((len(prepared), len(self._cell)), steps))

    monkeypatch.setattr(TreeRows, "bounds", nothing)
    assert same(explainer.explain(X), one_by_one(explainer, X))


def test_answers_do_not_depend_on_threads_or_on_the_cases_beside() -> None:
    decision, X, y = subject("forest")
    refs = fw.references.accepted(decision, X, y)
    whole = fw.Explainer(decision, refs).explain(X)
    assert same(fw.Explainer(decision, refs, n_jobs=2).explain(X), whole)
    explainer = fw.Explainer(decision, refs)
    for row in range(0, 60, 9):
        alone = explainer.explain(X.iloc[[row]])
        assert alone.answers.moved.tolist() == whole.answers.moved[[row]].tolist()
        assert alone.answers.reference.tolist() == whole.answers.reference[[row]].tolist()


def test_without_time_nothing_is_claimed() -> None:
    decision, X, y = subject("boosted")
    out = fw.Explainer(decision, fw.references.accepted(decision, X, y)).explain(X, time_limit=0)
    refused = decision.verdicts(X).positive
    assert not out.answers.proved[refused].any()
    assert (out.answers.lower[refused] <= 1).all()


def test_what_is_laid_out_is_not_pickled() -> None:
    decision, X, y = subject("boosted")
    explainer = fw.Explainer(decision, fw.references.accepted(decision, X, y))
    out = explainer.explain(X)
    again = pickle.loads(pickle.dumps(explainer))
    assert vars(again.goals._many) == vars(ManyRows())
    assert same(again.explain(X), out)


def kinds_of_question() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    yield "constraints", {"constraints": [fw.Immutable("a")]}, {}
    yield "weights", {"weights": {"a": 2.0}}, {}
    yield "alternatives", {}, {"alternatives": 3}


@pytest.mark.parametrize(("name", "choices", "asked"), list(kinds_of_question()))
def test_other_questions_are_searched_one_by_one(
    name: str, choices: dict[str, Any], asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    decision, X, y = subject("boosted", n=200)

    def refuse(*_: Any) -> Any:
        raise AssertionError(name)

    monkeypatch.setattr(ManyRows, "turns", refuse)
    fw.Explainer(decision, fw.references.accepted(decision, X, y), **choices).explain(X.iloc[:6], **asked)
