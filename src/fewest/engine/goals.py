"""What cases are led to, behind one protocol: reference points, the leaves of a tree, or all values.

Another kind is a class with these members and a line in `goals_of`.
"""

from __future__ import annotations

from typing import Protocol

import pandas as pd

from fewest.engine.choices import Choices, TableWork
from fewest.engine.cubes import Engine
from fewest.engine.leaves import LeafGoals
from fewest.engine.model_reading import ModelReader
from fewest.engine.points import PointGoals
from fewest.errors import UsageError
from fewest.models.trees import Reach
from fewest.references import Anyone, Leaves


class Goals(Protocol):
    """One kind of goal."""

    @property
    def reach(self) -> Reach | None:
        """How goals that are boxes are entered, where they are; the values that answers show come from it."""

    def prepare(self, frame: pd.DataFrame, deadline: float, alternatives: int) -> TableWork:
        """How parts of this table are answered; `DoubtError` where what was read of the model does not hold."""


def goals_of(chosen: Choices, reader: ModelReader, engine: Engine) -> Goals:
    """The goals of the references that were chosen; choices that do not fit them are refused."""
    if engine.search is not None and isinstance(chosen.references, Leaves | Anyone):
        raise UsageError(
            f'the search "{engine.search}" is for references that are points',
            do="use references.single, clusters or supplied",
        )
    if isinstance(chosen.references, Leaves):
        return LeafGoals(chosen, chosen.references)
    if isinstance(chosen.references, Anyone):
        from fewest.engine.anyone import AnyoneGoals  # imports numba, which other goals need only when they search

        return AnyoneGoals(chosen, chosen.references, reader)
    return PointGoals(chosen, reader, engine)
