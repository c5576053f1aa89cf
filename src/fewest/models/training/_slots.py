"""Compiled: the leaves rows fall into, as they are and with one feature taken from a reference.

A *slot* is a tree together with a feature it tests; aligning a feature can move a row in the trees of its slots only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fewest.engine.compiled import entry, inner
from fewest.engine.structure.base import Ensemble
from fewest.engine.structure.walk import goes_left
from fewest.models.training._heads import Ints

NO_SLOT = -2  # what no node has


class SlotNodes(NamedTuple):
    """What of an `Ensemble` the walks need, and the numbers given to its leaves.

    Leaves are numbered from 0 in each tree, so that a byte holds most of them; `first` makes them numbers over all.

    Attributes
    ----------
    column, left, right, category : (nodes,) int32
    threshold : (nodes,) float64
    missing_left : (nodes,) bool
    left_levels : (n_sets, n_levels) bool
    root : (trees,) int32
    leaf : (nodes,) int32
        Number of the leaf within its tree; -1 for a split.
    first : (trees + 1,) int32
        How many leaves the trees before have.
    """

    column: Any
    threshold: Any
    left: Any
    right: Any
    missing_left: Any
    category: Any
    left_levels: Any
    root: Any
    leaf: Any
    first: Any


class TrainingSlots(NamedTuple):
    """Trees with the features they test, numbered tree by tree.

    Attributes
    ----------
    of_node : (nodes,) int32
        Slot of a split; -1 for leaves, and for splits on columns that belong to no feature.
    begin : (trees + 1,) int32
        First slot of each tree, and how many there are.
    tree, feature : (slots,) int64
    """

    of_node: Any
    begin: Any
    tree: Any
    feature: Any


def tree_of_node(ensemble: Ensemble) -> Ints:
    """Tree of each node: trees lie one after the other.

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from fewest.engine.structure import read
    >>> model = GradientBoostingClassifier(n_estimators=2, max_depth=1).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> tree_of_node(read(model)).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    return np.searchsorted(ensemble.root, np.arange(len(ensemble.column)), side="right").astype(np.int64) - 1


def number_leaves(ensemble: Ensemble) -> SlotNodes:
    """An ensemble's nodes, leaves numbered.

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from fewest.engine.structure import read
    >>> model = GradientBoostingClassifier(n_estimators=2, max_depth=1).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> nodes = number_leaves(read(model))
    >>> nodes.leaf.tolist(), nodes.first.tolist()
    ([-1, 0, 1, -1, 0, 1], [0, 2, 4])
    """
    is_leaf = ensemble.column < 0
    before = np.concatenate([[0], np.cumsum(is_leaf)])
    first = before[np.append(ensemble.root, len(is_leaf))]
    leaf = np.where(is_leaf, before[:-1] - first[tree_of_node(ensemble)], -1)
    return SlotNodes(
        ensemble.column, ensemble.threshold, ensemble.left, ensemble.right, ensemble.missing_left, ensemble.category,
        ensemble.left_levels, ensemble.root, leaf.astype(np.int32), first.astype(np.int32),
    )  # fmt: skip


def find_slots(ensemble: Ensemble, feature_of: Ints) -> TrainingSlots:
    """The features that each tree tests.

    Parameters
    ----------
    ensemble : Ensemble
    feature_of : (columns of the model input,) int64
        Feature of each; below 0 for a column that belongs to none and is never aligned.

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from fewest.engine.structure import read
    >>> model = GradientBoostingClassifier(n_estimators=2, max_depth=1).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> slots = find_slots(read(model), np.array([7]))
    >>> slots.tree.tolist(), slots.feature.tolist(), slots.of_node.tolist()
    ([0, 1], [7, 7], [0, -1, -1, 1, -1, -1])
    """
    of_node = np.full(len(ensemble.column), -1, dtype=np.int32)
    tested = np.flatnonzero(ensemble.column >= 0)
    feature = feature_of[ensemble.reading.source[ensemble.column[tested]]]
    tested, feature = tested[feature >= 0], feature[feature >= 0]
    pairs = np.column_stack([tree_of_node(ensemble)[tested], feature])
    slots, which = np.unique(pairs, axis=0, return_inverse=True)
    of_node[tested] = which
    begin = np.searchsorted(slots[:, 0], np.arange(len(ensemble.root) + 1)).astype(np.int32)
    return TrainingSlots(of_node, begin, slots[:, 0].copy(), slots[:, 1].copy())


