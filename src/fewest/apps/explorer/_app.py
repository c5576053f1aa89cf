"""The explorer's addresses, and the pages of a whole run: where to begin, all cases, and two runs side by side.

Security is around it, in the guard.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from fewest.apps.explorer._case_pages import case_routes
from fewest.apps.explorer._forms import NotThereError, is_row
from fewest.apps.explorer._live import Live
from fewest.apps.explorer._pages_of_run import Explored, protect, static_files
from fewest.apps.explorer._references import reference_routes
from fewest.errors import DataError, FewestError
from fewest.reporting.views import SORTS, CaseLine, Filter, PopulationView
from fewest.results import drawing
from fewest.results.explanation import About, Status, show_score
from fewest.runs import comparison
from fewest.runs.run import Run
from fewest.tables.wording import clip

PAGE = 50
POINTS = 500
MOST_CHOICES = 300
OPEN_ENDS = (Status.UNREACHABLE, Status.NOT_CREDIBLE, Status.BUDGET)
STATUS_CHOICES = (
    ("AGAINST", "all refused"),
    *((status.value, status.words) for status in (Status.EXPLAINED, *OPEN_ENDS, Status.ALREADY_NEGATIVE)),
    ("", "everybody"),
)
SORT_WORDS = {
    "row": "row", "sev": "features changed", "score": "score", "margin": "margin", "closeness": "largest change (SD)",
    "density": "how usual",
}  # fmt: skip
CSV = "text/csv; charset=utf-8"
DOWNLOADS = ThreadPoolExecutor(1, "download")
WHOLE = 50_000  # answers of fewer cases are made at once: fifty that are made side by side would fill the memory
QUESTIONS = {
    "Start": "What is this, and where do I begin?",
    "Population": "Who was refused, and how little would have changed it?",
    "Compare": "What is different, and for which people?",
}


def create_app(
    run: str | Path, *, other: str | Path | None = None, live: Live | None = None, protected: Sequence[str] = ()
) -> Starlette:
    """The explorer of a finished run folder as an ASGI application; it is to be served behind a `Guard`.

    It can have another run to compare with, and a model to ask. Sets with ``protected`` features are withheld, beside
    those with features that the run itself marks.
    """
    opened = protect(Run.open(run), protected)
    explored = Explored(opened, None if other is None else Run.open(other), live)
    _ = explored.about  # what is wrong with a run is said now, and not on every page
    routes = [*_run_routes(explored), *case_routes(explored), *reference_routes(explored)]
    return Starlette(routes=routes, exception_handlers=_errors(explored))


def _shown_score(about: About, score: float) -> str:
    """A score of a run as people read it."""
    return show_score(score, about.threshold, about.percent, about.number)


def _errors(explored: Explored) -> dict[Any, Any]:
    """Every error is a page in the same words; it says nothing of the inside."""

    def problem(_: Request, error: Exception) -> Response:
        status, do = 500, "Report what you did, and what `fewest doctor` prints."
        what = "The explorer made a mistake"
        if isinstance(error, FewestError):
            status, what, do = 404 if isinstance(error, NotThereError) else 400, error.message, error.do or ""
        elif isinstance(error, HTTPException):
            status, do = error.status_code, ""
            what = "There is no such page" if status == 404 else str(error.detail)
        heading, question = "That did not work", "What happened, and what can be done?"
        return explored.page("problem.html.j2", "", heading, question, status=status, what=what, do=do)

    return dict.fromkeys((FewestError, HTTPException, Exception), problem)


def _run_routes(explored: Explored) -> list[Route]:
    """Pages about the whole run."""
    view = explored.view
    drawn = cache(lambda: charts(view))  # a run does not change while it is looked at

    async def start(_: Request) -> Response:
        return explored.page("start.html.j2", "Start", view.title, QUESTIONS["Start"], **_start(explored))

    async def population(request: Request) -> Response:
        query = request.query_params
        page = query.get("page", "1")
        choice = Choice.read(query)
        shown = drawn() | context(view, choice, int(page) if is_row(page) else 1, query.get("by", ""))
        missed = query.get("missed", "")
        return explored.page(
            "population.html.j2", "Population", "Population", QUESTIONS["Population"],
            notices=[not_found(view, missed)] if missed else [], **shown,
        )  # fmt: skip

    async def cases(request: Request) -> Response:
        choice = Choice.read(request.query_params)
        headers = {"content-disposition": 'attachment; filename="cases.csv"'}
        if view.rows <= WHOLE:
            return Response(await _aside(view.csv, choice.wanted), 200, headers, CSV)
        return StreamingResponse(_one_by_one(view.csv_parts(choice.wanted)), 200, headers, CSV)

    async def compare(_: Request) -> Response:
        both = explored.comparison
        names = () if explored.other is None else comparison.called(explored.run, explored.other)
        own = {} if both else comparison.own_figures(explored.run)
        abouts = [one.about for one in (explored.run, explored.other) if one is not None]
        return explored.page(
            "compare.html.j2", "Compare", "Compare", QUESTIONS["Compare"], compared=both, names=names, figures=own,
            scores=[partial(_shown_score, about) for about in abouts],
        )  # fmt: skip

    async def static(request: Request) -> Response:
        known = static_files().get(request.path_params["name"])
        if known is None:
            raise HTTPException(404)
        return Response(known[0], media_type=known[1])

    return [
        Route("/", start),
        Route("/population", population),
        Route("/cases.csv", cases),
        Route("/compare", compare),
        Route("/static/{name}", static),
    ]


async def _aside(work: Callable[..., bytes], *given: Any) -> bytes:
    """The outcome of long work, done while pages are made; all downloads share one thread, so they wait in line."""
    return await asyncio.get_running_loop().run_in_executor(DOWNLOADS, work, *given)


async def _one_by_one(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Parts of an answer; each is made when the one before has gone out."""
    while part := await _aside(next, parts, b""):
        yield part


