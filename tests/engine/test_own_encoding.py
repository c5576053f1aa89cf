"""Rows prepared without a call of the transformers are theirs to the bit, and a few cases take one call."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import random_models as rm
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from slow_cases import mostly_slow

import fewest as fw
from fewest.engine import own_encoding, points
from fewest.engine.encoding import Encoding
from fewest.engine.own_encoding import OwnEncoding, UnknownCellError
from fewest.tables.scores import Precision

NUMBERS, TEXTS = ["debt", "age"], ["job", "owner"]


def table(n: int = 120, missing: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(4)
    X = pd.DataFrame({
        "debt": random.normal(size=n), "job": random.choice(["none", "clerk", "driver"], n),
        "age": random.integers(18, 80, n).astype(float), "owner": random.choice(["yes", "no"], n),
    })  # fmt: skip
    y = (X["debt"] * 2 + (X["job"] == "none") - (X["age"] - 45) / 20 + random.normal(size=n) > 0).astype(int)
    if missing:
        X.loc[random.random(n) < 0.2, "debt"] = np.nan
    return X, y.to_numpy()


PARTS = {
    "one-hot": (StandardScaler(), OneHotEncoder()),
    "dropped": (RobustScaler(), OneHotEncoder(drop="first", sparse_output=False)),
    "if binary": (StandardScaler(with_mean=False), OneHotEncoder(drop="if_binary", handle_unknown="ignore")),
    "ordinal": (MinMaxScaler(), OrdinalEncoder()),
    "imputed": (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), OneHotEncoder()),
    "left alone": ("passthrough", OrdinalEncoder()),
}


def fitted(parts: tuple[Any, Any], final: Any = None, missing: bool = False) -> tuple[Any, pd.DataFrame, np.ndarray]:
    X, y = table(missing=missing)
    columns = make_column_transformer((parts[0], NUMBERS), (parts[1], TEXTS))
    return make_pipeline(columns, LogisticRegression() if final is None else final).fit(X, y), X, y


def own_of(model: Any, X: pd.DataFrame) -> tuple[Encoding, OwnEncoding | None]:
    encoding = Encoding.read(fw.Decision(model), fw.Schema.infer(X))
    dense = dense_of(encoding.transform(X))
    return encoding, OwnEncoding.read(encoding, X, dense, dense_of)


def dense_of(rows: Any) -> np.ndarray:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)


@pytest.mark.parametrize("name", PARTS)
def test_the_rows_are_those_of_the_transformers(name: str) -> None:
    model, X, _ = fitted(PARTS[name], missing=name == "imputed")
    encoding, own = own_of(model, X)
    assert own is not None
    for rows in (X, X.iloc[[7]], X.iloc[::-1]):
        assert np.array_equal(own(rows), dense_of(encoding.transform(rows)))


@pytest.mark.parametrize(
    "parts",
    [
        (PowerTransformer(), OneHotEncoder()),
        (StandardScaler(), OneHotEncoder(min_frequency=50)),
        (StandardScaler(), OrdinalEncoder(min_frequency=50)),
        (MinMaxScaler(clip=True), OneHotEncoder()),
        (SimpleImputer(add_indicator=True), OneHotEncoder()),
        (SimpleImputer(missing_values=-1), OneHotEncoder()),
    ],
    ids=["a power", "rare levels", "rare numbers", "clipped", "an indicator", "another missing value"],
)
def test_what_is_not_known_is_left_to_the_transformers(parts: Any) -> None:
    model, X, _ = fitted(parts)
    assert own_of(model, X)[1] is None


class Twice(StandardScaler):
    """A user's own scaler."""

    def transform(self, X: Any, copy: Any = None) -> Any:
        return 2 * super().transform(X, copy)


def test_a_sub_class_may_do_anything() -> None:
    model, X, _ = fitted((Twice(), OneHotEncoder()))
    assert own_of(model, X)[1] is None


@pytest.mark.parametrize("cell", [np.nan, None, "pilot"])
def test_a_cell_that_is_no_known_level_is_left_to_the_transformers(cell: Any) -> None:
    model, X, _ = fitted((StandardScaler(), OneHotEncoder(handle_unknown="ignore")))
    own = own_of(model, X)[1]
    assert own is not None
    with pytest.raises(UnknownCellError):
        own(X.iloc[[0]].assign(job=[cell]))


