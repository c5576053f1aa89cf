"""The values that a feature may take: those on its own grid that accepted cases have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fewest.tables.arrays import Bools, Floats
from fewest.tables.closeness import as_numbers, ordered_numbers
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import decoded, typed_column, written

MOST_VALUES = 50_000  # of one feature; finer grids are thinned evenly


@dataclass(frozen=True, eq=False)
class Domain:
    """The values that one feature may take, in order."""

    feature: Feature
    frame: pd.DataFrame  # (m, columns): All columns, those of other features as in the typical case
    number: Floats  # (m,): The values as numbers, or their ranks; NaN where they have no order

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def measured(self) -> bool:
        """Whether values are numbers or dates, so that one can be nearer than another."""
        return self.feature.is_numeric or self.feature.kind == "datetime"

    def stated(self) -> dict[str, Any]:
        """The values as JSON holds them: the ends of a grid, or each of them."""
        feature = self.feature
        if feature.is_numeric and len(self) and len(self) < MOST_VALUES:
            decimals = 0 if feature.kind == "integer" else feature.decimals
            return {"low": float(self.number[0]), "high": float(self.number[-1]), "decimals": decimals}
        return {"values": [plain(value) for value in typed_column(feature, self.frame)]}

    def take(self, kept: Bools) -> Domain:
        """Some of the values."""
        return self if kept.all() else replace(self, frame=self.frame[kept], number=self.number[kept])


def read_domain(
    schema: Schema, feature: Feature, rows: pd.DataFrame, typical: pd.DataFrame, low: float, high: float
) -> Domain:
    """The values of one feature that accepted cases have."""
    cells = rows[list(feature.columns)].dropna()
    if feature.is_numeric:
        values = _grid(feature, as_numbers(cells[feature.columns[0]], feature), low, high)
        cells = pd.DataFrame({feature.columns[0]: values})
    elif feature.kind == "datetime":
        numbers = as_numbers(cells[feature.columns[0]], feature)
        ends = np.quantile(numbers, [low, high]) if len(numbers) else (0.0, 0.0)
        cells = cells[(numbers >= ends[0]) & (numbers <= ends[1])].drop_duplicates()
    else:
        cells = cells.drop_duplicates()
    frame = _rows_of(schema, feature, typical, cells)
    number = ordered_numbers(feature, frame)
    rank = number if not np.isnan(number).all() else _places(feature, frame)
    order = np.argsort(rank, kind="stable")[_thin(len(frame))]
    return Domain(feature, frame.iloc[order].reset_index(drop=True), number[order])


def domain_from(schema: Schema, feature: Feature, typical: pd.DataFrame, stated: Mapping[str, Any]) -> Domain:
    """The domain of which `Domain.stated` was asked; a `ValueError` where there would be too many values."""
    if "values" in stated:
        values = [decoded(value, feature, schema) for value in stated["values"]]
        cells = pd.DataFrame([written(schema, feature.name, value) for value in values], columns=list(feature.columns))
    else:
        step = 10.0 ** int(stated["decimals"])
        first, last = (round(float(stated[end]) * step) for end in ("low", "high"))
        if not 0 <= last - first < MOST_VALUES:
            raise ValueError(f"the values of {feature.name} are not a grid")
        numbers = np.round(np.arange(first, last + 1) / step, int(stated["decimals"]))
        cells = pd.DataFrame({feature.columns[0]: numbers})
    frame = _rows_of(schema, feature, typical, cells)
    return Domain(feature, frame, ordered_numbers(feature, frame))


def _rows_of(schema: Schema, feature: Feature, typical: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """The typical case with each of these values of a feature."""
    frame = typical.iloc[np.zeros(len(cells), dtype=int)].reset_index(drop=True)
    return schema.conform(frame.assign(**{name: cells[name].array for name in feature.columns}), unseen="allow")


def domain_of(schema: Schema, feature: Feature, like: pd.DataFrame, values: Floats) -> Domain:
    """Numbers of a feature as its domain, the other features as in the first row of ``like``."""
    if len(values) == 0:
        return Domain(feature, like.iloc[:0].reset_index(drop=True), values)
    frame = _rows_of(schema, feature, like, pd.DataFrame({feature.columns[0]: values}))
    number, place = np.unique(as_numbers(frame[feature.columns[0]], feature), return_index=True)
    return Domain(feature, frame.iloc[place].reset_index(drop=True), number)


def _grid(feature: Feature, numbers: Floats, low: float, high: float) -> Floats:
    """The values on the feature's grid inside the band of quantiles; the middle alone where none is."""
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) == 0:
        return np.empty(0)
    decimals = 0 if feature.kind == "integer" else feature.decimals
    least, most = np.quantile(numbers, [low, high])
    first, last = (np.round(end * 10.0**decimals, 6) for end in (least, most))
    first, last = np.ceil(first), np.floor(last)
    if not first <= last:
        return np.round(np.array([np.median(numbers)]), decimals)
    steps = first + (np.arange(int(last - first) + 1)[_thin(int(last - first) + 1)])
    return np.asarray(np.round(steps / 10.0**decimals, decimals))


def _thin(count: int) -> Any:
    """Places of at most `MOST_VALUES` values, evenly spread."""
    if count <= MOST_VALUES:
        return slice(None)
    return np.unique(np.linspace(0, count - 1, MOST_VALUES).round().astype(np.int64))


def _places(feature: Feature, frame: pd.DataFrame) -> Floats:
    """Places of levels in the order the schema lists them."""
    if feature.kind == "indicators":
        return np.asarray(frame[list(feature.columns)].to_numpy(dtype=float).argmax(axis=1), dtype=float)
    if feature.kind == "category":
        return np.asarray(pd.Index(list(feature.levels), dtype=object).get_indexer(
            frame[feature.columns[0]].astype(object)), dtype=float)  # fmt: skip
    return np.arange(len(frame), dtype=float)
