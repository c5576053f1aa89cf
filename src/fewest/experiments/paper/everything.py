"""Every table and every figure of the paper in one run, and its pages: what cannot be made is said.

What is finished is kept. The pages have no script, and all text in them is escaped.
"""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fewest.errors import DataError, FewestError, MissingExtraError, UsageError
from fewest.experiments import paper
from fewest.experiments.paper import figures
from fewest.experiments.paper.base import NotOfThisTableError, Record, Table, Tell, Unit, silent
from fewest.experiments.paper.data import Place, checksum
from fewest.experiments.paper.figures import Drawing, Figure
from fewest.experiments.paper.own_data import OwnData
from fewest.experiments.paper.runner import FileStore, ForgivingStore, make_folder, run_table
from fewest.experiments.paper.summary import Cell, TableLine, as_dict, as_markdown, measured, page_notes, summarise
from fewest.persistence.versions import versions
from fewest.references.signatures import Clock, utc_now
from fewest.reporting.page_templates import render
from fewest.results.drawing import counted
from fewest.tables.files import write_text

SPLITS, QUICK_SPLITS = 10, 1
# A hundred thousand rows: a split of Diabetes takes as long as ten of most others, and its spread is a tenth of theirs.
FEWER_SPLITS = {"diabetes": 3}
# Training, and searching for counterfactuals, takes minutes a model: ten splits of it would take most of a day.
_FEW = {"compas": 3, "fico": 3, "german": 3, "adult": 1, "diabetes": 1, "headline": 1, "mimic_demo": 1}
# SEV-cluster stands on a page line by line as well, with ten splits of every dataset: as many here.
FEWER_IN_TABLE: dict[str, dict[str, int]] = {
    **dict.fromkeys(("allopt1", "alloptc", "expo", "counterfactuals"), _FEW), "expo_curve": dict.fromkeys(_FEW, 1),
    "sevc": {},
}  # fmt: skip
PICTURES = "figures"
TITLE = "Improving Decision Sparsity: measured again"
INDEX, CONTENTS = "index.html", "index.md"
PACKAGES = ("fewest", "numpy", "pandas", "scikit-learn", "numba", "torch", "tree-praxis", "gosdt", "pacmap", "dice-ml")
MOST_ROWS = 60
PIXELS = 96  # of an inch of a picture
QUICK = "Quick settings: few rows, few and small models. This shows that it runs; nothing here is to be compared."
EXAMPLES = "fewest.experiments.paper.examples"


@dataclass(frozen=True)
class Plan:
    """What is to be made, and where."""

    out: str | Path  # Folder; a run that was stopped goes on from what is there
    datasets: Sequence[str] | None = None  # Default: all that are here
    # For every dataset. Default: 10, but 3 of Diabetes, and 3 or 1 in tables of training and of counterfactuals (see
    # `FEWER_IN_TABLE`); 1 when quick.
    splits: int | None = None
    # quick, folder: As in `Table`
    quick: bool = False
    folder: Place = None
    n_jobs: int = 1  # Splits measured at a time

    def splits_of(self, dataset: str, table: str = "") -> int:
        """How many splits of a dataset are measured."""
        if isinstance(self.folder, OwnData) and self.folder.splits is not None:
            return len(self.folder.splits)
        if self.splits or self.quick:
            return self.splits or QUICK_SPLITS
        return FEWER_IN_TABLE.get(table, FEWER_SPLITS).get(dataset, SPLITS)

    def stem(self, name: str) -> str:
        """Name of a result's files, without the ending."""
        return f"{name}-quick" if self.quick else name


class Measured(NamedTuple):
    """A table with what was measured of it."""

    table: Table
    lines: list[TableLine]


class DrawnFigure(NamedTuple):
    """A figure, its numbers, and the stem of its files in the folder of figures."""

    figure: Figure
    drawing: Drawing
    stem: str


class ShownPage(NamedTuple):
    """Explanations of single cases of a dataset, as text."""

    dataset: str
    text: str
    stem: str


@dataclass
class Results:
    """What a run has made so far: tables, figures, single cases.

    ``left_out`` says what could not be made here, and needs nothing but an extra or a file; ``failed`` what broke.
    """

    tables: list[Measured] = field(default_factory=list)
    drawn: list[DrawnFigure] = field(default_factory=list)
    shown: list[ShownPage] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, Exception]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)  # of one core: units of a file, figures, cases
    began: float = field(default_factory=time.monotonic)

    @property
    def exit_code(self) -> int:
        """0, or that of the first error."""
        return 0 if not self.failed else int(getattr(self.failed[0][1], "exit_code", FewestError.exit_code))


