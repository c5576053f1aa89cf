"""Rows as a Pipeline's transformers put them out, worked out without calling them: for a few rows they cost the most.

Only scikit-learn's plain transformers are known here (one-hot, ordinal, scaling, imputing, selecting columns). What
they give is done again with the same operations, tried on rows before it is used (`OwnEncoding.read`), and no answer
rests on it alone: the user's model scores every case and every answer from raw rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.engine.encoding import Encoding, known_class
from fewest.tables.arrays import Floats

Cells = npt.NDArray[Any]
Step = Callable[[Cells], Cells]


class UnknownCellError(Exception):
    """A cell that is not of the kinds known here: the transformers themselves are asked."""


@dataclass(frozen=True)
class OwnEncoding:
    """The transformers of an `Encoding` as a function of cells."""

    encoding: Encoding
    step: Step

    @classmethod
    def read(cls, encoding: Encoding, rows: pd.DataFrame, encoded: Floats, prepare: Step) -> OwnEncoding | None:
        """The transformers, where all are known and give ``prepare(...)`` of these rows as they did; None elsewhere."""
        step = None if encoding.steps is None else _step(encoding.steps)
        if step is None:
            return None
        own = cls(encoding, step)
        try:
            again = prepare(own(rows))
        except (UnknownCellError, ValueError, TypeError):
            return None
        same = again.shape == encoded.shape and again.dtype == encoded.dtype
        return own if same and np.array_equal(again, encoded, equal_nan=True) else None

    def __call__(self, rows: pd.DataFrame) -> Floats:
        """What the final model is fed for these rows; raises `UnknownCellError` where only the transformers know."""
        arranged = self.encoding.decision.arrange(rows)
        return _numbers(self.step(np.asarray(arranged, dtype=object)))


def _numbers(cells: Cells) -> Floats:
    if cells.dtype == float:
        return cells
    try:
        return cells.astype(float)
    except (TypeError, ValueError) as error:
        raise UnknownCellError from error


def _step(transformer: Any) -> Step | None:
    """A fitted transformer as a function; None where it is not known."""
    if transformer in ("passthrough", None):
        return lambda cells: cells
    make = _STEPS.get(known_class(transformer))
    return None if make is None else make(transformer)


def _pipeline(pipeline: Any) -> Step | None:
    steps = []
    for _, inner in pipeline.steps:
        step = _step(inner)
        if step is None:
            return None
        steps.append(step)

    def run(cells: Cells) -> Cells:
        for step in steps:
            cells = step(cells)
        return cells

    return run


def _column_transformer(transformer: Any) -> Step | None:
    positions, spans = getattr(transformer, "_transformer_to_input_indices", None), transformer.output_indices_
    if positions is None:
        return None
    parts = []
    for name, inner, _ in transformer.transformers_:
        span = spans[name]
        if span.stop == span.start:
            continue
        step = _step(inner)
        if step is None:
            return None
        parts.append((step, np.asarray(positions[name], dtype=np.intp), span))
    n_out = max((span.stop for *_, span in parts), default=0)

    def run(cells: Cells) -> Cells:
        out = np.empty((len(cells), n_out))
        for step, columns, span in parts:
            out[:, span] = _numbers(step(cells[:, columns]))
        return out

    return run


def _scaled(shift: Any, scale: Any) -> Step:
    def run(cells: Cells) -> Cells:
        out = _numbers(cells)
        out = out if shift is None else out - shift
        return out if scale is None else out / scale

    return run


def _min_max(scaler: Any) -> Step | None:
    return None if scaler.clip else lambda cells: _numbers(cells) * scaler.scale_ + scaler.min_


def _imputer(imputer: Any) -> Step | None:
    """Numbers alone: of texts, what counts as missing depends on their type."""
    filling = np.asarray(imputer.statistics_)
    plain = isinstance(imputer.missing_values, float) and np.isnan(imputer.missing_values)
    if not plain or imputer.add_indicator or filling.dtype != float or np.isnan(filling).any():
        return None

    def run(cells: Cells) -> Cells:
        out = _numbers(cells)
        return np.where(np.isnan(out), filling, out)

    return run


def _codes(levels: Any, cells: Cells) -> Cells:
    """Number of each cell's level, column by column."""
    try:
        return np.array([[own[cell] for own, cell in zip(levels, row, strict=True)] for row in cells])
    except (KeyError, TypeError) as error:  # a level never seen, a missing value, or a cell of another kind
        raise UnknownCellError from error


def _numbered(encoder: Any) -> list[dict[Any, int]]:
    return [{level: number for number, level in enumerate(levels) if level == level} for levels in encoder.categories_]


def _joins_rare_levels(encoder: Any) -> bool:
    return any(rare is not None for rare in getattr(encoder, "infrequent_categories_", None) or ())


def _ordinal(encoder: Any) -> Step | None:
    levels = _numbered(encoder)
    return None if _joins_rare_levels(encoder) else lambda cells: _codes(levels, cells).astype(float)


def _one_hot(encoder: Any) -> Step | None:
    if _joins_rare_levels(encoder):
        return None
    levels, place, n_out = _numbered(encoder), [], 0
    dropped = encoder.drop_idx_ if encoder.drop_idx_ is not None else [None] * len(levels)
    for categories, gone in zip(encoder.categories_, dropped, strict=True):
        own = np.full(len(categories), -1)
        kept = [number for number in range(len(categories)) if number != gone]
        own[kept] = np.arange(n_out, n_out + len(kept))
        place.append(own)
        n_out += len(kept)

    def run(cells: Cells) -> Cells:
        out = np.zeros((len(cells), n_out + 1))  # the last one takes what is dropped
        codes = _codes(levels, cells)
        for column, own in enumerate(place):
            out[np.arange(len(cells)), own[codes[:, column]]] = 1.0
        return out[:, :n_out]

    return run


_STEPS: dict[str, Callable[[Any], Step | None]] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "FunctionTransformer": lambda step: (lambda cells: cells) if step.func is None else None,
    "StandardScaler": lambda scaler: _scaled(scaler.mean_ if scaler.with_mean else None, scaler.scale_),
    "RobustScaler": lambda scaler: _scaled(scaler.center_, scaler.scale_),
    "MinMaxScaler": _min_max,
    "SimpleImputer": _imputer,
    "OrdinalEncoder": _ordinal,
    "OneHotEncoder": _one_hot,
}
