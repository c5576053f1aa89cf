"""A small model, its references and explanations; figures are closed after each test."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fewest as fw

COLUMNS = list("abcd")


def rows(seed: int, count: int) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(count, 4)).round(1), columns=COLUMNS)


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="package")
def train() -> tuple[pd.DataFrame, np.ndarray]:
    X = rows(0, 200)
    y = (X.sum(axis=1) + np.random.default_rng(5).normal(size=200) > 0).astype(int)
    return X, y.to_numpy()


@pytest.fixture(scope="package")
def decision(train: tuple[pd.DataFrame, np.ndarray]) -> fw.Decision:
    return fw.Decision(LogisticRegression().fit(*train))


@pytest.fixture(scope="package")
def model_explainer(train: tuple[pd.DataFrame, np.ndarray], decision: fw.Decision) -> fw.Explainer:
    dense = fw.credibility.mixture(decision, *train, n_components=1).at(0.0)
    return fw.Explainer(decision, fw.references.single(decision, *train), credibility=dense, n_jobs=1)


@pytest.fixture(scope="package")
def out(model_explainer: fw.Explainer) -> fw.Explanations:
    return model_explainer.explain(rows(1, 80))
