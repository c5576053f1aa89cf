"""Exact Shapley values of a model's raw score, feature by feature (Lundberg and Lee 2017, interventional).

The value of a set of features is the mean score of background rows that have these features from the row explained. For
additive models that is ``coef * (z - mean)``; trees are summed leaf by leaf.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.engine.numba_cache import entry
from fewest.engine.structure import Additive, Ensemble
from fewest.engine.structure.base import Structure
from fewest.engine.structure.walk import goes_left
from fewest.errors import ModelError
from fewest.tables.arrays import Floats


def shapley_values(structure: Structure, feature_of: npt.NDArray[Any], Z: Floats, background: Floats) -> Floats:
    """Shapley values (n, p) of prepared rows (n, d) against background rows (m, d), of an `Additive` or `Ensemble`.

    ``feature_of`` (d,) is the feature of each column; a feature's columns are one player. The values of a row add up to
    its raw score less the mean raw score of the background.

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


@entry
def tree_values(  # type: ignore[no-untyped-def]
    Z, background, begin, node, left, feature, value, share, column, threshold, missing_left, category, left_levels, p
):
    """Mean over background rows of each row's Shapley values.

    A leaf is reached by exactly the mixed rows that take some features from the row (those whose tests only it passes)
    and some from the background row; its value is shared among these by the weights of Shapley.
    """
    out = np.zeros((Z.shape[0], p))
    who, own = np.empty(p, dtype=np.int64), np.empty(p, dtype=np.bool_)
    for i in range(Z.shape[0]):
        for b in range(background.shape[0]):
            for leaf in range(begin.shape[0] - 1):
                k, count, mine, reachable = begin[leaf], 0, 0, True
                while reachable and k < begin[leaf + 1]:
                    j, here, there = feature[k], True, True
                    while k < begin[leaf + 1] and feature[k] == j:
                        n = node[k]
                        test = threshold[n], missing_left[n], category[n]
                        here &= goes_left(Z[i, column[n]], test[0], test[1], test[2], left_levels) == left[k]
                        there &= goes_left(background[b, column[n]], test[0], test[1], test[2], left_levels) == left[k]
                        k += 1
                    reachable = here or there
                    if here != there and reachable:
                        who[count], own[count] = j, here
                        mine += here
                        count += 1
                if reachable:
                    for t in range(count):
                        if own[t]:
                            out[i, who[t]] += value[leaf] * share[mine - 1, count - mine]
                        else:
                            out[i, who[t]] -= value[leaf] * share[mine, count - mine - 1]
    return out / background.shape[0]
