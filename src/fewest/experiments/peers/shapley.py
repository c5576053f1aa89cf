"""Exact Shapley values of a model's raw score, feature by feature (Lundberg and Lee 2017, interventional).

The value of a set of features is the mean score of background rows that have these features from the row explained. For
additive models that is ``coef * (z - mean)``; trees are summed leaf by leaf.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.engine.structure import Additive, Ensemble
from fewest.engine.structure.base import Structure
from fewest.errors import ModelError
from fewest.tables.arrays import Floats


def shapley_values(structure: Structure, feature_of: npt.NDArray[Any], Z: Floats, background: Floats) -> Floats:
    """Shapley values of prepared rows against background rows.

    Parameters
    ----------
    structure : Additive or Ensemble
    feature_of : (d,) int
        Feature of each prepared column; a feature's columns are one player.
    Z : (n, d)
    background : (m, d)

    Returns
    -------
    (n, p) float64
        They add up to a row's raw score less the mean raw score of the background.

    Examples
    --------
    >>> from fewest.engine.structure import read
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> structure = read(LogisticRegression().fit(X, [0, 0, 1, 1]))
    >>> values = shapley_values(structure, np.array([0, 1]), X, X[:1])
    >>> bool(np.allclose(values.sum(axis=1), structure.raw(X) - structure.raw(X[:1])))
    True
    """
    p = int(feature_of.max()) + 1
    if isinstance(structure, Additive):
        parts = structure.coef * (Z - background.mean(axis=0))
        return np.asarray(parts @ (feature_of[:, None] == np.arange(p)))
    if isinstance(structure, Ensemble):
        return _of_trees(structure, feature_of, Z, background, p)
    raise ModelError(
        f"Shapley values are exact for additive models and trees, not for a {type(structure).__name__}",
        do="choose another method",
    )


def _of_trees(trees: Ensemble, feature_of: npt.NDArray[Any], Z: Floats, background: Floats, p: int) -> Floats:
    from fewest.experiments.peers._shapley import tree_values

    begin, node, left, leaf = _paths(trees, feature_of)
    feature = feature_of[trees.column[node]].astype(np.int64)
    values: Floats = tree_values(
        Z, background, begin, node, left, feature, trees.value[leaf], _shares(p), trees.column, trees.threshold,
        trees.missing_left, trees.category, trees.left_levels, p,
    )  # fmt: skip
    return values


def _shares(p: int) -> Floats:
    """``a! c! / (a + c + 1)!``: a player's share among a others on its side and c on the other, (p + 1, p + 1)."""
    return np.array(
        [[factorial(a) * factorial(c) / factorial(a + c + 1) for c in range(p + 1)] for a in range(p + 1)]
    )  # fmt: skip


def _paths(trees: Ensemble, feature_of: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Tests on the way to every leaf, those of one feature together: where they begin, node, side, and the leaves."""
    tests: list[tuple[int, bool]] = []
    begin, leaves = [0], []
    stack: list[tuple[int, tuple[tuple[int, bool], ...]]] = [(int(root), ()) for root in trees.root]
    while stack:
        here, path = stack.pop()
        if trees.column[here] >= 0:
            stack += [
                (int(trees.left[here]), (*path, (here, True))), (int(trees.right[here]), (*path, (here, False)))
            ]  # fmt: skip
            continue
        tests += sorted(path, key=lambda test: int(feature_of[trees.column[test[0]]]))
        begin.append(len(tests))
        leaves.append(here)
    node = np.array([test[0] for test in tests], dtype=np.int64)
    side = np.array([test[1] for test in tests], dtype=bool)
    return np.array(begin, dtype=np.int64), node, side, np.array(leaves, dtype=np.int64)
