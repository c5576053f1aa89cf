"""What all tree estimators share: raw mixed tables in, one neutral `Tree` out, predictions through that tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError, UsageError
from fewest.models.estimators import TableClassifier
from fewest.models.trees.tree import Tree


class TreeClassifier(TableClassifier, ABC):
    """One tree over original features; sub-classes say in `_grow` how it comes about.

    Of the two classes the second is the positive one, unless an estimator has a ``positive`` of its own. A level never
    seen in training goes the way a split sends unknown levels; it is not an error.

    Attributes
    ----------
    tree_ : Tree
        The tree, about the second class: a leaf's score is the share of its training rows, and one half is decided
        ``positive_``.
    positive_ : label
        The class whose decisions are explained.
    schema_, classes_, n_features_in_, feature_names_in_
        As of every classifier of tables here.

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
    positive_: Any

    @abstractmethod
    def _grow(self, frame: pd.DataFrame, positive: npt.NDArray[np.bool_]) -> Tree:
        """Grow a tree on conformed rows; `fit` fills in what its leaves count."""

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the tree on a frame (n, features) or an array of numbers, with labels of exactly two classes."""
        frame, second = self._read_training(X, y)
        self.positive_ = self._positive_label()
        is_second = self.positive_ == self.classes_[1]
        wanted = second if is_second else ~second
        tree = recount(self._grow(frame, wanted), frame, wanted)
        self.tree_ = tree if is_second else of_the_other_class(tree)
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


class LoadedTreeClassifier(TreeClassifier):
    """A tree that was grown elsewhere; it predicts and is not fitted again.

    Examples
    --------
    >>> from fewest.tables.schema import Schema
    >>> from fewest.models.trees import Leaf, Split
    >>> frame = pd.DataFrame({"age": [20, 40]})
    >>> tree = Tree.build(Schema.infer(frame), Split("age", 30.5, Leaf(True), Leaf(False)))
    >>> LoadedTreeClassifier.of(tree, ("good", "bad")).predict(frame).tolist()
    ['bad', 'good']
    """

    @classmethod
    def of(cls, tree: Tree, names: Sequence[str]) -> Self:
        """The classifier that decides as a tree does, whose leaves are positive from a score of one half on.

        ``names`` are its two classes, the positive one second.
        """
        if len(names) != 2 or names[0] == names[1]:
            raise DataError(f"a tree decides between two outcomes, and its names are {names!r}", do="name both")
        leaves = tree.feature < 0
        if not np.array_equal(tree.positive[leaves], tree.score[leaves] >= 0.5):
            raise DataError(
                "some leaves are positive with a score below one half, or negative with one above: the tree was cut "
                "at another threshold",
                do="pass the model itself, with its threshold",
            )
        out = cls()
        out.tree_, out.schema_ = tree, tree.schema
        out.classes_ = np.array(list(names), dtype=object)
        out.n_features_in_ = len(tree.schema.columns)
        out.feature_names_in_ = np.array(tree.schema.columns, dtype=object)
        return out

    def _grow(self, frame: pd.DataFrame, positive: npt.NDArray[np.bool_]) -> Any:
        raise UsageError("a tree from a file is not fitted again", do="fit a CARTClassifier or a TOptClassifier")


def of_the_other_class(tree: Tree) -> Tree:
    """The same tree as the other class sees it: what was positive is negative."""
    return replace(tree, counts=tree.counts[:, ::-1], score=1.0 - tree.score, positive=~tree.positive)


def recount(tree: Tree, frame: pd.DataFrame, positive: npt.NDArray[np.bool_]) -> Tree:
    """The tree with counts, scores and decisions of its leaves taken from labelled rows.

    A leaf's score is the plain share of positive rows, and it decides positive from one half on. A leaf where no row
    ends keeps its score and its decision.
    """
    leaf = tree.apply(tree.encode(frame))
    both = [np.bincount(leaf[positive == side], minlength=tree.n_nodes) for side in (False, True)]
    counts = np.column_stack(both).astype(np.int64)
    rows = counts.sum(axis=1)
    score = np.where(rows > 0, counts[:, 1] / np.maximum(rows, 1), tree.score)
    decided = np.where(rows > 0, score >= 0.5, tree.positive)
    return replace(tree, counts=counts, score=score, positive=decided)
