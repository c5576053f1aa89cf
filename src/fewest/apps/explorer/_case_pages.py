"""The pages of one case: the sentence first, what proves it second, everything else after that.

Where a single tree decides: the way the case went through it, and the way it would have gone. With the model: what if.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from fewest.apps.explorer._forms import fields, is_row, read_form
from fewest.apps.explorer._live import Live
from fewest.apps.explorer._pages_of_run import Explored
from fewest.errors import DataError, FewestError
from fewest.models.trees import Tree
from fewest.models.trees.file import from_dict
from fewest.reporting import tree_svg, tree_text
from fewest.reporting.tree_drawing import STYLE
from fewest.reporting.tree_paths import changed, one_row, path_of
from fewest.reporting.views import CaseView, scales_of
from fewest.results.drawing import HEADINGS
from fewest.results.explanation import DOUBTFUL, Explanation, Status, at_least
from fewest.runs.run import Run

MOST_WAYS = 20
CLOSE_CALL = 0.02
TREE, FRONT = "tree.json", "front.csv"
LARGEST_FILE = 20_000_000
MOST_TREES = 100
SHRINKABLE = 1500  # pixels; a drawing as wide as this can still be read when a page of 1,280 shows it whole
FRONT_WORDS = {
    "mean_sev_t": "mean SEV-T", "accuracy": "accuracy", "leaves": "leaves", "trees": "trees like it",
    "pareto": "none is better", "chosen": "chosen",
}  # fmt: skip
TREE_QUESTION = "Which way did a case go, and which way would it have gone?"


def case_routes(explored: Explored) -> list[Route]:
    """Pages about one case."""
    run = explored.run

    async def first(_: Request) -> Response:
        return RedirectResponse(f"/decision/{explored.first}", 303)

    async def find(request: Request) -> Response:
        return RedirectResponse(_place(explored, request.query_params.get("q", "").strip()), 303)

    async def decision(request: Request) -> Response:
        row = request.path_params["row"]
        case = explored.view_of(row)
        view = explored.view
        beside = [None if near is None else (near, view.label(near)) for near in view.neighbours(row)]
        tried = await _try(request)
        how_much = "" if explored.live is None else await explored.live.apart(_how_much, explored.live, explored, row)
        return explored.page(
            "decision.html.j2", "Decision", f"Case {view.label(row)}", case.verdict, row=row, previous=beside[0],
            following=beside[1],
            shown=shown(case, int(run.manifest["settings"].get("alternatives", 0)), explored.values(row)),
            has_tree=has_tree(run), how_much=how_much, **tried,
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
        return explored.page(
            "tree.html.j2", "Tree", "Tree", TREE_QUESTION, row=chosen, front=front(run),
            sentence="" if case.protected else f"Case {case.answer.label}: {case.sentence}",
            **draw(run, explored.case(chosen), answer),
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


def _place(explored: Explored, text: str) -> str:
    """Where a search leads: to a case by its name or number, to those that change a feature, or to what is missed."""
    named = explored.view.find(text)
    if named is not None:
        return f"/decision/{named}"
    if is_row(text) and not explored.run.names_cases:
        return f"/decision/{int(text)}"
    if not text:
        return "/population#cases"
    titles, asked = explored.view.titles, text.casefold()
    exact = [name for name, title in titles.items() if asked in (name.casefold(), title.casefold())]
    found = exact + [name for name, title in titles.items() if asked in title.casefold()]
    query = urlencode({"feature": found[0]} if found else {"missed": text})
    return f"/population?{query}{'#cases' if found else ''}"


def _tried(explored: Explored, row: int, request: Request) -> dict[str, Any]:
    """What the model says of the case as it is typed, and what answer it gets when some features stay."""
    live, schema = explored.live, explored.run.schema
    out: dict[str, Any] = {"fields": [], "score": "", "problem": "", "again": "", "held": [], "holdable": []}
    if live is None:
        return {**out, "live_notes": ()}
    frame = explored.case(row)
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


def _how_much(live: Live, explored: Explored, row: int) -> Markup | str:
    """Which values of each change are enough; nothing of answers that are withheld, or where nothing is known."""
    case, frame = explored.view_of(row), explored.case(row)
    if frame is None or case.protected:
        return ""
    try:
        parts = live.enough(frame, case.answer)
    except Exception:  # a model may raise anything; what it says of this case is shown beside
        return ""
    return scales_of(case.answer, parts) if parts else ""


@dataclass(frozen=True)
class State:
    """Why there is no plain answer, and what can be done."""

    heading: str
    text: str
    do: str = ""


WITHHELD = State(
    "Withheld: it uses a protected feature",
    "Hidden because it would require changing a protected characteristic.",
    "Look at the other ways below, or explain again with that feature held: fewest explain --immutable NAME.",
)
IMPOSSIBLE = State(
    "Not possible with this reference",
    "Even with every allowed change the outcome stays the same; that is proved, not guessed.",
    "Choose another typical case on the References page, or allow more changes.",
)
FIXED = {
    Status.ALREADY_NEGATIVE: State(
        "Accepted",
        "The model accepted this case: there is nothing to explain.",
        "Step to the next case, or choose one on the Population page.",
    ),
    Status.NOT_CREDIBLE: State(
        "Not credible",
        "What would change the outcome leads where accepted cases hardly ever are.",
        "Take it as a finding about the model, not as a way for this person.",
    ),
}


def shown(case: CaseView, listed: int, values: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """What the page of a decision shows of an answer, for which the run asked to list that many sets.

    Nothing that uses a protected feature; ``proof`` pairs each statement with whether it is one to rely on, ``plain``
    (headings and rows) stands instead of the table, and ``ways_note`` says why there are no more other ways.
    """
    answer, hidden = case.answer, bool(case.protected)
    # The facts without what would have changed them: withheld, accepted, or compared with nobody.
    alone = hidden or (bool(values) and (not case.rows or answer.status == Status.ALREADY_NEGATIVE))
    plain = None
    if alone:
        beside = tuple((row.feature, row.case, row.reference) for row in case.rows)
        plain = {"headings": HEADINGS[: 3 if hidden else 2], "rows": beside if hidden else values}
    return {
        "sentence": "" if hidden else case.sentence,
        "state": WITHHELD if hidden else _state(answer),
        "gauge": "" if hidden else case.gauge() or "",
        "proof": () if hidden else _proof(case),
        "table": "" if alone or not case.rows else case.table(),
        "plain": plain,
        "cube": "" if hidden else case.cube() or "",
        "ways": case.other_ways[:MOST_WAYS],
        "withheld": case.withheld + hidden,
        "ways_note": _ways_note(answer, listed, len(case.others) + case.withheld),
    }


def _state(answer: Explanation) -> State | None:
    """What is shown above the sentence where the case is not simply explained."""
    bound = answer.proof.lower_bound
    if answer.status == Status.UNREACHABLE:
        limited = f"Not within the limit that was set: {at_least(answer)}."
        return replace(IMPOSSIBLE, text=IMPOSSIBLE.text if np.isinf(bound) else limited)
    if answer.status == Status.BUDGET:
        found = "The search stopped early: it is proved that {}, and not that fewer than shown would not be enough."
        none = "The search stopped before it found an answer; it is proved that {}."
        cost = "a cost of at least" if answer.weighted else "at least"
        text = (found if answer.changes else none).format(at_least(answer))
        return State(f"Stopped early ({cost} {bound:g})", text, "Explain again with more time.")
    return FIXED.get(answer.status)


def _proof(case: CaseView) -> list[tuple[str, bool]]:
    answer = case.answer
    out = [(text, not text.startswith(("stopped early", DOUBTFUL))) for text in case.proof]
    if answer.margin is not None and answer.shows_percent and 0 <= answer.margin < CLOSE_CALL:
        out.append((f"a close call: {answer.margin * 100:.1f} points beyond the cut-off", False))
    return out


def _ways_note(answer: Explanation, listed: int, others: int) -> str:
    if answer.status != Status.EXPLAINED:
        return ""
    if not listed:
        return "Other sets of the same size were not listed: explain with --alternatives 5 to see them."
    if not answer.all_listed:
        return f"Up to {listed} sets were listed; there may be more."
    return "These are all sets of this size." if others else "No other set of this size changes the outcome."


def draw(run: Run, case: pd.DataFrame | None, answer: Explanation | None) -> dict[str, Any]:
    """The tree of a run as a picture, in words, and as the tests a case passes; where there is none, why."""
    drawn: dict[str, Any] = {"svg": "", "words": "", "path": [], "why": "", "fits": False}
    if not has_tree(run):
        why = f"The run folder holds no {TREE}: the model is not a single tree, or it was not kept."
        return {**drawn, "why": why}
    try:
        tree, names = _read_tree(run)
        svg = tree_svg(tree, case=case, answer=answer, names=names)
    except FewestError as error:
        return {**drawn, "why": f"The tree cannot be drawn: {error.message}"}
    # The style is a file of its own here: the page allows none inside it.
    plain = Markup(svg.replace(f"<style>{STYLE}</style>\n", ""))
    width = re.search(r'<svg[^>]* width="(\d+)"', svg)
    fits = width is not None and int(width[1]) <= SHRINKABLE
    known = {"svg": plain, "words": tree_text(tree, names), "path": _steps(tree, case, answer), "fits": fits}
    return {**drawn, **known}


def has_tree(run: Run) -> bool:
    """Whether a run holds its tree."""
    return (run.path / TREE).is_file()


def front(run: Run) -> dict[str, Any] | None:
    """The front of a set of trees, where the folder holds one: headings, the first rows, how many more there are."""
    path = run.path / FRONT
    if not path.is_file() or path.stat().st_size > LARGEST_FILE:
        return None
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError):
        return None
    columns = [name for name in FRONT_WORDS if name in table.columns]
    if not columns or "accuracy" not in columns:
        return None
    return {
        "headings": [FRONT_WORDS[name] for name in columns],
        "rows": [
            [_cell(name, value) for name, value in zip(columns, row, strict=True)]
            for row in table[columns][:MOST_TREES].itertuples(index=False)
        ],
        "hidden": max(0, len(table) - MOST_TREES),
    }


def _read_tree(run: Run) -> tuple[Tree, tuple[str, str]]:
    path = run.path / TREE
    if path.stat().st_size > LARGEST_FILE:
        raise DataError(f"{TREE} is too large to draw", do="look at it in another way")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        negative, positive = (str(name) for name in content["names"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{TREE} cannot be read", do="save the tree again") from error
    return from_dict(content), (negative, positive)


def _steps(tree: Tree, case: pd.DataFrame | None, answer: Explanation | None) -> list[tuple[str, ...]]:
    """The tests on the two paths, and how each of the two answers them."""
    if case is None:
        return []
    before = one_row(tree, case)
    turned = changed(tree, before, answer) if answer is not None and answer.changes else None
    paths = [path_of(tree, before), path_of(tree, turned)]
    sides = [{node: bool(child == tree.left[node]) for node, child in pairwise(path)} for path in paths]
    asked = dict.fromkeys([*sides[0], *sides[1]])
    words = {True: "yes", False: "no", None: "not asked"}
    return [(f"{tree.describe(node)}?", *(words[side.get(node)] for side in sides)) for node in asked]


def _cell(name: str, value: Any) -> str:
    if name in ("pareto", "chosen"):
        return "yes" if str(value) == "True" else ""
    if isinstance(value, float):
        return "-" if pd.isna(value) else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
