"""What cases are led to, behind one protocol: reference points, the leaves of a tree, or all values.

Another kind is a class with these members and a line in `goals_of`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pandas as pd

from fewest.engine.choices import Choices, TableWork
from fewest.engine.cubes import Engine
from fewest.engine.leaves import LeafGoals
from fewest.engine.model_reading import ModelReader
from fewest.engine.points import PointGoals
from fewest.errors import DoubtError, UsageError
from fewest.models.trees import Reach
from fewest.references import Anyone, Leaves
from fewest.results.answers import Answers
from fewest.results.progress_bar import Progress, watched

CHUNK_CELLS = 4_000_000
MAX_CHUNK = 20_000


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


def answer_table(
    goals: Goals, reader: ModelReader, frame: pd.DataFrame, deadline: float, alternatives: int,
    progress: Progress | bool | None,
) -> tuple[Answers, TableWork]:  # fmt: skip
    """The verified answers of a table, part by part, and what they were worked out with."""
    with watched(progress) as step:
        asked = goals, len(reader.schema), frame, deadline, alternatives, step
        try:
            return _by_parts(*asked)
        except DoubtError as doubt:
            # What was read answered other cases of the table before: they are searched again as well.
            reader.give_up(doubt.message)
            return _by_parts(*asked)


def _by_parts(
    goals: Goals, features: int, frame: pd.DataFrame, deadline: float, alternatives: int, progress: Progress
) -> tuple[Answers, TableWork]:
    work = goals.prepare(frame, deadline, alternatives)
    answers = Answers.blank(len(frame), features)
    step = min(MAX_CHUNK, max(256, CHUNK_CELLS // max(features, work.cells)))
    for first in range(0, len(frame), step):
        rows = np.arange(first, min(first + step, len(frame)))
        answers.put(rows, work.answer(frame.iloc[rows]))
        progress(int(rows[-1]) + 1, len(frame))
    return answers, work
