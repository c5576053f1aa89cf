"""The continuous space of methods that need one: standardised numbers, and a block of 0 and 1 for every set of levels.

The way back is fixed: numbers are rounded as the schema shows them, a block is the level with the largest coordinate,
and what did not move keeps its raw value to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.tables.arrays import Bools, Floats
from fewest.tables.closeness import as_numbers
from fewest.tables.frames import mix
from fewest.tables.schema import Feature, Schema


@dataclass(frozen=True, eq=False)
class PeerSpace:
    """A map from raw rows to points and back.

    Attributes
    ----------
    schema : Schema
    spans : tuple of slice
        Coordinates of each feature: one of a number, one per level of anything with levels, none of a group of other
        columns, which is never moved here.
    middle, spread : (d,)
        A number's mean and standard deviation in the training rows; 0 and 1 for levels.
    low, high : (d,)
        The box of the training rows.
    typical : (d,)
        Median absolute deviation of each coordinate, 1 where it is zero.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [20, 40], "job": ["a", "b"]})
    >>> space = PeerSpace.fit(Schema.infer(X), X)
    >>> space.encode(X).tolist()
    [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    >>> space.decode(np.array([[0.52, 0.4, 0.6]]), X.iloc[[0]]).to_dict("records")
    [{'age': 35, 'job': 'b'}]
    """

    schema: Schema
    spans: tuple[slice, ...]
    middle: Floats
    spread: Floats
    low: Floats
    high: Floats
    typical: Floats

    @classmethod
    def fit(cls, schema: Schema, rows: pd.DataFrame) -> PeerSpace:
        """The space of training rows, conformed to the schema."""
        ends = np.cumsum([0, *(_width(feature) for feature in schema.features)]).tolist()
        spans = tuple(slice(a, b) for a, b in pairwise(ends))
        middle, spread = np.zeros(ends[-1]), np.ones(ends[-1])
        for feature, span in zip(schema.features, spans, strict=True):
            if _is_number(feature):
                values = as_numbers(rows[feature.columns[0]], feature)
                values = values[np.isfinite(values)]
                middle[span] = values.mean() if len(values) else 0.0
                spread[span] = (values.std() if len(values) else 0.0) or 1.0
        plain = cls(schema, spans, middle, spread, middle, spread, spread)
        points = plain.encode(rows)
        off = np.median(np.abs(points - np.median(points, axis=0)), axis=0)
        box = points.min(axis=0), points.max(axis=0)
        return cls(schema, spans, middle, spread, *box, np.where(off > 0, off, 1.0))

    @property
    def width(self) -> int:
        """Coordinates."""
        return len(self.middle)

    @property
    def numeric(self) -> Bools:
        """Which coordinates are numbers, (d,)."""
        return np.concatenate(
            [np.full(_width(feature), _is_number(feature), dtype=bool) for feature in self.schema.features]
        )

    def encode(self, rows: pd.DataFrame) -> Floats:
        """Points of rows (n, d); a missing number lies in the middle, an unknown level has all zeros."""
        parts = [_coordinates(rows, feature) for feature in self.schema.features]
        points = (np.concatenate(parts, axis=1) - self.middle) / self.spread
        return np.where(np.isfinite(points), points, 0.0)

    def harden(self, points: Floats) -> Floats:
        """The points that rows exist for: numbers rounded, one level per block."""
        out = points.copy()
        for feature, span in zip(self.schema.features, self.spans, strict=True):
            if _is_number(feature):
                out[:, span] = (self._rounded(points[:, span], feature, span) - self.middle[span]) / self.spread[span]
            elif span.stop > span.start:
                out[:, span] = np.argmax(points[:, span], axis=1)[:, None] == np.arange(span.stop - span.start)
        return out

    def decode(self, points: Floats, cases: pd.DataFrame) -> pd.DataFrame:
        """Rows of points (n, d); features whose coordinates did not leave the case's keep its raw values."""
        start = self.encode(cases)
        columns: dict[str, Any] = {}
        moved: dict[str, Bools] = {}
        for feature, span in zip(self.schema.features, self.spans, strict=True):
            if span.stop == span.start:
                columns.update({column: cases[column] for column in feature.columns})
            elif _is_number(feature):
                column = feature.columns[0]
                now, before = (self._rounded(part[:, span], feature, span)[:, 0] for part in (points, start))
                columns[column] = _typed(now, feature, self.schema.dtypes[column], cases.index)
                moved[column] = (now != before) & (np.abs(points[:, span] - start[:, span])[:, 0] > 1e-12)
            else:
                number, changes = _levels_reached(points[:, span], start[:, span])
                columns.update(_cells(number, feature, cases.index))
                moved.update(dict.fromkeys(feature.columns, changes))
        made = self.schema.conform(pd.DataFrame(columns, index=cases.index))
        return mix(cases, made, np.arange(len(cases)), moved)

    def _rounded(self, coordinates: Floats, feature: Feature, span: slice) -> Floats:
        """Values of a number's coordinates as its column has them."""
        values = coordinates * self.spread[span] + self.middle[span]
        return np.round(values, feature.decimals if feature.is_numeric else 0)


def _is_number(feature: Feature) -> bool:
    return feature.is_numeric or feature.kind == "datetime"


def _width(feature: Feature) -> int:
    if _is_number(feature):
        return 1
    return 0 if feature.kind == "group" else len(feature.levels)


def _coordinates(rows: pd.DataFrame, feature: Feature) -> Floats:
    """Raw coordinates of one feature, (n, width)."""
    if _is_number(feature):
        return as_numbers(rows[feature.columns[0]], feature)[:, None]
    if feature.kind == "indicators":
        return np.asarray(rows[list(feature.columns)].to_numpy(dtype=float))
    if _width(feature) == 0:
        return np.empty((len(rows), 0))
    codes = pd.Index(list(feature.levels), dtype=object).get_indexer(rows[feature.columns[0]].astype(object))
    return np.asarray(codes[:, None] == np.arange(len(feature.levels)), dtype=np.float64)


def _levels_reached(block: Floats, before: Floats) -> tuple[npt.NDArray[np.intp], Bools]:
    """Level with the largest coordinate, and whether it is another than the case's."""
    number = np.argmax(block, axis=1)
    known = before.any(axis=1)
    # A level that training rows never had is not a corner of the block: it is left only for one that is nearly reached.
    changes = np.where(known, number != np.argmax(before, axis=1), block.max(axis=1) > 0.5)
    return number, np.asarray(changes, dtype=bool)


def _cells(number: npt.NDArray[np.intp], feature: Feature, index: Any) -> dict[str, Any]:
    """Columns of a feature with levels."""
    if feature.kind == "indicators":
        return {
            column: pd.Series((number == k).astype(int), index=index) for k, column in enumerate(feature.columns)
        }  # fmt: skip
    levels = np.empty(len(feature.levels), dtype=object)
    levels[:] = feature.levels
    return {feature.columns[0]: pd.Series(levels[number], index=index, dtype=object)}


def _typed(values: Floats, feature: Feature, dtype: Any, index: Any) -> pd.Series[Any]:
    if feature.kind == "datetime":
        return pd.Series(values.astype(np.int64), index=index).astype(dtype)
    return pd.Series(values, index=index)