def everything(plan: Plan, tell: Tell = silent, after_each: Callable[[Results], object] | None = None) -> Results:
    """Measure every table, draw every figure.

    Tables that are stored together are measured once. What needs a package that is not installed is left out; a unit
    that breaks is left open, and everything else is still done. ``tell`` is called with a line of text now and then,
    ``after_each`` with the results after each table and figure.
    """
    make_folder(plan.out)
    results = Results()
    work = PaperRun(plan, _datasets(plan, results), results, tell)
    steps: list[tuple[str, Callable[[], None]]] = [
        *((f"table {name}", partial(work.table, name)) for name in paper.names()),
        *((f"figure {name}", partial(work.figure, name)) for name in figures.names()),
    ]
    if find_spec(EXAMPLES) is not None:
        steps += [(f"cases of {name}", partial(work.cases, name)) for name in work.datasets]
    for number, (what, step) in enumerate(steps, start=1):
        tell(f"{what} ({number} of {len(steps)})")
        began = time.monotonic()
        try:
            step()
        except (MissingExtraError, NotOfThisTableError) as error:
            work.leave_out(what, str(error).replace("\n  Try: ", ": "))
        except Exception as error:
            results.failed.append((what, error))
            tell(f"{what} failed: {type(error).__name__}: {error}")
        if not what.startswith("table"):
            results.seconds[what] = time.monotonic() - began
        if after_each is not None:
            after_each(results)
    return results


def _datasets(plan: Plan, results: Results) -> list[str]:
    """Datasets asked for, or all that are here; the others are said."""
    if isinstance(plan.folder, OwnData):
        if plan.datasets is not None:
            raise UsageError("a table of yours goes alone", do="name no datasets beside it")
        return [plan.folder.name]
    known = list(dict.fromkeys(name for table in paper.names() for name in paper.find(table).datasets))
    known += [name for figure in figures.names() for name in figures.find(figure).datasets if name not in known]
    for name in plan.datasets or ():
        if name not in known:
            raise UsageError(f'no table and no figure has a dataset "{name}"', do=f"choose from {', '.join(known)}")
        checksum(name, plan.folder)  # what was asked for and is not here is an error, not something to leave out
    if plan.datasets is not None:
        return list(dict.fromkeys(plan.datasets))
    here = []
    for name in known:
        try:
            checksum(name, plan.folder)
            here.append(name)
        except DataError as error:
            results.left_out.append((f"dataset {name}", str(error).replace("\n  Try: ", ": ")))
    return here


