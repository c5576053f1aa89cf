"""The pages of a run: every table and figure that was made, what was left out, and why. No script; all text escaped."""

from __future__ import annotations

import math
import platform
from pathlib import Path
from typing import Any

import pandas as pd

from fewest.errors import FewestError
from fewest.experiments.paper.everything import PICTURES, DrawnFigure, Measured, Plan, Results
from fewest.experiments.paper.summary import Cell, measured
from fewest.persistence.versions import versions
from fewest.references.signatures import Clock, utc_now
from fewest.reporting.page_templates import render
from fewest.tables.files import write_text

TITLE = "Improving Decision Sparsity: measured again"
INDEX, CONTENTS = "index.html", "index.md"
PACKAGES = ("fewest", "numpy", "pandas", "scikit-learn", "numba", "torch", "tree-praxis", "gosdt", "pacmap", "dice-ml")
MOST_ROWS = 60
PIXELS = 96  # of an inch of a picture
QUICK = "Quick settings: few rows and small models. This shows that everything runs; nothing here is to be compared."


def made_with(clock: Clock = utc_now) -> str:
    """The date, and the versions of what a run depends on."""
    packages = ", ".join(f"{name} {version}" for name, version in versions(PACKAGES).items())
    return f"{clock():%Y-%m-%d} with Python {platform.python_version()}, {packages}"


def index_html(results: Results, quick: bool = False, title: str = TITLE, made: str = "") -> str:
    """The page as text; pictures are files beside it. A quick one says that its figures are not to be compared."""
    return render(
        "paper.html.j2",
        title=title,
        quick=QUICK if quick else "",
        sentence=_sentence(results),
        made=made,
        left_out=results.left_out,
        failed=[(what, _said(error)) for what, error in results.failed],
        figures=[_figure(drawn) for drawn in results.drawn],
        tables=[_table(one, quick) for one in results.tables],
        cases=[
            {"name": f"cases of {shown.dataset}", "text": shown.text, "stem": shown.stem} for shown in results.shown
        ],
    )


def contents_md(results: Results, quick: bool = False, title: str = TITLE, made: str = "") -> str:
    """The same as Markdown: the figures, and links to the files of tables and cases."""
    parts = [f"# {title}", _sentence(results), *([f"Made {made}."] if made else []), *([QUICK] if quick else [])]
    for heading, reasons in (
        ("Failed", [(what, _said(error)) for what, error in results.failed]),
        ("Left out", results.left_out),
    ):
        if reasons:
            parts += [f"{heading}:", "\n".join(f"- {what}: {why}" for what, why in reasons)]
    links = [f"- [{_table(one, quick)['title']}]({_table(one, quick)['stem']}.md)" for one in results.tables]
    links += [f"- [Cases of {shown.dataset}]({shown.stem}.md)" for shown in results.shown]
    if links:
        parts += ["## Tables and cases", "\n".join(links)]
    for drawn in results.drawn:
        figure, stem = drawn.figure, f"{PICTURES}/{drawn.stem}"
        files = f"Also as [PNG]({stem}.png) and, the numbers, as [CSV]({stem}.csv)."
        parts += [f"## {figure.title}", f"![{figure.title}]({stem}.svg)", f"{figure.caption} {files}"]
    return "\n\n".join(parts) + "\n"


def write_page(plan: Plan, results: Results, clock: Clock = utc_now) -> Path:
    """Write ``index.html``, and ``index.md`` for who reads the folder, into the plan's folder; returns the first."""
    path, made = Path(plan.out) / INDEX, made_with(clock)
    write_text(path, index_html(results, plan.quick, made=made))
    write_text(path.with_name(CONTENTS), contents_md(results, plan.quick, made=made))
    return path


def _sentence(results: Results) -> str:
    def count(number: int, noun: str) -> str:
        return f"{number} {noun}{'' if number == 1 else 's'}"

    made = f"{count(len(results.tables), 'table')} and {count(len(results.drawn), 'figure')}"
    rest = [f"{len(results.left_out)} left out"] if results.left_out else []
    rest += [f"{len(results.failed)} failed"] if results.failed else []
    return f"{made}{'; ' if rest else ''}{', '.join(rest)}."


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, FewestError) else f"{type(error).__name__}: {error}"


def _figure(drawn: DrawnFigure) -> dict[str, Any]:
    numbers = drawn.drawing.numbers
    return {
        "name": drawn.figure.name,
        "title": drawn.figure.title,
        "caption": drawn.figure.caption,
        "stem": f"{PICTURES}/{drawn.stem}",
        "width": int(PIXELS * drawn.drawing.picture.get_figwidth()),
        "headings": [str(name) for name in numbers],
        "rows": [[_text(value) for value in row] for row in numbers.head(MOST_ROWS).itertuples(index=False)],
        "hidden": max(0, len(numbers) - MOST_ROWS),
    }


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    return "-" if value is pd.NA else str(value)


def _table(of: Measured, quick: bool) -> dict[str, Any]:
    table, lines = of
    # Columns of dashes are not shown.
    columns = [
        c for c in table.columns if any(line.cells[c.figure].count or line.cells[c.figure].paper for line in lines)
    ]
    return {
        "name": table.name,
        "title": table.title,
        "stem": f"{table.name}-quick" if quick else table.name,
        "headings": ["dataset", "method", "splits", *(column.heading for column in columns)],
        "rows": [
            ((line.dataset, line.method, str(line.splits)), [_cell(line.cells[c.figure], c.decimals) for c in columns])
            for line in lines
        ],
        "notes": table.notes,
    }


def _cell(cell: Cell, decimals: int) -> dict[str, str]:
    """What was measured, and the paper's figure where it has one."""
    return {"ours": measured(cell, decimals), "paper": "" if cell.paper is None else f"paper {cell.paper}"}
