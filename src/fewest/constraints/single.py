"""Constraints on one feature: immutable, one direction, a range, certain levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.closeness import as_numbers
from fewest.constraints.base import Constraint, check_names
from fewest.errors import UsageError
from fewest.options import check_word
from fewest.schema import Feature, Schema


@dataclass(frozen=True)
class Immutable(Constraint):
    """The feature never changes; several names are several such constraints.

    Examples
    --------
    >>> Immutable("age").name
    'age'
    >>> from fewest.constraints import Constraints
    >>> Constraints(Immutable("age", "sex"))
    Constraints(Immutable(name='age'), Immutable(name='sex'))
    """

    name: str

    def __init__(self, name: str | None = None, *more: str) -> None:
        names = () if name is None else (name, *more)
        check_names("Immutable", *names)
        # One name is what everything else sees: `Constraints` keeps several one by one.
        object.__setattr__(self, "name", names[0] if len(names) == 1 else names)

    def each(self) -> tuple[Constraint, ...]:
        """One constraint for each name."""
        return (self,) if isinstance(self.name, str) else tuple(Immutable(name) for name in self.name)

    def features(self) -> tuple[str, ...]:
        """Names of the features it speaks of."""
        return (self.name,) if isinstance(self.name, str) else tuple(self.name)

    def permits(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> npt.NDArray[np.bool_]:
        """No row may move it."""
        return np.zeros(len(start), dtype=bool)


@dataclass(frozen=True)
class Only(Constraint):
    """The feature changes in one direction only: numbers, dates and ordered categories.

    Examples
    --------
    >>> Only("income", "up").direction
    'up'
    """

    name: str
    direction: Literal["up", "down"]

    def __post_init__(self) -> None:
        check_names("Only", self.name)
        check_word("direction", self.direction, ("up", "down"))

    def features(self) -> tuple[str, ...]:
        """Names of the features it speaks of."""
        return (self.name,)

    def permits(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> npt.NDArray[np.bool_]:
        """Rows whose goal lies in the direction; a missing value on either side has no direction and stays."""
        feature = schema.features[schema.index(self.name)]
        a, b = (_ranks(frame, feature) for frame in (start, goal))
        return np.asarray(b >= a if self.direction == "up" else b <= a)


@dataclass(frozen=True)
class Range(Constraint):
    """The feature may only move to a value inside [low, high].

    Examples
    --------
    >>> Range("age", 18, 75).high
    75
    """

    name: str
    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        check_names("Range", self.name)
        if not self.low <= self.high:
            raise UsageError(f"the range {self.low}..{self.high} is empty", do="pass low <= high")

    def features(self) -> tuple[str, ...]:
        """Names of the features it speaks of."""
        return (self.name,)

    def permits(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> npt.NDArray[np.bool_]:
        """Rows whose goal lies in the range."""
        feature = schema.features[schema.index(self.name)]
        if not feature.is_numeric:
            raise UsageError(f'"{self.name}" is not a number', do="use OneOf for categories")
        values = as_numbers(goal[feature.columns[0]], feature)
        return np.asarray((values >= self.low) & (values <= self.high))


@dataclass(frozen=True)
class OneOf(Constraint):
    """The feature may only move to one of these levels.

    Examples
    --------
    >>> OneOf("housing", ["own", "rent"]).levels
    ('own', 'rent')
    """

    name: str
    levels: Sequence[Any]

    def __post_init__(self) -> None:
        check_names("OneOf", self.name)
        if isinstance(self.levels, str):
            raise UsageError(f"OneOf needs a list of levels, not {self.levels!r}", do=f'pass ["{self.levels}"]')
        object.__setattr__(self, "levels", tuple(self.levels))

    def features(self) -> tuple[str, ...]:
        """Names of the features it speaks of."""
        return (self.name,)

    def permits(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> npt.NDArray[np.bool_]:
        """Rows whose goal level is among them."""
        feature = schema.features[schema.index(self.name)]
        if feature.kind == "indicators":
            inside = [goal[column].to_numpy(dtype=float) == 1 for column in feature.columns if column in self.levels]
            return np.asarray(np.any(inside, axis=0)) if inside else np.zeros(len(goal), dtype=bool)
        return np.asarray(goal[feature.columns[0]].isin(list(self.levels)))


def _ranks(frame: pd.DataFrame, feature: Feature) -> npt.NDArray[np.float64]:
    """Values as numbers that can be compared."""
    column = frame[feature.columns[0]]
    if feature.is_numeric or feature.kind == "datetime":
        return as_numbers(column, feature)
    if feature.kind == "boolean":
        return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
    if feature.kind == "category" and feature.ordered:
        codes = pd.Categorical(column, categories=list(feature.levels)).codes
        return np.where(codes < 0, np.nan, codes.astype(float))
    raise UsageError(
        f'"{feature.name}" has no order, so it cannot go only up or down',
        do="use Immutable or OneOf, or make it an ordered category",
    )
