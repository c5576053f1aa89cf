"""Probing: which features the columns of a transformer depend on, found by changing one feature at a time.

For transformers of which nothing is declared. What is found is tried on mixed rows afterwards, as what is declared is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.tables.arrays import Bools
from fewest.tables.frames import mix
from fewest.tables.schema import Schema

Sources = list[frozenset[int]]
TRIES = 4  # other values that each feature takes in each row


class NotUnderstoodError(Exception):
    """A transformer whose columns cannot be traced to features; the text says which and why."""


@dataclass(frozen=True)
class Probe:
    """Rows as they reach a transformer: some rows, then the same ones with one feature changed, feature by feature."""

    rows: Callable[[], Any]
    count: int  # Rows before any is changed

    @classmethod
    def of(cls, schema: Schema, frame: pd.DataFrame, arrange: Callable[[pd.DataFrame], Any]) -> Probe:
        """Rows of a table, each feature changed in turn to what it is in other rows of it."""
        n, p = len(frame), len(schema)

        @cache
        def rows() -> Any:
            random = np.random.default_rng(0)
            changed = np.repeat(np.arange(-1, p), np.append(n, np.full(p, TRIES * n)))
            own = np.tile(np.arange(n), 1 + TRIES * p)
            other = np.concatenate([own[:n], *(random.permutation(n) for _ in range(TRIES * p))])
            take = {column: changed == j for column, j in schema.feature_of.items()}
            return arrange(mix(frame.iloc[own], frame, other, take))

        return cls(rows, n)

    def through(self, transformer: Any) -> Probe:
        """The rows behind a transformer."""
        return Probe(cache(lambda: _transform(transformer, self.rows())), self.count)

    def at(self, positions: Sequence[int]) -> Probe:
        """Some of the columns."""
        return Probe(cache(lambda: columns_at(self.rows(), positions)), self.count)

    def found(self, transformer: Any) -> Sources:
        """Features that each output column of a transformer changes with."""
        name, rows, n = type(transformer).__name__, self.rows(), self.count
        out = cells(_transform(transformer, rows))
        alone, again = (cells(_transform(transformer, rows[:n])) for _ in range(2))
        if alone.shape[1:] != out.shape[1:] or len(out) != rows.shape[0]:
            raise NotUnderstoodError(f"{name} gives tables of other shapes for other rows")
        if not equal_cells(alone, again).all():
            raise NotUnderstoodError(f"{name} is not deterministic: the same rows get other values each time")
        if not equal_cells(alone, out[:n]).all():
            raise NotUnderstoodError(f"{name} gives a row other values beside other rows")
        features = (len(out) - n) // (TRIES * n)
        changed = ~equal_cells(
            np.broadcast_to(out[:n], (TRIES * features, *out[:n].shape)).reshape(-1, out.shape[1]), out[n:]
        )
        depends: Bools = np.any(changed.reshape(features, TRIES * n, -1), axis=1)
        return [frozenset(np.flatnonzero(column).tolist()) for column in depends.T]


def _transform(transformer: Any, rows: Any) -> Any:
    try:
        return transformer.transform(rows)
    except Exception as error:
        raise NotUnderstoodError(
            f"{type(transformer).__name__} fails on rows that were put together: {error}"
        ) from error


def columns_at(rows: Any, positions: Sequence[int]) -> Any:
    """Some columns of a frame, an array or a sparse matrix."""
    return rows.iloc[:, list(positions)] if hasattr(rows, "iloc") else rows[:, list(positions)]


def cells(model_input: Any) -> npt.NDArray[Any]:
    """Model input as a dense array of any dtype."""
    if hasattr(model_input, "toarray"):
        model_input = model_input.toarray()
    if isinstance(model_input, pd.DataFrame):
        numbers = all(isinstance(kind, np.dtype) and kind.kind in "fiub" for kind in model_input.dtypes)
        return np.asarray(model_input.astype(float if numbers else object))
    return np.asarray(model_input)


def equal_cells(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Bools:
    """Cell by cell equality with missing equal to missing."""
    if a.dtype == object or b.dtype == object:
        return np.asarray((a == b) | (pd.isna(a) & pd.isna(b)), dtype=bool)
    return np.asarray(np.isclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True))
