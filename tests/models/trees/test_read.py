"""Reading fitted trees: the neutral tree decides as the library does, for every value up to the last bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier
from slow_cases import pairs

import fewest as fw
from fewest.models.trees import read


def sample(n: int = 500, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "amount": random.integers(0, 10_000, n),
            "rate": np.round(random.uniform(0, 1, n), 3),
            "job": random.choice(["clerk", "none", "nurse", "smith"], n),
            "own": random.random(n) < 0.5,
        }
    )
    signal = X["amount"] / 5000 + 2 * X["rate"] + (X["job"] == "none") - X["own"] + random.normal(0, 0.4, n)
    return X, (signal > 1.6).astype(int).to_numpy()


def negate(values):
    return -values


ENCODERS = {
    "scaled": lambda: (StandardScaler(), ["amount", "rate"]),
    "min-max": lambda: (MinMaxScaler(), ["amount", "rate"]),
    "robust": lambda: (RobustScaler(), ["amount", "rate"]),
    "quantiles": lambda: (QuantileTransformer(n_quantiles=50), ["amount", "rate"]),
    "logarithm": lambda: (FunctionTransformer(np.log1p), ["amount", "rate"]),
    "turned round": lambda: (FunctionTransformer(negate, feature_names_out="one-to-one"), ["amount", "rate"]),
    "as they are": lambda: ("passthrough", ["amount", "rate"]),
}


@pytest.mark.parametrize(("numbers", "levels"), pairs(list(ENCODERS), ("one-hot", "ordinal")))
def test_the_neutral_tree_decides_as_the_pipeline(numbers: str, levels: str) -> None:
    X, y = sample()
    level_encoder = OneHotEncoder() if levels == "one-hot" else OrdinalEncoder()
    encoder = make_column_transformer(ENCODERS[numbers](), (level_encoder, ["job"]), ("passthrough", ["own"]))
    model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=7, random_state=0)).fit(X, y)
    schema = fw.Schema.infer(X)
    tree = read(fw.Decision(model), schema, X)
    fresh, _ = sample(1000, 1)
    assert (tree.decide(fresh) == decided(model, fresh)).all()
    edges = at_the_edges(tree, X)
    assert (tree.decide(edges) == decided(model, edges)).all()


def decided(model, X: pd.DataFrame) -> np.ndarray:
    """Whether the model's score reaches a half: unlike its label, an even leaf counts as positive."""
    return model.predict_proba(X)[:, 1] >= 0.5


def at_the_edges(tree, X: pd.DataFrame) -> pd.DataFrame:
    """Rows whose numbers lie on a threshold, one bit below and one bit above it."""
    rows, few = [], [X.iloc[7 * k].to_dict() for k in range(4)]
    for node in np.flatnonzero((tree.feature >= 0) & (tree.level_set < 0)):
        at, name = float(tree.threshold[node]), tree.schema.names[tree.feature[node]]
        for value in (at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf)):
            rows += [{**some, name: value} for some in few]
    return pd.DataFrame(rows).astype({"amount": float, "rate": float, "own": bool})


def test_float32_is_minded() -> None:
    """Reading a threshold as it stands is a bit off: values between it and its float32 go the other way."""
    X = pd.DataFrame({"rate": [0.1, 0.3]})
    model = DecisionTreeClassifier().fit(X, [0, 1])
    tree = read(fw.Decision(model), fw.Schema.infer(X), X)
    printed = model.tree_.threshold[0]
    between = pd.DataFrame({"rate": [np.nextafter(printed, 1.0), printed]})
    assert (tree.decide(between) == decided(model, between)).all()
    assert tree.threshold[0] != printed


def test_missing_values_go_where_the_library_sends_them() -> None:
    X, y = sample()
    X = X[["amount", "rate"]].astype(float).mask(np.random.default_rng(3).random((500, 2)) < 0.2)
    model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y)
    tree = read(fw.Decision(model), fw.Schema.infer(X), X)
    assert (tree.decide(X) == decided(model, X)).all()
    decision = fw.Decision(model)
    out = fw.Explainer(decision, fw.references.leaves(decision, X, y)).explain(X)
    assert out.counts()["EXPLAINED"] == int(decided(model, X).sum())
    assert not model.predict(out.turned()[out.answers.moved.any(axis=1)]).any()


def test_a_class_against_another_of_three_is_read() -> None:
    X, y = sample()
    y = y + (X["rate"] > 0.8).to_numpy()
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(X[["amount", "rate"]], y)
    decision = fw.Decision(model, positive=2, against=0)
    tree = read(decision, fw.Schema.infer(X[["amount", "rate"]]), X[["amount", "rate"]])
    share = model.predict_proba(X[["amount", "rate"]])
    assert (tree.decide(X[["amount", "rate"]]) == (share[:, 2] >= share[:, 0])).all()


