"""Regressors and detectors of outliers: cut by a threshold, explained exactly, in words that fit."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, PoissonRegressor, Ridge, TweedieRegressor
from sklearn.neighbors import KNeighborsRegressor, LocalOutlierFactor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, OneClassSVM
from sklearn.tree import DecisionTreeRegressor
from slow_cases import few_or_all, mostly_slow

import fewest as fw
from fewest import checks
from fewest.engine.structure import Ensemble, Opaque, read
from fewest.errors import DataError, FewestWarning, ModelError, UsageError

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(240, 6)).round(2), columns=list("abcdef"))
LINE = (3 * X.a + X.b * X.c + 2 * np.sin(X.d) + RNG.normal(size=len(X)) * 0.3).to_numpy()
AMOUNT = np.exp(LINE / 3)
FLAGS = ~(X.abs().max(axis=1) > 2.2).to_numpy()


def boosted(library: str, **options: Any) -> Any:
    if library == "xgboost":
        return pytest.importorskip(library).XGBRegressor(n_estimators=12, max_depth=3, n_jobs=1, **options)
    if library == "lightgbm":
        return pytest.importorskip(library).LGBMRegressor(n_estimators=12, n_jobs=1, verbose=-1, **options)
    return pytest.importorskip(library).CatBoostRegressor(
        n_estimators=12, verbose=0, thread_count=1, allow_writing_files=False, **options
    )


def ebm() -> Any:
    return pytest.importorskip("interpret.glassbox").ExplainableBoostingRegressor(interactions=0, max_rounds=20)


REGRESSORS = {
    "linear": (LinearRegression, LINE, "additive"),
    "scaled": (lambda: make_pipeline(StandardScaler(), Ridge()), 1e6 * LINE, "additive"),
    "poisson": (PoissonRegressor, AMOUNT, "additive"),
    "tweedie": (lambda: TweedieRegressor(power=1.5), AMOUNT, "additive"),
    "tree": (lambda: DecisionTreeRegressor(max_depth=4, random_state=0), LINE, "ensemble"),
    "forest": (lambda: RandomForestRegressor(6, max_depth=4, random_state=0), LINE, "ensemble"),
    "bag": (lambda: BaggingRegressor(n_estimators=4, max_features=0.6, random_state=0), LINE, "ensemble"),
    "boosting": (lambda: GradientBoostingRegressor(n_estimators=12, random_state=0), 1e5 * LINE, "ensemble"),
    "hist": (lambda: HistGradientBoostingRegressor(max_iter=8), LINE, "ensemble"),
    "hist of counts": (lambda: HistGradientBoostingRegressor(max_iter=8, loss="poisson"), AMOUNT, "ensemble"),
    "net": (lambda: MLPRegressor(hidden_layer_sizes=(6,), max_iter=60, random_state=0), LINE, "network"),
    "xgboost": (lambda: boosted("xgboost"), 1e5 * LINE, "ensemble"),
    "xgboost of counts": (lambda: boosted("xgboost", objective="count:poisson"), AMOUNT, "ensemble"),
    "xgboost of shares": (lambda: boosted("xgboost", objective="reg:logistic"), AMOUNT / AMOUNT.max(), "ensemble"),
    "xgboost, dart": (lambda: boosted("xgboost", booster="dart", rate_drop=0.3), LINE, "ensemble"),
    "xgboost, linear": (lambda: boosted("xgboost", booster="gblinear"), LINE, "additive"),
    "lightgbm": (lambda: boosted("lightgbm"), LINE, "ensemble"),
    "lightgbm, dart": (lambda: boosted("lightgbm", boosting_type="dart"), LINE, "ensemble"),
    "lightgbm of amounts": (lambda: boosted("lightgbm", objective="tweedie"), AMOUNT, "ensemble"),
    "catboost": (lambda: boosted("catboost"), LINE, "ensemble"),
    "ebm": (ebm, LINE, "additive"),
    "support vectors": (SVR, LINE, "network"),
    "kernel ridge": (lambda: KernelRidge(kernel="poly", degree=2), LINE, "network"),
    "process": (lambda: GaussianProcessRegressor(RBF(2.0), alpha=0.1, optimizer=None), LINE, "network"),
    "neighbours": (KNeighborsRegressor, LINE, "neighbours"),
    "neighbours by distance": (lambda: KNeighborsRegressor(7, weights="distance", p=1), LINE, "neighbours"),
}
# Read as others are that stay in `make test`.
OTHERS = {"tweedie", "tree", "hist of counts", "xgboost of shares", "xgboost, dart", "lightgbm, dart"}
OTHERS |= {"lightgbm of amounts", "kernel ridge", "process", "scaled", "bag", "xgboost of counts"}
OTHERS |= {"neighbours by distance"}


def fitted(model: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", category=UserWarning)
        return model.fit(X, y)


def held_to_brute_force(decision: fw.Decision, y: Any, n: int = 12) -> set[str]:
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y, on_positive="allow"))
    positive = np.flatnonzero(decision.verdicts(X).positive)[: n - 4]
    out = explainer.explain(X.iloc[np.union1d(np.arange(4), positive)], alternatives=40)
    checks.check_turns(out)
    assert checks.check_exact(explainer, out) > 0
    return {answer.proof.strategy for answer in out} - {"none"}


@pytest.mark.parametrize("name", mostly_slow(REGRESSORS, set(REGRESSORS) - OTHERS))
@pytest.mark.parametrize("cases", few_or_all(12, 24))
def test_a_regressor_is_read_as_its_classifier_twin_and_agrees_with_brute_force(name: str, cases: int) -> None:
    make, y, strategy = REGRESSORS[name]
    model = fitted(make(), y)
    for above in (True, False):
        number = np.asarray(model.predict(X)).ravel()
        cut = float(np.quantile(number, 0.6 if above else 0.4))
        decision = fw.Decision(model, threshold=cut, above=above)
        assert held_to_brute_force(decision, y, cases) == {strategy}
        assert (decision.verdicts(X).positive == (number >= cut if above else number <= cut)).all()


@pytest.mark.parametrize("options", [{}, {"max_features": 0.5, "contamination": 0.1}, {"max_samples": 40}])
def test_an_isolation_forest_is_an_ensemble_of_path_lengths(options: dict[str, Any]) -> None:
    model = IsolationForest(n_estimators=6, random_state=0, **options).fit(X)
    decision = fw.Decision(model)
    assert held_to_brute_force(decision, None, 16) == {"ensemble"}
    assert (decision.verdicts(X).positive == (model.predict(X) == -1)).all()
    assert held_to_brute_force(fw.Decision(model, above=False, threshold=-0.02), None, 4) == {"ensemble"}


def test_path_lengths_read_wrong_are_caught() -> None:
    """Negative control: a leaf's depth without the rows that are left in it."""
    model = IsolationForest(n_estimators=12, random_state=0).fit(X)
    structure = read(model, kind="outlier", threshold=0.0)
    assert isinstance(structure, Ensemble)
    raw = structure.raw(structure.reading.prepare(X))
    assert np.allclose(2**raw + model.offset_, -model.decision_function(X), rtol=1e-12)
    model._average_path_length_per_tree = tuple(np.zeros_like(part) for part in model._average_path_length_per_tree)
    broken = read(model, kind="outlier", threshold=0.0)
    assert isinstance(broken, Ensemble)
    assert not np.allclose(broken.raw(broken.reading.prepare(X)), raw)


