"""A tree from a file as a classifier, so that it can be explained like any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError, UsageError
from fewest.models.trees.estimator import TreeClassifier
from fewest.models.trees.tree import Tree


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
        """The classifier that decides as a tree does.

        Parameters
        ----------
        tree : Tree
            Its leaves are positive where their score is one half or more.
        names : pair of str
            The classes, the positive one second.
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