@inner
def _ways(z, nodes, out):  # type: ignore[no-untyped-def]
    """Whether each split sends a row left."""
    for node in range(len(nodes.column)):
        if nodes.column[node] >= 0:
            out[node] = goes_left(
                z[nodes.column[node]], nodes.threshold[node], nodes.missing_left[node], nodes.category[node],
                nodes.left_levels,
            )  # fmt: skip


@entry
def ways(Z, nodes):  # type: ignore[no-untyped-def]
    """Whether each split sends each row left: (n, nodes)."""
    out = np.zeros((Z.shape[0], len(nodes.column)), dtype=np.bool_)
    for i in range(Z.shape[0]):
        _ways(Z[i], nodes, out[i])
    return out


@inner
def _walk(node, slot, way, goal, nodes, slot_of):  # type: ignore[no-untyped-def]
    """Leaf below a node when the splits of one slot are answered by the goal, all others by the row."""
    while nodes.column[node] >= 0:
        left = goal[node] if slot_of[node] == slot else way[node]
        node = nodes.left[node] if left else nodes.right[node]
    return nodes.leaf[node]


@inner
def _own(way, nodes, out):  # type: ignore[no-untyped-def]
    """Leaf of a row in each tree."""
    for tree in range(len(nodes.root)):
        out[tree] = _walk(nodes.root[tree], NO_SLOT, way, way, nodes, nodes.column)


@inner
def _turned(way, goal, own, nodes, slots, out):  # type: ignore[no-untyped-def]
    """Leaf of a row in each slot, its feature taken from a goal.

    A slot's row leaves its own path at the first of the slot's splits that the goal answers otherwise; only from
    there on it is walked again.
    """
    for tree in range(len(nodes.root)):
        here = own[tree]
        for slot in range(slots.begin[tree], slots.begin[tree + 1]):
            out[slot] = here
        node = nodes.root[tree]
        while nodes.column[node] >= 0:
            slot = slots.of_node[node]
            # A row that is elsewhere than in its own leaf has turned off before, and does not come back.
            if slot >= 0 and goal[node] != way[node] and out[slot] == here:
                out[slot] = _walk(node, slot, way, goal, nodes, slots.of_node)
            node = nodes.left[node] if way[node] else nodes.right[node]


@entry
def own_leaves(Z, nodes):  # type: ignore[no-untyped-def]
    """Leaf of each row in each tree: (n, trees)."""
    way = np.zeros(len(nodes.column), dtype=np.bool_)
    out = np.empty((Z.shape[0], len(nodes.root)), dtype=np.int32)
    for i in range(Z.shape[0]):
        _ways(Z[i], nodes, way)
        _own(way, nodes, out[i])
    return out


@entry
def slot_leaves(Z, candidates, goals, nodes, slots, out):  # type: ignore[no-untyped-def]
    """Leaf of each row in each slot's tree, the slot's feature taken from a reference, into out (n, k, slots).

    Splits are asked once per row and once per reference: goals (m, nodes) are the latter's `ways`.
    """
    way = np.zeros(len(nodes.column), dtype=np.bool_)
    own = np.empty(len(nodes.root), dtype=np.int32)
    for i in range(Z.shape[0]):
        _ways(Z[i], nodes, way)
        _own(way, nodes, own)
        for c in range(candidates.shape[1]):
            _turned(way, goals[candidates[i, c]], own, nodes, slots, out[i, c])
