"""The only pages that write: new versions of the references, beside what the run used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fewest.apps.explorer import _history as history
from fewest.apps.explorer._explored import Explored
from fewest.apps.explorer._forms import read_body
from fewest.apps.explorer._references import Chosen, context, effect_rows
from fewest.errors import FewestError
from fewest.references.file import Saved

QUESTION = "Who are cases compared with, and who approved it?"
SAID = {"saved": "Saved as a new version.", "signed": "Signed, as a new version.", "restored": "Back to that version."}


def reference_routes(explored: Explored) -> list[Route]:
    """The pages of the references."""
    run = explored.run.path

    def page(chosen: Chosen, status: int = 200, said: str = "", **more: Any) -> Response:
        notices = [SAID[said]] if said in SAID else []
        return explored.site.page(
            "references.html.j2", "References", "References", QUESTION, notices=notices, status=status,
            **context(chosen, **more),
        )  # fmt: skip

    def chosen_of(query: Mapping[str, str]) -> Chosen:
        return Chosen.of(run, query.get("version"), query.get("number"))

    def done(version: history.Version, number: int, said: str) -> Response:
        return RedirectResponse(f"/references?version={version.number}&number={number}&said={said}", 303)

    async def apart(work: Callable[..., Any], *given: Any) -> Any:
        return await explored.live.apart(work, *given) if explored.live is not None else work(*given)

    async def edited(chosen: Chosen, form: Mapping[str, str]) -> Saved:
        return await apart(chosen.edited, form, explored.live)  # type: ignore[no-any-return]

    async def references(request: Request) -> Response:
        return page(chosen_of(request.query_params), said=request.query_params.get("said", ""))

    async def preview(request: Request) -> Response:
        form = await read_body(request)
        chosen = chosen_of(form)
        try:
            after = await edited(chosen, form)
            effect = await apart(explored.effect, after)
        except FewestError as error:
            return page(chosen, 400, typed=form, problem=f"{error.message}: {error.do}")
        changed = history.changes(chosen.saved, after)
        return page(chosen, typed=form, preview=str(effect), rows=effect_rows(effect), changes=changed)

    async def save(request: Request) -> Response:
        form = await read_body(request)
        chosen = chosen_of(form)
        try:
            after = await edited(chosen, form)
        except FewestError as error:
            return page(chosen, 400, typed=form, problem=f"{error.message}: {error.do}")
        return done(history.add(run, after), chosen.number, "saved")

    async def sign(request: Request) -> Response:
        form = await read_body(request)
        chosen = chosen_of(form)
        signed = chosen.saved.sign(form.get("by", "")[:100], form.get("note", "")[:300], chosen.name)
        return done(history.add(run, signed), chosen.number, "signed")

    async def restore(request: Request) -> Response:
        old = chosen_of(await read_body(request))
        return done(history.add(run, old.saved), 0, "restored")

    return [
        Route("/references", references),
        Route("/references/preview", preview, methods=["POST"]),
        Route("/references/save", save, methods=["POST"]),
        Route("/references/sign", sign, methods=["POST"]),
        Route("/references/restore", restore, methods=["POST"]),
    ]
