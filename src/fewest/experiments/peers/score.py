"""How far points of a `PeerSpace` are from being turned, and which way is down.

Where the model's input is an affine image of the space and its inside can be read, points are scored there, soft levels
and all. Elsewhere points are rounded to rows and the model itself is asked: slower, and blind to small steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.engine.encoding import cells
from fewest.engine.model_reading import ModelReading
from fewest.engine.structure import Additive, Network, Opaque
from fewest.engine.structure.base import Structure, activate
from fewest.errors import FewestError
from fewest.experiments.peers.base import FittedPeer
from fewest.experiments.peers.space import PeerSpace
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Floats

SAMPLE = 200
NUMBER_STEP = 0.5  # half a standard deviation: steps that trees notice
LEVEL_STEP = 1.1  # more than from no to yes: past every split of a 0/1 column, and past the level held now
MOST_CELLS = 20_000_000


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

    @property
    def has_slope(self) -> bool:
        """Whether gradients are exact; elsewhere they are central differences."""
        return self.affine is not None and self.affine.smooth

    def fitted(self, find: Callable[[pd.DataFrame], pd.DataFrame]) -> FittedPeer:
        """A search in this space as a method that can explain."""
        return FittedPeer(self.decision, self.space.schema, find)

    def excess(self, points: Floats, cases: pd.DataFrame) -> Floats:
        """Score less threshold of points (n, d), each starting at its case (n, columns)."""
        if self.affine is not None:
            return self.affine.raw(points)
        return np.asarray(self.decision.score(self.space.decode(points, cases)) - self.decision.cut)

    def excess_alike(self, points: Floats, case: pd.DataFrame) -> Floats:
        """The same for many points of one case (1, columns)."""
        if self.affine is not None:
            return self.affine.raw(points)
        return self.excess(points, case.iloc[np.zeros(len(points), dtype=np.int64)])

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
        hidden, turn = _activated(before, structure.activation)
        turns.append(turn)
    slope = np.broadcast_to(structure.weights[-1][:, 0], hidden.shape)
    for weight, turn in zip(reversed(structure.weights[:-1]), reversed(turns), strict=True):
        slope = (slope * turn) @ weight.T
    return np.asarray(slope)


def _activated(before: Floats, name: str) -> tuple[Floats, Floats]:
    """A hidden layer's values and their derivative."""
    after = activate(before, name)
    if name == "relu":
        return after, (before > 0).astype(float)
    if name == "tanh":
        return after, 1.0 - after**2
    if name == "logistic":
        return after, after * (1.0 - after)
    return after, np.ones_like(after)


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
