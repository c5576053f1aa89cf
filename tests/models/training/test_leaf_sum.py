"""A sum of trees as an estimator: the booster's own scores, alone and in a batch, and nothing for bad rows."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import random_boosters as rb
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from fewest.errors import DataError, UsageError
from fewest.models.training.leaf_sum import LeafSumClassifier


@pytest.fixture(scope="module", params=rb.NAMES)
def made(request: pytest.FixtureRequest) -> rb.Boosted:
    return rb.boosted(request.param, seed=1)


def as_it_was(made: rb.Boosted) -> LeafSumClassifier:
    return LeafSumClassifier.from_ensemble(made.ensemble, made.booster.classes_, made.Z.shape[1])


def test_with_the_boosters_own_values_it_scores_as_the_booster(made: rb.Boosted) -> None:
    model = as_it_was(made)
    assert np.abs(model.decision_function(made.Z) - made.margin(made.Z)).max() <= made.tolerance
    assert np.abs(model.predict_proba(made.Z) - made.booster.predict_proba(made.Z)).max() <= made.tolerance
    assert (model.predict(made.Z) == made.booster.predict(made.Z)).all()
    # Negative control: one leaf off by a little is seen.
    ensemble = model.ensemble_
    moved = replace(ensemble, value=ensemble.value + np.where(ensemble.column < 0, 1e-4, 0.0))
    off = LeafSumClassifier.from_ensemble(moved, made.booster.classes_, made.Z.shape[1])
    assert np.abs(off.decision_function(made.Z) - made.margin(made.Z)).min() > made.tolerance


def test_a_row_scores_the_same_alone_in_a_batch_and_after_a_journey(made: rb.Boosted) -> None:
    model = made.relearned(np.random.default_rng(0))
    whole = model.predict_proba(made.Z)
    alone = np.vstack([model.predict_proba(row[None]) for row in made.Z])
    assert np.array_equal(whole, alone)
    assert np.array_equal(whole[::-1], model.predict_proba(made.Z[::-1]))
    assert np.array_equal(whole, pickle.loads(pickle.dumps(model)).predict_proba(made.Z))


def test_labels_follow_the_probabilities() -> None:
    made = rb.boosted("gradient", 2)
    model = LeafSumClassifier.from_ensemble(made.ensemble, np.array(["bad", "good"]), made.Z.shape[1])
    shares = model.predict_proba(made.Z)
    assert np.allclose(shares.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert (model.predict(made.Z) == np.where(shares[:, 1] >= 0.5, "good", "bad")).all()
    assert 0 < (model.predict(made.Z) == "good").mean() < 1
    assert set(model.predict(made.Z)) == {"bad", "good"}


class Learned:
    """What of a head is exported."""

    def __init__(self, made: rb.Boosted) -> None:
        self.ensemble, self.blocks = made.ensemble, made.blocks

    def values(self) -> tuple[Any, float]:
        return 2.0 * self.ensemble.value, self.ensemble.base + 0.25


def test_a_head_of_the_first_class_is_turned_round() -> None:
    made = rb.boosted("gradient", 2)
    one, other = (LeafSumClassifier.from_head(Learned(made), ["bad", "good"], sign) for sign in (1.0, -1.0))
    start = made.booster.init_.class_prior_
    base = np.log(start[1] / start[0])
    wanted = 2.0 * (made.margin(made.Z) - base) + base + 0.25
    assert np.allclose(one.decision_function(made.Z), wanted)
    assert np.array_equal(one.decision_function(made.Z), -other.decision_function(made.Z))


def test_it_is_the_last_step_of_a_pipeline() -> None:
    made = rb.boosted("hist", 3)
    model = made.relearned(np.random.default_rng(0))
    pipeline = make_pipeline(made.encoder, model)
    assert np.array_equal(pipeline.predict_proba(made.frame), model.predict_proba(made.Z))
    assert pipeline.classes_.tolist() == [0, 1]
    assert is_classifier(model)
    assert 0.5 < pipeline.score(made.frame, made.y) <= 1.0
    assert np.array_equal(model.predict(sparse.csr_matrix(np.nan_to_num(made.Z))), model.predict(np.nan_to_num(made.Z)))


def test_missing_values_are_taken_where_the_booster_took_them() -> None:
    for name, taken in (("gradient", False), ("hist", True), ("xgboost", True), ("lightgbm", True)):
        if name in rb.OTHERS:
            pytest.importorskip(name)
        made = rb.boosted(name, 1)
        model = as_it_was(made)
        assert get_tags(model).input_tags.allow_nan is taken
        Z = made.Z.copy()
        Z[3, -1] = np.nan
        if taken:
            assert np.abs(model.decision_function(Z) - made.margin(Z)).max() <= made.tolerance
        else:
            with pytest.raises(DataError, match=f"row 3, column {Z.shape[1] - 1} .*missing"):
                model.predict(Z)


def test_bad_rows_get_no_number() -> None:
    made = rb.boosted("hist categories", 1)
    model = as_it_was(made)
    Z = made.Z.copy()
    Z[5, -1] = -np.inf
    with pytest.raises(DataError, match=f"row 5, column {Z.shape[1] - 1} of the encoded rows: the value is infinite"):
        model.predict_proba(Z)
    for rows in (made.Z[:, 1:], made.Z[0], [[1.0]]):
        with pytest.raises(DataError, match="the model takes"):
            model.decision_function(rows)
    assert model.decision_function(made.Z[:2].tolist()).shape == (2,)


def test_it_cannot_be_made_of_what_does_not_fit() -> None:
    made = rb.boosted("gradient", 1)
    ensemble, width = made.ensemble, made.Z.shape[1]
    with pytest.raises(UsageError, match="3 classes"):
        LeafSumClassifier.from_ensemble(ensemble, [0, 1, 2], width)
    with pytest.raises(UsageError, match="more than 1 columns"):
        LeafSumClassifier.from_ensemble(ensemble, [0, 1], 1)
    broken = replace(ensemble, value=np.where(ensemble.column < 0, np.nan, 0.0))
    with pytest.raises(UsageError, match="not a finite number"):
        LeafSumClassifier.from_ensemble(broken, [0, 1], width)
    with pytest.raises(UsageError, match="trees that are there"):
        as_it_was(made).fit(made.Z, made.y)
    with pytest.raises(NotFittedError):
        LeafSumClassifier().predict(made.Z)


def test_predicting_needs_no_torch(tmp_path: Any) -> None:
    made = rb.boosted("gradient", 1)
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps((made.relearned(np.random.default_rng(0)), made.Z)))
    code = (
        f"import pickle, sys; model, Z = pickle.load(open({str(path)!r}, 'rb')); "
        "print(len(model.predict(Z)), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(len(made.Z)), "False"], done.stderr
