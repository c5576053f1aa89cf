"""What others get to see: ``fewest report``, ``letter`` and ``explore`` of a run folder, ``serve`` over HTTP."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewest.apps.cli._options import MODEL, RUN, AllowPickle, Json, RandomState
from fewest.errors import MissingExtraError, ModelError, UsageError

if TYPE_CHECKING:
    from fewest.apps.explorer import Live
    from fewest.decision import Decision
    from fewest.runs import Run

PORT = 8765
CODES = "CSV of reason codes: feature, direction, code, text. Default: the schema's own."
TEMPLATE = "Jinja template of your own; one that ends in .html or .html.j2 makes HTML."
Dated = Annotated[
    datetime | None, typer.Option("--dated", formats=["%Y-%m-%d"], help="Date on the letter. Default: none.")
]
Locale = Annotated[str | None, typer.Option("--locale", help="How the date is written, e.g. en_GB; needs Babel.")]
Sender = Annotated[list[str] | None, typer.Option("--sender", help="Line about who writes; repeat it.")]
SAVED = "Files of `fewest build` or explainer.save(path); each is served under the stem of its name."


def report(
    run: Annotated[Path, typer.Argument(help=RUN, show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", help="Page to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Heading of the page. Default: that of the run.")] = None,
    random_state: RandomState = 0,
    as_json: Json = False,
) -> int:
    """Write a report of a run: one HTML file that opens offline and can be printed."""
    from fewest.apps.cli._files import check_place, save
    from fewest.apps.cli._text import clean
    from fewest.runs.views import open_run
    from fewest.runs.views import report as page

    check_place(out, (".html", ".htm"), "a report is an HTML page")
    view = open_run(run, random_state)
    save(out, page(view, title))
    if as_json:
        summary = {"report": str(out), "summary": view.summary, "warnings": view.warnings()}
        print(json.dumps(summary, indent=1, ensure_ascii=False))
    else:
        warnings = [f"Warning: {text}" for text in view.warnings()]
        print(clean("\n".join([view.summary, *warnings, f"Written: {out}"])))
    return 0


def letter(
    run: Annotated[Path, typer.Argument(help="Run folder of `fewest explain --out RUN`.")],
    row: Annotated[int | None, typer.Option("--row", min=0, help="Number of the case in the run, from 0 on.")] = None,
    case: Annotated[str | None, typer.Option("--case", help="Or what it is called (`explain --id`).")] = None,
    codes: Annotated[Path | None, typer.Option("--codes", help=CODES)] = None,
    html: Annotated[bool, typer.Option("--html", help="Write HTML instead of text.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write. Default: the terminal.")] = None,
    template: Annotated[Path | None, typer.Option("--template", help=TEMPLATE)] = None,
    audit: Annotated[Path | None, typer.Option("--audit", help="Text file for what the letter rests on.")] = None,
    model: Annotated[Path | None, typer.Option("--model", help=f"Weighs the reasons. {MODEL}")] = None,
    allow_pickle: AllowPickle = False,
    protected: Annotated[list[str] | None, typer.Option("--protected", help="Never a reason; repeatable.")] = None,
    max_reasons: Annotated[int, typer.Option("--at-most", min=1, help="Reasons given.")] = 4,
    subject: Annotated[str, typer.Option("--subject", help="What was decided on.")] = "your application",
    dated: Dated = None,
    locale: Locale = None,
    sender: Sender = None,
    recipient: Annotated[list[str] | None, typer.Option("--recipient", help="Line about who reads; repeat it.")] = None,
    our_reference: Annotated[str, typer.Option("--our-reference", help="Reference to quote in answers.")] = "",
) -> None:
    """Write a letter with the reasons of one decision, or say why none can be written.

    Reasons come from all smallest sets of the case. The letter supports a notice of principal reasons; it is not legal
    advice.
    """
    from fewest import reporting
    from fewest.apps.cli._files import save
    from fewest.apps.cli._text import clean
    from fewest.references.file import read_saved
    from fewest.runs import Run
    from fewest.runs.run import REFERENCES

    opened = Run.open(run)
    row = chosen_row(opened, row, case)
    own = None if template is None else reporting.LetterTemplate.read(template)
    written = reporting.letter(
        opened.explanation(row), None if codes is None else reporting.Codes.read(codes),
        read_saved(opened.path / REFERENCES), decision=weighing(opened, model, allow_pickle),
        protected=tuple(protected or ()), max_reasons=max_reasons, subject=subject,
        dated=None if dated is None else dated.date(), locale=locale, sender="\n".join(sender or ()),
        recipient="\n".join(recipient or ()), our_reference=our_reference,
    )  # fmt: skip
    text = written.fill(own) if own is not None else written.html if html else written.text
    if audit is not None:
        save(audit, written.audit_sheet)
    if out is None:
        typer.echo(clean(text))
    else:
        save(out, text)


def chosen_row(run: Run, row: int | None, case: str | None) -> int:
    """The row of the case that was named, by its number or by what it is called."""
    if (row is None) == (case is None):
        raise UsageError("which case?", do="pass either --row N or --case NAME")
    if row is None:
        from fewest.reporting.views import PopulationView

        found = PopulationView(run).find(str(case))
        if found is None:
            hint = "check the name" if run.names_cases else "use --row N: the run was made without --id"
            raise UsageError(f'no case is called "{case}"', do=hint)
        return found
    if not row < run.rows:
        do = f"use a number from 0 to {run.rows - 1}"
        raise UsageError(f"there is no row {row}: the run has {run.rows:,}", do=do)
    return row


def weighing(run: Run, model: Path | None, allow_pickle: bool) -> Decision | None:
    """The decision that weighs reasons, where a model is named."""
    if model is None:
        return None
    from fewest.apps.cli._sources import decision_of, load_model

    return decision_of(load_model(model, allow_pickle), run.manifest["settings"])


def explore(
    run: Annotated[Path, typer.Argument(help=RUN, show_default=False)],
    other: Annotated[Path | None, typer.Option("--with", help="Another run folder, to compare.")] = None,
    live: Annotated[bool, typer.Option("--live", help="Ask the model: what-if, and effects of edits.")] = False,
    model: Annotated[Path | None, typer.Option(help=f"With --live. {MODEL}")] = None,
    protected: Annotated[list[str] | None, typer.Option(help="Withhold sets that use it; repeat it.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = PORT,
    allow_host: Annotated[list[str] | None, typer.Option(help="Further name it is called by; repeat it.")] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    allow_pickle: AllowPickle = False,
) -> int:
    """Look at a run folder in the browser: decisions, population, references, comparisons, trees."""
    from importlib.util import find_spec

    from fewest.apps.explorer import Binding

    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise MissingExtraError(f"the explorer needs {name}", do='pip install "fewest[explore]"')
    if live and model is None:
        raise UsageError("--live asks the model, and none is named", do="add --model FILE")
    Binding(host, port, tuple(allow_host or ())).check()
    for folder in (run, other or run):
        if not (folder / "manifest.json").is_file():
            # What can say why it is refused is loaded only now.
            from fewest.runs.run import Run

            Run.open(folder)
    settings = {
        "run": str(run), "other": None if other is None else str(other), "protected": protected or [], "host": host,
        "port": port, "names": list(allow_host or ()), "open_browser": open_browser,
    }  # fmt: skip
    from fewest.apps.explorer.__main__ import become, serve_run

    if model is None and os.name == "posix":
        become(settings)
    serve_run(settings, None if model is None else _live(run, model, allow_pickle))
    return 0


def _live(run: Path, model: Path, allow_pickle: bool) -> Live:
    """The model, with the choices of the run; the only part that needs the heavy libraries."""
    from fewest.apps.cli._sources import decision_of, load_model
    from fewest.apps.explorer import Live
    from fewest.runs.run import Run
    from fewest.runs.storage import file_digest

    manifest = Run.open(run).manifest
    settings, known = manifest["settings"], manifest["model"]
    made = Live.open(decision_of(load_model(model, allow_pickle), settings), run, settings, model.name)
    if known["file"] is not None and known["sha256"] != file_digest(model):
        print(f"fewest: warning: {model.name} is not the file this run was made with", file=sys.stderr)
    return made


def serve(
    models: Annotated[list[Path], typer.Argument(help=SAVED, show_default=False)],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one; the log says which.")] = 8000,
    keys: Annotated[Path | None, typer.Option(help="API keys: a name:sha256 per line. Needed beyond loopback.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes per model. Default: the cores, shared.")] = None,
    memory: Annotated[float, typer.Option(help="GB a worker may take on top of its model.")] = 2.0,
    time_limit: Annotated[float, typer.Option(help="Seconds per request; then the answer is BUDGET.")] = 10.0,
    grace: Annotated[float, typer.Option(help="Further seconds until a worker is stopped.")] = 5.0,
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of a request.")] = 1_000_000,
    max_instances: Annotated[int, typer.Option(min=1, help="Cases of a request.")] = 1_000,
    queue: Annotated[int, typer.Option(min=1, help="Requests of a model that may wait, for each key.")] = 256,
    patience: Annotated[float, typer.Option(help="Seconds a request may wait, or take to arrive.")] = 15.0,
    connections: Annotated[int, typer.Option(min=2, help="Connections at a time.")] = 1_000,
    rate: Annotated[float, typer.Option(min=0, help="Requests per second of a key; 0: no limit.")] = 100.0,
    burst: Annotated[float, typer.Option(help="Requests of a key at once, after a pause.")] = 200.0,
) -> int:
    """Explain and predict over HTTP, in the shape of KServe's V1 protocol; models run in processes of their own."""
    from fewest.apps.serving import ServiceSettings
    from fewest.apps.serving import serve as run

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    settings = ServiceSettings(
        host=host, port=port, keys=keys, workers=workers or max(1, cores // len(models)), memory=memory,
        time_limit=time_limit, grace=grace, max_body=max_body, max_instances=max_instances, queue=queue,
        patience=patience, connections=connections, rate=rate, burst=burst,
    )  # fmt: skip
    for path in models:
        if not path.is_file():
            raise ModelError(f"there is no file {path}", do="write one with `fewest build`, or explainer.save(path)")
        if path.suffix.lower() != ".fewest":
            raise ModelError(
                f"{path.name} is not a .fewest file: the service needs a model together with its references",
                do=f"fewest build TRAIN --model {path.name} --target COL --positive CLASS --out {path.stem}.fewest",
            )
    return run(models, settings)
