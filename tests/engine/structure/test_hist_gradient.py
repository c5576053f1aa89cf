"""HistGradientBoosting compares doubles, knows missing values and puts categories first."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from fewest.engine.structure import as_float32_values, read


def boosted(**settings):
    return HistGradientBoostingClassifier(max_iter=20, random_state=0, **settings)


def with_gaps(X, seed, share=0.15):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def frame(X, seed, unknown=False):
    """Numbers around two categorical columns, one of them in the middle."""
    rng = np.random.default_rng(seed)
    names = ["north", "east", "south", "west", "centre"]
    place = pd.Series(np.array(names, dtype=object)[X[:, 2].astype(int) % 5])
    place[rng.random(len(X)) < 0.1] = None
    levels = [*names, "abroad"] if unknown else names
    if unknown:
        place[rng.random(len(X)) < 0.2] = "abroad"
    codes = pd.Series(X[:, 4] // 1000).astype(int) % 12
    return pd.DataFrame({
        "x0": X[:, 0], "place": pd.Categorical(place, categories=levels), "x1": X[:, 1], "x3": X[:, 3],
        "group": pd.Categorical(codes, categories=range(12)), "x5": X[:, 5],
    })  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_with_gaps_are_read(dtype, tools, train, rows):
    X = with_gaps(train[0], 1).astype(dtype)
    model = boosted().fit(X, train[1])
    for asked in tools.questions(("proba", "decision", "label")):
        tools.check_it(
            model, with_gaps(rows, 2).astype(dtype), asked, raw=lambda model, rows: model.decision_function(rows)
        )


def test_two_of_three_classes_are_compared(tools, train3, rows):
    model = boosted().fit(*train3)
    for kind in ("proba", "decision"):
        tools.check_it(model, rows, {"positive": 2, "against": 1, "kind": kind})


def test_categories_of_a_frame_are_read(tools, train, rows):
    model = boosted(categorical_features="from_dtype").fit(frame(train[0], 1), train[1])
    for unknown, asked in (
        (False, {"threshold": 0.3}),
        (True, {"threshold": 0.3, "positive": 0}),
        (True, {"kind": "decision", "threshold": 0.2}),
    ):
        structure, _ = tools.check_it(
            model, frame(rows, 2, unknown), asked, raw=lambda model, rows: model.decision_function(rows)
        )
    assert structure.reading.source.tolist() == [1, 4, 0, 2, 3, 5]
    assert (structure.category >= 0).any()


def test_categories_of_an_array_are_read(tools, train, rows):
    X = train[0].copy()
    X[:, 2] = np.where(X[:, 2] > 6, 100, X[:, 2])
    model = boosted(categorical_features=[2, 5]).fit(X, train[1])
    query = with_gaps(rows, 3)
    structure, _ = tools.check_it(model, query, {"threshold": 0.4}, raw=lambda fitted, X: fitted.decision_function(X))
    assert structure.reading.source.tolist() == [2, 5, 0, 1, 3, 4]


def test_wrong_readings_are_caught(tools, train, rows):
    model = boosted(categorical_features="from_dtype").fit(frame(with_gaps_in_first(train[0]), 1), train[1])
    right, edged = tools.check_it(model, frame(with_gaps_in_first(rows), 2, True), {"threshold": 0.4})
    numeric = right.category < 0
    for broken in (
        tools.replace(right, threshold=np.nextafter(right.threshold, -np.inf)),
        tools.replace(right, missing_left=np.where(numeric, ~right.missing_left, right.missing_left)),
        tools.replace(right, missing_left=np.where(numeric, right.missing_left, ~right.missing_left)),
        tools.replace(right, left_levels=~right.left_levels),
        tools.replace(right, base=0.0),
        tools.replace(right, reading=tools.replace(right.reading, source=np.arange(6, dtype=np.int32))),
    ):
        assert tools.wrong(model, broken, edged, 0.4, raw=lambda model, rows: model.decision_function(rows))
    plain = boosted().fit(*train)
    right, edged = tools.check_it(plain, rows, {"threshold": 0.4})
    single = tools.replace(right, reading=tools.replace(right.reading, prepare=as_float32_values))
    assert tools.wrong(plain, single, edged, 0.4)


def with_gaps_in_first(X):
    X = X.copy()
    X[np.random.default_rng(9).random(len(X)) < 0.2, 0] = np.nan
    return X


def test_one_class_is_not_read(train):
    model = boosted().fit(train[0], train[1])
    model.classes_ = model.classes_[:1]
    assert "one class" in read(model, positive=0).reason
