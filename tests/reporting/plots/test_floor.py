"""FloorDisplay: what it tables and draws, and what it refuses."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.errors import MissingExtraError, UsageError
from fewest.reporting.plots import FloorDisplay


@pytest.fixture(scope="module")
def explainer() -> fw.Explainer:
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(200, 4)).round(1), columns=list("abcd"))
    y = (X.sum(axis=1) + random.normal(size=200) > 0).astype(int)
    decision = fw.Decision(LogisticRegression().fit(X, y))
    dense = fw.credibility.mixture(decision, X, y, n_components=1)
    return fw.Explainer(decision, fw.references.single(decision, X, y), credibility=dense, n_jobs=1)


CASES = pd.DataFrame(np.random.default_rng(1).normal(size=(60, 4)).round(1), columns=list("abcd"))


def test_the_table_is_what_the_explainer_says(explainer: fw.Explainer) -> None:
    table = FloorDisplay.from_explainer(explainer, CASES, quantiles=(0.5, 0.0, 1.0)).table
    assert table["quantile"].tolist() == [0.0, 0.5, 1.0]
    assert explainer.credibility is not None
    for row in table.itertuples():
        out = explainer.with_(credibility=explainer.credibility.at(row.quantile)).explain(CASES)
        assert row.mean_sev == pytest.approx(out.summary()["mean SEV"], nan_ok=True)
        assert row.not_credible == out.counts()["NOT_CREDIBLE"] / out.summary()["refused"]
    assert table["not_credible"].is_monotonic_increasing
    assert table["mean_sev"].iloc[1] > table["mean_sev"].iloc[0]


def test_it_draws_into_given_axes(explainer: fw.Explainer) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    display = FloorDisplay.from_explainer(explainer, CASES, quantiles=(0.0, 0.5)).plot(ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "0.5"]
    figure.canvas.draw()
    plt.close(figure)


def test_it_says_what_is_missing(explainer: fw.Explainer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no credibility"):
        FloorDisplay.from_explainer(explainer.with_(credibility=None), CASES)
    with pytest.raises(UsageError, match="no floor"):
        FloorDisplay.from_explainer(explainer, CASES, quantiles=())
    display = FloorDisplay.from_explainer(explainer, CASES, quantiles=(0.0,))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        display.plot()
