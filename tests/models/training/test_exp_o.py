"""ExpO: the same schedule as All-Opt, with a term that straightens the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import fewest as fw
from fewest.errors import DataError, UsageError
from fewest.models.estimators import LabelsError

torch = pytest.importorskip("torch")

from fewest.models.training import AllOptClassifier, Architecture, ExpOClassifier, Optimizer  # noqa: E402
from fewest.models.training._trainer import misfit  # noqa: E402

QUICK = {"warmup_epochs": 8, "epochs": 6, "random_state": 0}


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    X = pd.DataFrame({
        "debt": random.normal(size=300), "age": random.normal(size=300), "job": random.choice(["none", "cook"], 300)
    })  # fmt: skip
    risk = X["debt"] ** 2 + X["age"] + (X["job"] == "none") + 0.3 * random.normal(size=300)
    return X, np.where(risk > 1.2, "bad", "good")


@pytest.mark.slow
@parametrize_with_checks([ExpOClassifier(warmup_epochs=30, epochs=3, optimizer=Optimizer(0.05, batch_size=32))])
def test_scikit_learns_checks_pass(estimator, check):
    assert check(estimator) is None


def weights(model) -> list[np.ndarray]:
    final = model.pipeline_[-1]
    return [final.coef_] if hasattr(final, "coef_") else final.coefs_


@pytest.mark.filterwarnings("ignore::fewest.errors.FewestWarning")  # so short a training may refuse the reference
@pytest.mark.parametrize("model", ["logistic", "mlp"])
@pytest.mark.parametrize("regularizer", ["fidelity", "1d"])
def test_without_weight_it_is_plain_training(rows, model, regularizer):
    plain = AllOptClassifier(model, c1=0.0, c2=0.0, architecture=Architecture("linear", hidden=(8,)), **QUICK).fit(
        *rows
    )
    small = Architecture(hidden=(8,))
    expo = ExpOClassifier(model, regularizer, c=0.0, architecture=small, **QUICK).fit(*rows)
    for one, other in zip(weights(plain), weights(expo), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    heavy = ExpOClassifier(model, regularizer, c=50.0, spread=1.0, architecture=small, **QUICK).fit(*rows)
    assert max(np.abs(one - other).max() for one, other in zip(weights(heavy), weights(expo), strict=True)) > 1e-3


def bend(model, X: pd.DataFrame) -> float:
    """How far the fitted model is from linear around rows, on samples of our own."""
    Z = np.asarray(model.pipeline_[:-1].transform(X), dtype=float)
    offsets = np.random.default_rng(5).normal(size=(200, Z.shape[1]))
    around = (Z[:, None, :] + offsets).reshape(-1, Z.shape[1])
    chances = model.pipeline_[-1].predict_proba(around)[:, 1].reshape(len(Z), -1)
    return float(misfit(torch.tensor(chances), torch.tensor(offsets)))


@pytest.mark.parametrize("regularizer", ["fidelity", "1d"])
def test_weight_makes_the_model_straighter(rows, regularizer):
    X, y = rows
    settings = {"spread": 1.0, "samples": 20, "warmup_epochs": 25, "epochs": 12,
                "architecture": Architecture(hidden=(16,)), "optimizer": Optimizer(0.01)}  # fmt: skip
    free, held = (ExpOClassifier("mlp", regularizer, c=c, **settings).fit(X, y) for c in (0.0, 30.0))
    assert bend(held, X.iloc[:50]) < 0.8 * bend(free, X.iloc[:50])


def test_it_is_deterministic_cloneable_and_explained_by_structure(rows):
    X, y = rows
    model = ExpOClassifier(positive="bad", **QUICK)
    first, second = clone(model).fit(X, y), clone(model).fit(X, y)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert first.positive_ == "bad"
    decision = fw.Decision(first, positive="bad")
    out = fw.Explainer(decision, fw.references.single(decision, X, y, on_positive="allow")).explain(X)
    assert out.strategies[1] == "additive"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"regularizer": "2d"}, 'use "fidelity" or "1d"'),
        ({"model": "boosted"}, 'use "logistic" or "mlp"'),
        ({"c": -1.0}, "c is -1"),
        ({"spread": 0.0}, "above 0"),
        ({"samples": 4}, "take at least 6"),
        ({"samples": 2, "regularizer": "1d"}, "take at least 3"),
    ],
)
def test_what_describes_no_training_is_refused(rows, change, said):
    with pytest.raises(UsageError, match=said):
        ExpOClassifier(**{**QUICK, **change}).fit(*rows)


def test_bad_rows_are_refused_with_their_place(rows):
    X, y = rows
    holes = X.copy()
    holes.loc[7, "age"] = np.nan
    with pytest.raises(DataError, match=r'row 7.*column "age".*missing'):
        ExpOClassifier(**QUICK).fit(holes, y)
    with pytest.raises(LabelsError, match="one class only"):
        ExpOClassifier(**QUICK).fit(X, np.full(len(X), "bad"))
