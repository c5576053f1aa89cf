"""How far moving one feature takes a case: standard deviations for numbers, one step for everything else (rule 11)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.schema import Feature, Schema


def feature_distances(
    schema: Schema, start: pd.DataFrame, goal: pd.DataFrame, goal_of: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Distance of each feature of each row to its goal row; 0 exactly where the values are equal.

    Parameters
    ----------
    start : (n, columns)
        Rows, conformed to the schema.
    goal : (m, columns)
        Goal rows, conformed to the schema.
    goal_of : (n,) int
        Goal row of each row.

    Returns
    -------
    (n, p) float64

    Examples
    --------
    >>> X = pd.DataFrame({"age": [30, 50], "job": ["a", "b"]})
    >>> feature_distances(Schema.infer(X), X, X.iloc[[0]], np.array([0, 0])).tolist()
    [[0.0, 0.0], [2.0, 1.0]]
    """
    out = np.zeros((len(start), len(schema)))
    for j, feature in enumerate(schema.features):
        for column in feature.columns:
            step = _column_distance(feature, start[column], goal[column], goal_of)
            np.maximum(out[:, j], step, out=out[:, j])
    return out


def _column_distance(
    feature: Feature, start: pd.Series[Any], goal: pd.Series[Any], goal_of: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    if feature.is_numeric or feature.kind == "datetime":
        a, b = as_numbers(start, feature), as_numbers(goal, feature)[goal_of]
        with np.errstate(invalid="ignore"):
            step = np.abs(a - b) / feature.scale
        step = np.where(a == b, 0.0, step)  # inf - inf
        lost = np.isnan(a) != np.isnan(b)
        return np.where(lost, 1.0, np.nan_to_num(step, nan=0.0, posinf=np.finfo(float).max))
    if len(goal) == 1:
        value = goal.iloc[0]
        different = start.notna() if pd.isna(value) else (start != value)
        return np.asarray(different.to_numpy(dtype=bool, na_value=True), dtype=np.float64)
    codes, _ = pd.factorize(pd.concat([start.astype(object), goal.astype(object)], ignore_index=True))
    return np.asarray(codes[: len(start)] != codes[len(start) :][goal_of], dtype=np.float64)


def as_numbers(column: pd.Series[Any], feature: Feature) -> npt.NDArray[np.float64]:
    """A numeric or datetime column as floats; missing is NaN."""
    if feature.kind == "datetime":
        stamps = column.astype("int64").to_numpy(dtype=float)
        return np.where(column.isna().to_numpy(), np.nan, stamps)
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
