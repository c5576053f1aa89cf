"""CatBoost's symmetric trees compare float32 values with a border."""

import numpy as np
import pandas as pd
import pytest

from fewest.engine.structure import as_floats, read

catboost = pytest.importorskip("catboost")


def boosted(**settings):
    fixed = {"iterations": 20, "depth": 4, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    return catboost.CatBoostClassifier(**{**fixed, **settings})


def margin(model, rows):
    return model.predict(rows, prediction_type="RawFormulaVal")


def with_gaps(X, seed, share=0.15):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


@pytest.mark.parametrize("settings", [{}, {"nan_mode": "Max"}, {"boost_from_average": True, "depth": 1}])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_symmetric_trees_are_read(settings, dtype, tools, train, rows):
    model = boosted(**settings).fit(with_gaps(train[0], 1).astype(dtype), train[1])
    for asked in tools.questions(("proba", "label")):
        tools.check_it(model, with_gaps(rows, 2).astype(dtype), asked, raw=margin)


def test_two_of_three_classes_are_compared(tools, train3, rows):
    model = boosted().fit(*train3)
    tools.check_it(
        model,
        rows,
        {"positive": 2, "against": 0},
        raw=lambda model, rows: margin(model, rows)[:, 2] - margin(model, rows)[:, 0],
    )


def test_wrong_readings_are_caught(tools, train, rows):
    model = boosted(boost_from_average=True).fit(with_gaps(train[0], 1), train[1])
    right, edged = tools.check_it(model, with_gaps(rows, 2), {"threshold": 0.45}, raw=margin)
    with np.errstate(over="ignore"):
        below = np.nextafter(right.threshold.astype(np.float32), np.float32(-np.inf)).astype(float)
    for broken in (
        tools.replace(right, threshold=below),
        tools.replace(right, reading=tools.replace(right.reading, prepare=as_floats)),
        tools.replace(right, missing_left=~right.missing_left),
        tools.replace(right, base=right.base + 0.1),
        tools.replace(right, reading=tools.replace(right.reading, source=np.roll(right.reading.source, 1))),
    ):
        assert tools.wrong(model, broken, edged, 0.45, raw=margin)


def with_levels(X):
    """Two columns of levels, one with few and one with many, between columns of numbers."""
    names = np.array(["north", "east", "south"], dtype=object)
    return pd.DataFrame({
        "x0": X[:, 0], "place": names[X[:, 2].astype(int) % 3], "x1": X[:, 1],
        "code": (X[:, 4] / 1000).astype(int).astype(str), "flag": np.where(X[:, 5] > 0, "yes", "no"),
    })  # fmt: skip


@pytest.mark.parametrize("settings", [
    {"max_ctr_complexity": 1}, {"one_hot_max_size": 50}, {"one_hot_max_size": 3, "max_ctr_complexity": 1},
    {"max_ctr_complexity": 3, "depth": 5},
])  # fmt: skip
def test_levels_go_the_way_the_library_says(settings, tools, train, rows):
    model = boosted(cat_features=["place", "code", "flag"], **settings).fit(with_levels(train[0]), train[1])
    cases = with_levels(rows)
    cases.loc[:50, "code"] = "never seen"
    for asked in tools.questions(("proba", "label")):
        structure, _ = tools.check_it(model, cases, asked, raw=margin, edges=False)
    alone = all(len(places) == 1 for places in structure.reading.inputs)
    assert alone == (settings.get("max_ctr_complexity", 4) == 1 or settings.get("one_hot_max_size") == 50)
    if not alone:
        broken = tools.replace(structure.reading, several=())  # of the first column alone
        assert tools.wrong(model, tools.replace(structure, reading=broken), cases, 0.5, kind="label")


def test_what_is_not_read_says_so(train):
    assert "symmetric" in read(boosted(grow_policy="Lossguide").fit(*train)).reason
