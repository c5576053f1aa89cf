"""Transformers as people write them for competitions and scorecards, each after a pattern that is often published."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

NUMBERS = ["income", "debt", "age", "years"]
TEXT = ["job", "home"]


class OwnStep(TransformerMixin, BaseEstimator):
    """What these transformers share: frames in, frames out, nothing said about columns."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> OwnStep:
        self.fitted_ = True
        return self


class CreditRatios(OwnStep):
    """Debt to income, income per year of age, and the like."""

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        return X[NUMBERS].assign(
            debt_to_income=X["debt"] / (X["income"] + 1),
            income_per_age=X["income"] / X["age"],
            employed_share=X["years"] / X["age"],
            old=(X["age"] > 60).astype(float),
        )


class CrossedLevels(OwnStep):
    """Mean outcome of each combination of two text columns, smoothed."""

    def fit(self, X: pd.DataFrame, y: Any) -> CrossedLevels:
        pair = X["job"] + "_" + X["home"]
        groups = pd.Series(np.asarray(y, float)).groupby(pair.to_numpy())
        self.prior_ = float(np.mean(y))
        self.means_ = (groups.sum() + 5 * self.prior_) / (groups.count() + 5)
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        crossed = (X["job"] + "_" + X["home"]).map(self.means_).fillna(self.prior_)
        return X[NUMBERS].assign(crossed=crossed.astype(float))


class GroupDifferences(OwnStep):
    """How far incomes and debts are from the mean of the same job."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> GroupDifferences:
        self.means_ = X.groupby("job")[["income", "debt"]].mean()
        self.whole_ = X[["income", "debt"]].mean()
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        out = X[NUMBERS].copy()
        for name in ("income", "debt"):
            usual = X["job"].map(self.means_[name]).fillna(self.whole_[name]).astype(float)
            out[f"{name}_beyond_job"] = X[name] - usual
            out[f"{name}_by_job"] = X[name] / (usual + 1)
        return out


class WeightOfEvidence(OwnStep):
    """Bins of numbers and levels of text, each as its log-odds against the rest: the columns of a scorecard."""

    def fit(self, X: pd.DataFrame, y: Any) -> WeightOfEvidence:
        y = np.asarray(y)
        self.edges_ = {name: np.unique(X[name].quantile([0.2, 0.4, 0.6, 0.8])) for name in NUMBERS}
        self.values_: dict[str, dict[Any, float]] = {}
        for name, bins in self._binned(X).items():
            for level in set(bins):
                good, bad = ((y == k) & (bins == level) for k in (0, 1))
                odds = (good.sum() + 0.5) / (y == 0).sum() / ((bad.sum() + 0.5) / (y == 1).sum())
                self.values_.setdefault(name, {})[level] = float(np.log(odds))
        return self

    def _binned(self, X: pd.DataFrame) -> dict[str, np.ndarray]:
        binned = {name: np.searchsorted(edges, X[name].to_numpy()) for name, edges in self.edges_.items()}
        return binned | {name: X[name].to_numpy(dtype=object) for name in TEXT}

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        binned = self._binned(X)
        return np.column_stack([[self.values_[name].get(v, 0.0) for v in binned[name]] for name in self.values_])


class RowStatistics(OwnStep):
    """Mean, spread and largest of the scaled numbers of a row."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> RowStatistics:
        self.mean_, self.std_ = X[NUMBERS].mean(), X[NUMBERS].std()
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        scaled = (X[NUMBERS] - self.mean_) / self.std_
        return scaled.assign(row_mean=scaled.mean(axis=1), row_std=scaled.std(axis=1), row_max=scaled.max(axis=1))


class FamilySizes(OwnStep):
    """After the passengers of a ship: people in a household, alone or not, income per head."""

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        family = (X["years"] // 4 + X["age"] // 20 + 1).astype(float)
        return X[NUMBERS].assign(family=family, alone=(family <= 2).astype(float), per_head=X["income"] / family)


class HashedLevels(OwnStep):
    """Levels of both text columns, counted in four buckets."""

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        out = np.zeros((len(X), 4))
        for name in TEXT:
            buckets = np.array([sum(map(ord, f"{name}={level}")) % 4 for level in X[name]])
            out[np.arange(len(X)), buckets] += 1
        return np.column_stack([X[NUMBERS].to_numpy(dtype=float), out])
