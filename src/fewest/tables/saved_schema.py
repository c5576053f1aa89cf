"""A schema as plain JSON values and back; files that hold references or trees share it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np
import pandas as pd

from fewest.tables.schema import Feature, Schema

TUPLES = ("columns", "levels")
OPEN_ENDED = {"minimum": -math.inf, "maximum": math.inf}


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """Features and dtypes as plain values."""
    return {
        "features": [features_to_json(feature) for feature in schema.features],
        "dtypes": {column: str(dtype) for column, dtype in schema.dtypes.items()},
    }


def schema_from_json(features: Sequence[Mapping[str, Any]], dtypes: Mapping[str, str]) -> Schema:
    """The schema that `schema_to_json` was given."""
    known = tuple(_read_feature(feature) for feature in features)
    levels = {feature.columns[0]: feature for feature in known if len(feature.columns) == 1}
    return Schema(known, {column: _read_dtype(name, levels.get(column)) for column, name in dtypes.items()})


def features_to_json(feature: Feature) -> dict[str, Any]:
    """One feature as plain values; an open end of its range is null."""
    feature = without_extremes(feature)
    content = {part.name: plain(getattr(feature, part.name)) for part in fields(Feature)}
    # Only where it is set: fingerprints of schemas without it stay as they were.
    return {name: value for name, value in content.items() if name != "better" or value is not None}


def without_extremes(feature: Feature) -> Feature:
    """The feature with a range in round numbers: its smallest and its largest value are those of a person.

    Ends move outward to half units of their first digit: 3111 to 98765 becomes 3000 to 100000; what is round stays.
    """
    return replace(feature, minimum=-_above(-feature.minimum), maximum=_above(feature.maximum))


def _above(value: float) -> float:
    """The next round number that is not below a value."""
    if value == 0 or not math.isfinite(value):
        return value
    number = Decimal(repr(float(value)))
    unit = Decimal(5).scaleb(number.adjusted() - 1)
    return float((number / unit).to_integral_value(ROUND_CEILING) * unit)


def plain(value: Any) -> Any:
    """A value as JSON holds it; what is missing or not finite is null."""
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _read_feature(content: Mapping[str, Any]) -> Feature:
    known = {part.name for part in fields(Feature)}
    values = {name: value for name, value in content.items() if name in known}
    values.update({name: tuple(values[name]) for name in TUPLES})
    values.update({name: end for name, end in OPEN_ENDED.items() if values.get(name) is None})
    return Feature(**values)


def _read_dtype(name: str, feature: Feature | None) -> Any:
    if name == "category" and feature is not None:
        return pd.CategoricalDtype(list(feature.levels), ordered=feature.ordered)
    return pd.api.types.pandas_dtype(name)
