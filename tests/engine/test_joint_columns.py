"""Columns of several features are searched exactly, or it is said why not: by brute force, with broken twins."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import engineered_steps as steps
import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler
from slow_cases import pairs

import fewest as fw
from fewest import checks
from fewest.constraints import Constraints, Immutable, Implies, Linked
from fewest.credibility import mixture
from fewest.engine import cubes, model_reading
from fewest.engine.column_probe import NotUnderstoodError, Probe
from fewest.engine.encoding import Encoding
from fewest.engine.search import _joint, first_answers
from fewest.engine.search.problem import JointColumns, Problem, SummedColumns
from fewest.engine.structure import Opaque
from fewest.engine.structure.base import Additive, Ensemble, Network, Reading, as_floats
from fewest.errors import FewestError, FewestWarning, ModelError, VerificationError

NAMES = list("abcdef")


def table(n: int = 60, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, 6)).round(2), columns=NAMES)
    y = (X.a * X.b + X.c - X.d * X.e + random.normal(size=n) * 0.3 > 0).to_numpy().astype(int)
    return X, y


STEPS: dict[str, Callable[[], Any]] = {
    "pca": lambda: make_pipeline(StandardScaler(), PCA(4)),
    "products": lambda: PolynomialFeatures(2, include_bias=False),
    "a function": lambda: FunctionTransformer(steps.ratios),
}
MODELS: dict[str, Callable[[], Any]] = {
    "additive": lambda: LogisticRegression(max_iter=5000),
    "ensemble": lambda: GradientBoostingClassifier(n_estimators=15, random_state=0),
    "network": lambda: MLPClassifier((6,), solver="lbfgs", max_iter=150, tol=1e-2, random_state=0),
}


def explainer_of(steps: Any, model: Any, X: pd.DataFrame, y: np.ndarray, **choices: Any) -> fw.Explainer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nets that are not fitted to the end
        decision = fw.Decision(make_pipeline(steps, model).fit(X, y), positive=1)
    refs = fw.references.single(decision, X, y, on_positive="allow")
    return fw.Explainer(decision, refs, n_jobs=1, **choices)


def compared(explainer: fw.Explainer, X: pd.DataFrame) -> int:
    out = explainer.explain(X, alternatives=200)
    checks.check_turns(out)
    return checks.check_exact(explainer, out)


@pytest.fixture(params=["first answers", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of answering: looking at sets, and the compiled searches."""
    loaded = {Additive, Ensemble, Network} if request.param == "compiled" else set()
    monkeypatch.setattr(first_answers, "READINESS", first_answers.Readiness(loaded=loaded))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("name", "model"), pairs(list(STEPS), list(MODELS)))
def test_answers_are_those_of_brute_force(name: str, model: str) -> None:
    X, y = table()
    explainer = explainer_of(STEPS[name](), MODELS[model](), X, y)
    inside = explainer.look_inside(X)
    assert not isinstance(inside.structure, Opaque), inside.structure.reason
    assert inside.joint
    assert compared(explainer, X[:15]) > 3
    strategies = {answer.proof.strategy for answer in explainer.explain(X[:15]) if answer.changes}
    assert strategies == {model if model != "network" or name == "pca" else "levelwise"}


def test_a_column_that_is_a_sum_may_depend_on_any_number_of_features() -> None:
    random = np.random.default_rng(1)
    X = pd.DataFrame(random.normal(size=(80, 9)).round(2))
    X.columns = [f"x{j}" for j in range(9)]
    y = (X.sum(axis=1) + random.normal(size=80) > 0).to_numpy().astype(int)
    for model in (MODELS["additive"](), MODELS["network"]()):
        explainer = explainer_of(PCA(5), model, X, y)
        assert all(group.summed for group in explainer.look_inside(X).joint)
        assert compared(explainer, X[:6]) > 1
    inside = explainer_of(PCA(5), MODELS["ensemble"](), X, y).look_inside(X)
    assert isinstance(inside.structure, Opaque)
    assert "depends on 9 features together (x0, x1, x2, ...); up to 6 are read" in inside.structure.reason


CHOICES: dict[str, dict[str, Any]] = {
    "rules": {"constraints": Constraints(Linked("a", "b"), Immutable("f"), Implies("c", "d"))},
    "weights": {"weights": {"a": 2.0, "c": 1.5}},
    "plus": {"direction": "plus"},
}


@pytest.mark.parametrize(
    ("model", "choice"),
    [
        # weights of polynomials of additive models have a search that is compiled for them alone
        pytest.param(model, choice, marks=pytest.mark.slow if (model, choice) == ("additive", "weights") else ())
        for model in ("additive", "ensemble")
        for choice in CHOICES
    ],
)
def test_rules_weights_and_both_directions_are_kept(model: str, choice: str) -> None:
    X, y = table()
    explainer = explainer_of(FunctionTransformer(steps.ratios), MODELS[model](), X, y)
    if choice == "plus":
        accepted = X[explainer.decision.score(X) < 0.4].iloc[[0]]
        refs = fw.references.supplied(explainer.decision, accepted, X=X)
        explainer = fw.Explainer(explainer.decision, refs, n_jobs=1)
    assert compared(explainer.with_(**CHOICES[choice]), X[:20]) > 4


