"""Leaves of a tree filled with the training rows that end in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.models.trees.tree import Tree


def recount(tree: Tree, frame: pd.DataFrame, positive: npt.NDArray[np.bool_]) -> Tree:
    """The tree with counts, scores and decisions of its leaves taken from labelled rows.

    A leaf's score is the plain share of positive rows, and it decides positive from one half on. A leaf where no row
    ends keeps its score and its decision.

    Parameters
    ----------
    tree : Tree
    frame : (n, columns)
        Rows conformed to the tree's schema.
    positive : (n,) bool

    Examples
    --------
    >>> from fewest.tables.schema import Schema
    >>> from fewest.models.trees import Leaf, Split
    >>> frame = pd.DataFrame({"age": [20, 30, 40]})
    >>> tree = Tree.build(Schema.infer(frame), Split("age", 30, Leaf(False), Leaf(False)))
    >>> recount(tree, frame, np.array([True, False, True])).nested()
    Split(feature='age', test=30.0,
          left=Leaf(positive=True, score=0.5, negatives=1, positives=1),
          right=Leaf(positive=True, score=1.0, negatives=0, positives=1), missing_left=False, unknown_left=False)
    """
    leaf = tree.apply(tree.encode(frame))
    both = [np.bincount(leaf[positive == side], minlength=tree.n_nodes) for side in (False, True)]
    counts = np.column_stack(both).astype(np.int64)
    rows = counts.sum(axis=1)
    score = np.where(rows > 0, counts[:, 1] / np.maximum(rows, 1), tree.score)
    decided = np.where(rows > 0, score >= 0.5, tree.positive)
    return replace(tree, counts=counts, score=score, positive=decided)
