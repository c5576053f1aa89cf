"""The space rows are clustered in: the model's own columns where they can be read, plain ones elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fewest as fw
from fewest.references.clustering import ClusterSpace

X = pd.DataFrame(
    {
        "income": [10.0, 20.0, 30.0, 40.0],
        "home": pd.Series(["own", "rent", "own", "rent"], dtype="str"),
        "since": pd.to_datetime(["2020-01-01", "2020-01-03", "2020-01-01", "2020-01-03"]),
        "member": [True, False, True, False],
    }
)
Y = [0, 1, 0, 1]
SCHEMA = fw.Schema.infer(X)


def by_function(frame: pd.DataFrame) -> np.ndarray:
    return frame["income"].to_numpy() / 50


def test_the_models_own_encoding_is_used_and_its_numbers_standardised() -> None:
    table = X[["income", "home"]]
    encoder = make_column_transformer(("passthrough", ["income"]), (OneHotEncoder(), ["home"]))
    decision = fw.Decision(make_pipeline(encoder, LogisticRegression()).fit(table, Y))
    space = ClusterSpace.read(decision, fw.Schema.infer(table), table)
    assert space.encoding is not None
    points = space.encode(table)
    assert points[:, 1:].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    assert np.allclose(points[:, 0], StandardScaler().fit_transform(table[["income"]])[:, 0])


def test_a_plain_encoding_stands_in_for_what_cannot_be_read() -> None:
    space = ClusterSpace.read(fw.Decision(by_function), SCHEMA, X)
    assert space.encoding is None
    assert space.encode(X)[:, 1:].tolist() == [[1, 0, -1, 1], [0, 1, 1, 0], [1, 0, -1, 1], [0, 1, 1, 0]]


def test_columns_that_blend_features_are_not_used() -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=list("abc"))
    decision = fw.Decision(make_pipeline(PCA(2), LogisticRegression()).fit(table, [0, 1] * 10))
    assert ClusterSpace.read(decision, fw.Schema.infer(table), table).encode(table).shape == (20, 3)


def test_missing_numbers_lie_in_the_middle_and_strange_levels_are_none() -> None:
    space = ClusterSpace.read(fw.Decision(by_function), SCHEMA, X)
    odd = X.iloc[:1].assign(income=np.nan, home=pd.Series(["boat"], dtype="str"), since=pd.NaT)
    assert space.encode(odd)[0].tolist() == [0, 0, 0, 0, 1]
    table = pd.DataFrame({"a": [1.0, np.nan, 3.0, 4.0]})
    decision = fw.Decision(HistGradientBoostingClassifier().fit(table, Y))
    assert np.isfinite(ClusterSpace.read(decision, fw.Schema.infer(table), table).encode(table)).all()


def test_constant_columns_do_no_harm() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [7.0] * 4})
    decision = fw.Decision(LogisticRegression().fit(table, Y))
    assert ClusterSpace.read(decision, fw.Schema.infer(table), table).encode(table)[:, 1].tolist() == [0, 0, 0, 0]


def test_one_hot_groups_and_empty_tables() -> None:
    table = pd.DataFrame({"h_own": [1, 0, 1, 0], "h_rent": [0, 1, 0, 1], "n": [1, 2, 3, 4]})
    schema = fw.Schema.infer(table, {"home": ["h_own", "h_rent"]})
    space = ClusterSpace.read(fw.Decision(lambda frame: frame["n"].to_numpy() / 9), schema, table)
    assert space.encode(table)[:, :2].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    assert space.encode(table.iloc[:0]).shape == (0, 3)


@pytest.mark.parametrize("order", [[3, 1, 0, 2], [2, 2, 2]])
def test_rows_are_encoded_one_by_one(order: list[int]) -> None:
    space = ClusterSpace.read(fw.Decision(by_function), SCHEMA, X)
    assert np.array_equal(space.encode(X)[order], space.encode(X.iloc[order]))
