"""One verified answer: its status, what changes, and the proof that nothing smaller does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import Any

import numpy as np

from fewest.results.enough import Enough
from fewest.tables.schema import Feature
from fewest.tables.values import is_worse
from fewest.tables.wording import cell, heading, listed, printable, show_measured, show_name
from fewest.tables.wording import show as show
from fewest.tables.wording import show_score as show_score


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

    @property
    def words(self) -> str:
        """What people call it."""
        return _WORDS[self.value]


STATUSES = tuple(Status)
DOUBTFUL = "doubtful as a reason:"
_WORDS = {
    "EXPLAINED": "explained", "ALREADY_NEGATIVE": "accepted", "UNREACHABLE": "not possible",
    "NOT_CREDIBLE": "not credible", "BUDGET": "stopped early",
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One feature that is changed: from the case's value to the reference's.

    Attributes
    ----------
    feature : str
        Its name.
    before, after : object
    label, unit : str or None
        What people call it and what its numbers count; None: its name, and nothing.
    worse : bool
        Whether it goes the other way than the schema says is better.

    Examples
    --------
    >>> str(Change("duration_months", 48, 18))
    'duration_months had been 18 instead of 48'
    >>> str(Change("duration_months", 48, 18, "Duration", "months"))
    'Duration had been 18 months instead of 48 months'
    >>> Change("duration_months", 48, 18, "Duration", "months").arrow
    'Duration 48 → 18 months'
    """

    feature: str
    before: Any
    after: Any
    label: str | None = None
    unit: str | None = None
    worse: bool = False

    @classmethod
    def of(cls, feature: Feature, before: Any, after: Any) -> Change:
        """The change of a feature, with the words its schema has for it."""
        return cls(feature.name, before, after, feature.label, feature.unit, is_worse(feature, before, after))

    @property
    def title(self) -> str:
        """What people call the feature."""
        return self.label or self.feature

    @property
    def put(self) -> str:
        """The feature and the value it gets."""
        return f"{show_name(self.title)} {show_measured(self.after, self.unit)}"

    @property
    def arrow(self) -> str:
        """The change as a list shows it: from what to what."""
        unit = f" {printable(self.unit)}" if self.unit and not isinstance(self.after, str) else ""
        return f"{show_name(self.title)} {cell(self.before)} \u2192 {cell(self.after)}{unit}"

    def __str__(self) -> str:
        after, before = (show_measured(value, self.unit) for value in (self.after, self.before))
        return f"{show_name(self.title)} had been {after} instead of {before}"


@dataclass(frozen=True)
class Fact:
    """One feature of a case beside the typical case: what it is, what is typical, what would have changed it."""

    feature: str  # Its title
    case: Any  # The value of the case
    reference: Any  # The value of the reference
    # The value in the explanation: the reference's where it is changed, the case's elsewhere (SEV+: the other way)
    after: Any
    changed: bool
    unit: str | None = None  # What its numbers count
    name: str = ""  # The feature's name

    @property
    def heading(self) -> str:
        """Title and unit, for a table of values."""
        return heading(self.feature, self.unit)


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
        No set with fewer features (or of less cost) changes the outcome; inf when none at all does. Where a
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
class About:
    """What sentences need beside the numbers of a case."""

    positive: str  # Name of the outcome explained
    outcome: str  # Name of the one changes lead to
    threshold: float
    percent: bool  # Whether scores are probabilities
    number: str = ""  # Whether scores are predicted numbers (``up``) or minus them (``down``)
    plus: bool = False  # Whether this is SEV+
    weighted: bool = False  # Whether features have weights
    has_density: bool = False  # Whether a `Credibility` is set, so that log-densities are known
    # title, model: What reports call the table and the model; empty where nobody said so
    title: str = ""
    model: str = ""