@dataclass(frozen=True)
class Choice:
    """What a visitor asked to see, as the form holds it."""

    status: str = "AGAINST"
    sev: str = ""
    feature: str = ""
    reference: str = ""
    sort: str = "row"

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Choice:
        """Take it from an address; what nobody could have chosen is refused."""
        asked = {name: query.get(name, default) for name, default in vars(cls()).items()}
        if asked["status"] not in dict(STATUS_CHOICES) or asked["sort"].removeprefix("-") not in SORTS:
            raise DataError("there is no such choice", do="choose from the lists on the Population page")
        if asked["sev"] and not is_row(asked["sev"]):
            raise DataError("the number of features is not a number", do="choose from the list")
        return cls(**asked)

    @property
    def wanted(self) -> Filter:
        """The same as a filter of the run."""
        return Filter(self.status, int(self.sev) if self.sev else None, self.feature, self.reference)

    @property
    def query(self) -> str:
        """The same as part of an address."""
        return urlencode({name: value for name, value in vars(self).items() if value or name == "status"})


def context(view: PopulationView, choice: Choice, page: int, by: str) -> dict[str, Any]:
    """What the page shows of a choice."""
    count = view.count(choice.wanted)
    pages = max(1, -(-count // PAGE))
    page = min(max(1, page), pages)
    by = by if by in view.titles else _first_group(view)
    return {
        "by": by,
        "by_title": view.titles[by],
        "group_choices": list(view.titles.items())[:MOST_CHOICES],
        "groups": view.groups(by),
        "chosen": choice,
        "query": choice.query,
        "count": count,
        "against": view.against,
        "lines": [_listed(view, line) for line in view.cases(choice.wanted, choice.sort, page, PAGE)],
        "page": page,
        "pages": pages,
    }


def charts(view: PopulationView) -> dict[str, Any]:
    """What of the page is the same whatever is chosen on it."""
    points = view.closeness_points(POINTS, link=lambda row: f"/decision/{row}")
    return {
        "summary": view.summary,
        "figures": figures(view),
        "warnings": view.warnings(),
        "sev_chart": drawing.bar_chart(_leading(view.sev_bars(), "sev", list(map(str, view.tally.sev)))),
        "feature_chart": drawing.bar_chart(_leading(view.feature_bars(), "feature", list(view.tally.features))),
        "scatter": drawing.scatter("Distance and margin", "How far, and how sure?", *view.axes, points),
        **_choices(view),
    }


def _leading(chart: drawing.Bars, name: str, values: Sequence[str]) -> drawing.Bars:
    """A chart whose bars lead to the list of their cases."""
    places = [f"/population?{urlencode({'status': 'EXPLAINED', name: value})}#cases" for value in values]
    return replace(chart, bars=[replace(bar, href=to) for bar, to in zip(chart.bars, places, strict=True)])


def figures(view: PopulationView) -> list[tuple[str, str]]:
    """The run in a handful of numbers."""
    tally = view.tally
    return [
        ("cases", f"{view.rows:,}"),
        ("refused", f"{view.against:,}"),
        ("explained, re-checked", f"{view.explained:,}"),
        ("mean features changed", f"{tally.mean_sev:.2f}" if view.explained else "-"),
        *((status.words, f"{tally.count(status):,}") for status in OPEN_ENDS if tally.count(status)),
    ]


def not_found(view: PopulationView, text: str) -> str:
    """What is shown for a search for something that is not there."""
    by = "their name" if view.population.origin.names_cases else f"their row, from 0 to {view.rows - 1:,}"
    return (
        f"Nothing here is called {clip(text, 100)!r}. Cases are found by {by}, and "
        "features by their name. Below are all cases that were refused."
    )


def _first_group(view: PopulationView) -> str:
    """The column that is sliced by unless another is chosen: a protected one, a category, or the first."""
    features = view.population.schema.features
    for fits in (lambda f: f.protected, lambda f: f.kind in ("category", "boolean"), lambda f: True):
        for feature in features:
            if fits(feature) and len(feature.columns) == 1:
                return feature.name
    return features[0].name


def _choices(view: PopulationView) -> dict[str, list[tuple[str, str]]]:
    used = [name for name in view.tally.features if name in view.titles][:MOST_CHOICES]
    references = [reference.name for reference in view.references()][:MOST_CHOICES]
    sorts = [
        (mark + name, SORT_WORDS[name] + word) for name in SORTS for mark, word in (("", ""), ("-", ", descending"))
    ]
    return {
        "status_choices": list(STATUS_CHOICES),
        "sev_choices": [("", "any number"), *((str(size), str(size)) for size in view.tally.sev)],
        "feature_choices": [("", "any"), *((name, view.titles[name]) for name in used)],
        "reference_choices": [("", "any"), *((name, name) for name in references)],
        "sort_choices": sorts,
    }


def _listed(view: PopulationView, line: CaseLine) -> dict[str, Any]:
    """One case of the list, as text."""
    hidden = {view.titles[name] for name, on in view.protected.items() if on} & set(line.features)
    what = " and ".join(line.changes)
    if hidden:
        what = "withheld: uses a protected feature"
    status = Status(line.status)
    if status != Status.EXPLAINED:
        what = f"{status.words}; found so far: {what}" if what and status == Status.BUDGET else status.words
    sev = "-" if line.sev is None else line.sev
    return {"row": line.row, "label": line.label, "score": line.score, "sev": sev, "what": what}


def _start(explored: Explored) -> dict[str, Any]:
    """What the first page shows; there is always one case on it."""
    view = explored.view
    example = explored.view_of(explored.first)
    return {
        "summary": view.summary,
        "figures": figures(view),
        "warnings": view.warnings(),
        "example": "" if example.protected else example.sentence,
        "first": (explored.first, view.label(explored.first)),
        "hardest": (view.survey.hardest[0], view.label(view.survey.hardest[0])) if view.survey.hardest else None,
        "open_ends": [(s.value, s.words, view.tally.count(s)) for s in OPEN_ENDS if view.tally.count(s)],
        "model": view.model_name,
        "outcome": explored.run.about.outcome,
        "reference_count": len(view.references()),
        "fingerprints": explored.run.origin.fingerprints,
    }
