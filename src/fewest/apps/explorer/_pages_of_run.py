"""What is explored (a run, perhaps another beside it, perhaps a model to ask), and the frame of its pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

import pandas as pd
from starlette.responses import HTMLResponse

from fewest.apps.explorer._forms import NotThereError
from fewest.apps.explorer._live import MOST_CASES, Effect, Live
from fewest.errors import DataError
from fewest.references.file import Saved
from fewest.reporting.page_templates import render
from fewest.reporting.views import CaseView, Filter, PopulationView
from fewest.results import drawing
from fewest.runs.comparison import RunComparison, compare
from fewest.runs.run import Run
from fewest.tables.values import Cells, shortened
from fewest.tables.wording import cell

LOOKED_AT = 20
PLACES = {
    "Start": "/", "Population": "/population", "Decision": "/decision", "References": "/references",
    "Compare": "/compare", "Tree": "/tree",
}  # fmt: skip
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """The few files beside the pages, by name; nothing else can be asked for by name."""
    from fewest.reporting.tree_drawing import STYLE as TREE_STYLE

    files = {
        file.name: file.read_bytes()
        for file in resources.files("fewest.apps.explorer").joinpath("static").iterdir()
        if file.is_file()
    }
    files |= {"drawing.css": drawing.STYLE.encode(), "tree.css": TREE_STYLE.encode()}
    return {name: (data, KINDS["." + name.rpartition(".")[2]]) for name, data in files.items()}


@dataclass(frozen=True, eq=False)
class Explored:
    """Everything that pages are made of: the run, the one it is compared with, the model to ask."""

    run: Run
    other: Run | None = None
    live: Live | None = None

    def page(
        self, template: str, here: str, heading: str, question: str, *, notices: Sequence[str] = (), status: int = 200,
        **values: Any,
    ) -> HTMLResponse:  # fmt: skip
        """One page, in the frame that all share."""
        text = render(
            template, "fewest.apps.explorer", about=self.about, live=self.live.name if self.live else "", places=PLACES,
            here=here, heading=heading, question=question, notices=notices, **values,
        )  # fmt: skip
        return HTMLResponse(text, status)

    @cached_property
    def about(self) -> str:
        """The run in a few words, for the top of every page."""
        view = self.view
        title = view.title.removeprefix("Which facts decided? ")  # of a run that nobody gave a title: its table
        return f"{title} · {view.model_name} · {view.against:,} of {view.rows:,} refused"

    @cached_property
    def view(self) -> PopulationView:
        """The run as pages show it."""
        return PopulationView(self.run)

    @cached_property
    def comparison(self) -> RunComparison | None:
        """The two runs side by side; made once."""
        return None if self.other is None else compare(self.run, self.other)

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

    def values(self, row: int) -> tuple[tuple[str, str], ...]:
        """Title and value of each feature of a case, as text; empty where they are not known."""
        frame = self.case(row)
        if frame is None:
            return ()
        cells, more = Cells.of(frame), self.run.record(row)["decimals"]
        return tuple((f.title, cell(shortened(cells.value(0, f), f, more))) for f in self.run.schema.features)

    def _check(self, row: int) -> None:
        if not 0 <= row < self.run.rows:
            raise NotThereError(f"there is no case {row}", do=f"cases go from 0 to {self.run.rows - 1:,}")

    def effect(self, saved: Saved) -> Effect:
        """What other references would do to the first cases that were refused."""
        if self.live is None:
            raise DataError("only the model can say what an edit changes", do="start with --live --model FILE")
        if not self.run.keeps_cases:
            raise DataError("the run did not keep its cases", do="explain again, and let the run keep them")
        rows = self.view.index.select(Filter("AGAINST")).tolist()
        asked = rows[:MOST_CASES]
        if not asked:
            raise DataError("no case was refused", do="there is nothing to preview")
        floored = self.run.about.has_density
        before = None if floored else [self.run.explanation(row) for row in asked]
        return self.live.preview(saved, self._cases(asked), asked, before, len(rows))

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
