"""Support vector machines, kernel ridge regression and Gaussian processes are read as nets of one layer."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from fewest.engine.structure import Additive, Network, read
from fewest.engine.structure.base import Composite

MACHINES = {
    "rbf": lambda: SVC(),
    "rbf, sharp": lambda: SVC(gamma=2.0, C=30.0),
    "nu": lambda: NuSVC(nu=0.3),
    "poly": lambda: SVC(kernel="poly", coef0=0.5),
    "square": lambda: SVC(kernel="poly", degree=2),
    "sigmoid": lambda: SVC(kernel="sigmoid", gamma=0.1),
    "linear": lambda: SVC(kernel="linear"),
    "poly, straight": lambda: SVC(kernel="poly", degree=1, coef0=1.0),
}
BELLS = {
    "as it comes": None,
    "one width each": gp.RBF([1.0, 2.0, 1.5, 3.0, 1.0, 2.0]),
    "a sum": 2.0 * gp.RBF(2.0) + gp.ConstantKernel(0.3) + gp.WhiteKernel(0.1),
    "a product": gp.RBF(2.0) * gp.RBF(3.0),
}
NUMBERS = {
    "SVR": lambda: SVR(),
    "NuSVR": lambda: NuSVR(gamma=0.2),
    "SVR, poly": lambda: SVR(kernel="poly", degree=2, coef0=1.0),
    "ridge": lambda: KernelRidge(kernel="rbf", alpha=0.1),
    "ridge, poly": lambda: KernelRidge(kernel="polynomial", alpha=1.0),
    "process": lambda: GaussianProcessRegressor(2.0 * gp.RBF(2.0) + gp.WhiteKernel(0.5), normalize_y=True),
}


@pytest.fixture(scope="module")
def scaled(train, rows):
    scaler = StandardScaler().fit(train[0])
    return scaler.transform(train[0])[:300], train[1][:300], scaler.transform(rows)


@pytest.mark.parametrize("name", MACHINES)
def test_machines_decide_as_the_library_does(name, tools, scaled):
    X, y, rows = scaled
    model = MACHINES[name]().fit(X, y)
    for asked in tools.questions(("decision", "label")):
        structure, _ = tools.check_it(model, rows, asked, raw=lambda model, rows: model.decision_function(rows))
        assert isinstance(structure, Additive if name in ("linear", "poly, straight") else Network)


def test_raw_columns_far_from_zero_are_read(tools, train, rows):
    model = SVC().fit(*train)
    tools.check_it(model, rows, {"kind": "decision", "threshold": 0.0}, raw=lambda m, rows: m.decision_function(rows))


@pytest.mark.parametrize("name", BELLS)
def test_gaussian_processes_decide_as_the_library_does(name, tools, scaled):
    X, y, rows = scaled
    model = GaussianProcessClassifier(BELLS[name], optimizer=None).fit(X[:120], y[:120])
    for kind in ("proba", "label"):
        for positive in (0, 1):
            structure, _ = tools.check_it(model, rows, {"kind": kind, "positive": positive, "threshold": 0.5})
            assert isinstance(structure, Network)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("positive", [1, 0])
def test_predicted_numbers_are_read(name, positive, scaled):
    X, _, rows = scaled
    y = X[:, 0] + np.sin(2 * X[:, 2])
    model, sign = NUMBERS[name]().fit(X[:200], y[:200]), 1.0 if positive else -1.0
    structure = read(model, kind="value", positive=positive, threshold=0.3 * sign)
    assert isinstance(structure, Network)
    far = np.abs(structure.raw(structure.reading.prepare(rows)) - sign * model.predict(rows))
    assert far.max() <= structure.reading.tolerance < 1e-3
    assert structure.reading.cut == 0.3 * sign


def test_a_machine_of_one_class_is_read(scaled):
    X, _, rows = scaled
    model = OneClassSVM(nu=0.1).fit(X)
    structure = read(model, kind="outlier", threshold=0.0)
    far = np.abs(structure.raw(structure.reading.prepare(rows)) + model.decision_function(rows))
    assert far.max() <= structure.reading.tolerance < 1e-6


def test_wrong_readings_are_caught(tools, scaled):
    X, y, rows = scaled
    model = SVC().fit(X, y)
    asked = {"kind": "decision", "threshold": 0.0}
    right, _ = tools.check_it(model, rows, asked)
    narrow = SVC(gamma=2.0).fit(X, y)
    for broken in (
        tools.replace(right, activation="identity"),
        tools.replace(right, weights=(right.weights[0][::-1].copy(), right.weights[1])),
        tools.replace(right, biases=(0 * right.biases[0], right.biases[1])),
        tools.replace(right, biases=(right.biases[0], right.biases[1] + 0.5)),
        read(narrow, **asked),
    ):
        assert tools.wrong(model, broken, rows, 0.0, kind="decision")


def test_members_of_other_models_are_read_where_their_scores_are_known(tools, scaled):
    X, y, rows = scaled
    folds = CalibratedClassifierCV(SVC(), cv=2).fit(X, y)
    structure, _ = tools.check_it(folds, rows, {"threshold": 0.4})
    assert isinstance(structure, Composite)
    alone = CalibratedClassifierCV(SVC(), ensemble=False, cv=2).fit(X, y)
    structure, _ = tools.check_it(alone, rows, {"threshold": 0.4})
    assert isinstance(structure, Network)
    vote = VotingClassifier([("p", GaussianProcessClassifier()), ("l", LogisticRegression())], voting="soft")
    assert "one raw number" in read(vote.fit(X[:80], y[:80])).reason


def test_what_is_not_read_says_why(scaled, train3):
    X, y, _ = scaled
    assert "pairs" in read(SVC().fit(*train3), positive=0, kind="decision").reason
    assert "callable" not in read(SVC(kernel="poly", degree=5).fit(X, y), kind="decision").reason
    assert "degree 5" in read(SVC(kernel="poly", degree=5).fit(X, y), kind="decision").reason
    own = SVC(kernel=lambda a, b: a @ b.T).fit(X, y)
    assert "kernel" in read(own, kind="decision").reason
    process = GaussianProcessClassifier(optimizer=None).fit(X[:60], y[:60])
    assert "one half" in read(process, threshold=0.3).reason
    other = GaussianProcessClassifier(gp.Matern(), optimizer=None).fit(X[:60], y[:60])
    assert "Matern" in read(other).reason
    three = GaussianProcessClassifier(optimizer=None).fit(train3[0][:60], train3[1][:60])
    assert "three" in read(three, positive=0).reason
    several = GaussianProcessRegressor().fit(X[:60], np.column_stack([y[:60], y[:60]]))
    assert "several outputs" in read(several, kind="value").reason
