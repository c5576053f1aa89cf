"""One case on one page: the sentence first, what proves it second, everything else after that."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from fewest.reporting.views import CaseView
from fewest.results.drawing import HEADINGS
from fewest.results.explanation import Explanation, Status, at_least

MOST_WAYS = 20
CLOSE_CALL = 0.02


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
    "Even with every allowed change the outcome stays the same; that is proved, not guessed.",
    "Choose another typical case on the References page, or allow more changes.",
)
FIXED = {
    Status.ALREADY_NEGATIVE: State(
        "Accepted",
        "The model accepted this case: there is nothing to explain.",
        "Step to the next case, or choose one on the Population page.",
    ),
    Status.NOT_CREDIBLE: State(
        "Not credible",
        "What would change the outcome leads where accepted cases hardly ever are.",
        "Take it as a finding about the model, not as a way for this person.",
    ),
}


@dataclass(frozen=True)
class Plain:
    """The facts of a case where nothing is shown that would have changed the outcome."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ShownCase:
    """What the page of a decision shows of an answer; nothing that uses a protected feature.

    ``proof`` pairs each statement with whether it is one to rely on, ``plain`` stands instead of the table, and
    ``ways_note`` says why there are no more other ways.
    """

    sentence: str
    state: State | None
    proof: tuple[tuple[str, bool], ...]
    table: Markup
    plain: Plain | None
    cube: Markup
    ways: tuple[str, ...]
    withheld: int
    ways_note: str


def shown(case: CaseView, listed: int, values: tuple[tuple[str, str], ...]) -> ShownCase:
    """What to show of a case, for which the run asked to list that many sets."""
    answer, hidden = case.answer, bool(case.protected)
    # The facts without what would have changed them: withheld, accepted, or compared with nobody.
    alone = hidden or (bool(values) and (not case.rows or answer.status == Status.ALREADY_NEGATIVE))
    return ShownCase(
        sentence="" if hidden else case.sentence,
        state=WITHHELD if hidden else _state(answer),
        proof=() if hidden else tuple(_proof(case)),
        table=Markup("") if alone or not case.rows else case.table(),
        plain=_plain(case, values) if alone else None,
        cube=Markup("") if hidden else case.cube() or Markup(""),
        ways=case.other_ways[:MOST_WAYS],
        withheld=case.withheld + hidden,
        ways_note=_ways_note(answer, listed, len(case.others) + case.withheld),
    )


def _state(answer: Explanation) -> State | None:
    """What is shown above the sentence where the case is not simply explained."""
    bound = answer.proof.lower_bound
    if answer.status == Status.UNREACHABLE:
        limited = f"Not within the limit that was set: {at_least(answer)}."
        return replace(IMPOSSIBLE, text=IMPOSSIBLE.text if np.isinf(bound) else limited)
    if answer.status == Status.BUDGET:
        found = "The search stopped early: it is proved that {}, and not that fewer than shown would not be enough."
        none = "The search stopped before it found an answer; it is proved that {}."
        cost = "a cost of at least" if answer.weighted else "at least"
        text = (found if answer.changes else none).format(at_least(answer))
        return State(f"Stopped early ({cost} {bound:g})", text, "Explain again with more time.")
    return FIXED.get(answer.status)


def _proof(case: CaseView) -> list[tuple[str, bool]]:
    answer = case.answer
    out = [(text, not text.startswith("stopped early")) for text in case.proof]
    if answer.margin is not None and answer.shows_percent and 0 <= answer.margin < CLOSE_CALL:
        out.append((f"a close call: {answer.margin * 100:.1f} points beyond the cut-off", False))
    return out


def _plain(case: CaseView, values: tuple[tuple[str, str], ...]) -> Plain:
    """The case alone, or beside the typical one where what would have changed the outcome is withheld."""
    if case.protected:
        return Plain(HEADINGS[:3], tuple((row.feature, row.case, row.reference) for row in case.rows))
    return Plain(HEADINGS[:2], values)


def _ways_note(answer: Explanation, listed: int, others: int) -> str:
    if answer.status != Status.EXPLAINED:
        return ""
    if not listed:
        return "Other sets of the same size were not listed: explain with --alternatives 5 to see them."
    if not answer.all_listed:
        return f"Up to {listed} sets were listed; there may be more."
    return "These are all sets of this size." if others else "No other set of this size changes the outcome."
