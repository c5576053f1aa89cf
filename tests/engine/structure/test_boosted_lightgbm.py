"""LightGBM compares doubles with <= and treats missing values in three ways."""

import inspect

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from slow_cases import mostly_slow

from fewest.engine.structure import Additive, as_float32_values, read

lightgbm = pytest.importorskip("lightgbm")


def boosted(**settings):
    return lightgbm.LGBMClassifier(**{"n_estimators": 30, "n_jobs": 1, "verbose": -1, "num_leaves": 15, **settings})


def named(X):
    """LightGBM wants the names it was fitted with."""
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])


def margin(model, rows):
    # A random forest's raw score is the plain sum, its probability that of the mean.
    return model.predict(rows, raw_score=True) / (model.n_estimators if model.boosting_type == "rf" else 1)


def with_gaps(X, seed, share=0.15):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def with_zeros(X, seed):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < 0.2] = 0.0
    X[:50, 3] = 1e-36
    X[50:80, 3] = -1e-36
    return X


MISSING = {
    "none at fit": ({}, lambda X: X),
    "nan": ({}, lambda X: with_gaps(X, 1)),
    "zero": ({"zero_as_missing": True}, lambda X: with_gaps(with_zeros(X, 2), 1)),
    "ignored": ({"use_missing": False}, lambda X: with_gaps(X, 1)),
    "rf": ({"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1}, lambda X: with_gaps(X, 1)),
    "dart": ({"boosting_type": "dart"}, lambda X: with_gaps(X, 1)),
}


@pytest.mark.parametrize("name", mostly_slow(MISSING, set(MISSING) - {"rf", "dart"}))
def test_each_treatment_of_missing_values_is_read(name, tools, train, rows):
    settings, change = MISSING[name]
    model = boosted(**settings).fit(named(change(train[0])), train[1])
    for asked in tools.questions(("proba", "label")):
        structure, edged = tools.check_it(model, named(with_gaps(with_zeros(rows, 3), 2)), asked, raw=margin)
    broken = tools.replace(structure, missing_left=~structure.missing_left)
    assert tools.wrong(model, broken, edged, 0.5, kind="label", positive=1)


def test_two_of_three_classes_are_compared(tools, train3, rows):
    model = boosted().fit(named(train3[0]), train3[1])
    tools.check_it(
        model,
        named(rows),
        {"positive": 2, "against": 0},
        raw=lambda model, rows: margin(model, rows)[:, 2] - margin(model, rows)[:, 0],
    )


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("form", ["float32", "int64", "csr"])
def test_other_forms_of_input_are_read(form, tools, train, rows):
    X, query = train[0], rows
    if form == "csr":
        X, query = sparse.csr_matrix(X), sparse.csr_matrix(query)
    else:
        query = (query * (1 if form == "float32" else 10_000)).astype(form)
        X = (X * (1 if form == "float32" else 10_000)).astype(form)
    model = boosted().fit(X, train[1])
    tools.check_it(model, query, {"threshold": 0.45}, raw=margin, edges=form == "float32")


def frame(X, seed, order=1):
    rng = np.random.default_rng(seed)
    names = np.array(["north", "east", "south", "west", "centre", "f", "g", "h", "i"], dtype=object)
    place = pd.Series(names[X[:, 2].astype(int)])
    place[rng.random(len(X)) < 0.1] = None
    codes = (X[:, 4] // 1000).astype(int)
    return pd.DataFrame({
        "x0": X[:, 0], "place": pd.Categorical(place, categories=names[::order]), "x1": X[:, 1],
        "group": pd.Categorical(codes, categories=range(30 if order == 1 else 33)), "x3": X[:, 3], "x5": X[:, 5],
    })  # fmt: skip


def test_categories_of_a_frame_are_read(tools, train, rows):
    model = boosted(min_child_samples=5, cat_smooth=1.0, min_data_per_group=5).fit(frame(train[0], 1), train[1])
    for order in (1, -1):
        for asked in tools.questions():
            structure, edged = tools.check_it(model, frame(rows, 2, order), asked, raw=margin)
    assert (structure.category >= 0).any()
    flipped = tools.replace(structure, left_levels=~structure.left_levels)
    assert tools.wrong(model, flipped, edged, 0.9)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_categories_of_an_array_are_read(tools, train, rows):
    model = boosted(min_child_samples=5, cat_smooth=1.0, min_data_per_group=5)
    model.fit(train[0], train[1], categorical_feature=[2])
    query = with_gaps(rows, 2)
    query[:100, 2] = 77.0
    query[100:200, 2] = -1.0
    query[200:300, 2] = 3.7
    query[300:350, 2] = -0.4
    structure, _ = tools.check_it(model, query, {"threshold": 0.45}, raw=margin)
    assert (structure.category >= 0).any()


def test_early_stopping_keeps_the_best_rounds(tools, train, rows):
    model = boosted(n_estimators=200, learning_rate=0.5)
    held_out = (named(train[0][:150]), 1 - train[1][:150])
    new = "eval_X" in inspect.signature(model.fit).parameters
    given = {"eval_X": held_out[0], "eval_y": held_out[1]} if new else {"eval_set": [held_out]}
    model.fit(named(train[0]), train[1], callbacks=[lightgbm.early_stopping(3, verbose=False)], **given)
    tools.check_it(model, named(rows), {"threshold": 0.5}, raw=margin)


def test_wrong_readings_are_caught(tools, train, rows):
    model = boosted().fit(named(train[0]), train[1])
    right, edged = tools.check_it(model, named(rows), {"threshold": 0.45}, raw=margin)
    for broken in (
        tools.replace(right, threshold=np.nextafter(right.threshold, -np.inf)),
        tools.replace(right, reading=tools.replace(right.reading, prepare=as_float32_values)),
        tools.replace(right, base=0.1),
        tools.replace(right, reading=tools.replace(right.reading, source=np.roll(right.reading.source, 1))),
    ):
        assert tools.wrong(model, broken, edged, 0.45, raw=margin)


def test_linear_leaves_are_read(tools, train, train3, rows):
    for settings in ({}, {"num_leaves": 31, "linear_lambda": 0.1}, {"boosting_type": "dart"}):
        model = boosted(linear_tree=True, **settings).fit(named(train[0]), train[1])
        for asked in tools.questions():
            structure, _ = tools.check_it(model, named(with_gaps(rows, 3)), asked, raw=margin)
        assert isinstance(structure, Additive)
    model = boosted(linear_tree=True).fit(named(train3[0]), train3[1])
    tools.check_it(model, named(rows), {"positive": 2, "against": 0, "threshold": 0.0})


def test_what_is_not_read_says_so(train3):
    apart = boosted(objective="multiclassova").fit(named(train3[0]), train3[1])
    assert "multiclassova" in read(apart, against=0).reason