def one_of(y: np.ndarray, label: int) -> np.ndarray:
    """Labels that are all the same but for one: no split of depth one wins."""
    return np.where(np.arange(len(y)) == 250, label, 1 - label)


REFUSED = {
    "three classes": ("has 3 classes", lambda X, y: DecisionTreeClassifier().fit(X, y + (X["rate"] > 0.8))),
    "a forest": ("but RandomForestClassifier has 5", lambda X, y: RandomForestClassifier(5).fit(X, y)),
    "no tree": ("need a single decision tree", lambda X, y: LogisticRegression(max_iter=9999).fit(X, y)),
    "bins": (
        "not be monotone|cannot be traced|does not reproduce",
        lambda X, y: make_pipeline(
            KBinsDiscretizer(6, encode="onehot-dense", quantile_method="averaged_inverted_cdf"),
            DecisionTreeClassifier(max_depth=4, random_state=0),
        ).fit(X, y),
    ),
    "no negative leaf": ("no negative leaf", lambda X, y: DecisionTreeClassifier(max_depth=1).fit(X, one_of(y, 0))),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_cannot_be_read_is_refused_with_a_reason(case: str) -> None:
    message, fit = REFUSED[case]
    X, y = sample()
    X = X[["amount", "rate"]]
    decision = fw.Decision(fit(X, y), positive=1)
    with pytest.raises(fw.FewestError, match=message):
        fw.references.leaves(decision, X, np.asarray(y))


def test_a_single_negative_leaf_explains_nobody() -> None:
    X, _ = sample()
    X = X[["amount", "rate"]]
    model = DecisionTreeClassifier(max_depth=1).fit(X, one_of(np.arange(len(X)), 1))
    decision = fw.Decision(model)
    out = fw.Explainer(decision, fw.references.leaves(decision, X, np.zeros(len(X), int))).explain(X)
    assert out.counts()["ALREADY_NEGATIVE"] == len(X)


def test_a_level_never_seen_is_refused_or_left_to_the_model() -> None:
    X, y = sample()
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["job"]), remainder="passthrough")
    model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=6, random_state=0)).fit(X, y)
    decision = fw.Decision(model)
    refs = fw.references.leaves(decision, X, y)
    strange = X.assign(job="pilot")
    with pytest.raises(fw.FewestError, match="pilot"):
        fw.Explainer(decision, refs).explain(strange)
    out = fw.Explainer(decision, refs, unseen="allow").explain(strange)
    assert out.counts()["EXPLAINED"] == int(decided(model, strange).sum()) > 0
    assert not model.predict(out.turned()[out.answers.moved.any(axis=1)]).any()


def test_nan_at_a_split_of_a_model_that_refuses_it_names_the_cell() -> None:
    X, y = sample()
    X = X[["amount", "rate"]].astype(float)
    strict = FunctionTransformer(np.log1p, validate=True)
    model = make_pipeline(strict, DecisionTreeClassifier(max_depth=4, random_state=0)).fit(X, y)
    decision = fw.Decision(model)
    refs = fw.references.leaves(decision, X, y)
    broken = X.iloc[:5].copy()
    broken.iloc[3, 1] = np.nan
    with pytest.raises(fw.FewestError, match='column "rate"'):
        fw.Explainer(decision, refs).explain(broken)


def test_sev_plus_is_refused() -> None:
    X, y = sample()
    decision = fw.Decision(DecisionTreeClassifier(max_depth=3).fit(X[["amount", "rate"]], y))
    refs = fw.references.leaves(decision, X[["amount", "rate"]], y)
    with pytest.raises(fw.FewestError, match="SEV\\+ is not defined"):
        fw.Explainer(decision, refs, direction="plus")
    with pytest.raises(fw.FewestError, match='value "mode" is unknown'):
        fw.references.leaves(decision, X[["amount", "rate"]], y, value="mode")


def test_answers_list_alternatives_each_with_its_own_leaf_and_values() -> None:
    X, y = sample()
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(X[["amount", "rate", "own"]], y)
    decision = fw.Decision(model)
    refs = fw.references.leaves(decision, X[["amount", "rate", "own"]], y)
    out = fw.Explainer(decision, refs).explain(X[["amount", "rate", "own"]], alternatives=9)
    several = [answer for answer in out if len(answer.alternatives) > 1]
    assert several
    for answer in several:
        assert answer.alternatives[0] == answer.changes
        for changes in answer.alternatives:
            row = X[["amount", "rate", "own"]].iloc[[answer.row]].astype({"amount": float})
            for change in changes:
                row[change.feature] = change.after
            assert model.predict(row)[0] == 0
            assert len(changes) == answer.sev
