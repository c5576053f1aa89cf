"""A class among several: the fewest features that let any other class overtake it, held against brute force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from slow_cases import few_or_all, mostly_slow

import fewest as fw
from fewest import checks
from fewest.engine.model_reading import ModelReading
from fewest.engine.structure import Opaque, read
from fewest.engine.structure.base import Rivals
from fewest.errors import VerificationError

RNG = np.random.default_rng(5)
X = pd.DataFrame(RNG.normal(size=(240, 6)).round(2), columns=list("abcdef"))
LINE = X.a + 0.6 * X.b * X.c + 0.8 * np.sin(2 * X.d) + 0.3 * X.e
Y = np.array(["low", "middle", "high", "top"])[np.digitize(LINE, [-0.8, 0.1, 0.9])]


def boosted(library: str, name: str, **options: Any) -> Any:
    return getattr(pytest.importorskip(library), name)(n_estimators=6, max_depth=3, **options)


def numbered(model: Any) -> Any:
    """XGBoost takes classes 0, 1, ... alone."""
    return model.fit(X, np.unique(Y, return_inverse=True)[1])


MODELS = {
    "logistic": (lambda: LogisticRegression().fit(X, Y), "additive"),
    "LDA": (lambda: LinearDiscriminantAnalysis().fit(X, Y), "additive"),
    "LinearSVC": (lambda: LinearSVC().fit(X, Y), "additive"),
    "ridge": (lambda: RidgeClassifier().fit(X, Y), "additive"),
    "one-vs-rest chances": (lambda: SGDClassifier(loss="log_loss", random_state=0).fit(X, Y), "additive"),
    "engineered": (lambda: make_pipeline(PCA(3), LogisticRegression()).fit(X, Y), "additive"),
    "forest": (lambda: RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, Y), "ensemble"),
    "boosting": (lambda: GradientBoostingClassifier(n_estimators=4, random_state=0).fit(X, Y), "ensemble"),
    "histogram": (lambda: HistGradientBoostingClassifier(max_iter=4).fit(X, Y), "ensemble"),
    "engineered trees": (
        lambda: make_pipeline(PCA(2), RandomForestClassifier(3, max_depth=3, random_state=0)).fit(X, Y), "ensemble",
    ),
    "net": (lambda: MLPClassifier((5,), max_iter=400, random_state=0, tol=1e-2).fit(X, Y), "network"),
    "xgboost": (lambda: numbered(boosted("xgboost", "XGBClassifier", n_jobs=1)), "ensemble"),
    "lightgbm": (lambda: boosted("lightgbm", "LGBMClassifier", n_jobs=1, verbose=-1).fit(X, Y), "ensemble"),
    "OneVsRest, linear": (lambda: OneVsRestClassifier(LogisticRegression()).fit(X, Y), "composite"),
    "OneVsRest, LinearSVC": (lambda: OneVsRestClassifier(LinearSVC()).fit(X, Y), "composite"),
    "OneVsRest, trees": (
        lambda: OneVsRestClassifier(GradientBoostingClassifier(n_estimators=4, random_state=0)).fit(X, Y), "composite",
    ),
}  # fmt: skip
# Read as others are that stay in `make test`.
OTHERS = {"LDA", "ridge", "one-vs-rest chances", "engineered trees", "boosting", "OneVsRest, LinearSVC"}


def explained(model: Any, positive: int = 1, count: int = 10, **choices: Any) -> tuple[fw.Explainer, Any]:
    decision = fw.Decision(model, positive=model.classes_[positive])
    explainer = fw.Explainer(decision, fw.references.single(decision, X, None, on_positive="allow"), **choices)
    cases = X[decision.verdicts(X).positive].iloc[:count]
    return explainer, explainer.explain(cases, alternatives=40)


@pytest.mark.parametrize("count", few_or_all(5, 10))
@pytest.mark.parametrize("name", mostly_slow(MODELS, set(MODELS) - OTHERS))
def test_the_smallest_set_towards_any_other_class_is_that_of_brute_force(name: str, count: int) -> None:
    make, strategy = MODELS[name]
    model = make()
    for positive in (1, 3):
        explainer, out = explained(model, positive, count)
        assert set(out.strategies) >= {f"{strategy}, class by class"}, out.notes
        checks.check_turns(out)
        assert checks.check_exact(explainer, out) > 0


def test_with_weights_and_a_limit_it_is_that_of_brute_force_too() -> None:
    model = MODELS["forest"][0]()
    constraints = fw.Constraints(fw.constraints.AtMost(3), fw.constraints.Immutable("b"))
    for choices in ({"weights": {"a": 2.5, "c": 0.5}}, {"constraints": constraints}):
        explainer, out = explained(model, **choices)
        checks.check_turns(out)
        assert checks.check_exact(explainer, out) > 0


def test_what_supports_a_class_is_found_by_looking_at_sets() -> None:
    """SEV+ needs all comparisons at once."""
    model = MODELS["logistic"][0]()
    decision = fw.Decision(model, positive="high")
    references = fw.references.single(decision, X[Y != "high"], None)
    explainer = fw.Explainer(decision, references, direction="plus")
    out = explainer.explain(X[decision.verdicts(X).positive].iloc[:12])
    assert set(out.strategies) >= {"levelwise"}
    checks.check_turns(out)
    assert checks.check_exact(explainer, out) > 0


def test_a_rival_that_is_left_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: one of the other classes is never compared with."""
    model = MODELS["forest"][0]()
    honest = read(model, positive=1, threshold=0.0)
    assert isinstance(honest, Rivals)
    assert len(honest.members) == 3
    monkeypatch.setattr(ModelReading, "check_decisions", lambda *_: None)
    caught = 0
    for left in range(3):
        kept = [k for k in range(3) if k != left]
        broken = replace(
            honest, members=tuple(honest.members[k] for k in kept), spans=tuple(honest.spans[k] for k in kept)
        )
        monkeypatch.setattr("fewest.engine.model_reading.read", lambda *_, broken=broken, **__: broken)
        explainer, out = explained(model, count=40)
        try:
            checks.check_exact(explainer, out)
        except VerificationError:
            caught += 1
    assert caught >= 2


def test_a_threshold_between_chances_that_depend_on_all_classes_is_not_read() -> None:
    assert isinstance(read(MODELS["forest"][0](), positive=1, threshold=0.1), Rivals)
    assert "depends on other classes" in read(MODELS["logistic"][0](), positive=1, threshold=0.1).reason
    assert "depends on other classes" in read(MODELS["OneVsRest, linear"][0](), positive=1, threshold=0.1).reason


def test_what_is_not_read_says_why_and_is_explained_all_the_same() -> None:
    coded = OutputCodeClassifier(LogisticRegression(), random_state=0).fit(X, Y)
    assert "OutputCodeClassifier" in read(coded, positive=1, kind="label").reason
    folds = CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, Y)
    assert "not additive" in read(folds, positive=1).reason
    several = OneVsRestClassifier(LogisticRegression()).fit(X, np.column_stack([Y == "low", Y == "high"]).astype(int))
    assert isinstance(read(several, positive=1), Opaque)
    explainer, out = explained(folds, count=6)
    assert set(out.strategies) >= {"levelwise"}
    assert checks.check_exact(explainer, out) > 0
