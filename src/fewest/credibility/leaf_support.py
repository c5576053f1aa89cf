"""How many accepted cases share the leaf a case falls into: the density of a single tree (Theorem 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.credibility.base import Credibility, check_quantile
from fewest.decision import Decision
from fewest.models.trees import Tree, read
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Floats, Ints32
from fewest.tables.schema import Schema


@dataclass(frozen=True, eq=False)
class LeafDensity:
    """Logarithm of the share of the accepted cases that are in a row's leaf."""

    tree: Tree
    of_node: Floats  # (nodes,) float64: Minus infinity where a leaf has none

    @property
    def feature_of(self) -> Ints32:
        """Feature of each coordinate: a point is a row of the tree's codes."""
        return np.arange(len(self.tree.schema), dtype=np.int32)

    def points(self, frame: pd.DataFrame) -> Floats:
        """Codes of raw rows, (n, features)."""
        return self.tree.encode(frame)

    def at(self, points: Floats) -> Floats:
        """Log-density of points (n, features) -> (n,)."""
        return np.asarray(self.of_node[self.tree.apply(points)])

    def log_density(self, frame: pd.DataFrame) -> Floats:
        """Of each row, (n,)."""
        return self.at(self.points(frame))


def leaf_support(
    decision: Decision,
    X: Any,
    y: Any,
    *,
    quantile: float = 0.05,
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Credibility:
    """Share of the accepted cases that are in the leaf a case falls into.

    Parameters
    ----------
    decision : Decision
        Its model is a single decision tree, or a Pipeline that ends in one.
    X, y, quantile, schema, groups
        As in `mixture`, with log-shares for log-densities.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 8, 9], "age": [30, 40, 50, 30, 50]}); y = [0, 0, 0, 1, 1]
    >>> shares = leaf_support(Decision(DecisionTreeClassifier().fit(X, y)), X, y)
    >>> np.exp(shares.log_density(X)).tolist()
    [1.0, 1.0, 1.0, 0.0, 0.0]
    """
    check_quantile(quantile)
    training = TrainingRows.read(decision, X, y, schema, groups)
    rows = training.accepted
    tree = read(decision, training.schema, training.frame)
    count = np.bincount(tree.apply(tree.encode(rows)), minlength=tree.n_nodes)
    with np.errstate(divide="ignore"):
        density = LeafDensity(tree, np.log(count / len(rows)))
    provenance = {"kind": "leaf_support", "rows": len(rows), "leaves": len(tree.leaves)}
    return Credibility.calibrate(
        training.schema, density, density.log_density(rows), quantile, "leaf_support", provenance
    )
