"""What only the model can say: the score of a changed case, another answer, and what an edit of references does."""

from __future__ import annotations

import asyncio
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from fewest.errors import DataError, FewestError, FewestWarning, ModelError, UsageError
from fewest.references.file import Saved
from fewest.results.enough import Enough, enough_by_row
from fewest.results.explanation import Explanation, Status, show, show_score
from fewest.tables.values import written

if TYPE_CHECKING:
    from fewest.decision import Decision
    from fewest.explainer import Explainer

T = TypeVar("T")
MOST_CASES = 500
PREVIEW_SECONDS = 20.0
OPEN = (Status.BUDGET, Status.ALREADY_NEGATIVE)  # nothing is proved of these


@dataclass(frozen=True)
class Effect:
    """What an edit of the references does to the answers of a run.

    ``cases`` of ``all_cases`` refused ones were answered again. Rows with another answer are ``changed``, those without
    one any more ``lost``, those that have one now ``gained``; of ``unknown`` ones nothing can be said: a search stopped
    early, or the model accepts the case. ``floored``: the run's floor of credibility is left out on both sides.
    """

    cases: int
    all_cases: int
    changed: tuple[int, ...]
    lost: tuple[int, ...]
    gained: tuple[int, ...]
    unknown: tuple[int, ...] = ()
    floored: bool = False

    def __str__(self) -> str:
        of = f"{self.cases:,} cases" if self.cases == self.all_cases else f"the first {self.cases:,} cases"
        head = "Without the run's floor on both sides: of" if self.floored else "Of"
        tail = "nothing can be said: the search stopped early, or the model accepts them"
        return (
            f"{head} {of} that were refused, {len(self.changed):,} would get another explanation; "
            f"{len(self.lost):,} would become impossible, and {len(self.gained):,} possible."
        ) + (f" Of {len(self.unknown):,} {tail}." if self.unknown else "")


@dataclass(frozen=True)
class Live:
    """A model that can be asked, with the choices a run was made with; ``notes`` say what of the run is not used."""

    explainer: Explainer
    name: str
    notes: tuple[str, ...] = ()
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1), repr=False)

    async def apart(self, work: Callable[..., T], *given: Any) -> T:
        """Do work that asks the model in a thread, one after the other: models need not bear being asked by two."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *given)

    @classmethod
    def open(cls, decision: Decision, run: Path, settings: Mapping[str, Any], name: str) -> Live:
        """The explainer a run was made with, from its decision and its own words."""
        from fewest import references
        from fewest.constraints import Constraints
        from fewest.explainer import Explainer

        try:
            constraints = Constraints.from_plain(settings["constraints"])
        except UsageError as error:
            what = f"the run has a constraint of unknown kind: {error.message}"
            raise DataError(what, do="leave out --live") from error
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewestWarning)  # the page of the references says it
            known = references.load(run / "references.json", decision, on_positive="allow")
        explainer = Explainer(
            decision, known, constraints=constraints, weights=settings["weights"], direction=settings["direction"],
            n_jobs=1, unseen="allow", structure=settings["structure"],
        )  # fmt: skip
        floor = settings.get("credibility")
        notes = ("The run asked for credible changes; live answers do not.",) if floor else ()
        return cls(explainer, name, notes)

    def verdict(self, values: Mapping[str, Any]) -> tuple[float, bool, str]:
        """Score of a case, whether it is refused, and both in words."""
        decision = self.explainer.decision
        try:
            frame = self.explainer.schema.conform(pd.DataFrame([dict(values)]), unseen="allow")
            verdicts = decision.verdicts(frame)
        except FewestError:
            raise
        except Exception as error:  # a model may raise anything
            first = (str(error).splitlines() or [""])[0]
            raise ModelError(
                f"the model cannot score this: {type(error).__name__}: {first}", do="use other values"
            ) from error
        score, against = float(verdicts.score[0]), bool(verdicts.positive[0])
        shown = show_score(score, decision.cut, decision.shows_percent, decision.number)
        outcome = decision.positive_name if against else decision.negative_name
        of = "" if decision.number else f"{decision.positive_name}: "
        return score, against, f"The model predicts {outcome} ({of}{shown})."

    def explain(self, values: Mapping[str, Any], held: Sequence[str] = ()) -> Explanation:
        """The answer for one case when some features may not change."""
        from fewest.constraints import Constraints, Immutable

        kept = Constraints(*self.explainer.constraints, *(Immutable(name) for name in held))
        frame = pd.DataFrame([dict(values)])
        return self.explainer.with_(constraints=kept).explain(frame, alternatives=5, time_limit=5.0)[0]

    def enough(self, case: pd.DataFrame, answer: Explanation) -> tuple[Enough, ...]:
        """Which values of each change are enough for a case; none where this model does not confirm the answer."""
        schema, decision = self.explainer.schema, self.explainer.decision
        cells: dict[str, Any] = {}
        for change in answer.changes:
            cells |= written(schema, change.feature, change.after)
        turned = schema.conform(case.assign(**cells), unseen="allow")
        if answer.plus or not cells or decision.refuses(turned)[0]:
            return ()
        moved = np.isin(schema.names, [change.feature for change in answer.changes])
        return enough_by_row(decision, schema, turned, moved[None])[0]

    def preview(
        self,
        saved: Saved,
        cases: pd.DataFrame,
        rows: Sequence[int],
        before: Iterable[Explanation] | None,
        all_cases: int,
    ) -> Effect:
        """What other references do to refused cases of the run, of which there are ``all_cases`` in all.

        Where ``before`` is None the run had a floor, which is not known here: the cases are answered as they are, too.
        """
        from fewest import references

        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", FewestWarning)
            path = Path(folder) / "references.json"
            saved.write(path)
            known = references.load(path, self.explainer.decision, on_positive="allow")
        floored = before is None
        earlier = self.explainer.explain(cases, time_limit=PREVIEW_SECONDS) if before is None else before
        out = self.explainer.with_(references=known).explain(cases, time_limit=PREVIEW_SECONDS)
        found: dict[str, list[int]] = {"changed": [], "lost": [], "gained": [], "unknown": [], "same": []}
        for row, was, now in zip(rows, earlier, out, strict=True):
            found[_what_became(was, now)].append(row)
        kinds = {name: tuple(those) for name, those in found.items() if name != "same"}
        return Effect(len(out), all_cases, **kinds, floored=floored)


def _what_became(was: Explanation, now: Explanation) -> str:
    """What an edit does to one answer; an answer is lost or gained only where the other side is proved."""
    if was.status in OPEN or now.status in OPEN:
        return "unknown"
    had, has = _shape(was), _shape(now)
    if (had is None) != (has is None):
        return "lost" if has is None else "gained"
    return "same" if had == has else "changed"


def _shape(answer: Explanation) -> frozenset[tuple[str, str]] | None:
    """What an answer changes, in a form that can be compared; None where there is no answer."""
    if answer.status != Status.EXPLAINED:
        return None
    return frozenset((change.feature, show(change.after)) for change in answer.changes)