def test_a_step_that_gives_other_rows_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a scaler read wrongly is noticed before anything rests on it."""
    monkeypatch.setitem(own_encoding._STEPS, "StandardScaler", lambda scaler: abs)
    model, X, _ = fitted(PARTS["one-hot"])
    assert own_of(model, X)[1] is None


class Counting:
    """A model that counts how often it is asked."""

    def __init__(self, model: Any) -> None:
        self.model, self.calls = model, 0
        self.predict_proba = model.predict_proba
        model.predict_proba = self.ask

    def ask(self, X: Any) -> Any:
        self.calls += 1
        return self.predict_proba(X)


@pytest.mark.parametrize(
    "model",
    [
        fitted(PARTS["one-hot"])[0],
        fitted(PARTS["ordinal"], GradientBoostingClassifier(n_estimators=20, random_state=0))[0],
        HistGradientBoostingClassifier(max_iter=20).fit(table()[0][NUMBERS], table()[1]),
    ],
    ids=["linear", "trees", "no transformers"],
)
def test_a_case_and_its_answer_are_scored_in_one_call(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table()
    X = X if hasattr(model, "steps") else X[NUMBERS]
    decision = fw.Decision(model, positive=1)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    cases = X[decision.score(X) > 0.6]
    explainer.explain(cases)  # read, and tried on these
    counting = Counting(model)
    once = [explainer.explain(cases.iloc[[k]]) for k in range(10)]
    assert counting.calls == 10
    monkeypatch.setattr(points, "FEW", 0)
    twice = [explainer.explain(cases.iloc[[k]]) for k in range(10)]
    assert counting.calls >= 20
    assert [out[0] for out in once] == [out[0] for out in twice]


@pytest.mark.parametrize("make", [rm.linear, rm.tree_ensemble, rm.network, rm.calibrated])
def test_one_call_or_two_give_the_same_answers(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(5):
        random = np.random.default_rng([seed, 12])
        setting = make(random)
        explainer = rm.random_explainer(random, setting)
        cases = [setting.cases.iloc[[k]] for k in range(min(8, len(setting.cases)))]
        monkeypatch.setattr(points, "FEW", 64)
        once = [explainer.explain(case, alternatives=3).to_json() for case in cases]
        monkeypatch.setattr(points, "FEW", 0)
        assert once == [explainer.explain(case, alternatives=3).to_json() for case in cases]


def test_an_explainer_that_has_read_its_model_can_be_pickled() -> None:
    model, X, y = fitted(PARTS["one-hot"])
    decision = fw.Decision(model, positive=1)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    answers = explainer.explain(X).to_json()
    sent = pickle.loads(pickle.dumps(explainer))
    assert sent.explain(X).to_json() == answers
    with pytest.warns(fw.FewestWarning, match="it lies"):
        explainer.reader.give_up("it lies")
    assert pickle.loads(pickle.dumps(explainer)).doubt == "it lies"


@pytest.mark.parametrize("name", mostly_slow(PARTS, ("one-hot", "ordinal", "imputed")))
def test_rows_scored_once_more_have_the_scores_they_have_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = fitted(PARTS[name], missing=name == "imputed")
    decision = fw.Decision(model, positive=1)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    inside = explainer.look_inside(X)
    alone = np.concatenate([decision.score(X.iloc[[k]]) for k in range(len(X))])
    monkeypatch.setattr("fewest.decision.DOUBLE", Precision(near=1.0, noise=1e-13, decimals=16))  # all are near
    calls, transform = [0], Encoding.transform

    def count(self: Encoding, frame: pd.DataFrame) -> Any:
        calls[0] += 1
        return transform(self, frame)

    monkeypatch.setattr(Encoding, "transform", count)
    for verdicts in (inside.verdicts_on(X), inside.verdicts(X, inside.encoding.transform(X))):
        assert np.array_equal(verdicts.score, np.round(alone * 1e16) / 1e16)
        assert np.array_equal(verdicts.positive, alone >= 0.5)
    assert calls[0] == 2


def test_a_case_foreseen_wrongly_is_scored_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading that is sure of the wrong outcome: the model has the last word on the case too."""
    model, X, y = fitted(PARTS["one-hot"])
    decision = fw.Decision(model, positive=1)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    expected = [explainer.explain(X.iloc[[k]])[0] for k in range(20)]
    reading = explainer.reader.reading
    assert reading is not None
    assert reading.own is not None
    worst = X.loc[[decision.score(X).argmax()]]
    wrong = replace(reading.own, step=lambda cells: np.repeat(reading.own(worst), len(cells), axis=0))
    explainer.reader.reading = replace(reading, own=wrong)
    accepted = [k for k in range(20) if expected[k].status == fw.Status.ALREADY_NEGATIVE]
    assert len(accepted) > 3
    assert all(explainer.explain(X.iloc[[k]])[0] == expected[k] for k in accepted)
