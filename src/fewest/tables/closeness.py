"""How far moving one feature takes a case: standard deviations for numbers, one step for everything else (rule 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.tables.arrays import Floats
from fewest.tables.schema import Feature, Schema

FEW = 32  # values of a column that are looked up one by one


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
        return GoalRows(schema, goal).distances(start)

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


class GoalRows:
    """Goal rows taken apart once, to be compared with any start rows."""

    def __init__(self, schema: Schema, goal: pd.DataFrame) -> None:
        measured: list[tuple[int, Feature, str]] = []
        named: list[tuple[int, Feature, str]] = []
        for j, feature in enumerate(schema.features):
            part = measured if feature.is_numeric or feature.kind == "datetime" else named
            part += [(j, feature, column) for column in feature.columns]
        self._measured, self._levels = measured, [_Levels(column, goal[column]) for _, _, column in named]
        self._owner = tuple(np.array([j for j, _, _ in part], dtype=np.int64) for part in (measured, named))
        self._scale = np.array([feature.scale for _, feature, _ in measured], dtype=np.float64)
        self._count = len(schema)
        self._numbers, self._codes = self._apart(goal)

    def distances(self, start: pd.DataFrame) -> Distances:
        """From these start rows."""
        numbers, codes = self._apart(start)
        return Distances(self._owner, self._scale, (numbers, self._numbers), (codes, self._codes), self._count)  # type: ignore[arg-type]

    def _apart(self, frame: pd.DataFrame) -> tuple[Floats, npt.NDArray[np.int32]]:
        numbers = np.empty((len(frame), len(self._measured)))
        for k, (_, feature, column) in enumerate(self._measured):
            numbers[:, k] = as_numbers(frame[column], feature)
        codes = np.empty((len(frame), len(self._levels)), dtype=np.int32)
        for k, levels in enumerate(self._levels):
            codes[:, k] = levels.codes(frame[levels.column])
        return numbers, codes


class _Levels:
    """The values that a column has in the goal rows, numbered."""

    def __init__(self, column: str, goal: pd.Series[Any]) -> None:
        self.column = column
        self._levels = pd.Index(pd.unique(goal.dropna().astype(object)), dtype=object)
        self._place = {level: place for place, level in enumerate(self._levels.tolist())}
        self._categories: pd.CategoricalDtype | None = None  # the last ones met, and the numbers of these
        self._of_category: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def codes(self, column: pd.Series[Any]) -> Any:
        """Numbers of values; -2 for those that no goal row has, -1 for missing ones."""
        if isinstance(column.dtype, pd.CategoricalDtype):
            if column.dtype is not self._categories:
                place = self._levels.get_indexer(column.cat.categories.astype(object))
                self._categories, self._of_category = column.dtype, np.append(np.where(place < 0, -2, place), -1)
            return self._of_category[column.array.codes]
        if len(column) <= FEW:
            return [-1 if pd.isna(value) else self._place.get(value, -2) for value in column.tolist()]
        codes, levels = pd.factorize(column)
        place = self._levels.get_indexer(levels.astype(object))
        return np.append(np.where(place < 0, -2, place), -1)[codes]


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
