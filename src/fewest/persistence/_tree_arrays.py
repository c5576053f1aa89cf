"""Trees as arrays, checked before they are walked: a forged child hangs the walk, a forged number reads foreign memory.

Every library here numbers a node's children after the node itself. Asking for that order proves, without a walk, that
there is no cycle and no node that is not there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Anything = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]


def flaw_of_tree(left: Anything, right: Anything, feature: Anything, inner: Bools, width: int | None) -> str | None:
    """What is wrong with a tree's arrays; None if nothing is.

    Parameters
    ----------
    left, right, feature : (nodes,) int
    inner : (nodes,) bool
        Nodes that are no leaves.
    width : int, optional
        Number of features; without it features are only checked not to be negative.

    Examples
    --------
    >>> inner = np.array([True, False, False])
    >>> left, right, feature = np.array([1, -1, -1]), np.array([2, -1, -1]), np.array([0, 0, 0])
    >>> flaw_of_tree(left, right, feature, inner, 1) is None
    True
    >>> flaw_of_tree(np.array([0, -1, -1]), right, feature, inner, 1)
    'a node leads back to itself or to one before it'
    """
    nodes = len(inner)
    if nodes == 0:
        return "it has no nodes"
    if any(array.shape != (nodes,) for array in (left, right, feature)):
        return "its arrays have different lengths"
    here = np.flatnonzero(inner)
    for child in (left, right):
        to = child[inner].astype(np.int64)
        if (to >= nodes).any():
            return "a node leads to one that is not there"
        if (to <= here).any():
            return "a node leads back to itself or to one before it"
    tested = feature[inner].astype(np.int64)
    if (tested < 0).any() or (width is not None and (tested >= width).any()):
        return "it tests a feature that is not there"
    return None


def flaw_of_sklearn(nodes: Anything, values: Anything, outputs: int, classes: int, width: int) -> str | None:
    """What is wrong with the state of a scikit-learn tree; None if nothing is.

    Parameters
    ----------
    nodes : (nodes,) structured
    values : (nodes, outputs, classes) float64
    outputs, classes, width : int
        Outputs, largest number of classes, and features, as the tree says.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> state = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]).tree_.__getstate__()
    >>> flaw_of_sklearn(state["nodes"], state["values"], 1, 2, 1) is None
    True
    """
    wanted = {"left_child", "right_child", "feature", "threshold"}
    if nodes.ndim != 1 or not wanted <= set(nodes.dtype.names or ()):
        return "its nodes are not those of a scikit-learn tree"
    if values.dtype != np.float64 or values.shape != (len(nodes), outputs, classes):
        return "its values do not fit its nodes"
    # Only the left child says whether a node is a leaf; a leaf's right child is not looked at.
    inner = nodes["left_child"] != -1
    if not np.isfinite(values).all() or not np.isfinite(nodes["threshold"][inner]).all():
        return "it holds a number that is not finite"
    return flaw_of_tree(nodes["left_child"], nodes["right_child"], nodes["feature"], inner, width)


def flaw_of_predictor(nodes: Anything, bitsets: Anything, categorical: Bools) -> str | None:
    """What is wrong with a tree of HistGradientBoosting; None if nothing is.

    Parameters
    ----------
    nodes : (nodes,) structured
    bitsets : (sets, 8) uint32
    categorical : (features,) bool
        Which features have levels.
    """
    wanted = {"left", "right", "feature_idx", "is_leaf", "is_categorical", "bitset_idx", "value", "num_threshold"}
    if nodes.ndim != 1 or not wanted <= set(nodes.dtype.names or ()):
        return "its nodes are not those of HistGradientBoosting"
    if bitsets.ndim != 2 or bitsets.shape[1] != 8:
        return "its sets of levels have the wrong shape"
    inner = nodes["is_leaf"] == 0
    flaw = flaw_of_tree(nodes["left"], nodes["right"], nodes["feature_idx"], inner, len(categorical))
    if flaw is not None:
        return flaw
    levels = inner & (nodes["is_categorical"] != 0)
    if not categorical[nodes["feature_idx"][levels]].all() or (nodes["bitset_idx"][levels] >= len(bitsets)).any():
        return "it tests levels of a feature that has none"
    numbers = nodes["num_threshold"][inner & ~levels]
    # An infinite threshold is the library's own way of splitting off missing values.
    if not np.isfinite(nodes["value"]).all() or np.isnan(numbers).any():
        return "it holds a number that is not finite"
    return None


def flaw_of_sets(level_set: Anything, count: int) -> str | None:
    """Whether tests by levels name sets that are there: numbers from -1 (none) to below count."""
    if ((level_set < -1) | (level_set >= count)).any():
        return "a test names a set of levels that is not there"
    return None
