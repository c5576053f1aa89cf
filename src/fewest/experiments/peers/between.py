"""Scores of rows between cases and goals, for methods that take whole values over from another row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.engine.model_reading import ModelReading
from fewest.engine.structure import Opaque
from fewest.engine.verification import Vertices
from fewest.experiments.peers.base import Bools, Floats
from fewest.tables.schema import Schema

SAMPLE = 48


def read_inside(decision: Decision, schema: Schema, rows: pd.DataFrame) -> ModelReading:
    """What can be read of a model, tried on training rows mixed with each other."""
    sample = rows.iloc[:SAMPLE]
    return ModelReading.read(decision, schema, sample, sample.iloc[::-1])


@dataclass(frozen=True, eq=False)
class Between:
    """Cases, the goal of each, and everything between them.

    ``start`` and ``goal`` are cases and goals as the structure takes them; without columns where nothing was read.
    """

    vertices: Vertices
    inside: ModelReading
    start: Floats
    goal: Floats

    @classmethod
    def read(
        cls, decision: Decision, schema: Schema, inside: ModelReading, cases: pd.DataFrame, goals: pd.DataFrame
    ) -> Between:
        """Cases (n, columns) and the goal of each (n, columns), both conformed to the schema."""
        vertices = Vertices(decision, schema, cases, goals, np.arange(len(cases)))
        prepared = (inside.prepare(inside.encoding.transform(rows)) for rows in (cases, goals))
        return cls(vertices, inside, *prepared)

    def excess(self, cubes: npt.NDArray[Any], features: Bools) -> Floats:
        """Score less threshold of vertices: case numbers (v,) and the features (v, p) taken from the goal."""
        structure = self.inside.structure
        if isinstance(structure, Opaque):
            return self.vertices.signed(cubes, features)
        mixed = np.where(features[:, self.inside.feature_of()], self.goal[cubes], self.start[cubes])
        return np.asarray(structure.raw(mixed) - structure.reading.cut)

    def rows(self, features: Bools) -> pd.DataFrame:
        """The raw rows with these features (n, p) taken from each case's goal."""
        return self.vertices.rows(np.arange(len(features)), features)
