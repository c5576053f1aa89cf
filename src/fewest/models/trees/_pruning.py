"""Error-based pruning of C4.5: a subtree gives way to a leaf that is not expected to err more on new rows.

Quinlan, "C4.5: Programs for Machine Learning" (1993), Section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewest.models.trees._gain_ratio import Test

TOLERANCE = 0.1  # errors a leaf may be expected to make beyond its subtree, as in Quinlan's program


@dataclass(frozen=True)
class Node:
    """A node of a growing C4.5 tree.

    Attributes
    ----------
    negatives, positives : int
        Training rows that reach it.
    test : Test or None
        None at a leaf.
    children : tuple of Node
        In the order of the test's branches.
    heaviest : int
        The branch that missing values take.
    """

    negatives: int
    positives: int
    test: Test | None = None
    children: tuple[Node, ...] = ()
    heaviest: int = 0

    @property
    def rows(self) -> int:
        """Training rows that reach it."""
        return self.negatives + self.positives

    @property
    def errors(self) -> int:
        """Rows that a leaf here would decide wrongly."""
        return min(self.negatives, self.positives)


def upper_error(errors: Any, rows: Any, confidence: float) -> Any:
    """The error rate at which so few errors have probability ``confidence``: the upper limit of the binomial.

    Examples
    --------
    >>> round(float(upper_error(0, 6, 0.25)), 3)  # Quinlan's example
    0.206
    """
    from scipy.special import betaincinv

    errors, rows = np.asarray(errors, dtype=float), np.asarray(rows, dtype=float)
    inner = betaincinv(errors + 1, np.maximum(rows - errors, 1), 1 - confidence)
    return np.where(errors < rows, inner, 1.0)


def prune(node: Node, confidence: float) -> Node:
    """The tree with subtrees replaced by leaves from the bottom up."""
    return _pruned(node, confidence)[0]


def _pruned(node: Node, confidence: float) -> tuple[Node, float]:
    """The pruned subtree, and the errors expected of it on as many new rows."""
    alone = float(node.rows * upper_error(node.errors, node.rows, confidence)) if node.rows else 0.0
    if node.test is None:
        return node, alone
    children, expected = zip(*(_pruned(child, confidence) for child in node.children), strict=True)
    if alone <= sum(expected) + TOLERANCE:
        return Node(node.negatives, node.positives), alone
    return replace(node, children=children), float(sum(expected))
