"""One case as a page shows it: sentence, table, proof, the cube of choices, other ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fewest.results import drawing
from fewest.results.drawing import CaseRow
from fewest.results.explanation import Change, Explanation, Fact, Status, show_score, what_is_proved
from fewest.tables.wording import cell

HEADINGS = ("Feature", "This case", "Typical accepted case", "Would have turned it")
HEADINGS_PLUS = ("Feature", "This case", "Typical accepted case", "Would have brought it about")
# Rules under which a subset of an allowed set may be none itself: there the cube cannot be told apart from the proof.
BETWEEN_FEATURES = ("Linked", "Implies")


@dataclass(frozen=True)
class CaseLine:
    """One case in a list.

    Attributes
    ----------
    row : int
    status : str
    sev : int or None
    score : str
        As people read it.
    features : tuple of str
        Titles of the features changed.
    reference : str
        Empty where it was compared with none.
    l_inf, log_density, margin : float or None
    """

    row: int
    status: str
    sev: int | None
    score: str
    features: tuple[str, ...]
    reference: str
    l_inf: float | None
    log_density: float | None
    margin: float | None


@dataclass(frozen=True)
class CaseView:
    """One case with everything that is known of it.

    Attributes
    ----------
    answer : Explanation
    rows : tuple of CaseRow
        Its features beside those of the reference, as text, in column order; only the changed ones where the cases were
        not kept, and none where it was compared with none of several references.
    values : tuple of pairs
        Title and value of each of its features, as text; empty where they are not known.
    proof : tuple of str
        What was checked, one statement each.
    others : tuple of tuple of Change
        Other smallest sets, without those that use a protected feature.
    withheld : int
        How many of the others were left out because they use a protected feature.
    protected : tuple of str
        Protected features in the set shown.
    has_cube : bool
        Whether there are subsets to draw (two to four features), and the proof says what each of them does.
    """

    answer: Explanation
    rows: tuple[CaseRow, ...]
    values: tuple[tuple[str, str], ...]
    proof: tuple[str, ...]
    others: tuple[tuple[Change, ...], ...]
    withheld: int
    protected: tuple[str, ...]
    has_cube: bool

    @property
    def row(self) -> int:
        """Number of the case in the data."""
        return self.answer.row

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        return str(self.answer)

    @property
    def decided(self) -> str:
        """The model's score and the line, as people read them."""
        answer = self.answer
        score = show_score(answer.score, answer.threshold, answer.shows_percent)
        cut = f"{answer.threshold * 100:g} %" if answer.shows_percent else f"{answer.threshold:g}"
        return f"{answer.positive}: {score} (cut-off {cut})"

    @property
    def other_ways(self) -> tuple[str, ...]:
        """The other smallest sets in words."""
        return tuple(" and ".join(str(change) for change in changes) for changes in self.others)

    def table(self, folded: bool = True) -> Markup:
        """The case beside the typical one."""
        headings = HEADINGS_PLUS if self.answer.plus else HEADINGS
        return drawing.case_table(self.rows, headings, folded, mark="kept" if self.answer.plus else "changed")

    def cube(self, folded: bool = True) -> Markup | None:
        """The drawing of all subsets of the set; None where the proof does not say what they do."""
        if not self.has_cube:
            return None
        answer = self.answer
        names = tuple(change.title for change in answer.changes)
        ends = {frozenset[int](): answer.score, frozenset(range(len(names))): answer.score_after or 0.0}
        texts = (
            {} if answer.plus else {s: show_score(v, answer.threshold, answer.shows_percent) for s, v in ends.items()}
        )
        corners = drawing.corners_of(len(names), names, texts)
        if answer.plus:
            words = (f"not enough for {answer.positive}", f"leads to {answer.positive}")
            return drawing.cube(names, corners, folded, words=words, bottom="typical case")
        return drawing.cube(names, corners, folded, words=(f"stays {answer.positive}", f"turns to {answer.outcome}"))


def case_view(
    answer: Explanation,
    settings: Mapping[str, Any],
    protected: Mapping[str, bool],
    own: Sequence[tuple[str, Any]] = (),
) -> CaseView:
    """The view of an answer.

    Parameters
    ----------
    answer : Explanation
    settings : mapping
        Of the run.
    protected : mapping
        Feature -> whether it is protected.
    own : sequence of pairs
        Title and value of each of the case's features, where the answer has no facts.
    """
    others = tuple(changes for changes in answer.alternatives if changes != answer.changes)
    known = [(fact.feature, fact.case) for fact in answer.facts] or own
    open_ = tuple(changes for changes in others if not any(protected.get(change.feature) for change in changes))
    return CaseView(
        answer=answer,
        rows=tuple(_row(fact) for fact in answer.facts),
        values=tuple((title, cell(value)) for title, value in known),
        proof=tuple(proof_lines(answer)),
        others=open_,
        withheld=len(others) - len(open_),
        protected=tuple(change.feature for change in answer.changes if protected.get(change.feature)),
        has_cube=_has_cube(answer, settings),
    )


def _has_cube(answer: Explanation, settings: Mapping[str, Any]) -> bool:
    """Whether minimality says that every proper subset fails: a floor or a rule between features can say otherwise."""
    proved = answer.status == Status.EXPLAINED and answer.proof.minimal and 2 <= len(answer.changes) <= 4
    ruled = any(item["kind"] in BETWEEN_FEATURES for item in settings["constraints"])
    return proved and not ruled and settings["credibility"] is None


def _row(fact: Fact) -> CaseRow:
    return CaseRow(fact.heading, cell(fact.case), cell(fact.reference), cell(fact.after), fact.changed)


def proof_lines(answer: Explanation) -> list[str]:
    """What was checked, and what is proved, one statement each."""
    out = []
    if answer.proof.verified and answer.score_after is not None:
        before, after = (
            show_score(s, answer.threshold, answer.shows_percent) for s in (answer.score, answer.score_after)
        )
        out.append(f"re-checked on the model: {before} before, {after} after")
    if answer.status == Status.EXPLAINED and answer.proof.minimal:
        out.append(f"proved: {what_is_proved(answer)} ({answer.proof.strategy}, {answer.proof.nodes:,} nodes)")
    if answer.status == Status.BUDGET:
        unit = "cost" if answer.weighted else "features"
        out.append(f"not finished: at least {answer.proof.lower_bound:g} {unit} are proved to be needed")
    if answer.status in (Status.UNREACHABLE, Status.NOT_CREDIBLE):
        out.append(f"proved ({answer.proof.strategy}, {answer.proof.nodes:,} nodes)")
    if len(answer.alternatives) > 1:
        out.append(f"{len(answer.alternatives)} sets of this size are listed")
    return out
