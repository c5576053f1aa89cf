"""What all tree estimators share: raw mixed tables in, one neutral `Tree` out, predictions through that tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.models.estimators import TableClassifier
from fewest.models.trees.leaf_counts import recount
from fewest.models.trees.tree import Tree


class TreeClassifier(TableClassifier, ABC):
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
    >>> from fewest.models.trees import Leaf, Split
    >>> class Halves(TreeClassifier):
    ...     def _grow(self, frame, positive):
    ...         middle = float(frame["age"].median())
    ...         return Tree.build(self.schema_, Split("age", middle, Leaf(True), Leaf(False)))
    >>> frame = pd.DataFrame({"age": [20, 30, 40, 50]})
    >>> Halves().fit(frame, ["bad", "bad", "bad", "ok"]).predict_proba(frame)[:, 1].tolist()
    [0.0, 0.0, 0.5, 0.5]
    """

    tree_: Tree

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
        frame, positive = self._read_training(X, y)
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
        frame = self._read_rows(X)
        return self.tree_.apply(self.tree_.encode(frame))
