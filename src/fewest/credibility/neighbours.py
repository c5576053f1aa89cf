"""How near the accepted cases are: a density without a shape, from the distance to the k-th nearest of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fewest.credibility.base import Credibility, check_quantile
from fewest.credibility.points import OnPoints, Points, sample
from fewest.decision import Decision
from fewest.errors import DataError, check_count
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Floats
from fewest.tables.schema import Schema

NEAREST = 1e-9  # distances below this count as this: where k cases are equal the density is high, not infinite


@dataclass(frozen=True, eq=False)
class NeighbourDensity(OnPoints):
    """Minus the logarithm of the distance to the k-th nearest accepted case."""

    accepted: Floats
    k: int
    _tree: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        from scipy.spatial import cKDTree

        object.__setattr__(self, "_tree", cKDTree(self.accepted))

    def at(self, points: Floats) -> Floats:
        """Log-density of points (n, e) -> (n,), each by itself."""
        return self._of_distance(self.k, points)

    def of_accepted(self) -> Floats:
        """Of the accepted cases themselves, each without itself as a neighbour."""
        return self._of_distance(self.k + 1, self.accepted)

    def _of_distance(self, k: int, points: Floats) -> Floats:
        if len(points) == 0:
            return np.empty(0)
        far = self._tree.query(points, k=[k])[0][:, 0]
        return np.asarray(-np.log(np.maximum(far, NEAREST)))


def neighbours(
    decision: Decision,
    X: Any,
    y: Any,
    *,
    k: int = 10,
    quantile: float = 0.05,
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    random_state: int = 0,
    max_rows: int = 20_000,
) -> Credibility:
    """Density of the accepted cases by their distance: the nearer the k-th of them, the denser.

    Distances are between points with numbers in standard deviations and a column of 0 and 1 per level. For the floor
    each accepted case is held against the others, so that a fresh accepted case falls below it as often as ``quantile``
    says.

    Parameters
    ----------
    decision : Decision
    X : table
        Training rows.
    y : (n,) labels
        Their labels; the rows that do not have the positive label are used. Read as in `references.single`.
    k : int
        Which neighbour.
    quantile : float
        Quantile of the accepted cases' own log-densities below which nothing counts as credible; 0 sets no floor.
    schema : Schema, optional
        Default: read off X.
    groups : mapping, optional
        Feature -> columns, for tables that are encoded already.
    random_state : int
    max_rows : int
        More accepted rows than this are sampled.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 8, 9], "age": [30, 40, 50, 30, 50]}); y = [0, 0, 0, 1, 1]
    >>> near = neighbours(Decision(LogisticRegression().fit(X, y)), X, y, k=1)
    >>> near.credible(pd.DataFrame({"debt": [2, 9], "age": [41, 90]})).tolist()
    [True, False]
    """
    check_quantile(quantile)
    check_count("k", k)
    check_count("max_rows", max_rows)
    training = TrainingRows.read(decision, X, y, schema, groups)
    rows = training.accepted
    encoder = Points.fit(training.schema, rows)
    points = sample(encoder.points(rows), max_rows, random_state)
    if k >= len(points):
        raise DataError(f"there are {len(points)} accepted cases but k is {k}", do=f"use at most {len(points) - 1}")
    density = NeighbourDensity(encoder, points, int(k))
    provenance = {"kind": "neighbours", "k": int(k), "rows": len(points), "random_state": random_state}
    return Credibility.calibrate(training.schema, density, density.of_accepted(), quantile, "neighbours", provenance)
