"""The references of a run on a page: looked at, edited, signed.

What the run used is never written over: every change is a new version, in a file of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fewest.apps.explorer._forms import NotThereError, fields, read_body, read_form
from fewest.apps.explorer._live import Live
from fewest.apps.explorer._pages_of_run import Explored
from fewest.errors import DataError, FewestError, UsageError
from fewest.references import differences
from fewest.references.audit import audit
from fewest.references.file import Saved, read_saved
from fewest.reporting.audit_page import facts, lines, summary_sentence
from fewest.results.explanation import show
from fewest.runs.run import REFERENCES
from fewest.runs.storage import cannot_write, locked

QUESTION = "Who are cases compared with, and who approved it?"
SAID = {"saved": "Saved as a new version.", "signed": "Signed, as a new version.", "restored": "Back to that version."}
MOST_ROWS = 12
FOLDER = "references"
NAME = re.compile(r"version-(\d{4})\.json")


@dataclass(frozen=True)
class Version:
    """One state of the references; the first is what the run used."""

    number: int
    path: Path
    saved: Saved

    @property
    def title(self) -> str:
        """What it is called."""
        return f"version {self.number}" + (" (used by this run)" if self.number == 1 else "")


def versions(run: Path) -> list[Version]:
    """All versions, the one the run used first."""
    files = (run / FOLDER).iterdir() if (run / FOLDER).is_dir() else ()
    later = [(int(found[1]), path) for path in files if (found := NAME.fullmatch(path.name))]
    return [Version(number, path, read_saved(path)) for number, path in [(1, run / REFERENCES), *sorted(later)]]


def find(run: Path, number: int | None) -> Version:
    """One version, the last where none is named."""
    known = versions(run)
    if number is None:
        return known[-1]
    for version in known:
        if version.number == number:
            return version
    raise NotThereError(f"there is no version {number} of the references", do=f"choose from 1 to {known[-1].number}")


def add(run: Path, saved: Saved) -> Version:
    """Write a new version beside the others; those that are there stay as they are."""
    folder = run / FOLDER
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    with locked(folder):
        number = versions(run)[-1].number + 1
        path = folder / f"version-{number:04d}.json"
        try:
            saved.write(path)
        except OSError as error:
            raise cannot_write(path, error) from error
    return Version(number, path, saved)


def edited(saved: Saved, name: str, values: Mapping[str, Any], score: float) -> Saved:
    """The same with other values of one reference, and the model's score of them (NaN where nobody asked it).

    Its signature stays in the file: it says what was signed, and no longer holds.
    """
    if name not in saved.names:
        raise UsageError(f'there is no reference "{name}"', do=f"choose from {', '.join(saved.names)}")
    k = saved.names.index(name)
    return replace(
        saved,
        values=(*saved.values[:k], dict(values), *saved.values[k + 1 :]),
        score=(*saved.score[:k], score, *saved.score[k + 1 :]),
    )


def changes_between(before: Saved, after: Saved) -> list[tuple[str, str, str, str]]:
    """Reference, feature, value before and after, of everything that differs, signatures included."""
    out = []
    for found in differences(before, after):
        if found.feature is None:
            ends = ("absent", "added") if found.before is None else ("there", "removed")
            out.append((found.reference, "the whole reference", *ends))
        else:
            out.append((found.reference, found.feature.heading, show(found.before), show(found.after)))
    if before.assignment != after.assignment:
        out.append(("all", "assignment", before.assignment, after.assignment))
    signed = [
        {name: str(one) for name, one in zip(saved.names, saved.signatures, strict=False) if one is not None}
        for saved in (before, after)
    ]
    for name in after.names:
        was, now = (side.get(name, "not signed") for side in signed)
        if name in before.names and was != now:
            out.append((name, "signature", was, now))
    return out


@dataclass(frozen=True)
class Chosen:
    """One reference of one version of them."""

    run: Path
    version: Version
    number: int

    @classmethod
    def of(cls, run: Path, version: str | None, number: str | None) -> Chosen:
        """The one that is named; the first of the last version where nothing is."""
        known = find(run, _whole(version, "version"))
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
        after = edited(self.saved, self.name, values, score)
        if not changes_between(self.saved, after):
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
    known = versions(chosen.run)
    schema = chosen.saved.schema or found.schema
    pairs = zip([None, *known[:-1]], known, strict=True)
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
        "history": [(now, [] if was is None else changes_between(was.saved, now.saved)) for was, now in pairs][::-1],
        "file": f"RUN/{known[-1].path.relative_to(chosen.run)}",
    }


def _reference(row: Mapping[Any, Any]) -> dict[str, str]:
    """One line of the table of references, as text."""
    return {
        "name": row["name"],
        "people": "not known" if row["people"] < 0 else f"{row['people']:,}",
        "score": "not known" if np.isnan(row["score"]) else f"{row['score']:.3f}",
        "accepted": {True: "accepted", False: "refused"}.get(row["accepted"], "not known"),
        "signature": row["signature"],
    }


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
        return explored.page(
            "references.html.j2", "References", "References", QUESTION, notices=notices, status=status,
            **context(chosen, **more),
        )  # fmt: skip

    def chosen_of(query: Mapping[str, str]) -> Chosen:
        return Chosen.of(run, query.get("version"), query.get("number"))

    def done(version: Version, number: int, said: str) -> Response:
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
        kinds = {
            "Changed": effect.changed, "Impossible now": effect.lost, "Possible now": effect.gained,
            "Not known": effect.unknown,
        }  # fmt: skip
        rows = [(label, listed[:MOST_ROWS]) for label, listed in kinds.items() if listed]
        return page(chosen, typed=form, preview=str(effect), rows=rows, changes=changes_between(chosen.saved, after))

    async def save(request: Request) -> Response:
        form = await read_body(request)
        chosen = chosen_of(form)
        try:
            after = await apart(chosen.edited, form, explored.live)
        except FewestError as error:
            return page(chosen, 400, typed=form, problem=f"{error.message}: {error.do}")
        return done(add(run, after), chosen.number, "saved")

    async def sign(request: Request) -> Response:
        form = await read_body(request)
        chosen = chosen_of(form)
        signed = chosen.saved.sign(form.get("by", "")[:100], form.get("note", "")[:300], chosen.name)
        return done(add(run, signed), chosen.number, "signed")

    async def restore(request: Request) -> Response:
        old = chosen_of(await read_body(request))
        return done(add(run, old.saved), 0, "restored")

    return [
        Route("/references", references),
        Route("/references/preview", preview, methods=["POST"]),
        Route("/references/save", save, methods=["POST"]),
        Route("/references/sign", sign, methods=["POST"]),
        Route("/references/restore", restore, methods=["POST"]),
    ]
