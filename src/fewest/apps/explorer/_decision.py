"""One case on one page: the sentence first, what proves it second, everything else after that."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from fewest.results.explanation import Explanation, Status, show_score
from fewest.runs.views import CaseView

MOST_WAYS = 20
CLOSE_CALL = 0.02


@dataclass(frozen=True)
class DecisionLine:
    """A line of the proof; ``sure`` is whether it is one to rely on or one to look at."""

    text: str
    sure: bool = True


@dataclass(frozen=True)
class State:
    """Why there is no plain answer, and what can be done."""

    heading: str
    text: str
    do: str = ""


WITHHELD = State(
    "Withheld: it uses a protected feature",
    "Hidden because it would require changing a protected characteristic.",
    "Look at the other ways below, or explain again with that feature held: fewest explain --immutable NAME.",
)
IMPOSSIBLE = State(
    "Not possible with this reference",
    "Even with every allowed change the model stays with its decision; that is proved, not guessed.",
    "Choose another typical case on the References page, or allow more changes.",
)
FIXED = {
    Status.ALREADY_NEGATIVE: State(
        "Already accepted",
        "The model did not decide against this case: there is nothing to turn.",
        "Step to the next case, or choose one on the Population page.",
    ),
    Status.NOT_CREDIBLE: State(
        "Not credible",
        "What would turn this case leads where accepted cases hardly ever are.",
        "Take it as a finding about the model, not as a way for this person.",
    ),
}


@dataclass(frozen=True)
class Plain:
    """The facts of a case where nothing is shown that would have turned it."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ShownCase:
    """What the page of a decision shows of an answer.

    Attributes
    ----------
    verdict : str
        What the model said, with the score and the line it is held against.
    sentence : str
        Empty where it is withheld.
    state : State, optional
    proof : tuple of Line
    table, cube : Markup
        Empty where there is nothing to show.
    plain : Plain, optional
        Instead of the table.
    ways : tuple of str
        Other sets of the same size.
    withheld : int
        Sets that are not shown because they use a protected feature.
    ways_note : str
        Why there are no more.
    """

    verdict: str
    sentence: str
    state: State | None
    proof: tuple[DecisionLine, ...]
    table: Markup
    plain: Plain | None
    cube: Markup
    ways: tuple[str, ...]
    withheld: int
    ways_note: str


def shown(case: CaseView, listed: int) -> ShownCase:
    """What to show of a case; nothing that uses a protected feature is.

    Parameters
    ----------
    case : CaseView
    listed : int
        How many smallest sets the run asked for.
    """
    answer, hidden = case.answer, bool(case.protected)
    return ShownCase(
        verdict=verdict(answer),
        sentence="" if hidden else case.sentence,
        state=WITHHELD if hidden else _state(answer),
        proof=() if hidden else tuple(_proof(case)),
        table=Markup("") if _is_plain(case) or not case.rows else case.table(),
        plain=_plain(case) if _is_plain(case) else None,
        cube=Markup("") if hidden else case.cube() or Markup(""),
        ways=case.other_ways[:MOST_WAYS],
        withheld=case.withheld + hidden,
        ways_note=_ways_note(answer, listed, len(case.others) + case.withheld),
    )


def verdict(answer: Explanation) -> str:
    """What the model said about a case.

    Examples
    --------
    "Predicted bad, 94 % (cut-off 50 %)"
    """
    score = show_score(answer.score, answer.threshold, answer.shows_percent)
    line = f"{answer.threshold * 100:g} %" if answer.shows_percent else f"{answer.threshold:g}"
    if answer.status == Status.ALREADY_NEGATIVE:
        return f"Predicted {answer.outcome} ({answer.positive}: {score}, below the cut-off of {line})"
    return f"Predicted {answer.positive}, {score} (cut-off {line})"


def _state(answer: Explanation) -> State | None:
    """What is said above the sentence where the case is not simply explained."""
    if answer.status == Status.UNREACHABLE:
        bound = answer.proof.lower_bound
        limited = f"Not within the limit that was set: {_needed(answer)}."
        return replace(IMPOSSIBLE, text=IMPOSSIBLE.text if np.isinf(bound) else limited)
    if answer.status == Status.BUDGET:
        return _at_least(answer)
    return FIXED.get(answer.status)


def _at_least(answer: Explanation) -> State:
    found = "The search stopped early: it is proved that {}, and not that fewer than shown would not do."
    none = "The search stopped before it found an answer; it is proved that {}."
    cost = "A cost of at least" if answer.weighted else "At least"
    text = (found if answer.changes else none).format(_needed(answer))
    return State(f"{cost} {answer.proof.lower_bound:g}", text, "Explain again with more time.")


def _needed(answer: Explanation) -> str:
    bound = answer.proof.lower_bound
    if answer.weighted:
        return f"the changes would cost at least {bound:g}"
    return f"at least {bound:g} feature{'s' if bound != 1 else ''} must change"


def _proof(case: CaseView) -> list[DecisionLine]:
    answer = case.answer
    out = [DecisionLine(text, not text.startswith("not ")) for text in case.proof]
    if answer.reference is not None and answer.status != Status.ALREADY_NEGATIVE:
        people = "" if answer.support is None else f", which stands for {answer.support:,} people"
        out.append(DecisionLine(f'compared with "{answer.reference}"{people}'))
    if answer.margin is not None and answer.shows_percent and 0 <= answer.margin < CLOSE_CALL:
        out.append(DecisionLine(f"a close call: {answer.margin * 100:.1f} points beyond the cut-off", sure=False))
    return out


def _is_plain(case: CaseView) -> bool:
    """Whether the facts are shown without what would have turned it: withheld, accepted, or compared with nobody."""
    alone = not case.rows or bool(case.protected) or case.answer.status == Status.ALREADY_NEGATIVE
    return bool(case.values) and alone


def _plain(case: CaseView) -> Plain:
    """The case alone, or beside the typical one where what would have turned it is withheld."""
    if case.protected:
        rows = tuple((row.feature, row.case, row.reference) for row in case.rows)
        return Plain(("Feature", "This case", "Typical accepted case"), rows)
    return Plain(("Feature", "This case"), case.values)


def _ways_note(answer: Explanation, listed: int, others: int) -> str:
    if answer.status != Status.EXPLAINED:
        return ""
    if not listed:
        return "Other sets of the same size were not listed: explain with --alternatives 5 to see them."
    if not answer.all_listed:
        return f"Up to {listed} sets were listed; there may be more."
    return "These are all sets of this size." if others else "No other set of this size turns the decision."
