"""Boosters as they come: bare ones, dart, stopped early, with levels, pairs of features; held against brute force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from slow_cases import mostly_slow

import fewest as fw
from fewest import checks
from fewest.engine.model_reading import ModelReading
from fewest.engine.structure.base import Ensemble
from fewest.errors import VerificationError

RNG = np.random.default_rng(2)
X = pd.DataFrame({
    "a": RNG.normal(size=300).round(2), "b": RNG.normal(size=300).round(2),
    "place": RNG.choice(["north", "east", "south", "west"], 300), "c": RNG.integers(0, 6, 300).astype(float),
    "trade": RNG.choice([f"t{k}" for k in range(12)], 300), "d": RNG.normal(size=300).round(2),
})  # fmt: skip
LINE = X.a * np.where(X.place == "north", 1, -1) + X.b * X.d + 0.4 * X.trade.str[1:].astype(int).mod(5) - 0.8
Y = (LINE + RNG.normal(size=300) * 0.3 > 0).astype(int).to_numpy()
NUMBERS = X[["a", "b", "c", "d"]].assign(e=X.trade.str[1:].astype(float), f=X.place.eq("north").astype(float))
LEVELS = ["place", "trade"]


def xgb_bare(**options: Any) -> Any:
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(NUMBERS, label=Y)
    if options.get("booster") != "gblinear":
        options["max_depth"] = 3
    options = {"nthread": 1, "objective": "binary:logistic", **options}
    return xgboost.train(options, data, num_boost_round=8), NUMBERS


def xgb_stopped() -> Any:
    """A bare booster that was stopped early predicts with all its trees, the estimator with the best ones."""
    xgboost = pytest.importorskip("xgboost")
    train, held = xgboost.DMatrix(NUMBERS[:200], label=Y[:200]), xgboost.DMatrix(NUMBERS[200:], label=Y[200:])
    options = {"max_depth": 3, "nthread": 1, "objective": "binary:logistic", "eta": 1.0}
    model = xgboost.train(
        options, train, num_boost_round=30, evals=[(held, "held")], early_stopping_rounds=3, verbose_eval=False
    )
    assert model.best_iteration + 1 < model.num_boosted_rounds()
    return model, NUMBERS


def lgb_bare(**options: Any) -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    options = {"num_leaves": 7, "num_threads": 1, "objective": "binary", "verbose": -1, **options}
    return lightgbm.train(options, lightgbm.Dataset(NUMBERS, Y), num_boost_round=8), NUMBERS


def lgb_stopped(bare: bool) -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    options = {"num_leaves": 7, "n_jobs": 1, "verbose": -1, "learning_rate": 0.8, "random_state": 0}
    model = lightgbm.LGBMClassifier(n_estimators=40, **options)
    model.fit(
        NUMBERS[:200], Y[:200], eval_set=[(NUMBERS[200:], Y[200:])], callbacks=[lightgbm.early_stopping(3, False)]
    )
    assert 0 < model.best_iteration_ < 40
    return model.booster_ if bare else model, NUMBERS


def lgb_gaps() -> Any:
    """Missing values, where a linear leaf gives a constant value."""
    lightgbm = pytest.importorskip("lightgbm")
    holes = np.random.default_rng(0).random(NUMBERS.shape) < 0.15
    table = NUMBERS.mask(holes).assign(c=NUMBERS.c)
    options = {"num_leaves": 7, "num_threads": 1, "objective": "binary", "verbose": -1}
    return lightgbm.train({**options, "linear_tree": True}, lightgbm.Dataset(table, Y), num_boost_round=8), table


def lgb_numbers() -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    options = {"num_leaves": 7, "n_jobs": 1, "verbose": -1, "linear_tree": True, "n_estimators": 8}
    return lightgbm.LGBMRegressor(**options).fit(NUMBERS, LINE), NUMBERS


def lgb_encoded() -> Any:
    """Linear trees behind an encoder: columns of one feature each, terms of several."""
    lightgbm = pytest.importorskip("lightgbm")
    options = {"max_depth": 3, "n_jobs": 1, "verbose": -1, "linear_tree": True, "n_estimators": 8}
    numbers = [name for name in X if name not in LEVELS]
    encode = make_column_transformer((OneHotEncoder(sparse_output=False), LEVELS), (StandardScaler(), numbers))
    return make_pipeline(encode, lightgbm.LGBMClassifier(**options)).fit(X, Y), X


def cat(**options: Any) -> Any:
    catboost = pytest.importorskip("catboost")
    fixed = {"iterations": 8, "depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    return catboost.CatBoostClassifier(cat_features=LEVELS, **{**fixed, **options}).fit(X, Y), X


def ebm(kind: str) -> Any:
    glassbox = pytest.importorskip("interpret.glassbox")
    maker = getattr(glassbox, f"ExplainableBoosting{kind}")
    model = maker(interactions=3, outer_bags=1, max_rounds=40, n_jobs=1, random_state=0)
    return model.fit(X, Y if kind == "Classifier" else LINE), X


MODELS = {
    "xgboost.Booster": (xgb_bare, "ensemble"),
    "xgboost.Booster, dart": (lambda: xgb_bare(booster="dart", rate_drop=0.4, seed=1), "ensemble"),
    "xgboost.Booster, linear": (lambda: xgb_bare(booster="gblinear"), "additive"),
    "xgboost.Booster, stopped early": (xgb_stopped, "ensemble"),
    "lightgbm.Booster": (lgb_bare, "ensemble"),
    "lightgbm.Booster, dart": (lambda: lgb_bare(boosting="dart", drop_rate=0.5), "ensemble"),
    "lightgbm.Booster, stopped early": (lambda: lgb_stopped(True), "ensemble"),
    "LGBMClassifier, stopped early": (lambda: lgb_stopped(False), "ensemble"),
    "lightgbm.Booster, linear trees": (lambda: lgb_bare(linear_tree=True), "additive"),
    "lightgbm.Booster, linear trees and gaps": (lambda: lgb_gaps(), "additive"),
    "LGBMClassifier, linear trees behind an encoder": (lambda: lgb_encoded(), "additive"),
    "LGBMRegressor, linear trees": (lambda: lgb_numbers(), "additive"),
    "catboost, levels": (lambda: cat(max_ctr_complexity=1), "ensemble"),
    "catboost, levels by themselves": (lambda: cat(one_hot_max_size=20), "ensemble"),
    "catboost, pairs of levels": (lambda: cat(max_ctr_complexity=3, depth=4), "ensemble"),
    "EBM with pairs": (lambda: ebm("Classifier"), "additive"),
    "EBM regressor with pairs": (lambda: ebm("Regressor"), "additive"),
}


# Read as others are that stay in `make test`.
OTHERS = {"xgboost.Booster, dart", "lightgbm.Booster, dart", "lightgbm.Booster, stopped early"}
OTHERS |= {"lightgbm.Booster, linear trees", "LGBMRegressor, linear trees", "catboost, levels by themselves"}
OTHERS |= {"EBM regressor with pairs"}


def explained(model: Any, table: pd.DataFrame, count: int = 16) -> tuple[fw.Explainer, Any]:
    decision = fw.Decision(model, threshold=0.4)
    explainer = fw.Explainer(decision, fw.references.single(decision, table, None, on_positive="allow"))
    cases = table[decision.verdicts(table).positive].iloc[:count]
    return explainer, explainer.explain(cases, alternatives=30)


@pytest.mark.filterwarnings("ignore:.*linear_tree", "ignore:The argument 'eval_set'")
@pytest.mark.parametrize("name", mostly_slow(MODELS, set(MODELS) - OTHERS))
def test_a_booster_as_it_comes_agrees_with_brute_force(name: str) -> None:
    make, strategy = MODELS[name]
    explainer, out = explained(*make())
    assert set(out.strategies) >= {strategy}, out.notes
    checks.check_turns(out)
    assert checks.check_exact(explainer, out) > 0


@pytest.mark.parametrize("name", ["catboost, pairs of levels", "EBM with pairs"])
def test_pairs_taken_for_single_features_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: what depends on two features is said to depend on the first alone."""
    model, table = MODELS[name][0]()
    honest = fw.engine.model_reading.read

    def read(*given: Any, **more: Any) -> Any:
        found = honest(*given, **more)
        assert found.reading.several
        return replace(found, reading=replace(found.reading, several=()))

    monkeypatch.setattr("fewest.engine.model_reading.read", read)
    monkeypatch.setattr(ModelReading, "check_decisions", lambda *_: None)
    with pytest.raises(VerificationError):
        checks.check_exact(*explained(model, table, 60))