@pytest.mark.parametrize("model", [pytest.param("additive", marks=pytest.mark.slow), "ensemble"])
def test_floors_of_credibility_are_kept(model: str) -> None:
    X, y = table()
    explainer = explainer_of(PolynomialFeatures(2), MODELS[model](), X, y)
    credible = mixture(explainer.decision, X, y, quantile=0.3)
    assert compared(explainer.with_(credibility=credible), X[:20]) > 4


def test_columns_that_are_missing_for_some_combinations_go_the_trees_way() -> None:
    X, y = table(90)
    model = HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5)
    explainer = explainer_of(FunctionTransformer(steps.three_together), model, X, y)
    assert explainer.look_inside(X).joint
    first_answers.READINESS.loaded.add(Ensemble)
    assert compared(explainer, X[:15]) > 3


# What a broken twin breaks: (where, what)


def without_one_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every column that depends on several features is said to depend on one less."""
    honest = Encoding.read.__func__  # type: ignore[attr-defined]

    def read(cls: Any, *args: Any) -> Encoding:
        found: Encoding = honest(cls, *args)
        if found.feature_of is not None or found.sources is None:
            return found
        less = tuple(own - {max(own)} if len(own) > 1 else own for own in found.sources)
        return replace(found, sources=less)

    monkeypatch.setattr(Encoding, "read", classmethod(read))


@pytest.mark.parametrize("model", ["additive", "ensemble"])
def test_a_dependency_left_out_is_noticed_and_the_answers_are_the_models(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    without_one_feature(monkeypatch)
    explainer = explainer_of(PolynomialFeatures(3), MODELS[model](), X, y)
    with pytest.warns(FewestWarning, match="depend on other features than was declared or found"):
        assert compared(explainer, X[:12]) > 2


@pytest.mark.parametrize("model", ["additive", "ensemble"])
def test_the_oracle_catches_a_dependency_left_out_where_nothing_is_tried(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    without_one_feature(monkeypatch)
    monkeypatch.setattr(Encoding, "agrees", lambda *_: True)
    monkeypatch.setattr(model_reading, "tried", lambda groups, *_, **__: list(groups))
    monkeypatch.setattr(model_reading.ModelReading, "check_decisions", lambda *_: None)
    monkeypatch.setattr(cubes, "close", lambda a, b: np.ones_like(a, dtype=bool))
    explainer = explainer_of(PolynomialFeatures(3), MODELS[model](), X, y)
    with pytest.raises(VerificationError):
        compared(explainer, X)


def no_products(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = _joint._moebius
    monkeypatch.setattr(_joint, "_moebius", lambda *args: (term for term in honest(*args) if len(term[0]) == 1))


def ranges_turned_round(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = _joint._numbers
    monkeypatch.setattr(_joint, "_numbers", lambda values: np.roll(honest(values), 1, axis=1))


@pytest.mark.parametrize(("model", "broken"), [("additive", no_products), ("ensemble", ranges_turned_round)])
def test_a_broken_search_is_caught(
    model: str, broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    monkeypatch.setattr(first_answers, "READINESS", first_answers.Readiness(loaded={Additive, Ensemble}))
    broken(monkeypatch)
    with pytest.raises(VerificationError):
        compared(explainer_of(PolynomialFeatures(2), MODELS[model](), X, y), X)


# The pieces


def test_spread_trees_score_vertices_as_the_columns_do() -> None:
    random = np.random.default_rng(2)
    n, d, u = 5, 3, 4
    reading = Reading(0.0, 1e-9, as_floats, np.arange(d, dtype=np.int32))
    nodes = {"column": [2, 1, -1, -1, -1], "threshold": [0.1, -0.2, 0, 0, 0], "left": [1, 2, -1, -1, -1],
             "right": [4, 3, -1, -1, -1], "missing_left": [True, False, False, False, False],
             "category": [-1] * 5, "value": [0, 0, 1.0, 2.0, 4.0]}  # fmt: skip
    kinds = {"threshold": float, "value": float, "missing_left": bool}
    arrays = {name: np.array(values, dtype=kinds.get(name, np.int32)) for name, values in nodes.items()}
    trees = Ensemble(reading, left_levels=np.zeros((0, 1), bool), root=np.array([0], np.int32), base=0.0, **arrays)
    values = random.normal(size=(n, 8, 1))
    values[random.random(values.shape) < 0.2] = np.nan
    start, goal = random.normal(size=(n, d)), random.normal(size=(2, d))
    start[:, 2] = values[:, 0, 0]
    problem = Problem(
        start, goal, np.arange(n, dtype=np.int32) % 2, np.array([0, 1, -1], np.int32), np.ones((n, u), bool),
        np.ones((n, u)), np.full(n, np.inf), joint=(JointColumns(np.array([2]), np.array([1, 2, 3]), values),),
    )  # fmt: skip
    wide, plain = _joint.spread(trees, problem)
    for code in range(2**u):
        moved = np.tile((code >> np.arange(u)) & 1, (n, 1)).astype(bool)
        rows = plain.vertex_rows(np.arange(n), moved)
        got = []
        for row in rows:
            node = 0
            while wide.column[node] >= 0:
                z = row[wide.column[node]]
                left = wide.missing_left[node] if np.isnan(z) else z <= wide.threshold[node]
                node = wide.left[node] if left else wide.right[node]
            got.append(wide.value[node])
        assert got == trees.raw(problem.vertex_rows(np.arange(n), moved)).tolist()


def test_sums_become_a_column_for_each_unit() -> None:
    random = np.random.default_rng(3)
    n, d, u = 4, 3, 5
    model = Additive(Reading(0.0, 1e-9, as_floats, np.arange(d, dtype=np.int32)), random.normal(size=d), 0.5)
    problem = Problem(
        random.normal(size=(n, d)), random.normal(size=(2, d)), np.arange(n, dtype=np.int32) % 2,
        np.array([0, -1, -1], np.int32), np.ones((n, u), bool), np.ones((n, u)), np.full(n, np.inf),
        summed=SummedColumns(np.array([1, 2]), random.normal(size=(n, u, 2))),
    )  # fmt: skip
    wide, plain = _joint.one_unit_each(model, problem)
    moved = random.random((n, u)) < 0.5
    before, after = (p.vertex_rows(np.arange(n), moved) for p in (problem, plain))
    assert np.allclose(model.raw(before), wide.raw(after))
    assert plain.summed is None


# What cannot be read is said


def test_a_transformer_that_is_not_deterministic_leaves_the_model_opaque_with_the_reason() -> None:
    X, y = table()
    inside = explainer_of(steps.Noisy(), MODELS["ensemble"](), X, y).look_inside(X)
    assert isinstance(inside.structure, Opaque)
    assert inside.structure.reason == "Noisy is not deterministic: the same rows get other values each time"


def test_a_transformer_of_the_whole_table_is_refused() -> None:
    X, y = table()
    explainer = explainer_of(steps.Ranked(), MODELS["ensemble"](), X, y)
    with pytest.raises(FewestError, match="changes with the rows beside it"):
        explainer.explain(X)
    rows = X.to_numpy()
    with pytest.raises(NotUnderstoodError, match="Ranked gives a row other values beside other rows"):
        Probe(lambda: np.concatenate([rows] * 25), len(rows)).found(steps.Ranked())


def test_a_dependency_that_probing_missed_is_noticed_where_it_is_met() -> None:
    X, y = table(120)
    X["a"] = X["a"].clip(upper=2.3)
    X.loc[X.index[-20:], "a"] = 2.5
    explainer = explainer_of(steps.RareSwitch(), LogisticRegression(), X, y)
    assert explainer.look_inside(X[:100]).doubt is None
    with pytest.warns(FewestWarning, match="depend on other features than was declared or found"):
        out = explainer.explain(X[90:])
    assert checks.check_exact(explainer, out) > 10


@pytest.mark.parametrize("step", [steps.Dummies, steps.NeedsOutcome])
def test_a_transformer_that_fails_on_single_rows_is_an_error(step: type) -> None:
    X, y = table()
    X["job"] = np.where(X["a"] > 0, "x", "y")
    pipeline = make_pipeline(steps.Dummies(), LogisticRegression()).fit(X, y)
    pipeline.steps[0] = ("own", step())
    decision = fw.Decision(pipeline, positive=1)
    with pytest.raises(ModelError, match="check that the model's own predict works on this table"):
        fw.references.single(decision, X, y)


def test_all_values_are_asked_of_the_model_where_columns_depend_on_several_features() -> None:
    X, y = table()
    decision = explainer_of(PolynomialFeatures(2), MODELS["ensemble"](), X, y).decision
    refused = X[decision.verdicts(X).positive].iloc[:4]
    out = fw.Explainer(decision, fw.references.anyone(decision, X, y)).explain(refused)
    assert any("depends on several features" in note for note in out.notes)
    found = out.explained
    assert len(found)
    assert not decision.verdicts(found.turned()).positive.any()
    fewest = fw.Explainer(decision, fw.references.single(decision, X, y)).explain(refused)
    assert all(own.sev <= one.sev for own, one in zip(out, fewest, strict=True) if own.sev and one.sev)
