"""scikit-learn trees compare float32 values with <=."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fewest.engine.structure import Ensemble, as_floats, read

CHANCES = {
    "tree": lambda: DecisionTreeClassifier(max_depth=6, random_state=0),
    "forest": lambda: RandomForestClassifier(n_estimators=15, random_state=0),
    "extra": lambda: ExtraTreesClassifier(n_estimators=15, max_depth=7, random_state=0),
    "bag": lambda: BaggingClassifier(DecisionTreeClassifier(max_depth=5), n_estimators=8, random_state=0),
    "bag of columns": lambda: BaggingClassifier(
        DecisionTreeClassifier(max_depth=5), n_estimators=8, max_features=0.5, bootstrap_features=True, random_state=0
    ),
}
MARGINS = {
    "boosting": lambda: GradientBoostingClassifier(n_estimators=25, random_state=0),
    "exponential": lambda: GradientBoostingClassifier(n_estimators=25, loss="exponential", random_state=0),
    "from zero": lambda: GradientBoostingClassifier(n_estimators=25, init="zero", random_state=0),
    "ada": lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=12, random_state=0),
}


@pytest.mark.parametrize("name", CHANCES)
def test_mean_probabilities_are_read(name, tools, train, rows):
    model = CHANCES[name]().fit(*train)
    for asked in tools.questions(("proba", "label")):
        positive = asked["positive"]
        sign = 1.0 if positive == 1 else -1.0
        structure, _ = tools.check_it(
            model, rows, asked, raw=lambda model, rows, p=positive, s=sign: s * model.predict_proba(rows)[:, p]
        )
        assert isinstance(structure, Ensemble)
    assert "decision_function" in read(model, kind="decision").reason


@pytest.mark.parametrize("name", MARGINS)
def test_margins_are_read(name, tools, train, rows):
    model = MARGINS[name]().fit(*train)
    for asked in tools.questions(("proba", "decision", "label")):
        tools.check_it(model, rows, asked, raw=lambda model, rows: model.decision_function(rows))


@pytest.mark.parametrize("name", [*CHANCES, "boosting", "from zero", "ada"])
def test_two_of_three_classes_are_compared(name, tools, train3, rows):
    model = {**CHANCES, **MARGINS}[name]().fit(*train3)
    for positive, against in ((0, 2), (1, 0)):
        tools.check_it(model, rows, {"positive": positive, "against": against})


@pytest.mark.parametrize("name", ["tree", "forest", "extra"])
def test_missing_values_go_where_the_library_sends_them(name, tools, train, rows):
    X, y = train[0].copy(), train[1]
    rng = np.random.default_rng(5)
    X[rng.random(X.shape) < 0.15] = np.nan
    X[y == 0, 1] = np.where(rng.random((y == 0).sum()) < 0.5, np.nan, X[y == 0, 1])
    model = CHANCES[name]().fit(X, y)
    query = rows.copy()
    query[rng.random(query.shape) < 0.25] = np.nan
    structure, edged = tools.check_it(model, query, {"threshold": 0.41})
    broken = tools.replace(structure, missing_left=~structure.missing_left)
    assert tools.wrong(model, broken, edged, 0.41)


def test_float32_and_sparse_input_are_read(tools, train, rows):
    model = RandomForestClassifier(n_estimators=10, random_state=0).fit(train[0].astype(np.float32), train[1])
    tools.check_it(model, rows.astype(np.float32), {"threshold": 0.41})
    model = GradientBoostingClassifier(n_estimators=10).fit(sparse.csr_matrix(train[0]), train[1])
    tools.check_it(model, sparse.csr_matrix(rows), {"threshold": 0.41}, edges=False)


@pytest.mark.parametrize("name", ["forest", "boosting"])
def test_wrong_readings_are_caught(name, tools, train, rows):
    model = {**CHANCES, **MARGINS}[name]().fit(*train)
    right, edged = tools.check_it(model, rows, {"threshold": 0.41})
    strict = tools.replace(
        right, threshold=np.nextafter(right.threshold.astype(np.float32), np.float32(-np.inf)).astype(float)
    )
    double = tools.replace(right, reading=tools.replace(right.reading, prepare=as_floats))
    swapped = tools.replace(right, left=right.right, right=right.left)
    unbased = tools.replace(right, base=right.base + 0.2)
    scrambled = tools.replace(right, reading=tools.replace(right.reading, source=np.roll(right.reading.source, 1)))
    for broken in (strict, double, swapped, unbased, scrambled):
        assert tools.wrong(model, broken, edged, 0.41, raw=raw_of(name))


def raw_of(name):
    if name == "boosting":
        return lambda model, rows: model.decision_function(rows)
    return lambda model, rows: model.predict_proba(rows)[:, 1]


def test_what_is_not_read_says_so(train):
    started = GradientBoostingClassifier(n_estimators=3, init=DecisionTreeClassifier(max_depth=1)).fit(*train)
    assert "constant starts" in read(started).reason
    bag = BaggingClassifier(LogisticRegression(max_iter=5000), n_estimators=2).fit(train[0][:, :1], train[1])
    assert "decision trees" in read(bag).reason
    ada = AdaBoostClassifier(LogisticRegression(max_iter=5000), n_estimators=2).fit(train[0][:, :1], train[1])
    assert "decision trees" in read(ada).reason
