"""Small random mixed tables with fitted models, one per kind of structure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import random_models

import fewest as fw


@dataclass
class Case:
    decision: fw.Decision
    X: pd.DataFrame
    y: np.ndarray
    cases: pd.DataFrame


def _estimator(kind: str) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    return {
        "additive": LogisticRegression(),
        "ensemble": GradientBoostingClassifier(n_estimators=20, random_state=0),
        "network": MLPClassifier((8,), max_iter=2000, random_state=0),
    }[kind]


def make(kind: str, seed: int = 0, n: int = 200, p: int = 6) -> Case:
    """A table of numbers, counts, levels and flags; an opaque model is the additive one behind a function."""
    from sklearn.pipeline import make_pipeline

    random = np.random.default_rng(seed)
    X = random_models.table(random, n, p).assign(
        income=np.round(random.normal(20, 5, n), 2), children=random.integers(0, 4, n),
        town=pd.Series(random.choice(["x", "y", "z"], n), dtype="str"), owner=random.random(n) < 0.5,
    )  # fmt: skip
    y = random_models.labels(random, X)
    model = make_pipeline(random_models.encoder(X, True), _estimator("additive" if kind == "opaque" else kind))
    model.fit(X, y)
    decision = fw.Decision(model, positive=1)
    if kind == "opaque":
        decision = fw.Decision(lambda rows: model.predict_proba(rows)[:, 1], positive=1)
    # Raw rows cost a call of the pipeline for each step: fewer cases do.
    return Case(decision, X, y, X.iloc[: 14 if kind == "opaque" else 30])


@pytest.fixture(params=["additive", "ensemble", "network", "opaque"])
def case(request: pytest.FixtureRequest) -> Case:
    return make(request.param)


@pytest.fixture
def additive() -> Case:
    return make("additive")


@pytest.fixture(scope="session")
def mixed() -> Callable[..., Case]:
    return make
