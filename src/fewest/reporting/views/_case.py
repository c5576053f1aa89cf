"""One case as a page shows it: sentence, table, proof, the cube of choices, other ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fewest.results import drawing
from fewest.results.drawing import HEADINGS, HEADINGS_PLUS, CaseRow
from fewest.results.explanation import Change, Explanation, Status, proof_lines
from fewest.tables.wording import cell

# Rules under which a subset of an allowed set may not be allowed itself: there the proof does not cover the cube.
BETWEEN_FEATURES = ("Linked", "Implies")


@dataclass(frozen=True)
class CaseLine:
    """One case in a list: its row, what it is called, status, figures and score as people read it.

    ``features`` are the titles of what changes, ``changes`` say from what to what; ``reference`` is empty where it was
    compared with none.
    """

    row: int
    label: str
    status: str
    sev: int | None
    score: str
    features: tuple[str, ...]
    changes: tuple[str, ...]
    reference: str
    l_inf: float | None
    log_density: float | None
    margin: float | None


@dataclass(frozen=True)
class CaseView:
    """One case with everything that is known of it."""

    answer: Explanation
    # Its features beside those of the reference, as text, in column order; only the changed ones where the cases were
    # not kept, and none where it was compared with none of several references.
    rows: tuple[CaseRow, ...]
    proof: tuple[str, ...]  # what was checked, one statement each
    others: tuple[tuple[Change, ...], ...]  # other smallest sets, without those that use a protected feature
    withheld: int  # how many of the others were left out because they use a protected feature
    protected: tuple[str, ...]  # protected features in the set shown
    has_cube: bool  # whether there are subsets to draw (two to four features), and the proof says what each does
    rules_known: bool = True  # whether the rules are known under which subsets fail; else the drawing says less of them

    @property
    def row(self) -> int:
        """Number of the case in the data."""
        return self.answer.row

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        return str(self.answer)

    @property
    def cut(self) -> str:
        """The cut-off as people read it."""
        cut = -self.answer.threshold if self.answer.number == "down" else self.answer.threshold
        return f"{cut * 100:g} %" if self.answer.shows_percent else f"{cut:g}"

    @property
    def verdict(self) -> str:
        """What the model predicted, with the score and the cut-off, such as "Predicted bad, 94 % (cut-off 50 %)"."""
        answer = self.answer
        score = answer.shown(answer.score)
        if answer.number:
            said = answer.outcome if answer.status == Status.ALREADY_NEGATIVE else answer.positive
            return f"Predicted {score}: {said} (cut-off {self.cut})"
        if answer.status == Status.ALREADY_NEGATIVE:
            return f"Predicted {answer.outcome} ({answer.positive}: {score}, below the cut-off of {self.cut})"
        return f"Predicted {answer.positive}, {score} (cut-off {self.cut})"

    @property
    def other_ways(self) -> tuple[str, ...]:
        """The other smallest sets in words."""
        return tuple(" and ".join(str(change) for change in changes) for changes in self.others)

    def table(self, folded: bool = True) -> Markup:
        """The case beside the typical one."""
        plus = self.answer.plus
        return drawing.case_table(
            self.rows, HEADINGS_PLUS if plus else HEADINGS, folded, mark="kept" if plus else "changed"
        )

    def cube(self, folded: bool = True) -> Markup | None:
        """The drawing of all subsets of the set; None where the proof does not say what they do."""
        if not self.has_cube:
            return None
        answer = self.answer
        names = tuple(change.title for change in answer.changes)
        if answer.plus:
            words = (f"not enough for {answer.positive}", f"leads to {answer.positive}")
            return drawing.cube(
                names, drawing.corners_of(len(names), names), folded, words=words, bottom="typical case"
            )
        ends = {frozenset[int](): answer.score, frozenset(range(len(names))): answer.score_after or 0.0}
        texts = {s: answer.shown(v) for s, v in ends.items()}
        stays = f"stays {answer.positive}" if self.rules_known else "not an answer"
        corners = drawing.corners_of(len(names), names, texts)
        return drawing.cube(names, corners, folded, words=(stays, f"changes to {answer.outcome}"))


def case_view(answer: Explanation, settings: Mapping[str, Any], protected: Mapping[str, bool]) -> CaseView:
    """The view of an answer, with the settings of its run (empty: not known) and feature -> whether it is protected."""
    others = tuple(changes for changes in answer.alternatives if changes != answer.changes)
    open_ = tuple(changes for changes in others if not any(protected.get(change.feature) for change in changes))
    return CaseView(
        answer=answer,
        rows=tuple(
            CaseRow(fact.heading, cell(fact.case), cell(fact.reference), cell(fact.after), fact.changed)
            for fact in answer.facts
        ),
        proof=tuple(proof_lines(answer)),
        others=open_,
        withheld=len(others) - len(open_),
        protected=tuple(change.feature for change in answer.changes if protected.get(change.feature)),
        has_cube=_has_cube(answer, settings),
        rules_known=bool(settings),
    )


def _has_cube(answer: Explanation, settings: Mapping[str, Any]) -> bool:
    """Whether minimality says that every proper subset fails: a floor or a rule between features can say otherwise."""
    ruled = any(item["kind"] in BETWEEN_FEATURES for item in settings.get("constraints", ()))
    proved = answer.status == Status.EXPLAINED and answer.proof.minimal and 2 <= len(answer.changes) <= 4
    return proved and not ruled and settings.get("credibility") is None and answer.log_density is None
