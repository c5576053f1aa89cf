"""Calibrated classifiers and votes are read through their members."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from slow_cases import pairs

from fewest.engine.structure import Additive, Composite, Ensemble, read

BASES = {
    "linear": lambda: LinearSVC(),
    "forest": lambda: RandomForestClassifier(n_estimators=10, max_depth=5, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=10, random_state=0),
}

METHODS = ("sigmoid", "isotonic", "temperature")


@pytest.fixture(scope="module")
def scaled(train, rows):
    scaler = StandardScaler().fit(train[0])
    return scaler.transform(train[0]), scaler.transform(rows)


@pytest.mark.parametrize(("method", "name"), pairs(METHODS, list(BASES)))
def test_one_calibrated_model_is_its_base_with_another_cut(method, name, tools, train, scaled):
    half = len(train[1]) // 2
    base = BASES[name]().fit(scaled[0][:half], train[1][:half])
    model = CalibratedClassifierCV(FrozenEstimator(base), method=method, cv=5, ensemble=False)
    model.fit(scaled[0][half:], train[1][half:])
    assert len(model.calibrated_classifiers_) == 1
    thresholds = [0.5, 0.27, 0.83, 0.0, 1.0]
    if method == "isotonic":  # a plateau is reached by all of it or by none
        steps = model.calibrated_classifiers_[0].calibrators[0].y_thresholds_
        thresholds += [float(steps[len(steps) // 2]), 1.0 - float(steps[len(steps) // 2])]
    both = [(threshold, 0) for threshold in thresholds] + [(threshold, 1) for threshold in thresholds[1:]]
    for threshold, positive in both:
        structure, _ = tools.check_it(model, scaled[1], {"threshold": threshold, "positive": positive})
        assert isinstance(structure, Additive | Ensemble)
    tools.check_it(model, scaled[1], {"kind": "label"})


@pytest.mark.parametrize(("method", "name"), pairs(METHODS, list(BASES)))
def test_calibrated_folds_are_a_composite(method, name, tools, train, scaled):
    model = CalibratedClassifierCV(BASES[name](), method=method, cv=3).fit(scaled[0], train[1])
    for asked in ({"threshold": 0.3}, {"threshold": 0.62, "positive": 0}, {"kind": "label"}):
        positive = asked.get("positive", 1)
        sign = 1.0 if positive == 1 else -1.0
        structure, _ = tools.check_it(
            model, scaled[1], asked, raw=lambda model, rows, p=positive, s=sign: s * model.predict_proba(rows)[:, p]
        )
        assert isinstance(structure, Composite)
    assert "decision_function" in read(model, kind="decision").reason


def test_a_library_beyond_scikit_learn_is_calibrated(tools, train, scaled):
    xgboost = pytest.importorskip("xgboost")
    half = len(train[1]) // 2
    base = xgboost.XGBClassifier(n_estimators=10, n_jobs=1).fit(scaled[0][:half], train[1][:half])
    for method in ("sigmoid", "isotonic"):
        model = CalibratedClassifierCV(FrozenEstimator(base), method=method, ensemble=False)
        model.fit(scaled[0][half:], train[1][half:])
        for positive in (0, 1):
            tools.check_it(model, scaled[1], {"threshold": 0.37, "positive": positive})


def test_soft_votes_of_trees_are_one_ensemble(tools, train, train3, rows):
    members = [
        ("forest", RandomForestClassifier(n_estimators=7, random_state=0)),
        ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
    ]
    model = VotingClassifier(members, voting="soft", weights=[2, 1]).fit(*train)
    for asked in tools.questions(("proba", "label")):
        structure, edged = tools.check_it(model, rows, asked)
        assert isinstance(structure, Ensemble)
    halved = tools.replace(structure, value=structure.value / 2)
    assert tools.wrong(model, halved, edged, 0.5, kind="label", positive=1)
    several = VotingClassifier(members, voting="soft").fit(*train3)
    tools.check_it(several, rows, {"positive": 1, "against": 2})


def mixed(voting, weights=None):
    return VotingClassifier(
        [
            ("linear", LogisticRegression()),
            ("forest", RandomForestClassifier(n_estimators=7, random_state=0)),
            ("boosting", GradientBoostingClassifier(n_estimators=10, random_state=0)),
        ],
        voting=voting,
        weights=weights,
    )


def test_mixed_votes_are_composites(tools, train, scaled):
    soft = mixed("soft", [1, 2, 1]).fit(scaled[0], train[1])
    for asked in tools.questions(("proba", "label")):
        structure, _ = tools.check_it(soft, scaled[1], asked)
        assert isinstance(structure, Composite)
    unweighted = tools.replace(structure, weights=(1 / 3, 1 / 3, 1 / 3))
    assert tools.wrong(soft, unweighted, scaled[1], 0.5, kind="label", positive=1)
    for weights in (None, [2, 1, 1]):
        hard = mixed("hard", weights).fit(scaled[0], train[1])
        for positive in (0, 1):
            structure, _ = tools.check_it(hard, scaled[1], {"kind": "label", "positive": positive})
        assert isinstance(structure, Composite)
    assert "kind='label'" in read(hard).reason
    turned = tools.replace(structure, members=structure.members[::-1], spans=structure.spans)
    assert tools.wrong(hard, turned, scaled[1], 0.5, kind="label", positive=1)


def test_pipelines_inside_are_read_through_their_steps(tools, train, rows):
    model = CalibratedClassifierCV(make_pipeline(StandardScaler(), LinearSVC()), cv=2).fit(*train)
    structure, _ = tools.check_it(model, rows, {"threshold": 0.4})
    assert isinstance(structure, Composite)
    assert structure.reading.source.tolist() == 2 * list(range(rows.shape[1]))
    swapped = tools.replace(
        structure.reading,
        prepare=lambda given: structure.reading.prepare(given)[:, ::-1],
        source=structure.reading.source,
    )
    assert tools.wrong(model, tools.replace(structure, reading=swapped), rows, 0.4)


@pytest.mark.parametrize("passthrough", [False, True])
def test_a_stack_with_a_linear_last_model_is_a_composite(passthrough, tools, train, scaled):
    members = [(name, BASES[name]()) for name in BASES]
    model = StackingClassifier(members, cv=2, passthrough=passthrough).fit(scaled[0], train[1])
    for asked in ({"threshold": 0.3}, {"threshold": 0.62, "positive": 0}, {"kind": "label"}):
        structure, _ = tools.check_it(model, scaled[1], asked)
        assert isinstance(structure, Composite)
    assert len(structure.members) == 3 + passthrough
    turned = tools.replace(structure, weights=tuple(-weight for weight in structure.weights))
    assert tools.wrong(model, turned, scaled[1], 0.5, kind="label", positive=1)
    model.estimators_ = model.estimators_[:2]
    assert "2 members" in read(model).reason


def test_a_vote_of_sums_is_one_sum(tools, train, scaled):
    calibrated = CalibratedClassifierCV(BASES["boosting"](), cv=2)
    model = VotingClassifier([("folds", calibrated), ("linear", LogisticRegression())], voting="soft", weights=[3, 1])
    structure, _ = tools.check_it(model.fit(scaled[0], train[1]), scaled[1], {"threshold": 0.4})
    assert [type(member) for member in structure.members] == [Ensemble, Ensemble, Additive]


def test_a_wrong_cut_is_caught(tools, train, scaled):
    model = CalibratedClassifierCV(LinearSVC(), cv=3).fit(scaled[0], train[1])
    right = read(model)
    flat = tools.replace(right, links=(lambda raw: 1 / (1 + np.exp(-raw)),) * 3)
    assert tools.wrong(model, right, scaled[1], 0.5) == []
    assert tools.wrong(model, flat, scaled[1], 0.5, raw=lambda model, rows: model.predict_proba(rows)[:, 1])


def test_what_is_not_read_says_so(train, train3, scaled):
    # A base that is right the wrong way round gets a decreasing sigmoid.
    base = LinearSVC().fit(scaled[0], 1 - train[1])
    falling = CalibratedClassifierCV(FrozenEstimator(base), ensemble=False).fit(scaled[0], train[1])
    assert "increase" in read(falling).reason
    blended = CalibratedClassifierCV(make_pipeline(PCA(2), LinearSVC()), cv=2).fit(scaled[0], train[1])
    assert "Pipeline" in read(blended).reason
    curved = VotingClassifier([("linear", LogisticRegression()), ("curved", GaussianNB())], voting="hard")
    assert "GaussianNB" in read(curved.fit(scaled[0], train[1]), kind="label").reason
    several = CalibratedClassifierCV(LinearSVC(), cv=2).fit(scaled[0], train3[1])
    assert "three or more" in read(several, against=0).reason
