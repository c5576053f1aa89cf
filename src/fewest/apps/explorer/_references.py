"""The references of a run on a page: looked at, edited, signed; every change is a new version."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fewest.apps.explorer import _history as history
from fewest.apps.explorer._forms import NotThereError, fields, read_body, read_form
from fewest.apps.explorer._history import Version
from fewest.apps.explorer._live import Effect, Live
from fewest.apps.explorer._pages_of_run import Explored
from fewest.errors import DataError, FewestError, UsageError
from fewest.references.audit import audit
from fewest.references.file import Saved
from fewest.reporting.audit_page import facts, lines, summary_sentence

QUESTION = "Who are cases compared with, and who approved it?"
SAID = {"saved": "Saved as a new version.", "signed": "Signed, as a new version.", "restored": "Back to that version."}
MOST_ROWS = 12


@dataclass(frozen=True)
class Reference:
    """One line of the table of references, as text."""

    name: str
    people: str
    score: str
    accepted: str
    signature: str


@dataclass(frozen=True)
class Chosen:
    """One reference of one version of them."""

    run: Path
    version: Version
    number: int

    @classmethod
    def of(cls, run: Path, version: str | None, number: str | None) -> Chosen:
        """The one that is named; the first of the last version where nothing is."""
        known = history.find(run, _whole(version, "version"))
        chosen = _whole(number, "reference") or 0
        if chosen >= len(known.saved):
            raise NotThereError(f"there is no reference number {chosen}", do="choose one from the list")
        return cls(run, known, chosen)

    @property
    def saved(self) -> Saved:
        """All references of the version."""
        return self.version.saved

    @property
    def name(self) -> str:
        """Name of the reference."""
        return self.saved.names[self.number]

    @property
    def values(self) -> Mapping[str, Any]:
        """Its values, column by column."""
        return self.saved.values[self.number]

    def edited(self, typed: Mapping[str, str], live: Live | None) -> Saved:
        """The references with what was typed; refused where nobody can have such values, or nothing changes.

        A reference that the model refuses is not taken either, where the model can be asked.
        """
        if self.saved.schema is None:
            raise UsageError("these references do not say what their features are", do="save them again")
        values = read_form(self.saved.schema, self.values, typed)
        score = math.nan
        if live is not None:
            score, against, said = live.verdict(values)
            if against:
                raise UsageError(f"no explanation can end there. {said}", do="choose values that the model accepts")
        after = history.edited(self.saved, self.name, values, score)
        if not history.changes(self.saved, after):
            raise UsageError("nothing was changed", do="change a value first")
        return after


def context(
    chosen: Chosen, typed: Mapping[str, str] | None = None, problem: str = "", preview: str = "",
    rows: Sequence[tuple[str, Sequence[int]]] = (), changes: Sequence[Any] = (),
) -> dict[str, Any]:  # fmt: skip
    """What the page of references shows."""
    found = audit(chosen.saved)
    records = found.references.to_dict("records")
    record = records[chosen.number]
    known = history.versions(chosen.run)
    schema = chosen.saved.schema or found.schema
    return {
        "summary": summary_sentence(found),
        "flags": found.flags()[:MOST_ROWS],
        "version": chosen.version,
        "number": chosen.number,
        "name": chosen.name,
        "references": [_reference(line) for line in records],
        "facts": facts(record),
        "lines": lines(found, chosen.name, record["flexible_of"]),
        "fields": fields(schema, chosen.values, typed),
        "typed": bool(typed),
        "problem": problem,
        "preview": preview,
        "rows": rows,
        "changes": changes,
        "next_number": known[-1].number + 1,
        "last_number": known[-1].number,
        "history": _history(known),
        "file": f"RUN/{known[-1].path.relative_to(chosen.run)}",
    }


def effect_rows(effect: Effect) -> list[tuple[str, Sequence[int]]]:
    """The first rows of each kind of effect, with what they are."""
    kinds = (
        ("Changed", effect.changed), ("Impossible now", effect.lost), ("Possible now", effect.gained),
        ("Not known", effect.unknown),
    )  # fmt: skip
    return [(label, listed[:MOST_ROWS]) for label, listed in kinds if listed]


def _history(known: Sequence[Version]) -> list[tuple[Version, list[tuple[str, str, str, str]]]]:
    """The versions, newest first, each with what it changed."""
    before: list[Version | None] = [None, *known[:-1]]
    pairs = zip(before, known, strict=True)
    out = [(now, [] if was is None else history.changes(was.saved, now.saved)) for was, now in pairs]
    return out[::-1]


def _reference(row: Mapping[Any, Any]) -> Reference:
    verdict = {True: "accepted", False: "refused"}.get(row["accepted"], "not known")
    return Reference(
        row["name"],
        "not known" if row["people"] < 0 else f"{row['people']:,}",
        "not known" if np.isnan(row["score"]) else f"{row['score']:.3f}",
        verdict,
        row["signature"],
    )


def _whole(text: str | None, what: str) -> int | None:
    if text is None or text == "":
        return None
    if not text.isdecimal() or len(text) > 6:
        raise DataError(f"{what} {text[:20]!r} is not a number", do="choose one from the list")
    return int(text)


def reference_routes(explored: Explored) -> list[Route]:
    """The pages of the references; the only ones that write: new versions, beside what the run used."""
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

    async def references(request: Request) -> Response:
        return page(chosen_of(request.query_params), said=request.query_params.get("said", ""))

    async def preview(request: Request) -> Response:
        form = await read_body(request)
        chosen = chosen_of(form)
        try:
            after = await apart(chosen.edited, form, explored.live)
            effect = await apart(explored.effect, after)
        except FewestError as error:
            return page(chosen, 400, typed=form, problem=f"{error.message}: {error.do}")
        changed = history.changes(chosen.saved, after)
        return page(chosen, typed=form, preview=str(effect), rows=effect_rows(effect), changes=changed)

    async def save(request: Request) -> Response:
        form = await read_body(request)
        chosen = chosen_of(form)
        try:
            after = await apart(chosen.edited, form, explored.live)
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
