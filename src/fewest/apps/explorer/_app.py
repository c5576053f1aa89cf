"""The explorer's addresses and what each answers; security is around it, in the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from fewest.apps.explorer import _compare, _decision, _population, _tree
from fewest.apps.explorer._forms import NotThereError, fields, is_row, read_form
from fewest.apps.explorer._live import Live
from fewest.apps.explorer._pages_of_run import Explored, Site, protect, static_files
from fewest.apps.explorer._references import reference_routes
from fewest.errors import FewestError
from fewest.runs.run import Run

CSV = "text/csv; charset=utf-8"
WHOLE = 50_000  # answers of fewer cases are made at once: fifty that are made side by side would fill the memory
QUESTIONS = {
    "Start": "What is this, and where do I begin?",
    "Population": "Who was refused, and how little would have changed it?",
    "Compare": "What is different, and for which people?",
    "Tree": "Which way did a case go, and which way would it have gone?",
}


def create_app(
    run: str | Path, *, other: str | Path | None = None, live: Live | None = None, protected: Sequence[str] = ()
) -> Starlette:
    """The explorer of a run folder as an ASGI application; it is to be served behind a `Guard`.

    Parameters
    ----------
    run : path
        A finished run folder.
    other : path, optional
        Another one to compare it with.
    live : Live, optional
        A model that can be asked.
    protected : sequence of str
        Features whose sets are withheld, beside those the run itself marks.

    Examples
    --------
    >>> create_app("nowhere")
    Traceback (most recent call last):
    fewest.errors.DataError: nowhere is not a run folder...
    """
    opened = protect(Run.open(run), protected)
    site = Site(_population.about(opened), live.name if live else "")
    explored = Explored(opened, site, None if other is None else Run.open(other), live)
    routes = [*_run_routes(explored), *_case_routes(explored), *reference_routes(explored)]
    return Starlette(routes=routes, exception_handlers=_errors(site))


def _errors(site: Site) -> dict[Any, Any]:
    """Every error is a page in the same words; it says nothing of the inside."""

    def page(status: int, what: str, do: str | None = None) -> HTMLResponse:
        return site.page(
            "problem.html.j2", "", "That did not work", "What happened, and what can be done?", status=status,
            what=what, do=do or "",
        )  # fmt: skip

    def said(_: Request, error: Exception) -> Response:
        assert isinstance(error, FewestError)
        return page(404 if isinstance(error, NotThereError) else 400, error.message, error.do)

    def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return page(error.status_code, "There is no such page" if error.status_code == 404 else str(error.detail))

    def broken(_: Request, __: Exception) -> Response:
        return page(500, "The explorer made a mistake", "Report what you did, and what `fewest doctor` prints.")

    return {FewestError: said, HTTPException: refused, Exception: broken}


def _run_routes(explored: Explored) -> list[Route]:
    """Pages about the whole run."""
    site, view = explored.site, explored.view
    charts = cache(lambda: _population.charts(view))  # a run does not change while it is looked at

    async def start(_: Request) -> Response:
        return site.page("start.html.j2", "Start", view.title, QUESTIONS["Start"], **_population.start(explored))

    async def population(request: Request) -> Response:
        query = request.query_params
        page = query.get("page", "1")
        choice = _population.Choice.read(query)
        shown = charts() | _population.context(view, choice, int(page) if is_row(page) else 1, query.get("by", ""))
        missed = query.get("missed", "")
        return site.page(
            "population.html.j2", "Population", "Population", QUESTIONS["Population"],
            notices=[_population.not_found(view, missed)] if missed else [], **shown,
        )  # fmt: skip

    async def cases(request: Request) -> Response:
        choice = _population.Choice.read(request.query_params)
        headers = {"content-disposition": 'attachment; filename="cases.csv"'}
        if view.rows <= WHOLE:
            return Response(view.csv(choice.wanted), 200, headers, CSV)
        return StreamingResponse(_one_by_one(view.csv_parts(choice.wanted)), 200, headers, CSV)

    async def compare(_: Request) -> Response:
        both = explored.comparison
        names = () if explored.other is None else _compare.called(explored.run, explored.other)
        own = () if both else _compare.own_figures(explored.run)
        return site.page(
            "compare.html.j2", "Compare", "Compare", QUESTIONS["Compare"], compared=both, names=names, figures=own
        )

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


def _case_routes(explored: Explored) -> list[Route]:
    """Pages about one case."""
    site, run = explored.site, explored.run

    async def first(_: Request) -> Response:
        return RedirectResponse(f"/decision/{explored.first}", 303)

    async def find(request: Request) -> Response:
        return RedirectResponse(_place(explored, request.query_params.get("q", "").strip()), 303)

    async def decision(request: Request) -> Response:
        row = request.path_params["row"]
        case = explored.view_of(row)
        before, after = explored.view.neighbours(row)
        tried = await _try(request)
        return site.page(
            "decision.html.j2", "Decision", f"Case {row}", case.verdict, row=row, previous=before, following=after,
            shown=_decision.shown(case, int(run.manifest["settings"].get("alternatives", 0)), explored.values(row)),
            has_tree=_tree.has_tree(run), **tried,
        )  # fmt: skip

    async def live(request: Request) -> Response:
        if explored.live is None:
            raise HTTPException(404)
        tried = await _try(request)
        return PlainTextResponse(tried["problem"] or tried["score"])

    async def tree(request: Request) -> Response:
        row = request.query_params.get("row", "")
        chosen = int(row) if is_row(row) else explored.first
        case = explored.view_of(chosen)
        answer = None if case.protected else case.answer
        drawn = _tree.draw(run, explored.case(chosen), answer)
        return site.page(
            "tree.html.j2", "Tree", "Tree", QUESTIONS["Tree"], row=chosen, svg=drawn.svg, words=drawn.words,
            path=drawn.path, why=drawn.why, fits=drawn.fits, front=_tree.front(run),
            sentence="" if case.protected else f"Case {chosen}: {case.sentence}",
        )  # fmt: skip

    async def _try(request: Request) -> dict[str, Any]:
        row = request.path_params["row"]
        if explored.live is None:
            return _tried(explored, row, request)
        return await explored.live.apart(_tried, explored, row, request)

    return [
        Route("/decision", first),
        Route("/decision/{row:int}", decision),
        Route("/find", find),
        Route("/live/{row:int}", live),
        Route("/tree", tree),
    ]


async def _one_by_one(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Parts of an answer; each is made when the one before has gone out."""
    for part in parts:
        yield part


