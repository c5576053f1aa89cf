"""What all tree estimators share: raw mixed tables in, one neutral `Tree` out, predictions through that tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from fewest.errors import DataError
from fewest.frames import to_frame
from fewest.schema import Schema
from fewest.trees.counting import recount
from fewest.trees.tree import Tree


class LabelsError(DataError, ValueError):
    """The labels are not those of two classes; a ValueError too, as scikit-learn's contract asks."""


class TreeClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """One tree over original features; sub-classes say in `_grow` how it comes about.

    `fit` takes a raw frame (numbers, text, booleans, missing values) or an array of numbers, and labels of two
    classes, the second of which is the positive one. A level never seen in training goes the way a split sends
    unknown levels; it is not an error.

    Attributes
    ----------
    tree_ : Tree
        The tree; a leaf's score is its share of positive training rows, and one half decides positive.
    schema_ : Schema
        Features as read off the training table.
    classes_ : (2,) array
        Labels, the positive one second.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str
        Only when fitted on a table with text column names.

    Examples
    --------
    >>> from fewest.trees import Leaf, Split
    >>> class Halves(TreeClassifier):
    ...     def _grow(self, frame, positive):
    ...         middle = float(frame["age"].median())
    ...         return Tree.build(self.schema_, Split("age", middle, Leaf(True), Leaf(False)))
    >>> frame = pd.DataFrame({"age": [20, 30, 40, 50]})
    >>> Halves().fit(frame, ["bad", "bad", "bad", "ok"]).predict_proba(frame)[:, 1].tolist()
    [0.0, 0.0, 0.5, 0.5]
    """

    tree_: Tree
    schema_: Schema
    classes_: npt.NDArray[Any]
    n_features_in_: int

    @abstractmethod
    def _grow(self, frame: pd.DataFrame, positive: npt.NDArray[np.bool_]) -> Tree:
        """Grow a tree on conformed rows; `fit` fills in what its leaves count."""

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : (n, features) DataFrame, or array of numbers
        y : (n,)
            Labels of exactly two classes.
        """
        table, labels = self._training_table(X, y)
        self.classes_, positive = _two_classes(labels)
        schema = Schema.infer(table)
        # A column of fixed categories cannot hold a level that comes up later; without its dtype it is just levels.
        free = {name: kind for name, kind in schema.dtypes.items() if not isinstance(kind, pd.CategoricalDtype)}
        self.schema_ = replace(schema, dtypes=free)
        frame = self.schema_.conform(table, unseen="allow")
        self.tree_ = recount(self._grow(frame, positive), frame, positive)
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Shares of both classes (n, 2) among the training rows of each row's leaf."""
        leaves = self._leaves(X)
        score = self.tree_.score[leaves]
        return np.column_stack([1.0 - score, score])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Label of each row (n,)."""
        leaves = self._leaves(X)
        return np.asarray(self.classes_[self.tree_.positive[leaves].astype(np.intp)])

    def _leaves(self, X: Any) -> npt.NDArray[np.int32]:
        check_is_fitted(self)
        if _is_frame(X):
            validate_data(self, X, reset=False, skip_check_array=True)
            table = _checked(X)
        else:
            numeric = all(feature.is_numeric for feature in self.schema_.features)
            dtype = "numeric" if numeric else None
            table = validate_data(self, X, reset=False, dtype=dtype, ensure_all_finite="allow-nan")
        frame = self.schema_.conform(table, unseen="allow")
        return self.tree_.apply(self.tree_.encode(frame))

    def _training_table(self, X: Any, y: Any) -> tuple[pd.DataFrame, npt.NDArray[Any]]:
        if _is_frame(X):
            validate_data(self, X, y, skip_check_array=True)
            table = _checked(X)
        else:
            array, y = validate_data(self, X, y, dtype="numeric", ensure_all_finite="allow-nan")
            table = to_frame(array)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(table, labels)
        return table, labels

    def __sklearn_tags__(self) -> Any:
        """Two classes only; missing values are fine."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns")


def _checked(X: Any) -> pd.DataFrame:
    """A frame with text column names and without infinite numbers."""
    if isinstance(X, pd.DataFrame) and not any(isinstance(name, str) for name in X.columns):
        X = X.set_axis([f"x{j}" for j in range(X.shape[1])], axis=1)
    frame = to_frame(X)
    for name in frame.columns:
        if pd.api.types.is_float_dtype(frame[name].dtype):
            infinite = np.isinf(frame[name].to_numpy(dtype=float, na_value=np.nan))
            if infinite.any():
                row = int(np.flatnonzero(infinite)[0])
                raise DataError(
                    f'row {row} (index {frame.index[row]}), column "{name}": the value is infinite',
                    do="replace it by a number, or leave the cell empty",
                )
    return frame


def _two_classes(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The two classes in order, and which rows are of the second."""
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    kind = type_of_target(labels, input_name="y")
    if kind != "binary":
        raise LabelsError(
            f"Only binary classification is supported. The type of the target is {kind}",
            do="fit on the rows of two classes, or on one class against all others",
        )
    classes, place = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise LabelsError(f"the labels have one class only, {classes[0]!r}", do="fit on rows of both classes")
    return classes, place == 1
