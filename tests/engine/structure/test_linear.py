"""Linear models are read coefficient by coefficient."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fewest.engine.structure import Additive, as_floats, read

MODELS = {
    "logistic": (lambda: LogisticRegression(C=2.0), ("proba", "decision", "label")),
    "svc": (lambda: LinearSVC(), ("decision", "label")),
    "ridge": (lambda: RidgeClassifier(), ("decision", "label")),
    "hinge": (lambda: SGDClassifier(random_state=0), ("decision", "label")),
    "sgd_log": (lambda: SGDClassifier(loss="log_loss", random_state=0), ("proba", "decision", "label")),
    "huber": (lambda: SGDClassifier(loss="modified_huber", random_state=0), ("proba", "label")),
    "perceptron": (lambda: Perceptron(random_state=0), ("decision", "label")),
    "lda": (lambda: LinearDiscriminantAnalysis(), ("proba", "decision", "label")),
}


@pytest.fixture(scope="module")
def scaled(train, train3, rows):
    scaler = StandardScaler().fit(train[0])
    return scaler.transform(train[0]), scaler.transform(train3[0]), scaler.transform(rows)


@pytest.mark.parametrize("name", MODELS)
def test_linear_models_decide_as_read(name, tools, train, scaled):
    make, kinds = MODELS[name]
    model = make().fit(scaled[0], train[1])
    for asked in tools.questions(kinds):
        structure, _ = tools.check_it(model, scaled[2], asked, raw=lambda model, rows: model.decision_function(rows))
        assert isinstance(structure, Additive)


def test_float32_and_sparse_input_are_read(tools, train, scaled):
    single = LogisticRegression().fit(scaled[0].astype(np.float32), train[1])
    tools.check_it(single, scaled[2].astype(np.float32), {"threshold": 0.4})
    matrix = sparse.csr_matrix(scaled[0])
    model = LogisticRegression().fit(matrix, train[1])
    tools.check_it(model, sparse.csr_matrix(scaled[2]), {"threshold": 0.4})


@pytest.mark.parametrize("make", [LogisticRegression, LinearDiscriminantAnalysis])
def test_two_of_three_classes_are_compared(make, tools, train3, scaled):
    model = make().fit(scaled[1], train3[1])
    for kind in ("proba", "decision"):
        tools.check_it(
            model,
            scaled[2],
            {"positive": 2, "against": 0, "kind": kind},
            raw=lambda model, rows: model.decision_function(rows)[:, 2] - model.decision_function(rows)[:, 0],
        )


def test_ridge_of_three_classes_compares_decisions(tools, train3, scaled):
    model = RidgeClassifier().fit(scaled[1], train3[1])
    tools.check_it(model, scaled[2], {"positive": 1, "against": 0, "kind": "decision"})


def test_the_ends_of_the_threshold(train, scaled):
    model = LogisticRegression().fit(scaled[0], train[1])
    assert read(model, threshold=0.0).reading.cut == -np.inf
    assert read(model, threshold=1.1).reading.cut == np.inf
    huge = scaled[2] * 1e4
    for positive in (0, 1):
        one = read(model, threshold=1.0, positive=positive).reading
        # A rounded probability reaches 1 long before infinity.
        raw = read(model, positive=positive).raw(huge)
        sure = np.abs(raw - one.cut) > one.tolerance
        reached = model.predict_proba(huge)[:, positive] >= 1.0
        assert reached.any()
        np.testing.assert_array_equal((raw >= one.cut)[sure], reached[sure])


def test_wrong_readings_are_caught(tools, train, scaled):
    model = LogisticRegression().fit(scaled[0], train[1])
    right = read(model)
    assert tools.wrong(model, right, scaled[2], 0.5) == []
    for broken in (
        tools.replace(right, intercept=right.intercept + 0.3),
        tools.replace(right, coef=right.coef[::-1].copy()),
        tools.replace(right, reading=tools.replace(right.reading, cut=0.3)),
        tools.replace(right, reading=tools.replace(right.reading, source=right.reading.source[::-1].copy())),
    ):
        assert tools.wrong(model, broken, scaled[2], 0.5)


def test_what_is_not_additive_says_so(train, train3, scaled):
    svc = LinearSVC().fit(scaled[0], train[1])
    assert "predict_proba" in read(svc).reason
    sgd = SGDClassifier(loss="modified_huber", random_state=0).fit(scaled[1], train3[1])
    assert "often equal" in read(sgd, positive=0, against=1).reason
    several = LogisticRegression().fit(scaled[1], train3[1])
    assert "classes" in read(several, kind="label").reason
    assert "labels" in read(several, against=0, kind="label").reason


def test_what_is_read_of_a_frame_of_one_row_may_be_written_to():
    """Its own array may not: the searches would be compiled a second time for such references."""
    frame = pd.DataFrame({"a": [1.0], "b": [3.0]})
    assert as_floats(frame).flags.writeable
    held = np.ones((2, 3))
    held.flags.writeable = False
    assert as_floats(held).flags.writeable
    assert not np.ascontiguousarray(held).flags.writeable  # negative control
