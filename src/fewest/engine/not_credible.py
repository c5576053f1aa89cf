"""What is shown of a case that nothing credible turns: the best answer without the floor, marked as NOT_CREDIBLE."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fewest.credibility import Credibility
from fewest.results.answers import Answers
from fewest.results.explanation import STATUSES, Status


def floored(credibility: Credibility | None) -> bool:
    """Whether there is a floor at all."""
    return credibility is not None and not np.isneginf(credibility.floor)


def without_floor(credibility: Credibility | None) -> Credibility | None:
    """The same density, which is still reported, without a floor."""
    return None if credibility is None else credibility.at(0.0)


def show_plain(answers: Answers, rows: npt.NDArray[np.int64], plain: Answers) -> Answers:
    """Enter the answers without a floor (``plain``) of cases that provably have none with it.

    The lower bound stays that of credible sets. Cases that cannot be turned at all stay UNREACHABLE.
    """
    lower, nodes = answers.lower[rows].copy(), answers.nodes[rows].copy()
    answers.put(rows, plain)
    reachable = plain.status != STATUSES.index(Status.UNREACHABLE)
    answers.lower[rows] = lower
    answers.nodes[rows] += nodes
    answers.status[rows[reachable]] = STATUSES.index(Status.NOT_CREDIBLE)
    return answers
