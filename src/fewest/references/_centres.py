"""The middle of some rows: mean or median of numbers and the most frequent level of the rest, or a real row."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.tables.closeness import as_numbers, feature_distances
from fewest.tables.schema import Feature, Schema

Centre = Literal["mean", "median", "medoid"]
CENTRES = ("mean", "median", "medoid")


def centre_of(schema: Schema, rows: pd.DataFrame, centre: Centre, pool: pd.DataFrame | None = None) -> dict[str, Any]:
    """Values of the centre of rows, not typed yet.

    Parameters
    ----------
    schema : Schema
    rows : (n, columns)
        Conformed to the schema.
    centre : str
        mean, median or medoid.
    pool : (k, columns), optional
        Rows a medoid is taken from: the one nearest to the median of ``rows``. Default: ``rows``.
    """
    if centre != "medoid":
        return _middle(schema, rows, centre)
    pool = rows if pool is None else pool
    middle = pd.DataFrame([schema.snap(_middle(schema, rows, "median"))], columns=list(schema.columns))
    goal_of = np.zeros(len(pool), dtype=np.int32)
    far: npt.NDArray[np.float64] = feature_distances(schema, pool, schema.conform(middle), goal_of)
    return dict(pool.iloc[int(np.argmin(np.round(far.sum(axis=1), 12)))])


def mode(column: pd.Series[Any]) -> Any:
    """Most frequent value; the first in order among equals; missing only where there is nothing else."""
    counts = column.value_counts(dropna=True)
    if len(counts) == 0:
        return np.nan
    top = counts.index[counts.to_numpy() == counts.to_numpy().max()].tolist()
    return min(top, key=lambda level: (str(type(level)), level if not isinstance(level, str) else 0, str(level)))


def _middle(schema: Schema, rows: pd.DataFrame, centre: str) -> dict[str, Any]:
    values = {
        column: _column_middle(rows[column], feature, centre)
        for feature in schema.features
        for column in feature.columns
    }
    values.update(_group_modes(schema, rows))
    return values


def _column_middle(column: pd.Series[Any], feature: Feature, centre: str) -> Any:
    if feature.is_numeric or feature.kind == "datetime":
        numbers = as_numbers(column, feature)
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers) == 0:
            return np.nan
        middle = float(np.mean(numbers) if centre == "mean" else np.median(numbers))
        if feature.kind == "datetime":
            unit = np.datetime_data(column.dtype.base if hasattr(column.dtype, "base") else column.dtype)[0]
            return pd.Timestamp(int(middle), unit=unit, tz=getattr(column.dtype, "tz", None))
        return middle
    return mode(column)


def _group_modes(schema: Schema, rows: pd.DataFrame) -> dict[str, Any]:
    """For a one-hot group the most frequent level, for any other group its most frequent combination."""
    values: dict[str, Any] = {}
    for feature in schema.features:
        if len(feature.columns) == 1 and feature.kind not in ("indicators", "group"):
            continue
        columns = list(feature.columns)
        codes, combinations = pd.factorize(pd.MultiIndex.from_frame(rows[columns]))
        best = int(np.argmax(np.bincount(codes)))
        values.update(zip(columns, combinations[best], strict=True))
    return values
