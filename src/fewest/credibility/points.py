"""Points of raw rows for densities: numbers in standard deviations of the accepted cases, one column per level.

The encoding is one of the schema, not of the model: a density should not change when the model's pipeline does. A
feature with two levels is one column (rule 10). How near the accepted cases are is a density without a shape: the
distance to the k-th nearest of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fewest.credibility.base import Credibility, check_quantile
from fewest.decision import Decision
from fewest.errors import DataError, check_count
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Floats, Ints32
from fewest.tables.closeness import as_numbers
from fewest.tables.schema import Feature, Schema

NEAREST = 1e-9  # distances below this count as this: where k cases are equal the density is high, not infinite


@dataclass(frozen=True, eq=False)
class Points:
    """A fixed map from raw rows to points; each row is mapped by itself, each coordinate from one feature."""

    schema: Schema
    parts: tuple[Part, ...]  # One per raw column

    @classmethod
    def fit(cls, schema: Schema, rows: pd.DataFrame) -> Points:
        """Standardise with the rows given, which conform to the schema."""
        parts = tuple(
            _fit_part(rows[column], feature, j)
            for j, feature in enumerate(schema.features)
            for column in feature.columns
        )
        made = cls(schema, parts)
        points = made.points(rows)
        if len(points) < 2 or not (points != points[0]).any():
            raise DataError(
                f"all {len(points)} accepted cases are the same, so they have no density",
                do="check the labels and the columns",
            )
        return made

    @property
    def feature_of(self) -> Ints32:
        """Feature of each coordinate."""
        return np.concatenate([np.full(part.width, part.feature, dtype=np.int32) for part in self.parts])

    def points(self, frame: pd.DataFrame) -> Floats:
        """Points of raw rows, (n, e)."""
        return np.concatenate([part.encode(frame[part.column], self.schema) for part in self.parts], axis=1)


@dataclass(frozen=True, eq=False)
class OnPoints(ABC):
    """A log-density that is defined on the points of an encoder."""

    encoder: Points

    @property
    def feature_of(self) -> Ints32:
        """Feature of each coordinate."""
        return self.encoder.feature_of

    def points(self, frame: pd.DataFrame) -> Floats:
        """Points of raw rows, (n, e)."""
        return self.encoder.points(frame)

    @abstractmethod
    def at(self, points: Floats) -> Floats:
        """Log-density of points (n, e) -> (n,), each by itself."""

    def log_density(self, frame: pd.DataFrame) -> Floats:
        """Of each row, (n,)."""
        return self.at(self.points(frame))


def sample(points: Floats, most: int, random_state: int) -> Floats:
    """All points, or as many as wanted, drawn, in the order they are in."""
    if len(points) <= most:
        return points
    chosen = np.random.default_rng(random_state).choice(len(points), most, replace=False)
    return points[np.sort(chosen)]


@dataclass(frozen=True)
class Part:
    """What one raw column becomes: its levels, or its number and whether that is missing."""

    column: str
    feature: int
    levels: tuple[Any, ...] = ()
    middle: float = 0.0
    spread: float = 1.0
    flags_missing: bool = False

    @property
    def width(self) -> int:
        """Coordinates."""
        return len(self.levels) if self.levels else 1 + self.flags_missing

    def encode(self, column: pd.Series[Any], schema: Schema) -> Floats:
        """(n, width). A missing number is in the middle; a missing or unknown level is none of them."""
        if self.levels:
            codes = pd.Index(list(self.levels)).get_indexer(column)
            return np.asarray(codes[:, None] == np.arange(len(self.levels)), dtype=np.float64)
        values = _numbers(column, schema.features[self.feature])
        known = np.isfinite(values)
        out = np.where(known, (np.where(known, values, 0.0) - self.middle) / self.spread, 0.0)[:, None]
        return np.column_stack([out, (~known).astype(float)]) if self.flags_missing else out


def _fit_part(column: pd.Series[Any], feature: Feature, number: int) -> Part:
    name = str(column.name)
    if feature.kind == "category":
        levels = feature.levels[1:] if len(feature.levels) == 2 and not column.isna().any() else feature.levels
        return Part(name, number, tuple(levels) or (None,))
    values = _numbers(column, feature)
    known = values[np.isfinite(values)]
    if feature.kind in ("boolean", "indicators"):
        return Part(name, number, flags_missing=len(known) < len(values))
    middle = float(np.mean(known)) if len(known) else 0.0
    spread = float(np.std(known)) if len(known) else 0.0
    return Part(name, number, (), middle, spread if spread > 0 else 1.0, len(known) < len(values))


def _numbers(column: pd.Series[Any], feature: Feature) -> Floats:
    """A column that is not a category as floats; text in a group of columns does not count."""
    if feature.kind == "group" and not pd.api.types.is_numeric_dtype(column.dtype):
        return np.asarray(pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan))
    return as_numbers(column, feature)


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
    decision, X, y, quantile, schema, groups, random_state
        As in `mixture`.
    k : int
        Which neighbour.
    max_rows : int
        More accepted rows than this are sampled.

    Examples
    --------
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
