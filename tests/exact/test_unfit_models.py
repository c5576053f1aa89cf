"""Models that are not what they should be: an error that says what to do, or answers that are right all the same.

A threshold outside the range of a regressor is in `test_predicted_numbers`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest import checks
from fewest.engine.structure import Opaque, read
from fewest.errors import ModelError
from fewest.persistence import load_model

RNG = np.random.default_rng(8)
X = pd.DataFrame(RNG.normal(size=(200, 4)).round(2), columns=list("abcd"))
Y = (X.a - X.b * X.c > 0.2).astype(int).to_numpy()


class Step(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A step of somebody's own."""

    def fit(self, X: Any, y: Any = None) -> Step:
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        return np.asarray(X, dtype=float)


class Ragged(Step):
    """A column more where a row has a large first value."""

    def transform(self, X: Any) -> Any:
        rows = np.asarray(X, dtype=float)
        return np.column_stack([rows, rows[:, 0] > 1]) if self.one_more(rows) else rows

    def one_more(self, rows: Any) -> bool:
        return bool((rows[:, 0] > 1).any())


class RaggedByCount(Ragged):
    """A column more where there are many rows."""

    def one_more(self, rows: Any) -> bool:
        return len(rows) > 100


class NeedsLabels(Step):
    def transform(self, X: Any, y: Any) -> Any:
        return np.asarray(X, dtype=float) + np.asarray(y)[:, None]


class Noisy(Step):
    def transform(self, X: Any) -> Any:
        rows = np.asarray(X, dtype=float)
        return rows + np.random.default_rng().normal(size=rows.shape) * 1e-12


class FirstFour(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Looks at the first four columns, however many there are."""

    def fit(self, X: Any, y: Any) -> FirstFour:
        self.classes_, self.inner_ = np.unique(y), LogisticRegression().fit(np.asarray(X)[:, :4], y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.inner_.predict_proba(np.asarray(X)[:, :4])


def explained(model: Any, **options: Any) -> tuple[fw.Explainer, Any]:
    decision = fw.Decision(model, **options)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, None, on_positive="allow"))
    return explainer, explainer.explain(X[decision.verdicts(X).positive].iloc[:20], alternatives=5)


def test_a_step_that_is_not_deterministic_is_named_and_the_answers_are_the_models() -> None:
    explainer, out = explained(make_pipeline(Noisy(), LogisticRegression()).fit(X, Y))
    assert out.strategies[1] in ("additive", "levelwise")
    if out.strategies[1] == "levelwise":
        assert "not deterministic" in " ".join(out.notes)
    assert checks.check_exact(explainer, out) > 0


def test_a_step_whose_columns_change_with_the_rows_is_named() -> None:
    for step, note in (
        (Ragged(), "FirstFour is not"),
        (RaggedByCount(), "gives tables of other shapes for other rows"),
    ):
        explainer, out = explained(make_pipeline(step, FirstFour()).fit(X, Y))
        assert out.strategies[1] == "levelwise"
        assert note in " ".join(out.notes)
        assert checks.check_exact(explainer, out) > 0
    with pytest.raises(ModelError, match=r"the model failed on the table: ValueError: X has 4 features, but"):
        explained(make_pipeline(Ragged(), LogisticRegression()).fit(X, Y))


def test_a_step_that_needs_labels_is_an_error_of_the_model() -> None:
    model = make_pipeline(Step(), LogisticRegression()).fit(X, Y)
    model.steps[0] = ("step", NeedsLabels().fit(X))
    with pytest.raises(ModelError, match=r"the model failed on the table: TypeError: .*'y'.*\n.*predict works"):
        explained(model)


def test_a_stack_without_one_of_its_members_is_said() -> None:
    members = [("tree", DecisionTreeClassifier(max_depth=3)), ("linear", LogisticRegression())]
    stack = StackingClassifier(members, cv=3).fit(X, Y)
    explainer, out = explained(stack)
    assert out.strategies[1] == "composite"
    assert checks.check_exact(explainer, out) > 0
    stack.estimators_ = stack.estimators_[:1]
    found = read(stack)
    assert isinstance(found, Opaque)
    assert found.reason == "StackingClassifier has 1 members, and its last model was fitted on 2"
    with pytest.raises(ModelError, match="the model failed on the table"):
        explained(stack)
    dropped = StackingClassifier([*members, ("none", "drop")], cv=3).fit(X, Y)  # never fitted, never asked
    explainer, out = explained(dropped)
    assert out.strategies[1] == "composite"
    assert checks.check_exact(explainer, out) > 0


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_booster_file_of_another_objective_is_refused(library: str, tmp_path: Path) -> None:
    made = pytest.importorskip(library)
    if library == "xgboost":
        path = tmp_path / "model.json"
        made.XGBRegressor(n_estimators=3, max_depth=2, n_jobs=1).fit(X, X.a).save_model(path)
    else:
        path = tmp_path / "model.txt"
        made.LGBMRegressor(n_estimators=3, num_leaves=3, n_jobs=1, verbose=-1).fit(X, X.a).booster_.save_model(path)
    with pytest.raises(ModelError, match=r"objective|regression") as error:
        load_model(path)
    assert "Try:" in str(error.value)


def test_a_detector_without_scores_of_new_rows_says_what_to_fit() -> None:
    with pytest.raises(ModelError, match="gives no scores of new rows") as error:
        fw.Decision(LocalOutlierFactor().fit(X))
    assert "novelty=True" in str(error.value)
