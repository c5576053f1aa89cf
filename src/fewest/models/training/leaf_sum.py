"""A sum of trees as a plain estimator: what is left of a booster whose leaves were learned again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fewest.engine.structure.base import Ensemble
from fewest.errors import DataError, UsageError
from fewest.tables.arrays import Floats, Ints32


@dataclass(frozen=True)
class Guarded:
    """Preparation of model input that refuses values the trees were not made for."""

    prepare: Callable[[Any], Floats]  # model input (n, any) -> (n, d)
    source: Ints32  # (d,): model-input column of each prepared one
    missing: bool  # whether missing values have their place in the trees; infinite ones never have

    def __call__(self, model_input: Any) -> Floats:
        """Prepared rows, or an error that names the first bad value."""
        Z = self.prepare(model_input)
        bad = np.isinf(Z) if self.missing else ~np.isfinite(Z)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            value = "missing" if np.isnan(Z[row, column]) else "infinite"
            raise DataError(
                f"row {row}, column {self.source[column]} of the encoded rows: the value is {value}, "
                "which these trees do not take",
                do="impute such values, or drop the rows",
            )
        return Z


class LeafSumClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Log-odds as a sum of leaf values; fitted from the start, made by `from_ensemble`. Predicts without ``torch``.

    A row scores the same alone and in any batch.
    """

    ensemble_: Ensemble  # the trees; their raw score is the log-odds of the second class
    classes_: npt.NDArray[Any]  # (2,)
    n_features_in_: int  # columns of the rows to predict

    @classmethod
    def from_ensemble(cls, ensemble: Ensemble, classes: Any, n_features: int) -> Self:
        """The estimator over trees whose raw score is the log-odds of the second of two classes."""
        labels = np.asarray(classes)
        if labels.shape != (2,):
            raise UsageError(f"{labels.size} classes were given", do="give two; the trees score the second")
        if ensemble.reading.source.max(initial=-1) >= n_features:
            raise UsageError(f"the trees take more than {n_features} columns", do="count the booster's input columns")
        numbers = np.append(ensemble.value[ensemble.column < 0], ensemble.base)
        if not np.isfinite(numbers).all():
            raise UsageError("a leaf value is not a finite number", do="train with a smaller learning rate")
        model = cls()
        model.ensemble_, model.classes_, model.n_features_in_ = ensemble, labels, int(n_features)
        return model

    @classmethod
    def from_head(cls, head: Any, classes: Any, sign: float = 1.0) -> Self:
        """The estimator over what a `LeavesHead` learned; sign is -1 where the head scores the first class."""
        value, base = head.values()
        ensemble = replace(head.ensemble, value=sign * value, base=sign * base)
        return cls.from_ensemble(ensemble, classes, len(head.blocks.feature_of))

    def fit(self, X: Any, y: Any) -> Self:
        """Refused: the trees are given, not grown."""
        raise UsageError(
            "LeafSumClassifier is made from trees that are there already",
            do="fit fewest.models.training.AllOptClassifier",
        )

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second class (n,)."""
        check_is_fitted(self)
        rows = X if hasattr(X, "shape") else np.asarray(X)
        if len(rows.shape) != 2 or rows.shape[1] != self.n_features_in_:
            raise DataError(
                f"the rows have shape {tuple(rows.shape)}, the model takes {self.n_features_in_} columns",
                do="pass a table with the columns of training",
            )
        return self.ensemble_.raw(self.ensemble_.reading.prepare(rows))

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of both classes (n, 2)."""
        raw = self.decision_function(X)
        return np.column_stack([expit(-raw), expit(raw)])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Label of each row (n,): the second class from log-odds of 0 on."""
        raw = self.decision_function(X)
        return np.asarray(self.classes_[(raw >= 0.0).astype(np.intp)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        trees = getattr(self, "ensemble_", None)
        tags.input_tags.allow_nan = trees is not None and getattr(trees.reading.prepare, "missing", False)
        return tags
