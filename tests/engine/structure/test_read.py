"""The reader is picked by the model's own class; what cannot be read says why."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, RandomizedSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from fewest.engine.structure import Additive, Ensemble, Opaque, read
from fewest.errors import UsageError


def test_wrappers_are_taken_off(tools, train, rows):
    grid = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 3]}, cv=2).fit(*train)
    assert isinstance(tools.check_it(grid, rows, {"threshold": 0.4})[0], Ensemble)
    drawn = RandomizedSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 3]}, n_iter=2, cv=2).fit(
        *train
    )
    assert isinstance(tools.check_it(drawn, rows, {"threshold": 0.4})[0], Ensemble)
    tree = DecisionTreeClassifier(max_depth=3).fit(*train)
    assert isinstance(tools.check_it(FrozenEstimator(tree), rows, {"threshold": 0.4})[0], Ensemble)


def test_a_moved_label_threshold_is_read_with_the_label(tools, train, rows):
    for label in (0, 1):
        moved = FixedThresholdClassifier(DecisionTreeClassifier(max_depth=5), threshold=0.2, pos_label=label)
        moved.fit(*train)
        for positive in (0, 1):
            asked = {"kind": "label", "positive": positive, "threshold": 0.5}
            _, edged = tools.check_it(moved, rows, asked)
            unmoved = read(moved.estimator_, **asked)
            assert tools.wrong(moved, unmoved, edged, 0.5, kind="label", positive=positive)
    assert "threshold" in read(moved, kind="label", threshold=2.0).reason


def test_unknown_models_are_opaque(train):
    assert "GaussianNB" in read(GaussianNB().fit(*train)).reason
    assert isinstance(read(lambda rows: rows), Opaque)


def test_a_subclass_may_decide_otherwise_and_is_not_read(train):
    class Twisted(DecisionTreeClassifier):
        def predict_proba(self, X, check_input=True):
            return super().predict_proba(X)[:, ::-1]

    assert isinstance(read(Twisted(max_depth=2).fit(*train)), Opaque)


def test_questions_that_make_no_sense_are_refused(train):
    model = DecisionTreeClassifier(max_depth=2).fit(*train)
    with pytest.raises(UsageError, match="kind"):
        read(model, kind="margin")
    with pytest.raises(UsageError, match="class number 2"):
        read(model, positive=2)
    with pytest.raises(UsageError, match="itself"):
        read(model, positive=1, against=1)
    with pytest.raises(UsageError, match="not a number"):
        read(model, threshold=float("nan"))


def test_comparing_two_classes_asks_for_the_likelier(train):
    model = DecisionTreeClassifier(max_depth=2).fit(*train)
    assert read(model, positive=1, against=0, threshold=0.9).reading.cut == 0.5


def test_a_margin_beyond_the_double_range_stays_finite(train):
    X = (train[0] - train[0].mean(axis=0)) / train[0].std(axis=0)
    model = LogisticRegression().fit(X, train[1])
    for threshold in (1e-300, 1e-17, 1 - 1e-16, 1.0):
        reading = read(model, threshold=threshold).reading
        assert np.isfinite([reading.cut, reading.tolerance]).all()
    assert isinstance(read(model), Additive)


def test_no_library_is_imported_before_it_is_needed():
    code = (
        "import sys, fewest.engine.structure; "
        "print([n for n in ('sklearn','xgboost','lightgbm','catboost','interpret','torch') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
