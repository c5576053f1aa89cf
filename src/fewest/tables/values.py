"""Single values of a table in the type people know them by: a level, a whole number, a date, the parts of a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.tables.schema import Feature, Schema
from fewest.tables.wording import NARROW, Shortened, is_missing, shortest

NARROW_DTYPES = tuple(np.dtype(kind) for kind in NARROW)


@dataclass(frozen=True, eq=False)
class Cells:
    """A table to read single values from.

    Columns are kept apart: a row taken out of a pandas table has one dtype, in which whole numbers become fractions and
    narrow floats wide ones.
    """

    arrays: Mapping[str, Any]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Cells:
        """The columns of a table; nothing is copied."""
        return cls({name: frame[name].array for name in frame.columns})

    def value(self, row: int, feature: Feature) -> Any:
        """A feature's value in a row: the level of a one-hot group, the parts of any other group."""
        if len(feature.columns) == 1 and feature.kind != "indicators":
            return typed(self.arrays[feature.columns[0]][row], feature)
        return value_of(feature, {column: typed(self.arrays[column][row], feature) for column in feature.columns})


def value_of(feature: Feature, values: Mapping[str, Any] | pd.Series[Any]) -> Any:
    """A feature's value: the level of a one-hot group, the parts of any other group."""
    if feature.kind == "indicators":
        return next((column for column in feature.columns if values.get(column) == 1), None)
    if len(feature.columns) > 1:
        return {column: values.get(column) for column in feature.columns}
    value = values.get(feature.columns[0])
    return None if value is None or pd.isna(value) else value.item() if isinstance(value, np.generic) else value


def typed_column(feature: Feature, frame: pd.DataFrame) -> list[Any]:
    """A feature's value in each row of a table."""
    cells = Cells.of(frame[list(feature.columns)])
    return [cells.value(row, feature) for row in range(len(frame))]


def typed(value: Any, feature: Feature) -> Any:
    """A cell in its feature's own type, None where it is missing."""
    if is_missing(value):
        return None
    if feature.kind == "integer" and float(value).is_integer():
        return int(value)
    if feature.kind == "number":
        return shortest(value)
    if feature.kind == "boolean":
        return bool(value)
    return value.item() if isinstance(value, np.generic) else value


def shortened(value: Any, feature: Feature, more: int | None) -> Any:
    """A case's value that prints with this many decimals more than its feature has; None or less than zero: all."""
    if more is None or more < 0 or feature.kind != "number" or not isinstance(value, float):
        return value
    return Shortened(value, feature.decimals + more)


def as_printed(schema: Schema, frame: pd.DataFrame, more: int) -> pd.DataFrame:
    """The table with its numbers as they read where they are printed with this many decimals more than their features.

    Columns of whole numbers, and those of groups, are printed as they are.
    """
    out = frame.copy(deep=False)
    for feature in schema.features:
        column, dtype = feature.columns[0], frame[feature.columns[0]].dtype
        if feature.kind != "number" or not pd.api.types.is_float_dtype(dtype):
            continue
        values = frame[column].to_numpy(dtype=float, na_value=np.nan)
        if dtype in NARROW_DTYPES:
            values = np.array([shortest(dtype.type(value)) for value in values], dtype=float)
        out[column] = pd.array(np.round(values, feature.decimals + more), dtype=dtype)
    return out


def decoded(value: Any, feature: Feature, schema: Schema) -> Any:
    """A feature's value as JSON held it, typed again."""
    if isinstance(value, dict):
        return {column: decoded_cell(part, column, feature, schema) for column, part in value.items()}
    return value if feature.kind == "indicators" else decoded_cell(value, feature.columns[0], feature, schema)


def decoded_cell(value: Any, column: str, feature: Feature, schema: Schema) -> Any:
    """One cell of a feature as JSON held it, typed again."""
    dtype = schema.dtypes.get(column)
    if value is not None and (feature.kind == "datetime" or getattr(dtype, "kind", "") == "M"):
        return typed(pd.Timestamp(value), feature)
    if isinstance(value, float) and dtype in NARROW_DTYPES:
        return typed(dtype.type(value), feature)
    return typed(value, feature)


def decoded_row(row: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Feature -> its value in a row of plain cells, as JSON or Arrow hold them."""
    return {
        feature.name: value_of(
            feature, {name: decoded_cell(row[name], name, feature, schema) for name in feature.columns}
        )
        for feature in schema.features
    }


def is_worse(feature: Feature, before: Any, after: Any) -> bool:
    """Whether a change goes away from what is better; one that has no order, or begins or ends nowhere, never does.

    Examples
    --------
    >>> debt = Feature("debt", "integer", ("debt",), better="down")
    >>> is_worse(debt, 0, 335), is_worse(debt, 335, 0), is_worse(debt, None, 335)
    (True, False, False)
    """
    if feature.better is None or is_missing(before) or is_missing(after) or before == after:
        return False
    if feature.kind == "category":
        if not feature.ordered or before not in feature.levels or after not in feature.levels:
            return False
        before, after = (feature.levels.index(value) for value in (before, after))
    elif feature.kind not in ("number", "integer", "boolean", "datetime"):
        return False
    return bool(after > before) != (feature.better == "up")


def written(schema: Schema, name: str, value: Any) -> dict[str, Any]:
    """Cells of a feature's columns that hold a value: the inverse of `Cells.value`."""
    feature = schema.features[schema.index(name)]
    if feature.kind == "indicators":
        return {column: int(column == value) for column in feature.columns}
    if len(feature.columns) > 1:
        return {column: value[column] for column in feature.columns}
    return {feature.columns[0]: value}
