"""What is explored: one run, perhaps another beside it, perhaps a model that can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from fewest.apps.explorer._compare import RunComparison, compare
from fewest.apps.explorer._forms import NotThereError
from fewest.apps.explorer._live import MOST_CASES, Effect, Live
from fewest.apps.explorer._site import Site
from fewest.errors import DataError
from fewest.references.file import Saved
from fewest.runs.run import Run
from fewest.runs.views import CaseView, Filter, RunView

LOOKED_AT = 20


@dataclass(frozen=True, eq=False)
class Explored:
    """Everything that pages are made of.

    Attributes
    ----------
    view : RunView
    site : Site
    other : RunView, optional
        The run it is compared with.
    live : Live, optional
    """

    view: RunView
    site: Site
    other: RunView | None = None
    live: Live | None = None

    @property
    def run(self) -> Run:
        """The run itself."""
        return self.view.run

    @cached_property
    def comparison(self) -> RunComparison | None:
        """The two runs side by side; made once."""
        return None if self.other is None else compare(self.run, self.other.run)

    @cached_property
    def first(self) -> int:
        """The case a visitor sees first: one to be shown, with two features to change where there is such a one."""
        for wanted in (Filter("EXPLAINED", sev=2), Filter("EXPLAINED"), Filter("AGAINST")):
            for row in self.view.index.select(wanted)[:LOOKED_AT].tolist():
                if not self.view.case(row).protected:
                    return int(row)
        return 0

    def view_of(self, row: int) -> CaseView:
        """Everything that is known of one case."""
        self._check(row)
        return self.view.case(row)

    def case(self, row: int) -> pd.DataFrame | None:
        """The case itself, a table of one row; None where the run did not keep its cases."""
        self._check(row)
        values = self.run.case(row)
        return None if values is None else self.run.schema.conform(pd.DataFrame([values]), unseen="allow")

    def _check(self, row: int) -> None:
        if not 0 <= row < self.run.rows:
            raise NotThereError(f"there is no case {row}", do=f"cases go from 0 to {self.run.rows - 1:,}")

    def effect(self, saved: Saved) -> Effect:
        """What other references would do to the first cases that were decided against."""
        if self.live is None:
            raise DataError("only the model can say what an edit changes", do="start with --live --model FILE")
        if not self.run.keeps_cases:
            raise DataError("the run did not keep its cases", do="explain again, and let the run keep them")
        rows = self.view.index.select(Filter("AGAINST")).tolist()
        asked = rows[:MOST_CASES]
        if not asked:
            raise DataError("no case was decided against", do="there is nothing to preview")
        frame = self._cases(asked)
        before = None if self.view.has_density else [self.run.explanation(row) for row in asked]
        return self.live.preview(saved, frame, asked, before, len(rows))

    def _cases(self, rows: Sequence[int]) -> pd.DataFrame:
        """Cases by their numbers, which are in order; parts after the last one are not read."""
        parts = []
        for frame in self.run.cases():
            parts.append(frame.loc[[row for row in rows if row in frame.index]])
            if rows[-1] in frame.index:
                break
        return pd.concat(parts)


def protect(run: Run, names: Sequence[str]) -> Run:
    """The same run with further features marked as protected, for whoever looks at it here."""
    if not names:
        return run
    manifest = deepcopy(dict(run.manifest))
    for name in names:
        manifest["schema"]["features"][run.schema.index(name)]["protected"] = True
    return Run(run.path, manifest)
