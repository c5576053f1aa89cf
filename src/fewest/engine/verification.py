"""The last word: every answer is re-scored by the user's own model from typed raw values; nothing else leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision, Verdicts
from fewest.tables.arrays import Bools, Floats
from fewest.tables.frames import mix
from fewest.tables.schema import Schema


@dataclass(frozen=True)
class Vertices:
    """Raw rows between cases and references."""

    # decision, schema: Whose rows these are
    decision: Decision
    schema: Schema
    start: pd.DataFrame  # (k, columns): Where cubes start
    goal: pd.DataFrame  # (m, columns): Where moved features take their values from
    goal_of: npt.NDArray[Any]  # (n,) int: Row of ``goal`` of each cube
    sign: int = 1  # +1 where a turned row is one decided negative (SEV-), -1 where it is one decided positive (SEV+)
    start_of: npt.NDArray[Any] | None = None  # (n,) int: Row of ``start`` of each cube. Default: the rows in order.

    def rows(self, cubes: npt.NDArray[Any], features: Bools) -> pd.DataFrame:
        """Typed raw rows of vertices: cube numbers (v,) and the features (v, p) taken from the goal."""
        take = {column: features[:, j] for column, j in self.schema.feature_of.items()}
        start = cubes if self.start_of is None else self.start_of[cubes]
        return mix(self.start.iloc[start], self.goal, self.goal_of[cubes], take)

    def verdicts(self, cubes: npt.NDArray[Any], features: Bools) -> Verdicts:
        """The model's own decision on vertices, near ties scored alone."""
        return self.decision.verdicts(self.rows(cubes, features))

    def turned(self, verdicts: Verdicts) -> Bools:
        """Which of these decisions are turned."""
        return ~verdicts.positive if self.sign > 0 else verdicts.positive

    def signed(self, cubes: npt.NDArray[Any], features: Bools) -> Floats:
        """Signed scores for the level-wise search: turned means below zero."""
        return np.asarray(self.sign * (self.decision.score(self.rows(cubes, features)) - self.decision.cut))
