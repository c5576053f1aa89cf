"""``fewest report``: one page about a run folder, without the model and without the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fewest.apps.cli._options import RUN, Json, RandomState
from fewest.errors import UsageError

PAGES = (".html", ".htm")


def report(
    run: Annotated[Path, typer.Argument(help=RUN, show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", help="Page to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Heading of the page. Default: that of the run.")] = None,
    random_state: RandomState = 0,
    as_json: Json = False,
) -> int:
    """Write a report of a run: one HTML file that opens offline and can be printed."""
    return write_report(run, out, title, random_state, as_json)


def write_report(run: Path, out: Path, title: str | None = None, random_state: int = 0, as_json: bool = False) -> int:
    """Write the page and say where it is."""
    import json

    from fewest.apps.cli._text import clean
    from fewest.runs.views import open_run
    from fewest.runs.views import report as page

    if out.suffix.lower() not in PAGES:
        raise UsageError(f"--out {out.name}: a report is an HTML page", do="let it end in .html")
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise UsageError(f"--out {out}: a file cannot be written here", do="name a file in a folder that exists")
    view = open_run(run, random_state)
    save(out, page(view, title))
    if as_json:
        summary = {"report": str(out), "summary": view.summary, "warnings": view.warnings()}
        print(json.dumps(summary, indent=1, ensure_ascii=False))
        return 0
    print(clean(view.summary))
    for text in view.warnings():
        print(clean(f"Warning: {text}"))
    print(clean(f"Written: {out}"))
    return 0


def save(path: Path, page: str) -> None:
    """Write a page, or say why it cannot be written."""
    from fewest.tables.files import write_text

    try:
        write_text(path, page)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}", do="choose another place") from error
