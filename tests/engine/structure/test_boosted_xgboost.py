"""XGBoost compares float32 with <, sums in float32, and sends absent entries of a sparse matrix with the missing."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from fewest.engine.structure import Additive, as_floats, read

xgboost = pytest.importorskip("xgboost")


def boosted(**settings):
    return xgboost.XGBClassifier(**{"n_estimators": 30, "max_depth": 4, "n_jobs": 1, **settings})


def margin(model, rows):
    return model.predict(rows, output_margin=True)


def with_gaps(X, seed, share=0.15):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("settings", [{}, {"base_score": 0.2}, {"tree_method": "exact", "n_estimators": 150}])
def test_numbers_with_gaps_are_read(dtype, settings, tools, train, rows):
    model = boosted(**settings).fit(with_gaps(train[0], 1).astype(dtype), train[1])
    for asked in tools.questions(("proba", "label")):
        tools.check_it(model, with_gaps(rows, 2).astype(dtype), asked, raw=margin)


def test_random_forest_and_dart_are_read(tools, train, rows):
    forest = xgboost.XGBRFClassifier(n_estimators=20, max_depth=5, n_jobs=1, random_state=0).fit(*train)
    tools.check_it(forest, rows, {"threshold": 0.45}, raw=margin)
    dart = boosted(booster="dart", rate_drop=0.3, random_state=1).fit(*train)
    tools.check_it(dart, rows, {"threshold": 0.45}, raw=margin)


def test_early_stopping_keeps_the_best_rounds(tools, train, rows):
    model = boosted(n_estimators=200, early_stopping_rounds=3, learning_rate=0.5)
    model.fit(*train, eval_set=[(train[0][:150], 1 - train[1][:150])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    tools.check_it(model, rows, {"threshold": 0.5}, raw=margin)


def test_linear_booster_is_additive(tools, train, rows):
    scale = train[0].std(axis=0)
    model = boosted(booster="gblinear", max_depth=None).fit(train[0] / scale, train[1])
    structure, _ = tools.check_it(model, with_gaps(rows / scale, 1), {"threshold": 0.45}, raw=margin)
    assert isinstance(structure, Additive)


def test_two_of_three_classes_are_compared(tools, train3, rows):
    for settings in ({}, {"base_score": 0.3}):
        model = boosted(**settings).fit(*train3)
        tools.check_it(
            model,
            rows,
            {"positive": 2, "against": 0},
            raw=lambda model, rows: margin(model, rows)[:, 2] - margin(model, rows)[:, 0],
        )


def test_a_marker_for_missing_is_read(tools, train, rows):
    X, query = train[0].copy(), rows.copy()
    X[::3, 0] = query[::3, 0] = -999.0
    model = boosted(missing=-999.0).fit(X, train[1])
    tools.check_it(model, query, {"threshold": 0.45}, raw=margin)


def test_absent_entries_of_a_sparse_matrix_are_missing(tools, train, rows):
    model = boosted().fit(sparse.csr_matrix(train[0]), train[1])
    query = sparse.csr_matrix(rows)
    structure, _ = tools.check_it(model, query, {"threshold": 0.45}, raw=margin, edges=False)
    dense = tools.replace(structure, reading=tools.replace(structure.reading, prepare=as_floats))
    assert tools.wrong(model, dense, query, 0.45)


def frame(X, seed, order=1, third="south"):
    rng = np.random.default_rng(seed)
    names = np.array(["north", "east", third, "west", "centre", "f", "g", "h", "i"], dtype=object)
    place = pd.Series(names[X[:, 2].astype(int)])
    place[rng.random(len(X)) < 0.1] = None
    codes = (X[:, 4] // 1000).astype(int)
    return pd.DataFrame({
        "x0": X[:, 0], "place": pd.Categorical(place, categories=names[::order]), "x1": X[:, 1],
        "group": pd.Categorical(codes, categories=range(30)), "x3": X[:, 3], "x5": X[:, 5],
    })  # fmt: skip


@pytest.mark.parametrize("settings", [{}, {"max_cat_to_onehot": 1}])
def test_categories_of_a_frame_are_read(settings, tools, train, rows):
    model = boosted(enable_categorical=True, **settings).fit(frame(train[0], 1), train[1])
    for order in (1, -1):
        query = frame(rows, 2, order)
        structure, edged = tools.check_it(model, query, {"threshold": 0.45}, raw=margin)
        assert (structure.category >= 0).any()
        for broken in (
            tools.replace(structure, left_levels=~structure.left_levels),
            tools.replace(structure, missing_left=~structure.missing_left),
        ):
            assert tools.wrong(model, broken, edged, 0.45)


def test_category_names_beyond_ascii_are_read_by_place(tools, train, rows):
    # XGBoost recodes such names wrongly and refuses another order of the levels.
    model = boosted(enable_categorical=True).fit(frame(train[0], 1, third="Süden"), train[1])
    tools.check_it(model, frame(rows, 2, third="Süden"), {"threshold": 0.45}, raw=margin)


def test_categories_of_an_array_are_read(tools, train, rows):
    types = ["q", "q", "c", "q", "q", "q"]
    model = boosted(enable_categorical=True, feature_types=types).fit(train[0], train[1])
    query = with_gaps(rows, 4)
    query[:100, 2] = 40.0
    tools.check_it(model, query, {"threshold": 0.45}, raw=margin)


def test_wrong_readings_are_caught(tools, train, rows):
    model = boosted().fit(with_gaps(train[0], 1), train[1])
    right, edged = tools.check_it(model, with_gaps(rows, 2), {"threshold": 0.45}, raw=margin)
    stored = np.nextafter(right.threshold.astype(np.float32), np.float32(np.inf)).astype(float)
    for broken in (
        tools.replace(right, threshold=stored),
        tools.replace(right, reading=tools.replace(right.reading, prepare=as_floats)),
        tools.replace(right, missing_left=~right.missing_left),
        tools.replace(right, base=0.0),
        tools.replace(right, reading=tools.replace(right.reading, source=np.roll(right.reading.source, 1))),
    ):
        assert tools.wrong(model, broken, edged, 0.45, raw=margin)


def test_what_is_not_read_says_so(train):
    hinge = boosted(objective="binary:hinge").fit(*train)
    assert "binary:hinge" in read(hinge).reason
    assert "decision_function" in read(boosted().fit(*train), kind="decision").reason


@pytest.mark.parametrize(("positive", "against"), [(1, 0), (2, 1), (0, 2)])
def test_a_linear_booster_of_three_unequal_classes_has_the_margins_of_the_library(positive: int, against: int) -> None:
    """Classes of unequal size start from margins of their own, which this booster does not add."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(200, 4))
    labels = np.digitize(rows[:, 0] + 0.3 * random.normal(size=200), [-0.9, 0.4])
    model = xgboost.XGBClassifier(booster="gblinear", n_estimators=5, n_jobs=1).fit(rows, labels)
    structure = read(model, positive=positive, against=against)
    margins = model.predict(rows, output_margin=True)
    gap = structure.raw(structure.reading.prepare(rows)) - (margins[:, positive] - margins[:, against])
    assert np.abs(gap).max() < 1e-5
