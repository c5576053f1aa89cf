"""What is kept of the people references are made of: quantiles of single numbers, never a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fewest.tables.arrays import Floats
from fewest.tables.closeness import as_numbers
from fewest.tables.schema import Schema

Range = tuple[float, float]

POINTS = 201
LOW, HIGH = 0.1, 0.9
FEW = 10  # the range of fewer people is all but a list of them, and is not kept


@dataclass(frozen=True, eq=False)
class Spread:
    """How the numbers of accepted cases spread, in all and around each reference."""

    # Column of a numeric feature -> its quantiles among all negatives at evenly spaced levels from 0 to 1
    quantiles: Mapping[str, Floats] = field(default_factory=dict)
    # For each reference: column -> 10 % and 90 % quantile of the people it stands for. Empty where those are fewer
    # than 10 or not known.
    ranges: tuple[Mapping[str, Range], ...] = ()

    @classmethod
    def of(cls, schema: Schema, rows: pd.DataFrame, groups: Sequence[pd.DataFrame] = ()) -> Spread:
        """Read off all negatives, and the people of each reference; both conformed to the schema."""
        ranges = tuple(middle_range(schema, group) if len(group) >= FEW else {} for group in groups)
        return cls(sketch(schema, rows), ranges)

    def to_dict(self) -> dict[str, list[float]]:
        """The quantiles as plain lists, without the smallest and the largest value: those are a person's.

        The next quantiles stand in their places; half a per cent of the cases is beyond each.
        """
        inner = {column: np.clip(values, *values[[1, -2]]) for column, values in self.quantiles.items()}
        return {column: [float(value) for value in values] for column, values in inner.items()}


def numeric_columns(schema: Schema) -> list[str]:
    """Columns of the features that are numbers."""
    return [feature.columns[0] for feature in schema.features if feature.is_numeric]


def sketch(schema: Schema, rows: pd.DataFrame) -> dict[str, Floats]:
    """Quantiles of each numeric column at evenly spaced levels; columns without a finite number are left out."""
    levels = np.linspace(0.0, 1.0, POINTS)
    found = {column: _finite(schema, rows, column) for column in numeric_columns(schema)}
    return {column: np.quantile(values, levels) for column, values in found.items() if len(values)}


def middle_range(schema: Schema, rows: pd.DataFrame) -> dict[str, Range]:
    """10 % and 90 % quantile of each numeric column."""
    ranges = {}
    for column in numeric_columns(schema):
        values = _finite(schema, rows, column)
        if len(values):
            low, high = np.quantile(values, (LOW, HIGH))
            decimals = schema.features[schema.feature_of[column]].decimals + 1
            ranges[column] = (round(float(low), decimals), round(float(high), decimals))
    return ranges


def position(quantiles: Floats, value: float) -> float:
    """Level of a value among quantiles: the middle of its levels where many cases have that very value."""
    levels = np.linspace(0.0, 1.0, len(quantiles))
    first, after = (int(np.searchsorted(quantiles, value, side=side)) for side in ("left", "right"))
    if first < after:
        return float(levels[first] + levels[after - 1]) / 2
    # Between two quantiles, or outside all of them: then np.interp stays at the end.
    return float(np.interp(value, quantiles[max(first - 1, 0) : first + 1], levels[max(first - 1, 0) : first + 1]))


def band(quantiles: Floats, value: float, eps: float) -> Range:
    """Values whose level is within eps of the value's own, clipped to [0, 1]."""
    level = position(quantiles, value)
    low, high = at_levels(quantiles, np.array([max(0.0, level - eps), min(1.0, level + eps)]))
    return float(low), float(high)


def at_levels(quantiles: Floats, levels: Floats) -> Floats:
    """Values at some levels, by straight lines between the quantiles that are kept."""
    places = np.round(levels * (len(quantiles) - 1), 9)  # whole where a quantile is kept: no noise of sums
    return np.asarray(np.interp(places, np.arange(len(quantiles)), quantiles))


def _finite(schema: Schema, rows: pd.DataFrame, column: str) -> Floats:
    feature: Any = schema.features[schema.feature_of[column]]
    numbers = as_numbers(rows[column], feature)
    return numbers[np.isfinite(numbers)]
