"""CatBoost's symmetric trees compare float32 values with a border."""

import numpy as np
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


def test_what_is_not_read_says_so(train):
    X = train[0].astype(object)
    X[:, 2] = train[0][:, 2].astype(int)
    assert "categorical" in read(boosted().fit(X, train[1], cat_features=[2])).reason
    assert "symmetric" in read(boosted(grow_policy="Lossguide").fit(*train)).reason
