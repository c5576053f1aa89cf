"""The space rows are clustered in: the model's own encoding where it can be read, a plain one of the schema elsewhere.

Numbers are standardised on the rows the space is made from, everything else is one column of 0 and 1 per level; a
missing number lies in the middle, a missing or unknown level is not a level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.engine.encoding import Encoding, cells
from fewest.tables.arrays import Floats
from fewest.tables.closeness import as_numbers
from fewest.tables.schema import Feature, Schema


@dataclass(frozen=True, eq=False)
class ClusterSpace:
    """A fixed map from raw rows to points; each row is mapped by itself.

    Attributes
    ----------
    schema : Schema
    encoding : Encoding or None
        The model's own, where it is used.
    middle, spread : (columns,)
        What encoded columns are standardised with; 0 and 1 for columns of levels.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 3, 8, 9], "age": [30, 50, 30, 50]})
    >>> decision = Decision(LogisticRegression().fit(X, [0, 0, 1, 1]))
    >>> ClusterSpace.read(decision, Schema.infer(X), X.iloc[:2]).encode(X).tolist()
    [[-1.0, -1.0], [1.0, 1.0], [6.0, -1.0], [7.0, 1.0]]
    """

    schema: Schema
    encoding: Encoding | None
    middle: Floats
    spread: Floats

    @classmethod
    def read(cls, decision: Decision, schema: Schema, rows: pd.DataFrame) -> ClusterSpace:
        """The space of a decision's rows.

        Parameters
        ----------
        decision : Decision
        schema : Schema
        rows : (n, columns)
            Rows to standardise with, conformed to the schema.
        """
        encoding: Encoding | None = Encoding.read(decision, schema)
        values = None if encoding is None else _own_encoding(encoding, rows)
        if encoding is None or encoding.feature_of is None or values is None:
            encoding, values = None, _plain(schema, rows)
            numeric = _plain_numeric(schema)
        else:
            kinds = np.array([feature.is_numeric for feature in schema.features] + [False])
            numeric = kinds[encoding.feature_of]
        middle, spread = np.zeros(len(numeric)), np.ones(len(numeric))
        middle[numeric] = _finite_mean(values[:, numeric])
        spread[numeric] = np.sqrt(_finite_mean((values[:, numeric] - middle[numeric]) ** 2))
        return cls(schema, encoding, middle, np.where(spread > 0, spread, 1.0))

    def encode(self, rows: pd.DataFrame) -> Floats:
        """Points of rows, (n, columns)."""
        values = None if self.encoding is None else _own_encoding(self.encoding, rows)
        if values is None:
            values = _plain(self.schema, rows)
        points = (values - self.middle) / self.spread
        return np.where(np.isfinite(points), points, 0.0)


def _own_encoding(encoding: Encoding, rows: pd.DataFrame) -> Floats | None:
    """What the final model is fed, as numbers; None where that is not the feature's columns or not numbers."""
    if encoding.feature_of is None:
        return None
    values = cells(encoding.transform(rows))
    if values.ndim != 2 or values.shape[1] != len(encoding.feature_of):
        return None
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _finite_mean(values: Floats) -> Floats:
    """Mean of each column over its finite cells; 0 where there is none."""
    known = np.isfinite(values)
    return np.asarray(np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


def _levels(feature: Feature) -> tuple[Any, ...]:
    """Levels that get a column of their own; none where the column is a number."""
    if feature.kind == "boolean":
        return (True,)
    return feature.levels if feature.kind == "category" else ()


def _plain_numeric(schema: Schema) -> npt.NDArray[np.bool_]:
    """Which columns of `_plain` are standardised."""
    standard = []
    for feature in schema.features:
        measured = feature.is_numeric or feature.kind in ("datetime", "group")
        standard += [measured] * max(len(_levels(feature)), 1) * len(feature.columns)
    return np.array(standard, dtype=bool)


def _plain(schema: Schema, rows: pd.DataFrame) -> Floats:
    """A plain encoding of the schema's columns, in their order."""
    parts = [_columns(rows[column], feature) for feature in schema.features for column in feature.columns]
    return np.column_stack(parts) if len(rows) else np.empty((0, len(_plain_numeric(schema))))


def _columns(column: pd.Series[Any], feature: Feature) -> Floats:
    """One raw column as one column of numbers or one per level, (n, 1) or (n, levels)."""
    levels = _levels(feature)
    if levels:
        return np.column_stack([(column == level).to_numpy(dtype=float, na_value=0.0) for level in levels])
    if feature.is_numeric or feature.kind in ("datetime", "indicators"):
        return as_numbers(column, feature)[:, None]
    numbers = pd.to_numeric(column, errors="coerce")  # a group of any columns: text in it does not count
    return np.asarray(numbers.to_numpy(dtype=float, na_value=np.nan))[:, None]
