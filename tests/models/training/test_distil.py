"""What the second phase aims at: labels, or by a share the chances that the model gave before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from fewest.datasets import load
from fewest.errors import UsageError
from fewest.models.training import AllOptClassifier, Architecture, SevLoss

torch = pytest.importorskip("torch")

GERMAN = load("german")


def boosted(**changes: Any) -> AllOptClassifier:
    booster = GradientBoostingClassifier(n_estimators=40, random_state=0)
    model = AllOptClassifier("boosted", c1=0.0, c2=0.0, architecture=Architecture(booster=booster), positive="bad")
    return model.set_params(optimizer__l2=0.0, device="cpu", **changes).fit(GERMAN.X, GERMAN.labels)


def test_a_booster_that_aims_at_its_own_chances_stays_where_it_is() -> None:
    """They are the minimum of the cross-entropy already; labels are not, and are learned by heart."""
    start, own, labels = (boosted(**how).predict_proba(GERMAN.X) for how in ({"epochs": 0}, {"loss__distil": 1.0}, {}))
    assert np.abs(own - start).max() < 0.01
    assert np.abs(labels - start).max() > 0.05


def test_labels_and_chances_are_mixed_once_after_the_warm_up() -> None:
    estimator = AllOptClassifier(warmup_epochs=3, epochs=1, loss=SevLoss(distil=0.25), positive="bad", device="cpu")
    session, _ = estimator._begin(GERMAN.X, GERMAN.labels)
    session.trainer.run("warm-up", 3)
    trainer = session.trainer
    with torch.no_grad():
        chances = torch.sigmoid(session.head.logits(trainer.rows))
    expected = 0.25 * chances + 0.75 * trainer.labels
    estimator.set_params(c1=1.0)._phases(session)
    assert torch.equal(trainer.aims, expected)
    estimator.set_params(c1=2.0)._phases(session)
    assert torch.equal(trainer.aims, expected)


def test_a_share_below_zero_or_above_one_is_refused() -> None:
    with pytest.raises(UsageError, match=r"distil is -0\.5"):
        boosted(loss__distil=-0.5)
    with pytest.raises(UsageError, match=r"distil is 1\.5"):
        boosted(loss__distil=1.5)
