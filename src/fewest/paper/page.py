"""The page of a run: every table and figure that was made, what was left out, and why. No script; all text escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fewest.errors import FewestError
from fewest.files import write_text
from fewest.paper.base import Column
from fewest.paper.everything import PICTURES, Drawn, Measured, Plan, Results
from fewest.paper.summary import Cell, Line
from fewest.reporting._templates import render

TITLE = "Improving Decision Sparsity: measured again"
INDEX = "index.html"
MOST_ROWS = 60
PIXELS = 96  # of an inch of a picture
QUICK = "Quick settings: few rows and small models. This shows that everything runs; nothing here is to be compared."


@dataclass(frozen=True)
class Figures:
    """One cell of a table as text: what was measured, and the paper's figure where it has one."""

    ours: str
    paper: str = ""


def index_html(results: Results, quick: bool = False, title: str = TITLE) -> str:
    """The page as text; pictures are files beside it.

    Parameters
    ----------
    results : Results
    quick : bool
        Whether the page says that its figures are not to be compared.
    title : str

    Examples
    --------
    >>> page = index_html(Results(left_out=[("figure regions", "figures need matplotlib")]))
    >>> "figure regions" in page, "<script" in page
    (True, False)
    """
    return render(
        "paper.html.j2",
        title=title,
        quick=QUICK if quick else "",
        sentence=_sentence(results),
        left_out=results.left_out,
        failed=[(what, _said(error)) for what, error in results.failed],
        figures=[_figure(drawn) for drawn in results.drawn],
        tables=[_table(measured, quick) for measured in results.tables],
        cases=[
            {"name": f"cases of {shown.dataset}", "text": shown.text, "stem": shown.stem} for shown in results.shown
        ],
    )


def write_page(plan: Plan, results: Results) -> Path:
    """Write ``index.html`` into the plan's folder.

    Examples
    --------
    >>> import tempfile
    >>> write_page(Plan(tempfile.mkdtemp()), Results()).name
    'index.html'
    """
    path = Path(plan.out) / INDEX
    write_text(path, index_html(results, plan.quick))
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


def _figure(drawn: Drawn) -> dict[str, Any]:
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


def _table(measured: Measured, quick: bool) -> dict[str, Any]:
    table, lines = measured
    columns = [column for column in table.columns if _measured(column, lines)]
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


def _measured(column: Column, lines: Iterable[Line]) -> bool:
    """Whether any line has the figure, here or in the paper; columns of dashes are not shown."""
    return any(line.cells[column.figure].count or line.cells[column.figure].paper for line in lines)


def _cell(cell: Cell, decimals: int) -> Figures:
    ours = "-"
    if not math.isnan(cell.mean):
        spread = "" if math.isnan(cell.sd) else f" ± {cell.sd:,.{decimals}f}"
        ours = f"{cell.mean:,.{decimals}f}{spread}"
    return Figures(ours, "" if cell.paper is None else f"paper {cell.paper}")