def test_a_regressor_read_wrong_is_given_up_and_still_explained_rightly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: leaves of another forest are found out on mixed rows."""
    from fewest.engine import model_reading

    def broken(model: Any, **asked: Any) -> Any:
        found = read(model, **asked)
        assert isinstance(found, Ensemble)
        return replace(found, value=found.value[::-1].copy())

    monkeypatch.setattr(model_reading, "read", broken)
    decision = fw.Decision(RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, LINE), threshold=0.5)
    with pytest.warns(FewestWarning, match="does not reproduce"):
        assert held_to_brute_force(decision, LINE) == {"levelwise"}


@pytest.mark.parametrize(
    ("make", "strategy"),
    [(lambda: OneClassSVM(nu=0.2), "network"), (lambda: LocalOutlierFactor(novelty=True), "levelwise")],
)
def test_other_detectors_agree_with_brute_force(make: Any, strategy: str) -> None:
    decision = fw.Decision(make().fit(X.to_numpy()))
    assert held_to_brute_force(decision, None, 20) == {strategy}


def test_sentences_speak_of_the_number_or_of_the_users_outcomes() -> None:
    model = LinearRegression().fit(X[["a"]], 100 + 10 * X["a"])
    cases, references = pd.DataFrame({"a": [3.0]}), {"a": [-1.0]}
    decision = fw.Decision(model, threshold=110)
    said = str(fw.Explainer(decision, fw.references.supplied(decision, references)).explain(cases)[0])
    assert (
        said == "If a had been -1 instead of 3, the model would have predicted below 110 (90.000 instead of 130.000)."
    )
    named = fw.Decision(model, threshold=95, above=False, names={0: "granted", 1: "refused"})
    explainer = fw.Explainer(named, fw.references.supplied(named, {"a": [2.0]}))
    answer = explainer.explain({"a": [-2.0]})[0]
    assert str(answer) == (
        "If a had been 2 instead of -2, the model would have predicted granted (120.000 instead of 80.000)."
    )
    assert (answer.score, answer.threshold) == (-80.0, -95.0)
    forest = fw.Decision(IsolationForest(random_state=0, n_estimators=5).fit(X))
    assert (forest.positive_name, forest.negative_name) == ("unusual", "ordinary")


def test_accepted_rows_are_those_of_the_labels_or_of_the_decision() -> None:
    decision = fw.Decision(Ridge().fit(X, LINE), threshold=0.0)
    by_truth = fw.references.single(decision, X, LINE).support[0]
    assert by_truth == (LINE < 0).sum()
    assert fw.references.single(decision, X, None).support[0] == (decision.model.predict(X) < 0).sum()
    below = fw.Decision(decision.model, threshold=0.0, above=False)
    assert fw.references.single(below, X, LINE).support[0] == (LINE > 0).sum()
    forest = fw.Decision(IsolationForest(random_state=0, n_estimators=5).fit(X))
    assert fw.references.single(forest, X, np.where(FLAGS, 1, -1)).support[0] == FLAGS.sum()
    assert fw.references.single(forest, X, FLAGS).support[0] == FLAGS.sum()


def test_a_threshold_outside_the_range_of_the_model_is_said() -> None:
    model = RandomForestRegressor(5, random_state=0).fit(X, LINE)
    low = fw.Decision(model, threshold=-1e6)
    with pytest.raises(DataError, match=r"calls all 240 training rows -1e\+06 or more: its numbers .* nobody"):
        fw.references.single(low, X, None)
    high = fw.Decision(model, threshold=1e6)
    with pytest.warns(FewestWarning, match="choose a threshold inside that range"):
        references = fw.references.single(high, X, None)
    out = fw.Explainer(high, references).explain(X.iloc[:5])
    assert out.counts()["ALREADY_NEGATIVE"] == 5


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: fw.Decision(Ridge().fit(X, LINE)), UsageError, "from which one on"),
        (lambda: fw.Decision(Ridge(), threshold=1), ModelError, "Ridge is not fitted"),
        (lambda: fw.Decision(LocalOutlierFactor().fit(X)), ModelError, "no scores of new rows"),
        (lambda: fw.Decision(Ridge().fit(X, LINE), threshold=np.inf), UsageError, "finite"),
        (lambda: fw.Decision(Ridge().fit(X, LINE), threshold=1, against=2), UsageError, "classes"),
        (lambda: fw.references.single(fw.Decision(Ridge().fit(X, LINE), threshold=1), X, ["a"] * 240), DataError,
         "predicts numbers"),
        (lambda: fw.references.single(fw.Decision(IsolationForest().fit(X)), X, np.arange(240)), DataError, "detector"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(make: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_several_outputs_are_refused_in_words() -> None:
    model = LinearRegression().fit(X, np.column_stack([LINE, AMOUNT]))
    decision = fw.Decision(model, threshold=0.0)
    with pytest.raises(ModelError, match="one number per row"):
        decision.score(X)
    found = read(model, kind="value", threshold=0.0)
    assert isinstance(found, Opaque)
    assert "several outputs" in found.reason


def test_a_saved_regressor_answers_the_same(tmp_path: Path) -> None:
    decision = fw.Decision(
        GradientBoostingRegressor(n_estimators=8, random_state=0).fit(X, LINE), threshold=0.2, above=False,
        names={0: "granted", 1: "refused"},
    )  # fmt: skip
    explainer = fw.Explainer(decision, fw.references.single(decision, X, LINE))
    explainer.save(tmp_path / "numbers.fewest")
    again = fw.load(tmp_path / "numbers.fewest")
    assert (again.decision.threshold, again.decision.above, again.decision.kind) == (0.2, False, "value")
    assert again.decision.names == decision.names
    assert [str(a) for a in again.explain(X.iloc[:20])] == [str(a) for a in explainer.explain(X.iloc[:20])]


def test_a_survival_model_is_cut_by_its_risk() -> None:
    """Whatever has `predict` alone, and a threshold, is a model that gives numbers."""

    class Hazards:
        def predict(self, table: Any) -> Any:
            return np.exp(np.asarray(table)[:, 0])

    decision = fw.Decision(Hazards(), threshold=2.0)
    assert decision.kind == "value"
    assert held_to_brute_force(decision, None) == {"levelwise"}
    with pytest.raises(ModelError, match="not fitted"):
        fw.Decision(Hazards())
