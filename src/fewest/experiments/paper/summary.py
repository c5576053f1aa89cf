"""From records of single splits to the table: mean and spread here, the paper's figure, and the difference."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewest.experiments.paper.base import Printed, Record, Table, TableColumn
from fewest.experiments.paper.own_data import OwnData
from fewest.tables.saved_schema import plain


@dataclass(frozen=True)
class Cell:
    """One figure over the splits that have it, with the paper's; NaN where none has, and for the sd of a single one."""

    mean: float
    sd: float
    count: int
    paper: Printed | None = None

    @property
    def difference(self) -> float:
        """Here less there; NaN where either is not known."""
        return math.nan if self.paper is None else self.mean - self.paper.mean


@dataclass(frozen=True)
class TableLine:
    """A method on a dataset: figure -> `Cell`, in the order of the table's columns."""

    dataset: str
    method: str
    splits: int
    cells: dict[str, Cell]


def summarise(table: Table, records: Iterable[Record]) -> list[TableLine]:
    """Lines in the table's order.

    Examples
    --------
    >>> from fewest.experiments.paper import find
    >>> records = [Record("german", "CART", {"sev_t": sev}) for sev in (1.0, 1.2)]
    >>> cell = summarise(find("trees"), records)[0].cells["sev_t"]
    >>> round(cell.mean, 2), round(cell.sd, 2), str(cell.paper)
    (1.1, 0.14, '1.00 ± 0.00')
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.dataset, record.method), []).append(record)
    order = [(dataset, method) for dataset in table.datasets for method in table.lines()]
    return [
        TableLine(*key, len(groups[key]), {c.figure: _cell(table, c, key, groups[key]) for c in table.columns})
        for key in order
        if key in groups
    ]


def _cell(table: Table, column: TableColumn, key: tuple[str, str], records: list[Record]) -> Cell:
    values = np.array([record.figures.get(column.figure, math.nan) for record in records])
    values = values[np.isfinite(values)]
    mean = float(values.mean()) if len(values) else math.nan
    spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Cell(mean, spread, len(values), table.published.get(key, {}).get(column.figure))


def settings_notes(table: Table, lines: Iterable[TableLine]) -> list[str]:
    """Everything that decides the figures, in a sentence per dataset shown."""
    found = dict.fromkeys(line.dataset for line in lines)
    return [f"Settings, {dataset}: {json.dumps(dict(table.settings(dataset)), sort_keys=True)}" for dataset in found]


def page_notes(table: Table, lines: Sequence[TableLine]) -> list[str]:
    """All that a page says beside its lines: what was measured, on what, and why it is not what is printed."""
    own = [data_note(table.folder)] if isinstance(table.folder, OwnData) else []
    return [*table.notes, *table.differences, *own, *settings_notes(table, lines)]


def data_note(data: OwnData) -> str:
    """A table of yours in a sentence."""
    cut = "by seed, four fifths and one fifth, stratified" if data.splits is None else "as they were given"
    gaps = f", {data.left_out:,} of {len(data.kept):,} left out because a number is missing" if data.left_out else ""
    return (
        f"Data, {data.name}: {len(data.X):,} rows{gaps}; {int(data.y.sum()):,} positive; splits {cut}; a missing level "
        "is a level. Settings that the paper tunes for each dataset are not tuned here."
    )


def as_dict(table: Table, lines: Sequence[TableLine]) -> dict[str, Any]:
    """The table as plain values."""
    return {
        "table": table.name,
        "title": table.title,
        "quick": table.quick,
        "columns": {column.figure: column.heading for column in table.columns},
        "lines": [
            {"dataset": line.dataset, "method": line.method, "line": table.shown(line.method), "splits": line.splits,
             "figures": {name: plain(_parts(cell)) for name, cell in line.cells.items()}}
            for line in lines
        ],
        "notes": [*table.notes, *table.differences],
        "settings": {name: dict(table.settings(name)) for name in dict.fromkeys(line.dataset for line in lines)},
    }  # fmt: skip


def _parts(cell: Cell) -> dict[str, Any]:
    out: dict[str, Any] = {"mean": cell.mean, "sd": cell.sd, "count": cell.count}
    if cell.paper is not None:
        out |= {"paper": cell.paper._asdict(), "difference": cell.difference}
    return out


def as_text(table: Table, lines: Sequence[TableLine]) -> str:
    """The table for a terminal: each figure here, then the paper's and the difference where it has one."""
    # The paper's spread is left to the other forms: a terminal is not that wide.
    head, *body = aligned(_rows(table, lines, lambda printed: f"{printed.mean:.2f}"))
    rule = "-" * max(map(len, (head, *body)))
    notes = page_notes(table, lines)
    return "\n".join([table.title, "", head.rstrip(), rule, *(line.rstrip() for line in body), "", *notes])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of text whose cells are below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)) for row in rows]


def as_markdown(table: Table, lines: Sequence[TableLine]) -> str:
    """The table as Markdown."""
    notes = [f"- {note}" for note in page_notes(table, lines)]
    return "\n".join([f"# {table.title}", "", *markdown_rows(_rows(table, lines, str)), "", *notes]) + "\n"


def markdown_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """A heading and lines as a Markdown table."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return [head, "|" + "---|" * len(rows[0]), *body]


def _rows(table: Table, lines: Sequence[TableLine], printed: Callable[[Printed], str]) -> list[list[str]]:
    """Heading and lines, as text cells; what is printed of none of them has no column."""
    shown = {line.dataset for line in lines}
    compared = {figure for (name, _), figures in table.published.items() if name in shown for figure in figures}
    heading = ["dataset", "method", "splits"]
    for column in table.columns:
        heading += [column.heading, "printed", "diff"] if column.figure in compared else [column.heading]
    rows = [heading]
    for line in lines:
        row = [line.dataset, table.shown(line.method), str(line.splits)]
        for column in table.columns:
            cell = line.cells[column.figure]
            row.append(measured(cell, column.decimals))
            if column.figure in compared:
                row += ["-", "-"] if cell.paper is None else _compared(cell, cell.paper, column, printed)
        rows.append(row)
    return rows


def _compared(cell: Cell, paper: Printed, column: TableColumn, printed: Callable[[Printed], str]) -> list[str]:
    """The paper's figure and the difference; whole numbers as such."""
    gap, whole = cell.difference, column.decimals == 0
    # The paper prints two decimals; more would pretend to know it better. "+ 0" hides the sign of a rounded zero.
    signed = "-" if math.isnan(gap) else f"{round(gap) + 0:+,}" if whole else f"{round(gap, 2) + 0.0:+.2f}"
    return [f"{paper.mean:,.0f}" if whole else printed(paper), signed]


def measured(cell: Cell, decimals: int) -> str:
    """Mean and spread as text, a dash where there is none."""
    if math.isnan(cell.mean):
        return "-"
    mean = f"{cell.mean:,.{decimals}f}"
    return mean if math.isnan(cell.sd) else f"{mean} ± {cell.sd:,.{decimals}f}"