def _place(explored: Explored, text: str) -> str:
    """Where a search leads: to a case by its number, to the cases that change a feature, or to what was not found."""
    if is_row(text):
        return f"/decision/{int(text)}"
    if not text:
        return "/population#cases"
    titles, asked = explored.view.titles, text.casefold()
    exact = [name for name, title in titles.items() if asked in (name.casefold(), title.casefold())]
    found = exact + [name for name, title in titles.items() if asked in title.casefold()]
    return (
        f"/population?{urlencode({'feature': found[0]})}#cases"
        if found
        else f"/population?{urlencode({'missed': text})}"
    )


def _tried(explored: Explored, row: int, request: Request) -> dict[str, Any]:
    """What the model says of the case as it is typed, and what answer it gets when some features stay."""
    live, schema = explored.live, explored.run.schema
    out: dict[str, Any] = {"fields": [], "score": "", "problem": "", "again": "", "held": [], "holdable": []}
    frame = explored.case(row) if live is not None else None
    if live is None:
        return {**out, "live_notes": ()}
    if frame is None:
        return {**out, "live_notes": ("The run did not keep its cases: there is nothing to try on.",)}
    typed: Mapping[str, str] = {name: text for name, text in request.query_params.items() if name.startswith("f")}
    values = {column: frame[column].iloc[0] for column in frame.columns}
    held = [name for name in request.query_params.getlist("hold") if name in schema.names]
    try:
        out["score"] = live.verdict(read_form(schema, values, typed, anywhere=True))[2]
        out["again"] = str(live.explain(values, held)) if held else ""
    except FewestError as error:
        out["problem"] = error.message
    return {
        **out,
        "fields": fields(schema, values, typed, anywhere=True),
        "held": held,
        "holdable": [(feature.name, feature.title, feature.name in held) for feature in schema.features],
        "live_notes": live.notes,
    }
