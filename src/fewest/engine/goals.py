"""What cases are led to, behind one protocol: reference points, or the leaves of a tree.

A third kind is a class with these members and a line in `goals_of`.
"""

from __future__ import annotations

from typing import Protocol

import pandas as pd

from fewest.engine.choices import Choices, TableWork
from fewest.engine.cubes import Engine
from fewest.engine.leaves import LeafGoals
from fewest.engine.model_reading import ModelReader
from fewest.engine.points import ENGINE, PointGoals
from fewest.models.trees import Reach
from fewest.references import Leaves


class Goals(Protocol):
    """One kind of goal.

    Attributes
    ----------
    reach : Reach or None
        How goals that are boxes are entered; the values that answers show come from it.
    """

    @property
    def reach(self) -> Reach | None:
        """How goals that are boxes are entered, where they are."""

    def prepare(self, frame: pd.DataFrame, deadline: float, alternatives: int) -> TableWork:
        """How parts of this table are answered; `DoubtError` where what was read of the model does not hold."""


def goals_of(chosen: Choices, reader: ModelReader, engine: Engine = ENGINE) -> Goals:
    """The goals of the references that were chosen; choices that do not fit them are refused."""
    if isinstance(chosen.references, Leaves):
        return LeafGoals(chosen, chosen.references)
    return PointGoals(chosen, reader, engine)
