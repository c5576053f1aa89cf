"""Columns of pipelines are traced to features; what is not understood is said, never guessed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import fewest as fw
from fewest.engine.encoding import Encoding
from fewest.tables.frames import mix

RANDOM = np.random.default_rng(0)
N = 120
X = pd.DataFrame(
    {
        "age": RANDOM.integers(18, 80, N).astype(float),
        "debt": RANDOM.normal(size=N).round(2) ** 2,
        "job": pd.Series(RANDOM.choice(["a", "b", "c"], N), dtype="str"),
        "home": pd.Series(RANDOM.choice(["own", "rent"], N), dtype="str"),
        "rare": pd.Series(RANDOM.choice(["x", "y", "z", "w"], N, p=[0.5, 0.4, 0.05, 0.05]), dtype="str"),
    }
)
Y = (X["debt"] + (X["job"] == "a") + RANDOM.normal(size=N) > 1.5).astype(int)
HOLED = X.assign(age=X["age"].where(RANDOM.random(N) > 0.1))
NUMBERS, TEXT = ["age", "debt"], ["job", "home", "rare"]

UNDERSTOOD = {
    "one-hot": make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), TEXT)),
    "one-hot, dropped": make_column_transformer((OneHotEncoder(drop="first"), TEXT), remainder="passthrough"),
    "one-hot, infrequent": make_column_transformer((OneHotEncoder(min_frequency=20), TEXT), ("passthrough", NUMBERS)),
    "ordinal": make_column_transformer((OrdinalEncoder(), TEXT), (StandardScaler(), NUMBERS)),
    "target": make_column_transformer((TargetEncoder(), TEXT), ("drop", ["age"]), remainder="passthrough"),
    "imputed": make_column_transformer((SimpleImputer(add_indicator=True), NUMBERS), (OneHotEncoder(), TEXT)),
    "bins and splines": make_column_transformer(
        (KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), ["age"]), (SplineTransformer(4), ["debt"]),
        (OneHotEncoder(sparse_output=False), TEXT)
    ),
    "functions": make_column_transformer((FunctionTransformer(np.sqrt), ["debt"]), (OneHotEncoder(), TEXT)),
    "declared one-to-one": make_column_transformer(
        (FunctionTransformer(lambda t: t * 2, feature_names_out="one-to-one"), NUMBERS), (OneHotEncoder(), TEXT)
    ),
    "nested": ColumnTransformer([
        ("numbers", Pipeline([("fill", SimpleImputer()), ("scale", StandardScaler())]), NUMBERS),
        ("text", Pipeline([("hot", OneHotEncoder())]), TEXT),
    ]),
    "union": make_pipeline(
        make_column_transformer((StandardScaler(), NUMBERS)),
        FeatureUnion([("same", "passthrough"), ("squares", FunctionTransformer(np.square))]),
    ),
    "selected": make_pipeline(
        make_column_transformer((OneHotEncoder(sparse_output=False), TEXT), ("passthrough", NUMBERS)), SelectKBest(k=6)
    ),
    "pandas output": make_column_transformer(
        (StandardScaler(), NUMBERS), (OneHotEncoder(sparse_output=False), TEXT)
    ).set_output(transform="pandas"),
}  # fmt: skip
BLENDED = {
    "pca": make_pipeline(make_column_transformer((StandardScaler(), NUMBERS)), PCA(2)),
    "products": make_pipeline(make_column_transformer((StandardScaler(), NUMBERS)), PolynomialFeatures(2)),
    "a function of two columns": make_column_transformer((FunctionTransformer(lambda t: t * 2), NUMBERS)),
}


def traced(steps: object) -> tuple[Encoding, fw.Schema]:
    model = make_pipeline(steps, LogisticRegression(max_iter=5000)).fit(HOLED if "imputed" in str(steps) else X, Y)
    schema = fw.Schema.infer(X)
    return Encoding.read(fw.Decision(model), schema), schema


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_encoded_mixtures_are_mixtures_of_encodings(name: str) -> None:
    encoding, schema = traced(UNDERSTOOD[name])
    assert encoding.feature_of is not None, encoding.reason
    took = RANDOM.random((N, len(schema))) < 0.5
    order = RANDOM.permutation(N)
    mixed = mix(X, X, order, {column: took[:, j] for column, j in schema.feature_of.items()})
    encoded, both = encoding.transform(X), encoding.transform(mixed)
    assert encoding.agrees(encoded, encoded, both, order, took)
    wrong = np.roll(took, 1, axis=1)
    assert not encoding.agrees(encoded, encoded, both, order, wrong)


@pytest.mark.parametrize("name", BLENDED)
def test_blended_features_are_not_traced(name: str) -> None:
    encoding, _ = traced(BLENDED[name])
    assert encoding.feature_of is None
    assert encoding.reason


@pytest.mark.parametrize("name", [*UNDERSTOOD, *BLENDED])
def test_answers_are_the_same_with_and_without_reading(name: str) -> None:
    steps = {**UNDERSTOOD, **BLENDED}[name]
    model = make_pipeline(steps, LogisticRegression(max_iter=5000)).fit(X, Y)
    decision = fw.Decision(model)
    refs = fw.references.single(decision, X, Y, on_positive="allow")
    explainer = fw.Explainer(decision, refs, n_jobs=1)
    columns = ["status", "sev", "features", "score_after"]
    read = explainer.explain(X).to_frame()[columns].astype(str)
    plain = explainer.with_(structure="opaque").explain(X).to_frame()[columns].astype(str)
    assert read.equals(plain)
