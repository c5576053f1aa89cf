"""What a user chose, checked once: the same for every table that is explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fewest.constraints import Constraints
from fewest.credibility import Credibility
from fewest.decision import Decision
from fewest.errors import UsageError
from fewest.references.base import References
from fewest.results.answers import Answers
from fewest.results.explanation import STATUSES, Status
from fewest.tables.arrays import Floats

CODE = {status: np.int8(k) for k, status in enumerate(STATUSES)}


@dataclass(frozen=True)
class Choices:
    """The choices of an `Explainer`."""

    decision: Decision
    references: References
    constraints: Constraints
    credibility: Credibility | None
    weights: Floats | None  # (p,) float64: Cost of changing each feature; None where features are counted
    plus: bool  # Whether SEV+ is asked for
    max_nodes: int | None
    n_jobs: int

    def __post_init__(self) -> None:
        if self.credibility is None:
            return
        if self.plus:
            raise UsageError(
                "SEV+ leads to cases the model decides against; a density of accepted cases says nothing of them",
                do='use direction="minus", or leave credibility out',
            )
        ours, theirs = self.references.schema, self.credibility.schema
        if ours.names != theirs.names or ours.columns != theirs.columns:
            raise UsageError(
                "the credibility and the references speak of different features",
                do="make both from the same table, with the same groups",
            )


class TableWork(NamedTuple):
    """How the parts of a table are answered."""

    answer: Callable[[pd.DataFrame], Answers]  # A part of the table -> its verified answers
    cells: int  # Numbers that a case takes while it is searched: parts are cut by it
    strategies: tuple[str, ...]  # The names that ``strategy`` of the answers counts
    notes: tuple[str, ...] = ()  # What a reader of the answers should know
    # Where the answers given so far lead, where each has values of its own; None: to the references that were chosen
    references: Callable[[], References] | None = None


def floored(credibility: Credibility | None) -> bool:
    """Whether there is a floor at all."""
    return credibility is not None and not np.isneginf(credibility.floor)


def or_plain(
    answers: Answers, answer: Callable[[Any, pd.DataFrame], Answers], task: Any, frame: pd.DataFrame
) -> Answers:
    """Where nothing credible provably turns a case, show the best answer without a floor, and say so: NOT_CREDIBLE.

    The density is still reported, and the lower bound stays that of credible sets. Cases that cannot be turned at all
    stay UNREACHABLE.
    """
    rows = np.flatnonzero(answers.status == CODE[Status.UNREACHABLE])
    if not floored(task.credibility) or len(rows) == 0:
        return answers
    plain = answer(replace(task, credibility=task.credibility.at(0.0), alternatives=0), frame.iloc[rows])
    lower, nodes = answers.lower[rows].copy(), answers.nodes[rows].copy()
    answers.put(rows, plain)
    reachable = plain.status != CODE[Status.UNREACHABLE]
    answers.lower[rows] = lower
    answers.nodes[rows] += nodes
    answers.status[rows[reachable]] = CODE[Status.NOT_CREDIBLE]
    return answers
