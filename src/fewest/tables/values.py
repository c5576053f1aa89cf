"""Single values of a table in the type people know them by: a level, a whole number, a date, the parts of a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.tables.schema import Feature, Schema
from fewest.tables.wording import is_missing, shortest


@dataclass(frozen=True, eq=False)
class Cells:
    """A table to read single values from.

    Columns are kept apart: a row taken out of a pandas table has one dtype, in which whole numbers become fractions and
    narrow floats wide ones.

    Examples
    --------
    >>> cells = Cells.of(pd.DataFrame({"age": [30, 40], "rate": np.array([0.1, 0.2], dtype="float32")}))
    >>> schema = Schema.infer(pd.DataFrame({"age": [30, 40], "rate": np.array([0.1, 0.2], dtype="float32")}))
    >>> [cells.value(1, feature) for feature in schema.features]
    [40, 0.2]
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
    """A feature's value: the level of a one-hot group, the parts of any other group.

    Examples
    --------
    >>> value_of(Feature("job", "indicators", ("none", "clerk")), {"none": 0, "clerk": 1})
    'clerk'
    """
    if feature.kind == "indicators":
        return next((column for column in feature.columns if values.get(column) == 1), None)
    if len(feature.columns) > 1:
        return {column: values.get(column) for column in feature.columns}
    value = values.get(feature.columns[0])
    return None if value is None or pd.isna(value) else value.item() if isinstance(value, np.generic) else value


def typed(value: Any, feature: Feature) -> Any:
    """A cell in its feature's own type, None where it is missing.

    Examples
    --------
    >>> age = Feature("age", "integer", ("age",))
    >>> typed(40.0, age), typed(float("nan"), age)
    (40, None)
    """
    if is_missing(value):
        return None
    if feature.kind == "integer" and float(value).is_integer():
        return int(value)
    if feature.kind == "number":
        return shortest(value)
    if feature.kind == "boolean":
        return bool(value)
    return value.item() if isinstance(value, np.generic) else value


def written(schema: Schema, name: str, value: Any) -> dict[str, Any]:
    """Cells of a feature's columns that hold a value: the inverse of `Cells.value`.

    Examples
    --------
    >>> home = Feature("home", "indicators", ("own", "rent"), levels=("own", "rent"))
    >>> written(Schema((home,)), "home", "rent")
    {'own': 0, 'rent': 1}
    """
    feature = schema.features[schema.index(name)]
    if feature.kind == "indicators":
        return {column: int(column == value) for column in feature.columns}
    if len(feature.columns) > 1:
        return {column: value[column] for column in feature.columns}
    return {feature.columns[0]: value}
