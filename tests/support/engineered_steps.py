"""Transformers that people write themselves; at the top of a module, so that they can be sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin


def ratios(table: Any) -> np.ndarray:
    """All columns, a ratio, a product and the larger of two."""
    t = np.asarray(table, dtype=float)
    return np.column_stack([t, t[:, 0] / (1 + t[:, 1] ** 2), t[:, 2] * t[:, 3], np.maximum(t[:, 3], t[:, 4])])


def three_together(table: Any) -> np.ndarray:
    """Columns of three features each, missing where one of them is negative."""
    t = np.asarray(table, dtype=float)
    product = t[:, 0] * t[:, 1] * t[:, 2]
    return np.column_stack([t[:, 3:], product, np.where(t[:, 1] < -0.5, np.nan, t[:, 0] - t[:, 2] * t[:, 1])])


class OwnStep(TransformerMixin, BaseEstimator):
    """What these transformers share."""

    def fit(self, X: Any, y: Any = None) -> OwnStep:
        self.fitted_ = True
        return self


class Noisy(OwnStep):
    """Adds noise to a column whenever it is asked."""

    def transform(self, X: Any) -> np.ndarray:
        t = np.array(X, dtype=float)
        t[:, 0] += np.random.default_rng().normal(scale=1e-3, size=len(t))
        return t


class Ranked(OwnStep):
    """A row's place in the table it comes in."""

    def transform(self, X: Any) -> np.ndarray:
        t = np.asarray(X, dtype=float)
        return np.column_stack([t, t[:, 0].argsort().argsort() / len(t)])


class Dummies(OwnStep):
    """As many columns as there are levels in the table it comes in."""

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        return pd.get_dummies(X, columns=["job"], dtype=float)


class NeedsOutcome(OwnStep):
    """Asks for outcomes when a row is scored."""

    def transform(self, X: Any, y: Any = None) -> Any:
        if y is None:
            raise ValueError("y is needed")
        return X


class RareSwitch(OwnStep):
    """The last column depends on one more where a value is seen that is rare."""

    def transform(self, X: Any) -> np.ndarray:
        t = np.asarray(X, dtype=float)
        return np.column_stack([t, np.where(t[:, 0] > 2.4, t[:, 1] * t[:, 2], 0.0)])
