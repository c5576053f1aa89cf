"""What all tree estimators share: scikit-learn's contract, raw mixed tables, levels never seen before."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewest.errors import DataError
from fewest.models.estimators import LabelsError
from fewest.models.trees import C45Classifier, CARTClassifier, GOSDTClassifier

OURS = [CARTClassifier(), C45Classifier()]
OTHERS = [CARTClassifier(max_depth=None), C45Classifier(multiway=True, pruning=False)]
ALL = [*OURS, *OTHERS, GOSDTClassifier(regularization=0.01)]


@pytest.fixture(params=ALL, ids=lambda model: repr(model))
def model(request):
    if isinstance(request.param, GOSDTClassifier):
        pytest.importorskip("gosdt")
    return clone(request.param)


@parametrize_with_checks([CARTClassifier(), C45Classifier()])
def test_scikit_learns_checks_pass(estimator, check):
    assert check(estimator) is None


@pytest.mark.slow
@parametrize_with_checks(OTHERS)
def test_scikit_learns_checks_pass_for_other_settings(estimator, check):
    assert check(estimator) is None


@pytest.mark.slow
@parametrize_with_checks([GOSDTClassifier()])
def test_scikit_learns_checks_pass_for_gosdt(estimator, check):
    pytest.importorskip("gosdt")
    assert check(estimator) is None


def mixed(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "age": rng.integers(18, 80, rows),
        "income": rng.lognormal(10, 1, rows),
        "job": rng.choice(["none", "clerk", "cook"], rows),
        "town": pd.Categorical(rng.choice(["north", "south", "west"], rows)),
        "owner": rng.random(rows) < 0.5,
        "member": pd.array(rng.choice([True, False, None], rows), dtype="boolean"),
        "children": pd.array(rng.choice([0, 1, 2, None], rows), dtype="Int64"),
    })  # fmt: skip
    risk = (frame["age"] < 40).astype(int) + (frame["job"] == "none") + (frame["town"] == "west")
    frame.loc[rng.random(rows) < 0.1, ["income", "job"]] = None
    return frame, np.where(risk + rng.normal(0, 0.2, rows) > 0.8, "bad", "ok")


def test_raw_mixed_tables_are_fitted_and_predicted(model):
    frame, y = mixed()
    model.fit(frame, y)
    assert model.classes_.tolist() == ["bad", "ok"]
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    assert model.n_features_in_ == frame.shape[1]
    assert model.score(frame, y) > 0.8
    shares = model.predict_proba(frame)
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.array_equal(model.predict(frame) == "ok", shares[:, 1] >= 0.5)
    assert np.array_equal(model.tree_.decide(model.schema_.conform(frame)), model.predict(frame) == "ok")


def test_leaves_carry_the_share_of_their_training_rows(model):
    frame, y = mixed()
    tree = model.fit(frame, y).tree_
    leaf = tree.apply(tree.encode(model.schema_.conform(frame)))
    for node in np.unique(leaf):
        inside = y[leaf == node] == "ok"
        assert tree.counts[node].tolist() == [(~inside).sum(), inside.sum()]
        assert tree.score[node] == inside.mean()
        assert tree.positive[node] == (inside.mean() >= 0.5)


def test_levels_never_seen_and_missing_values_are_decided(model):
    frame, y = mixed()
    model.fit(frame, y)
    strange = frame.head(20).assign(
        job="astronaut", town=pd.Categorical(["elsewhere"] * 20), income=np.nan, children=pd.NA, member=pd.NA
    )
    assert set(model.predict(strange)) <= {"bad", "ok"}
    # A level nobody knows is decided in the same way whatever it is called.
    assert np.array_equal(model.predict(strange), model.predict(strange.assign(job="pirate")))


def test_a_row_is_decided_the_same_alone_and_among_others(model):
    frame, y = mixed()
    model.fit(frame, y)
    together = model.predict_proba(frame.head(30))
    alone = np.vstack([model.predict_proba(frame.iloc[[i]]) for i in range(30)])
    assert np.array_equal(together, alone)


def test_fitting_leaves_the_table_alone_and_repeats_itself(model):
    frame, y = mixed()
    before = frame.copy(deep=True)
    first = model.fit(frame, y).tree_.nested()
    assert frame.equals(before)
    assert clone(model).fit(frame, y).tree_.nested() == first


def test_a_fitted_model_survives_pickling(model):
    frame, y = mixed()
    model.fit(frame, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(frame), model.predict_proba(frame))


def test_other_tables_and_labels_are_taken():
    polars = pytest.importorskip("polars")
    frame, y = mixed()
    plain = frame[["age", "income", "job", "owner"]]
    table = polars.from_dict({name: [None if pd.isna(cell) else cell for cell in plain[name]] for name in plain})
    ours, theirs = CARTClassifier().fit(plain, y == "ok"), CARTClassifier().fit(table, y == "ok")
    assert theirs.classes_.tolist() == [False, True]
    assert np.array_equal(ours.predict(plain), theirs.predict(table))
    numbered = pd.DataFrame(plain.to_numpy()).infer_objects()
    unnamed = CARTClassifier().fit(numbered, y == "ok")
    assert not hasattr(unnamed, "feature_names_in_")
    assert np.array_equal(unnamed.predict(numbered), ours.predict(plain))


def test_settings_are_searched_like_any_estimators():
    frame, y = mixed()
    search = GridSearchCV(CARTClassifier(), {"max_depth": [1, 4]}, cv=3).fit(frame, y)
    assert search.best_params_ == {"max_depth": 4}


@pytest.mark.parametrize(("labels", "said"), [("one", "one class"), ("three", "Only binary")])
def test_labels_of_other_than_two_classes_are_refused(labels, said):
    frame, _ = mixed(30)
    wrong = np.full(30, "ok") if labels == "one" else np.arange(30) % 3
    with pytest.raises(LabelsError, match=said) as caught:
        CARTClassifier().fit(frame, wrong)
    assert isinstance(caught.value, DataError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.do


def test_missing_labels_and_labels_of_another_length_are_refused():
    frame, y = mixed(30)
    with pytest.raises(ValueError, match="inconsistent"):
        CARTClassifier().fit(frame, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        CARTClassifier().fit(frame, np.where(y == "ok", 1.0, np.nan))
    with pytest.raises(ValueError, match="requires y"):
        CARTClassifier().fit(frame, None)


def test_infinite_numbers_are_refused_by_cell():
    frame, y = mixed(30)
    frame.loc[7, "income"] = np.inf
    with pytest.raises(DataError, match=r'row 7 .*"income".*infinite'):
        C45Classifier().fit(frame, y)


@pytest.mark.slow
def test_importing_the_package_loads_neither_gosdt_nor_ensembles():
    code = (
        "import sys, fewest.models.trees; from fewest.models.trees import BinaryColumns, guess_thresholds\n"
        "assert not {'sklearn', 'gosdt'} & set(sys.modules)\n"
        "from fewest.models.trees import CARTClassifier, C45Classifier, GOSDTClassifier, TreeClassifier\n"
        "assert not {'sklearn.ensemble', 'gosdt'} & set(sys.modules); print('clean')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("clean\n", "")
