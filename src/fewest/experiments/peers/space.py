"""The continuous space of methods that need one, how far its points are from being turned, and which way is down.

Numbers are standardised, and every set of levels is a block of 0 and 1. The way back is fixed: numbers are rounded as
the schema shows them, a block is the level with the largest coordinate, and what did not move keeps its raw value to
the last bit. Where the model's input is an affine image of the space and its inside can be read, points are scored
there, soft levels and all. Elsewhere points are rounded to rows and the model itself is asked: slower, and blind to
small steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.engine.column_probe import cells
from fewest.engine.model_reading import ModelReading
from fewest.engine.structure import Additive, Network, Opaque
from fewest.engine.structure.base import Structure, activate
from fewest.errors import FewestError
from fewest.experiments.peers.base import FittedPeer
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Bools, Floats
from fewest.tables.closeness import as_numbers
from fewest.tables.frames import mix
from fewest.tables.schema import Feature, Schema

SAMPLE = 200
NUMBER_STEP = 0.5  # half a standard deviation: steps that trees notice
LEVEL_STEP = 1.1  # more than from no to yes: past every split of a 0/1 column, and past the level held now
MOST_CELLS = 20_000_000
# Of a hidden layer's activation, from its values before and after.
DERIVATIVES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "relu": lambda before, _: (before > 0).astype(float),
    "tanh": lambda _, after: 1.0 - after**2,
    "logistic": lambda _, after: after * (1.0 - after),
    "identity": lambda _, after: np.ones_like(after),
    "gauss": lambda _, after: after,
    "square": lambda before, _: 2.0 * before,
    "cube": lambda before, _: 3.0 * before**2,
}


@dataclass(frozen=True, eq=False)
class PeerSpace:
    """A map from raw rows to points and back.

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
    # Coordinates of each feature: one of a number, one per level of anything with levels, none of a group of other
    # columns, which is never moved here.
    spans: tuple[slice, ...]
    middle: Floats  # (d,): a number's mean in the training rows; 0 for levels
    spread: Floats  # (d,): its standard deviation; 1 for levels
    low: Floats  # (d,): the box of the training rows
    high: Floats
    typical: Floats  # (d,): median absolute deviation, 1 where it is zero

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
                columns[column] = pd.Series(now, index=cases.index)
                if feature.kind == "datetime":
                    columns[column] = columns[column].astype(np.int64).astype(self.schema.dtypes[column])
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
    codes = level_numbers(rows[feature.columns[0]], feature)
    return np.asarray(codes[:, None] == np.arange(len(feature.levels)), dtype=np.float64)


def level_numbers(column: pd.Series[Any], feature: Feature) -> npt.NDArray[np.intp]:
    """Place of each cell among a feature's levels (n,); -1 where it is none of them."""
    return np.asarray(pd.Index(list(feature.levels), dtype=object).get_indexer(column.astype(object)))


def level_cells(number: npt.NDArray[Any], feature: Feature, index: Any) -> pd.Series[Any]:
    """The way back."""
    levels = np.empty(len(feature.levels), dtype=object)
    levels[:] = feature.levels
    return pd.Series(levels[number], index=index, dtype=object)


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
        return {name: pd.Series((number == k).astype(int), index=index) for k, name in enumerate(feature.columns)}
    return {feature.columns[0]: level_cells(number, feature, index)}


@dataclass(frozen=True, eq=False)
class Affine:
    """Model input as ``points @ matrix + offset``, and what is inside the model that takes it.

    It is smooth where the structure takes its input as it is and has a gradient.
    """

    matrix: Floats
    offset: Floats
    structure: Structure
    smooth: bool

    def raw(self, points: Floats) -> Floats:
        """Raw score less the cut, (n,)."""
        reading = self.structure.reading
        return np.asarray(self.structure.raw(reading.prepare(points @ self.matrix + self.offset)) - reading.cut)

    def slope(self, points: Floats) -> Floats:
        """Exact gradient, (n, d)."""
        model_input = points @ self.matrix + self.offset
        inner = _structure_slope(self.structure, model_input[:, self.structure.reading.source])
        return np.asarray(inner @ self.matrix.T[self.structure.reading.source])