@dataclass(frozen=True, repr=False)
class Explanation:
    """The answer for one case.

    Attributes
    ----------
    row : int
        Position of the case in the table that was explained; a slice of the answers keeps it.
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
        Smallest sets, the one shown first, where they were asked for. A set that changes the outcome towards another
        reference only has the values of that one.
    all_listed : bool
        Whether the search proved that ``alternatives`` holds every smallest set.
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
    facts : tuple of Fact
        All features in the order of the columns, where they are known; else empty.
    number : str
        ``up`` where the score is a predicted number, ``down`` where it is minus one; else empty.
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
    facts: tuple[Fact, ...] = ()
    all_listed: bool = False
    number: str = ""
    # Where the model is at hand: the changed features in the order drawn, with its scores before and after each
    steps: Callable[[], list[tuple[str, float, float]]] | None = field(default=None, compare=False, repr=False)
    # Where the model is at hand: for each change the values that are enough, the others as shown
    enough: Callable[[], tuple[Enough, ...]] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return sentence(self)

    def __repr__(self) -> str:
        return f"<case {self.label}, {self.status.words}: {self}>"

    @property
    def how_much(self) -> str:
        """The answer in one sentence that says how much is enough, where the model is at hand; else the plain one.

        Examples
        --------
        >>> import fewest as fw
        >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, names={0: "accepted"})
        >>> refs = fw.references.supplied(decision, {"debt": [20]}, X={"debt": [0, 20, 100]})
        >>> fw.Explainer(decision, refs).explain({"debt": [90]})[0].how_much
        'If debt had been 49 or less instead of 90, the model would have predicted accepted.'
        """
        return sentence(self) if self.enough is None or not self.changes else _how_much(self, self.enough())

    def shown(self, score: float) -> str:
        """A score as people read it."""
        return show_score(score, self.threshold, self.shows_percent, self.number)

    def plot(self, ax: Any = None, *, style: str = "screen") -> Any:
        """Draw how the changed facts carry the score over the cut-off (`fewest.plots.ScoreLineDisplay`)."""
        # By name: drawing with matplotlib belongs to reporting, which imports this.
        return import_module("fewest.reporting.plots").ScoreLineDisplay.from_explanation(self).plot(ax, style=style)

    def _repr_html_(self) -> str:
        from fewest.results.drawing import HEADINGS, HEADINGS_PLUS, CaseRow
        from fewest.results.notebook import Card

        rows = [CaseRow(f.heading, cell(f.case), cell(f.reference), cell(f.after), f.changed) for f in self.facts]
        proved = self.status == Status.EXPLAINED and self.proof.minimal
        return Card(sentence(self), proof_line(self), rows, proved, HEADINGS_PLUS if self.plus else HEADINGS).html()


def _of(answer: Explanation) -> str:
    """What stands before a score."""
    return "" if answer.number else f"{printable(answer.positive)}: "


def what_is_proved(answer: Explanation) -> str:
    """What the proof of an answer says: nothing smaller (with weights cheaper, with a floor credible) does it."""
    less = "cheaper" if answer.weighted else "smaller"
    return f"no {less} set does it" if answer.log_density is None else f"no {less} credible set does it"


def proof_lines(answer: Explanation) -> list[str]:
    """What was checked, what is proved and what it was compared with, one statement each."""
    proof, out = answer.proof, []
    by = f"({proof.strategy}, {proof.nodes:,} nodes)"
    if proof.verified and answer.score_after is not None:
        before, after = (answer.shown(score) for score in (answer.score, answer.score_after))
        out.append(f"re-checked on the model ({_of(answer)}{before}, then {after})")
    if answer.status == Status.EXPLAINED and proof.minimal:
        out.append(f"proved: {what_is_proved(answer)} {by}")
    if answer.status in (Status.UNREACHABLE, Status.NOT_CREDIBLE):
        out.append(f"proved {by}")
    if answer.status == Status.BUDGET:
        out.append(f"stopped early: it is proved that {at_least(answer)}")
    if answer.alternatives:
        count, known = len(answer.alternatives), "" if answer.all_listed else " listed"
        out.append(f"{count} set{'s' if count != 1 else ''} of this size{known}")
    if answer.reference is not None and answer.status != Status.ALREADY_NEGATIVE:
        people = "" if answer.support is None else f", typical of {answer.support:,}"
        out.append(f'compared with "{printable(answer.reference)}"{people}')
    odd = [] if answer.plus else [printable(change.title) for change in answer.changes if change.worse]
    return [*out, f"{DOUBTFUL} {listed(odd)} would have had to get worse"] if odd else out


def proof_line(answer: Explanation) -> str:
    """The same as sentences, one after the other."""
    return " ".join(f"{line[:1].upper()}{line[1:]}." for line in proof_lines(answer))


def at_least(answer: Explanation) -> str:
    """What is proved to be needed, where no answer was proved."""
    bound = answer.proof.lower_bound
    if answer.weighted:
        return f"the changes would cost at least {bound:g}"
    return f"at least {bound:g} feature{'s' if bound != 1 else ''} would have to change"


def _not_credible(answer: Explanation) -> str:
    none = f"No allowed change that leads to {printable(answer.outcome)} is credible"
    if np.isfinite(answer.proof.lower_bound):
        none += " within the limit"
    if not answer.changes:
        return f"{none}."
    parts = listed([str(change) for change in answer.changes])
    return f"{none}: the smallest one ({parts}) leads where accepted cases hardly ever are."


def _not_possible(answer: Explanation) -> str:
    if np.isfinite(answer.proof.lower_bound):
        return f"Not possible within the limit: {at_least(answer)}."
    if answer.reference is None:
        return "Not possible: no allowed change changes the outcome."
    return f'Not possible with the reference "{printable(answer.reference)}": no allowed change changes the outcome.'


def _how_much(answer: Explanation, parts: Sequence[Enough]) -> str:
    """One changed feature with its range; of several each its value, and what else would do with the others."""
    alone, words = len(parts) == 1, []
    for change, part in zip(answer.changes, parts, strict=True):
        name = show_name(change.title)
        after, before = (show_measured(value, change.unit) for value in (change.after, change.before))
        amount = part.amount
        value = amount if alone else after if amount == after else f"{after} ({amount} is enough)"
        words.append(f"{name} had been {value} instead of {before}")
    text = f"If {listed(words)}, the model would have predicted {printable(answer.outcome)}."
    if not alone:
        text += " Each range holds with the other changes as shown."
    return text if all(part.whole for part in parts) else f"{text} Between the ends, values evenly spread were asked."


def sentence(answer: Explanation) -> str:
    """The answer in one sentence.

    A score is printed with the class it is the score of: 48 % beside "good" alone could be read as the chance of good.
    A predicted number stands for itself.
    """
    before = answer.shown(answer.score)
    outcome, positive = printable(answer.outcome), printable(answer.positive)
    if answer.status == Status.ALREADY_NEGATIVE:
        return f"The model did not predict {positive} here ({before}): there is nothing to explain."
    if answer.status == Status.UNREACHABLE:
        return _not_possible(answer)
    if answer.status == Status.NOT_CREDIBLE:
        return _not_credible(answer)
    if answer.status == Status.BUDGET and not answer.changes:
        return f"Stopped before an answer was found: {at_least(answer)}."
    after = answer.shown(float(answer.score_after or 0.0))
    if answer.plus:
        parts = listed([change.put for change in answer.changes])
        return f"{parts} alone, put onto the typical case, would have led to {positive} ({after})."
    tail = "" if answer.status == Status.EXPLAINED else " A smaller set may exist: the search was stopped."
    parts = listed([str(change) for change in answer.changes])
    return f"If {parts}, the model would have predicted {outcome} ({_of(answer)}{after} instead of {before}).{tail}"
