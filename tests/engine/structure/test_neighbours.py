"""Nearest neighbours: the rows that count are found as the library finds them, up to ties, which the model decides."""

import numpy as np
import pytest
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from slow_cases import mostly_slow

from fewest.engine.structure import Neighbours, read

SETTINGS = {
    "as they come": {},
    "an even number": {"n_neighbors": 4},
    "one": {"n_neighbors": 1},
    "all": {"n_neighbors": 300},
    "by distance": {"n_neighbors": 7, "weights": "distance"},
    "in blocks": {"n_neighbors": 6, "p": 1},
    "in blocks, by distance": {"n_neighbors": 6, "p": 1, "weights": "distance"},
    "of power three": {"n_neighbors": 5, "p": 3, "weights": "distance"},
    "looked at one by one": {"n_neighbors": 10, "algorithm": "brute"},
    "one by one, by distance": {"n_neighbors": 10, "algorithm": "brute", "weights": "distance"},
}


@pytest.fixture(scope="module")
def scaled(train, rows):
    scaler = StandardScaler().fit(train[0])
    return scaler.transform(train[0])[:300], train[1][:300], scaler.transform(rows)


ORDINARY = ("as they come", "all", "by distance", "in blocks", "one by one, by distance")


@pytest.mark.parametrize("name", mostly_slow(SETTINGS, ORDINARY))
def test_classes_are_decided_as_the_library_does(name, tools, scaled):
    X, y, rows = scaled
    model = KNeighborsClassifier(**SETTINGS[name]).fit(X, y)
    for asked in tools.questions(("proba", "label")):
        structure, _ = tools.check_it(model, rows, asked)
        assert isinstance(structure, Neighbours)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("positive", [1, 0])
def test_numbers_are_decided_as_the_library_does(name, positive, scaled):
    X, _, rows = scaled
    sign, y = (1.0 if positive else -1.0), X[:, 0] + np.sin(2 * X[:, 2])
    model = KNeighborsRegressor(**SETTINGS[name]).fit(X, y)
    structure = read(model, kind="value", positive=positive, threshold=0.2 * sign)
    raw, predicted = structure.raw(structure.reading.prepare(rows)), sign * model.predict(rows)
    clear = np.abs(raw - structure.reading.cut) > structure.reading.tolerance
    assert clear.mean() > 0.99
    assert ((raw >= structure.reading.cut) == (predicted >= 0.2 * sign))[clear].all()
    if not structure.weighted:
        assert np.abs(raw - predicted)[clear].max() <= structure.reading.tolerance


def test_rows_that_are_training_rows_and_ties_are_left_to_the_model(scaled):
    X, y, _ = scaled
    whole = np.round(X)  # many rows are equally far
    for weights in ("uniform", "distance"):
        for algorithm in ("brute", "kd_tree"):
            model = KNeighborsClassifier(5, weights=weights, algorithm=algorithm).fit(whole, y)
            structure = read(model)
            raw = structure.raw(whole)
            clear = np.abs(raw - structure.reading.cut) > structure.reading.tolerance
            positive = model.predict_proba(whole)[:, 1] >= 0.5
            assert ((raw >= structure.reading.cut) == positive)[clear].all()
            assert 0.2 < clear.mean() < 1.0


def test_single_precision_has_wider_ties(scaled):
    X, y, rows = scaled
    model = KNeighborsClassifier(5, algorithm="brute").fit(X.astype(np.float32), y)
    structure = read(model)
    raw = structure.raw(structure.reading.prepare(rows.astype(np.float32)))
    clear = np.abs(raw - structure.reading.cut) > structure.reading.tolerance
    positive = model.predict_proba(rows.astype(np.float32))[:, 1] >= 0.5
    assert ((raw >= structure.reading.cut) == positive)[clear].all()
    assert clear.mean() > 0.9


def test_wrong_readings_are_caught(tools, scaled):
    X, y, rows = scaled
    model = KNeighborsClassifier(7, weights="distance").fit(X, y)
    right, _ = tools.check_it(model, rows, {"threshold": 0.4})
    for broken in (
        tools.replace(right, count=8),
        tools.replace(right, power=1.0),
        tools.replace(right, weighted=False),
        tools.replace(right, rows=right.rows[:, ::-1].copy()),
        tools.replace(right, value=1.0 - right.value),
    ):
        assert tools.wrong(model, broken, rows, 0.4)


def test_what_is_not_read_says_why(scaled, train3):
    X, y, _ = scaled
    assert "sums over the columns" in read(KNeighborsClassifier(metric="chebyshev").fit(X, y)).reason
    assert "one's own" in read(KNeighborsClassifier(weights=lambda far: 1 / (1 + far)).fit(X, y)).reason
    assert "three or more" in read(KNeighborsClassifier().fit(*train3), positive=0).reason
    several = KNeighborsRegressor().fit(X, np.column_stack([y, y]))
    assert "several outputs" in read(several, kind="value").reason
    vote = VotingClassifier([("n", KNeighborsClassifier()), ("l", LogisticRegression())], voting="soft").fit(X, y)
    assert "one raw number" in read(vote).reason
