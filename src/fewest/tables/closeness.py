"""How far moving one feature takes a case: standard deviations for numbers, one step for everything else (rule 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.tables.arrays import Floats
from fewest.tables.schema import Feature, Schema


@dataclass(frozen=True, eq=False)
class Distances:
    """Start and goal rows as arrays, so that the distances of any pairs of them are a few array operations."""

    # Feature of each numeric column, and of each column that is compared level by level
    owner: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    scale: Floats  # (numeric columns,) float64
    numbers: tuple[Floats, Floats]  # Of start and goal
    codes: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]  # Equal values have equal codes
    count: int  # Features

    @classmethod
    def read(cls, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> Distances:
        """Take the rows apart: numbers and dates, and everything else."""
        measured: list[tuple[int, Feature, str]] = []
        named: list[tuple[int, Feature, str]] = []
        for j, feature in enumerate(schema.features):
            part = measured if feature.is_numeric or feature.kind == "datetime" else named
            part += [(j, feature, column) for column in feature.columns]
        numbers = tuple(
            np.column_stack([np.empty((len(frame), 0)), *(as_numbers(frame[c], f) for _, f, c in measured)])
            for frame in (start, goal)
        )
        pairs = [_codes(start[column], goal[column]) for _, _, column in named]
        codes = tuple(
            np.column_stack([np.empty((len(frame), 0), dtype=np.int32), *(pair[side] for pair in pairs)])
            for side, frame in enumerate((start, goal))
        )
        owner = tuple(np.array([j for j, _, _ in part], dtype=np.int64) for part in (measured, named))
        scale = np.array([feature.scale for _, feature, _ in measured], dtype=np.float64)
        return cls(owner, scale, numbers, codes, len(schema))  # type: ignore[arg-type]

    def absent(self) -> npt.NDArray[np.bool_]:
        """Which cells of the start rows are missing (n, columns)."""
        return np.concatenate([np.isnan(self.numbers[0]), self.codes[0] == -1], axis=1)

    def between(self, rows: npt.NDArray[Any], goal_of: npt.NDArray[Any]) -> Floats:
        """Distance of each feature (len(rows), p) from start to goal rows; 0 exactly where the values are equal."""
        a, b = self.numbers[0][rows], self.numbers[1][goal_of]
        with np.errstate(invalid="ignore"):
            step = np.abs(a - b) / self.scale
        step[a == b] = 0.0  # inf - inf
        lost = np.isnan(a) != np.isnan(b)
        step = np.where(lost, 1.0, np.nan_to_num(step, nan=0.0, posinf=np.finfo(float).max))
        other = (self.codes[0][rows] != self.codes[1][goal_of]).astype(np.float64)
        return self._by_feature(np.concatenate([step, other], axis=1))

    def _by_feature(self, steps: Floats) -> Floats:
        """The largest step among the columns of each feature."""
        owner = np.concatenate(self.owner)
        if len(owner) == self.count:
            out = np.empty_like(steps)
            out[:, owner] = steps
            return out
        out = np.zeros((len(steps), self.count))
        for column, j in enumerate(owner.tolist()):
            np.maximum(out[:, j], steps[:, column], out=out[:, j])
        return out

    def totals(self, count: int | None = None) -> Floats:
        """Summed distance of every start row to every goal row (n, m), or to the first ``count`` of them."""
        n, m = len(self.numbers[0]), len(self.numbers[1]) if count is None else count
        everywhere = np.arange(n)
        return np.column_stack([self.between(everywhere, np.full(n, k)).sum(axis=1) for k in range(m)])


def _codes(start: pd.Series[Any], goal: pd.Series[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Codes of the goal's values; those of the start that no goal has get -2, missing ones -1."""
    levels = pd.Index(pd.unique(goal.dropna().astype(object)), dtype=object)
    return tuple(  # type: ignore[return-value]
        np.where(column.isna().to_numpy(), -1, _found(levels, column)).astype(np.int32) for column in (start, goal)
    )


def _found(levels: pd.Index[Any], column: pd.Series[Any]) -> npt.NDArray[np.int64]:
    """Position of each value among the levels, -2 where it is not one of them."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        of_level = levels.get_indexer(column.cat.categories.astype(object))
        place = np.append(of_level, -1)[column.cat.codes.to_numpy()]
    else:
        place = levels.get_indexer(column.astype(object))
    return np.where(place < 0, -2, place)


def feature_distances(schema: Schema, start: pd.DataFrame, goal: pd.DataFrame, goal_of: npt.NDArray[Any]) -> Floats:
    """Distance of each feature of each row to its goal row; 0 exactly where the values are equal."""
    return Distances.read(schema, start, goal).between(np.arange(len(start)), goal_of)


def as_numbers(column: pd.Series[Any], feature: Feature) -> npt.NDArray[np.float64]:
    """A numeric or datetime column as floats; missing is NaN."""
    if feature.kind == "datetime":
        stamps = column.astype("int64").to_numpy(dtype=float)
        return np.where(column.isna().to_numpy(), np.nan, stamps)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiub":
        return np.asarray(column.to_numpy(dtype=float))
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))


def ordered_numbers(feature: Feature, frame: pd.DataFrame) -> Floats:
    """A feature's values as numbers or ranks; NaN where they are missing or have no order."""
    column = frame[feature.columns[0]]
    if feature.is_numeric or feature.kind == "datetime":
        return as_numbers(column, feature)
    if feature.kind == "boolean":
        return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
    if feature.kind == "category" and feature.ordered:
        codes = pd.Categorical(column, categories=list(feature.levels)).codes
        return np.where(codes < 0, np.nan, codes.astype(float))
    return np.full(len(frame), np.nan)
