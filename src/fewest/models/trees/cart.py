"""CART: scikit-learn's greedy tree, read into a neutral tree that decides every double exactly as it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.models.trees.estimator import TreeClassifier
from fewest.models.trees.tree import Leaf, Split, Tree, WideColumns, encode_all
from fewest.tables.schema import Schema


@dataclass(eq=False, repr=False)
class CARTClassifier(TreeClassifier):
    """Greedy binary tree (Breiman et al. 1984), grown by scikit-learn on numbers and 0/1 columns of levels.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}
    max_depth : int or None
        Tests on the longest path.
    min_samples_leaf : int or float
        As in scikit-learn: a number of rows, or a share of them.
    ccp_alpha : float
        Cost-complexity pruning; 0 prunes nothing.
    random_state : int or None
        Decides between equally good splits.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 30, 40, 50], "job": ["none", "clerk", "none", "clerk"]})
    >>> model = CARTClassifier(max_depth=2).fit(frame, ["ok", "ok", "bad", "ok"])
    >>> model.predict(pd.DataFrame({"age": [45, 45], "job": ["clerk", "never seen"]})).tolist()
    ['ok', 'ok']
    """

    criterion: str = "gini"
    max_depth: int | None = 4
    min_samples_leaf: int | float = 1
    ccp_alpha: float = 0.0
    random_state: int | None = 0

    def _grow(self, frame: pd.DataFrame, positive: npt.NDArray[np.bool_]) -> Tree:
        from sklearn.tree import DecisionTreeClassifier

        wide = WideColumns.of(self.schema_)
        table = wide.spread(encode_all(self.schema_, frame))
        if table.shape[1] == 0:
            return Tree.build(self.schema_, Leaf(True))
        grown = DecisionTreeClassifier(
            criterion=self.criterion, max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf,
            ccp_alpha=self.ccp_alpha, random_state=self.random_state,
        ).fit(table, positive)  # fmt: skip
        return Tree.build(self.schema_, _nested(self.schema_, wide, grown.tree_))


def largest_left(threshold: float) -> float:
    """The largest double that scikit-learn, which rounds values to float32 first, sends left of a threshold."""
    # Floats all along: numpy would compare a float32 with a Python float in float32.
    below = float(np.float32(threshold))
    if below > threshold:
        below = _next32(below, -np.inf)
    # Doubles up to the middle of two neighbouring float32 round down; the middle itself goes to the even one.
    middle = below / 2 + _next32(below, np.inf) / 2
    return middle if float(np.float32(middle)) <= threshold else float(np.nextafter(middle, -np.inf))


def _next32(value: float, towards: float) -> float:
    return float(np.nextafter(np.float32(value), np.float32(towards)))


def _nested(schema: Schema, wide: WideColumns, inside: Any, node: int = 0) -> Split | Leaf:
    """Nested splits of a fitted scikit-learn tree."""
    if inside.children_left[node] < 0:
        return Leaf(True)
    low = _nested(schema, wide, inside, int(inside.children_left[node]))
    high = _nested(schema, wide, inside, int(inside.children_right[node]))
    column = inside.feature[node]
    feature = schema.features[wide.feature[column]]
    code = int(wide.level[column])
    if code >= 0:
        # The column is 0 for every other level, for unknown ones and where the value is missing.
        return Split(feature.name, frozenset([feature.levels[code]]), high, low)
    threshold = largest_left(float(inside.threshold[node]))
    return Split(feature.name, threshold, low, high, missing_left=bool(inside.missing_go_to_left[node]))
