"""Every point that is returned for a real tree is predicted negative by it: asked one row at a time, after typing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from slow_cases import mostly_slow

import fewest as fw
from fewest import datasets

DATA = Path(__file__).parents[4] / "shared" / "data"
NAMES = ["german", "compas", "fico", "adult", "headline"]


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    if name != "german" and not (DATA / "schema.json").exists():
        pytest.skip(f"the {name} data are not beside this checkout")
    data = datasets.load(name) if name == "german" else datasets.load(name, DATA)
    X = data.X.copy()
    for column in X:
        if not pd.api.types.is_numeric_dtype(X[column].dtype):
            X[column] = X[column].astype(object).where(X[column].notna(), "missing").astype("str")
    return X, data.y


def one_hot(X: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """The table with its text columns one-hot encoded, and the groups that belong together."""
    text = [c for c in X if not pd.api.types.is_numeric_dtype(X[c].dtype)]
    wide = pd.get_dummies(X, columns=text, dtype=float)
    return wide, {c: [w for w in wide if w.startswith(f"{c}_") and w not in X] for c in text}


def points_of(X: pd.DataFrame, y, groups, depth: int, criterion: str, value: str):
    """The model, on a plain array, and all the points it is to predict negative."""
    model = DecisionTreeClassifier(max_depth=depth, criterion=criterion, random_state=0).fit(X.to_numpy(float), y)
    decision = fw.Decision(model)
    schema = fw.Schema.infer(X, groups)
    refs = fw.references.leaves(decision, X, y, value=value, schema=schema)
    out = fw.Explainer(decision, refs, n_jobs=1).explain(X)
    explained = out.answers.moved.any(axis=1)
    positive = model.predict_proba(X.to_numpy(float))[:, 1] >= 0.5
    assert out.counts()["EXPLAINED"] == int(explained.sum()) == int(positive.sum())
    return model, out.turned()[explained]


def alone(model, points: pd.DataFrame) -> int:
    """How many points are predicted positive, asked one by one."""
    rows = points.to_numpy(dtype=float).astype(np.float32)  # what the library does to its input
    return sum(model.predict_proba(row[None, :], check_input=False)[0, 1] >= 0.5 for row in rows)


@pytest.mark.parametrize("name", mostly_slow(NAMES, ("german",)))
def test_every_point_is_predicted_negative_one_row_at_a_time(name: str) -> None:
    X, y = table(name)
    X, groups = one_hot(X)
    given = 0
    for depth in (3, 4, 5, 6, 7):
        for criterion, value in (("gini", "nearest"), ("entropy", "median")):
            model, points = points_of(X, y, groups, depth, criterion, value)
            assert alone(model, points) == 0
            for columns in groups.values():
                assert (points[columns].sum(axis=1) == 1).all()
            whole = [c for c in X if pd.api.types.is_integer_dtype(X[c].dtype)]
            assert (points[whole].to_numpy(dtype=float) % 1 == 0).all()
            given += len(points)
    least = {"german": 500, "compas": 20_000, "fico": 40_000, "adult": 30_000, "headline": 100_000}
    assert given >= least[name]


@pytest.mark.parametrize("name", mostly_slow(("german", "adult"), ("german",)))
def test_points_of_a_pipeline_flip_the_pipeline_row_by_row(name: str) -> None:
    X, y = table(name)
    text = [c for c in X if not pd.api.types.is_numeric_dtype(X[c].dtype)]
    encoder = make_column_transformer(
        (StandardScaler(), [c for c in X if c not in text]), (OneHotEncoder(handle_unknown="ignore"), text)
    )
    model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=6, random_state=0)).fit(X, y)
    decision = fw.Decision(model)
    out = fw.Explainer(decision, fw.references.leaves(decision, X, y)).explain(X.iloc[:3000])
    points = out.turned()[out.answers.moved.any(axis=1)].iloc[:100]
    assert len(points) == 100
    assert [int(model.predict(points.iloc[[k]])[0]) for k in range(len(points))] == [0] * len(points)


def test_a_value_on_the_threshold_is_caught() -> None:
    """The broken twin of the authors' code sets the threshold itself: such a point does not flip the tree."""
    X = pd.DataFrame({"rate": [0.1, 0.2, 0.3, 0.4]})
    y = [1, 1, 0, 0]
    model = DecisionTreeClassifier().fit(X.to_numpy(), y)
    threshold = model.tree_.threshold[0]
    assert alone(model, pd.DataFrame({"rate": [threshold]})) == 1
    decision = fw.Decision(model)
    out = fw.Explainer(decision, fw.references.leaves(decision, X, y)).explain(X)
    assert alone(model, out.turned()[out.answers.moved.any(axis=1)]) == 0
    assert out[0].changes[0].after > threshold