@dataclass
class PaperRun:
    """The steps of a run, and what later ones need of earlier ones."""

    plan: Plan
    datasets: list[str]
    results: Results
    tell: Tell
    records: dict[str, list[Record]] = field(default_factory=dict)
    failed: dict[str, dict[Unit, Exception]] = field(default_factory=dict)

    def table(self, name: str) -> None:
        """Measure one table and write it."""
        plan, table = self.plan, paper.find(name, self.plan.folder, self.plan.quick)
        chosen = [dataset for dataset in self.datasets if dataset in table.datasets]
        if not chosen:
            self.leave_out(f"table {name}", f"it is measured on {', '.join(table.datasets)} only")
            return
        self.records[name] = found = self._units(name, None, chosen)
        for preset in table.beside:
            try:
                found += self._units(name, preset, chosen)
            except MissingExtraError as error:
                self.leave_out(f"table {name}, {preset}'s procedure", str(error).replace("\n  Try: ", ": "))
        if found:
            self.results.tables.append(Measured(table, write_table(table, found, plan.out)))

    def _units(self, name: str, preset: str | None, chosen: Sequence[str]) -> list[Record]:
        """Records of a table's units with a preset, measured where they are not there."""
        plan, table = self.plan, paper.find(name, self.plan.folder, self.plan.quick, preset)
        # Tables that are stored together also break together: what failed once is not tried again in this run.
        kept = table.stored_as if preset is None else f"{table.stored_as}-{preset}"
        failed = self.failed.setdefault(kept, {})
        before = set(failed)
        store = ForgivingStore(FileStore(plan.out, plan.stem(table.stored_as)), failed, self.tell)
        splits = {dataset: plan.splits_of(dataset, name) for dataset in chosen}
        found = run_table(table, chosen, splits, store, n_jobs=plan.n_jobs, tell=self.tell)
        self.results.failed += [(f"table {name}, {u}", error) for u, error in failed.items() if u not in before]
        spent = [store.seconds(table, Unit(dataset, k)) for dataset in chosen for k in range(splits[dataset])]
        self.results.seconds[kept] = float(np.nansum(spent))
        return found

    def figure(self, name: str) -> None:
        """Draw one figure and write it; always anew, because that takes seconds."""
        plan, figure = self.plan, figures.find(name, self.plan.folder, self.plan.quick)
        chosen = [dataset for dataset in self.datasets if dataset in figure.datasets]
        if figure.tables and not any(self.records.get(table) for table in figure.tables):
            self.leave_out(f"figure {name}", f"it shows {', '.join(figure.tables)}, which were not measured")
        elif not chosen:
            self.leave_out(f"figure {name}", f"it is drawn for {', '.join(figure.datasets)} only")
        else:
            drawing = figures.draw(figure, chosen, self.records, self.tell)
            figures.save(drawing, Path(plan.out) / PICTURES, plan.stem(name))
            self.results.drawn.append(DrawnFigure(figure, drawing, plan.stem(name)))

    def cases(self, dataset: str) -> None:
        """Explain single cases of a dataset and write them."""
        made: Any = import_module(EXAMPLES).examples(dataset, self.plan.folder, self.plan.quick)
        stem = self.plan.stem(f"examples-{dataset}")
        _write(Path(self.plan.out) / stem, made.as_dict(), made.as_markdown())
        self.results.shown.append(ShownPage(dataset, made.text(), stem))

    def leave_out(self, what: str, why: str) -> None:
        """Say what cannot be made here, and why."""
        self.results.left_out.append((what, why))
        self.tell(f"{what} is left out: {why}")


def write_table(table: Table, records: Sequence[Record], out: str | Path) -> list[TableLine]:
    """Write a table's ``.json`` and ``.md`` into a folder; returns its lines."""
    lines = summarise(table, records)
    stem = f"{table.name}-quick" if table.quick else table.name
    _write(Path(out) / stem, as_dict(table, lines), as_markdown(table, lines))
    return lines


def _write(stem: Path, document: Any, markdown: str) -> None:
    write_text(f"{stem}.json", json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
    write_text(f"{stem}.md", markdown)


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
    failed = [(what, _said(error)) for what, error in results.failed]
    for heading, reasons in (("Failed", failed), ("Left out", results.left_out)):
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
    path, packages = Path(plan.out) / INDEX, [f"{name} {version}" for name, version in versions(PACKAGES).items()]
    made = (
        f"{clock():%Y-%m-%d} with Python {platform.python_version()}, {', '.join(packages)}; this run took "
        f"{(time.monotonic() - results.began) / 60:,.0f} minutes on the clock, {plan.n_jobs} units at a time. "
        f"{time_sentence(results)}"
    )
    title = f"{TITLE}: {plan.folder.name}" if isinstance(plan.folder, OwnData) else TITLE
    write_text(path, index_html(results, plan.quick, title, made))
    write_text(path.with_name(CONTENTS), contents_md(results, plan.quick, title, made))
    return path


def time_sentence(results: Results) -> str:
    """What took how long on one core, the longest first; what took less than a minute is not listed."""
    minutes = {what: round(spent / 60) for what, spent in results.seconds.items() if round(spent / 60)}
    longest = sorted(minutes.items(), key=lambda each: -each[1])
    parts = ", ".join(f"{what} {spent:,}" for what, spent in longest) or "less than one each"
    total = round(sum(results.seconds.values()) / 60)
    return f"Minutes of one core{f', in all {total:,}' if longest else ''}: {parts}"


def _sentence(results: Results) -> str:
    made = f"{counted(len(results.tables), 'table')} and {counted(len(results.drawn), 'figure')}"
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
            (
                (line.dataset, table.shown(line.method), str(line.splits)),
                [_cell(line.cells[c.figure], c.decimals) for c in columns],
            )
            for line in lines
        ],
        "notes": page_notes(table, lines),
    }


def _cell(cell: Cell, decimals: int) -> dict[str, str]:
    """What was measured, and the paper's figure where it has one."""
    return {"ours": measured(cell, decimals), "paper": "" if cell.paper is None else f"printed {cell.paper}"}
