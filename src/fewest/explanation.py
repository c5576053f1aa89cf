"""One verified answer: its status, what changes, and the proof that nothing smaller does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd


class Status(StrEnum):
    """How a case ended. Outcomes are not numbers: only EXPLAINED has a SEV (rule 3).

    Examples
    --------
    >>> Status.UNREACHABLE.value
    'UNREACHABLE'
    """

    EXPLAINED = "EXPLAINED"
    ALREADY_NEGATIVE = "ALREADY_NEGATIVE"
    UNREACHABLE = "UNREACHABLE"
    NOT_CREDIBLE = "NOT_CREDIBLE"
    BUDGET = "BUDGET"


STATUSES = tuple(Status)


@dataclass(frozen=True)
class Change:
    """One feature that is changed: from the case's value to the reference's.

    Examples
    --------
    >>> str(Change("duration_months", 48, 18))
    'duration_months had been 18 instead of 48'
    """

    feature: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.feature} had been {show(self.after)} instead of {show(self.before)}"


@dataclass(frozen=True)
class Proof:
    """What is known about the answer and how.

    Attributes
    ----------
    strategy : str
        The search that was used.
    nodes : int
        Search nodes or vertices it visited.
    lower_bound : float
        No set with fewer features (or of less cost) turns the decision; inf when none at all does. Where a
        `Credibility` is set: no credible set.
    minimal : bool
        Whether the answer is proved to be smallest. With NOT_CREDIBLE, which is only said where it is proved: whether
        the set shown is the smallest of those that are not credible.
    verified : bool
        Whether the user's own model, called on the displayed values, was seen to turn.
    """

    strategy: str
    nodes: int
    lower_bound: float
    minimal: bool
    verified: bool


@dataclass(frozen=True)
class Explanation:
    """The answer for one case.

    Attributes
    ----------
    row : int
        Position of the case in the table.
    label : object
        Its index label.
    status : Status
    sev : int or None
        Number of features changed; None unless EXPLAINED.
    cost : float or None
        Their summed weights.
    changes : tuple of Change
        The set shown: the closest to the case among the smallest. With BUDGET the best one found, if any; with
        NOT_CREDIBLE the one that would be shown without a floor.
    score, score_after, margin : float or None
        The model's score before and after, and how far below (SEV+: above) the threshold it ends.
    reference : str or None
        Name of the reference compared with.
    proof : Proof
    alternatives : tuple of tuples of Change
        All smallest sets, the one shown first, where they were asked for.
    l_inf : float or None
        Largest change of a number, in standard deviations.
    outcome : str
        Name of the outcome the change leads to.
    positive : str
        Name of the class explained.
    shows_percent : bool
        Whether scores are probabilities.
    threshold : float
        Where the line is drawn.
    plus : bool
        Whether this is SEV+: the case's values put onto the reference.
    weighted : bool
        Whether features have weights, so that bounds are costs and not counts.
    support : int or None
        Training rows the reference stands for, where that is known.
    credibility : float or None
        For the leaf of a tree: at least this share of the accepted cases is there (S / N-, Theorem 4.3).
    log_density : float or None
        How dense accepted cases lie where the changes lead, where a `Credibility` is set.
    """

    row: int
    label: Any
    status: Status
    sev: int | None
    cost: float | None
    changes: tuple[Change, ...]
    score: float
    score_after: float | None
    margin: float | None
    reference: str | None
    proof: Proof
    alternatives: tuple[tuple[Change, ...], ...]
    l_inf: float | None
    outcome: str
    positive: str
    shows_percent: bool
    threshold: float
    plus: bool = False
    weighted: bool = False
    support: int | None = None
    credibility: float | None = None
    log_density: float | None = None

    def __str__(self) -> str:
        return sentence(self)


def show(value: Any) -> str:
    """A value as the sentence prints it: text in quotes, numbers plain and exact.

    Examples
    --------
    >>> show("no account"), show(48), show(0.5)
    ("'no account'", '48', '0.5')
    """
    if isinstance(value, dict):
        return "(" + ", ".join(f"{name} {show(part)}" for name, part in value.items()) + ")"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, str):
        return f"'{value}'"
    if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)) or value is pd.NA:
        return "missing"
    if isinstance(value, pd.Timestamp):
        return str(value.date()) if value == value.normalize() else str(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    return str(value)


def show_score(score: float, threshold: float, percent: bool) -> str:
    """A score with as many decimals as it takes to stand on the right side of the threshold."""
    factor, unit, first = (100.0, " %", 0) if percent else (1.0, "", 3)
    for decimals in range(first, 16):
        text = f"{score * factor:.{decimals}f}"
        if (float(text) < threshold * factor) == (score < threshold):
            break
    return f"{text}{unit}"


def _at_least(answer: Explanation) -> str:
    bound = answer.proof.lower_bound
    if answer.weighted:
        return f"the changes would cost at least {bound:g}"
    return f"at least {bound:g} feature{'s' if bound != 1 else ''} would have to change"


def _not_credible(answer: Explanation) -> str:
    none = f"No allowed change that leads to {answer.outcome} is credible"
    if np.isfinite(answer.proof.lower_bound):
        none += " within the limit"
    if not answer.changes:
        return f"{none}."
    parts = " and ".join(str(change) for change in answer.changes)
    return f"{none}: the smallest one ({parts}) leads where accepted cases hardly ever are."


def sentence(answer: Explanation) -> str:
    """The answer in one sentence."""
    before = show_score(answer.score, answer.threshold, answer.shows_percent)
    if answer.status == Status.ALREADY_NEGATIVE:
        return f"The model did not predict {answer.positive} here ({before}): there is nothing to explain."
    if answer.status == Status.UNREACHABLE:
        bound = answer.proof.lower_bound
        if np.isfinite(bound):
            return f"Not possible within the limit: {_at_least(answer)}."
        if answer.reference is None:
            return "Not possible: no allowed change turns the decision."
        return f'Not possible with the reference "{answer.reference}": no allowed change turns the decision.'
    if answer.status == Status.NOT_CREDIBLE:
        return _not_credible(answer)
    if answer.status == Status.BUDGET and not answer.changes:
        return f"Stopped before an answer was found: {_at_least(answer)}."
    parts = " and ".join(str(change) for change in answer.changes)
    after = show_score(float(answer.score_after or 0.0), answer.threshold, answer.shows_percent)
    if answer.plus:
        parts = " and ".join(f"{change.feature} {show(change.after)}" for change in answer.changes)
        return f"{parts} alone, put onto the typical case, would have led to {answer.positive} ({after})."
    tail = "" if answer.status == Status.EXPLAINED else " A smaller set may exist: the search was stopped."
    return (
        f"If {parts}, the model would have predicted {answer.outcome} "
        f"({answer.positive}: {after} instead of {before}).{tail}"
    )