@pytest.mark.filterwarnings("ignore:.*linear_tree")
def test_linear_leaves_read_wrong_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative controls: leaves without their functions, and terms that are said to depend on fewer columns."""
    model, table = MODELS["lightgbm.Booster, linear trees"][0]()
    from fewest.engine.structure import boosted_lightgbm

    honest = boosted_lightgbm.read_linear_leaves

    def constant(trees: Any, *given: Any) -> Any:
        return honest([replace(tree, factors=[0 * own for own in tree.factors]) for tree in trees], *given)

    def fewer(*given: Any) -> Any:
        found = honest(*given)
        reading = found.structure.reading
        reading = replace(reading, several=tuple(places[:2] for places in reading.several))
        return replace(found, structure=replace(found.structure, reading=reading))

    for broken, match in ((constant, "does not reproduce"), (fewer, "depend on other features")):
        monkeypatch.setattr(boosted_lightgbm, "read_linear_leaves", broken)
        with pytest.warns(fw.FewestWarning, match=match):
            explainer, out = explained(model, table)
        assert checks.check_exact(explainer, out) > 0


def test_a_tree_read_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a level that goes the other way."""
    model, table = MODELS["catboost, levels"][0]()
    honest = fw.engine.model_reading.read

    def read(*given: Any, **more: Any) -> Any:
        found = honest(*given, **more)
        assert isinstance(found, Ensemble)
        return replace(found, left=found.right, right=found.left)

    monkeypatch.setattr("fewest.engine.model_reading.read", read)
    with pytest.warns(fw.FewestWarning, match="does not reproduce"):
        explainer, out = explained(model, table)
    assert checks.check_exact(explainer, out) > 0