@dataclass(frozen=True, eq=False)
class Score:
    """How far from being turned points are: negative means turned."""

    decision: Decision
    space: PeerSpace
    affine: Affine | None

    @classmethod
    def fit(cls, decision: Decision, X: Any, y: Any) -> Score:
        """Make the space of training rows and read the model."""
        training = TrainingRows.read(decision, X, y)
        return cls.read(decision, PeerSpace.fit(training.schema, training.frame), training.frame)

    @classmethod
    def read(cls, decision: Decision, space: PeerSpace, rows: pd.DataFrame) -> Score:
        """Read the model, from training rows."""
        return cls(decision, space, _affine(decision, space, rows))

    def fitted(self, find: Callable[[pd.DataFrame], pd.DataFrame]) -> FittedPeer:
        """A search in this space as a method that can explain."""
        return FittedPeer(self.decision, self.space.schema, find)

    def excess(self, points: Floats, cases: pd.DataFrame) -> Floats:
        """Score less threshold of points (n, d), each starting at its case (n, columns), or all at one case."""
        if self.affine is not None:
            return self.affine.raw(points)
        if len(cases) == 1:
            cases = cases.iloc[np.zeros(len(points), dtype=np.int64)]
        return np.asarray(self.decision.score(self.space.decode(points, cases)) - self.decision.cut)

    def slope(self, points: Floats, cases: pd.DataFrame) -> Floats:
        """Gradient of the excess (n, d): exact, or by central differences over steps that trees notice."""
        if self.affine is not None and self.affine.smooth:
            return self.affine.slope(points)
        d = self.space.width
        step = np.where(self.space.numeric, NUMBER_STEP, LEVEL_STEP)
        out = np.empty_like(points)
        batch = max(1, MOST_CELLS // (2 * d * d))
        for first in range(0, len(points), batch):
            part = slice(first, first + batch)
            count = len(points[part])
            around = np.repeat(points[part][:, None, None, :], 2, axis=1).repeat(d, axis=2)
            along = np.arange(d)
            around[:, 0, along, along] += step
            around[:, 1, along, along] -= step
            owner = np.repeat(np.arange(first, first + count), 2 * d)
            values = self.excess(around.reshape(-1, d), cases.iloc[owner] if self.affine is None else cases)
            up, down = values.reshape(count, 2, d).transpose(1, 0, 2)
            out[part] = (up - down) / (2 * step)
        return out


def _structure_slope(structure: Structure, prepared: Floats) -> Floats:
    """Gradient of a structure's raw score in its prepared columns, (n, d)."""
    if isinstance(structure, Additive):
        return np.broadcast_to(structure.coef, prepared.shape)
    assert isinstance(structure, Network)
    hidden, turns = prepared, []
    for weight, bias in zip(structure.weights[:-1], structure.biases[:-1], strict=True):
        before = hidden @ weight + bias
        hidden = activate(before, structure.activation)
        turns.append(DERIVATIVES[structure.activation](before, hidden))
    slope = np.broadcast_to(structure.weights[-1][:, 0], hidden.shape)
    for weight, turn in zip(reversed(structure.weights[:-1]), reversed(turns), strict=True):
        slope = (slope * turn) @ weight.T
    return np.asarray(slope)


def _affine(decision: Decision, space: PeerSpace, rows: pd.DataFrame) -> Affine | None:
    """The map from points to model input, if there is one that reproduces the training rows."""
    sample = rows.iloc[np.unique(np.linspace(0, len(rows) - 1, min(SAMPLE, len(rows))).astype(int))]
    inside = ModelReading.read(decision, space.schema, sample, sample.iloc[::-1])
    if isinstance(inside.structure, Opaque) or inside.encoding.feature_of is None:
        return None
    try:
        matrix, offset = _probe(inside, space, sample.iloc[[0]])
    except (FewestError, TypeError, ValueError):
        return None
    wanted = np.asarray(cells(inside.encoding.transform(sample)), dtype=np.float64)
    if not _same(space.encode(sample) @ matrix + offset, wanted, 1e-6):
        return None
    reading = inside.structure.reading
    plain = isinstance(inside.structure, Additive | Network)
    smooth = plain and _same(reading.prepare(wanted), wanted[:, reading.source], 1e-5)
    return Affine(matrix, offset, inside.structure, smooth)


def _same(given: Floats, wanted: Floats, tolerance: float) -> bool:
    return given.shape == wanted.shape and bool(np.allclose(given, wanted, rtol=tolerance, atol=tolerance))


def _probe(inside: ModelReading, space: PeerSpace, row: pd.DataFrame) -> tuple[Floats, Floats]:
    """Matrix and offset, read off one row in which one feature at a time is moved."""
    assert inside.encoding.feature_of is not None
    width = len(inside.encoding.feature_of)
    matrix, offset = np.zeros((space.width, width)), np.zeros(width)
    start = space.encode(row)
    for j, span in enumerate(space.spans):
        own = inside.encoding.feature_of == j
        count = span.stop - span.start
        if not own.any() or count == 0:
            continue
        moved = np.repeat(start, max(count, 2), axis=0)
        is_number = bool(space.numeric[span.start])
        ends = [[space.low[span.start]], [space.high[span.start]]]
        moved[:, span] = ends if is_number else np.eye(max(count, 2))[:, :count]
        frame = space.decode(moved, row.iloc[np.zeros(len(moved), dtype=np.int64)])
        images = np.asarray(cells(inside.encoding.transform(frame)), dtype=np.float64)[:, own]
        if is_number:
            # Rounded values lie a little off the places asked for; the line goes through where they are.
            at = space.encode(frame)[:, span.start]
            slope = (images[1] - images[0]) / ((at[1] - at[0]) or 1.0)
            matrix[span.start, own], offset[own] = slope, images[0] - at[0] * slope
        else:
            matrix[span, own] = images[:count]
    constant = inside.encoding.feature_of < 0
    offset[constant] = np.asarray(cells(inside.encoding.transform(row)), dtype=np.float64)[0, constant]
    return matrix, offset
