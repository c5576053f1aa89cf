"""The numeric table scikit-learn's trees are fitted on: numbers as they are, one 0/1 column per level of the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError
from fewest.models.trees.tree import encode_feature, has_levels
from fewest.tables.schema import Schema

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class WideColumns:
    """Which feature, and which of its levels, each column of the wide table stands for.

    Attributes
    ----------
    feature : (d,) int32
    level : (d,) int32
        Code of the level the column is 1 for; -1 for a number.
    """

    feature: Ints
    level: Ints

    @classmethod
    def of(cls, schema: Schema) -> WideColumns:
        """One column for a number and for a feature of two levels (1 for the second), else one per level."""
        pairs: list[tuple[int, int]] = []
        for j, feature in enumerate(schema.features):
            if not has_levels(feature):
                pairs.append((j, -1))
            elif len(feature.levels) == 2:
                pairs.append((j, 1))
            else:
                pairs.extend((j, code) for code in range(len(feature.levels)))
        table = np.array(pairs, dtype=np.int32).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1])

    def __len__(self) -> int:
        return len(self.feature)

    def spread(self, codes: Floats) -> Floats:
        """Wide table (n, d) of codes (n, features); a missing number stays NaN, a missing level is 0 everywhere."""
        picked = codes[:, self.feature]
        return np.where(self.level < 0, picked, picked == self.level)


def encode_all(schema: Schema, frame: pd.DataFrame) -> Floats:
    """Codes of every feature (n, features): what a tree is grown on."""
    codes = np.empty((len(frame), len(schema)), order="F")
    for j, feature in enumerate(schema.features):
        if feature.kind in ("group", "datetime"):
            raise DataError(
                f'"{feature.name}" is a feature of kind {feature.kind}, which a tree has no test for',
                do="turn it into numbers or levels first, say years or weekdays of a date",
            )
        codes[:, j] = encode_feature(feature, frame)
    return codes
