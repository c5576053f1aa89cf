"""The work of ``fewest paper list`` and ``table``: run what is not finished, then compare."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewest.errors import DataError, UsageError
from fewest.experiments import paper
from fewest.experiments.paper import FileStore, Store, Table, as_dict, as_text, figures, run, summarise
from fewest.experiments.paper.everything import write_table
from fewest.tables.files import write_text

SPLITS, QUICK_SPLITS = 10, 2
EXAMPLES = "examples"


@dataclass(frozen=True)
class PaperTableRequest:
    """What was asked on the command line."""

    name: str
    data: Sequence[str] | None = None
    splits: int | None = None
    out: Path | None = None
    n_jobs: int = 1
    quick: bool = False
    as_json: bool = False
    data_dir: Path | None = None


def run_list(as_json: bool) -> int:
    """Print the tables and figures there are."""
    from fewest.experiments.paper.examples import DATASETS

    rows = [_row("table", paper.find(name)) for name in paper.names()]
    cases = "Single cases, as in the paper's appendix"
    rows.append({"name": EXAMPLES, "kind": "table", "title": cases, "datasets": list(DATASETS)})
    rows += [_row("figure", figures.find(name)) for name in figures.names()]
    if as_json:
        print(json.dumps(rows, indent=1))
        return 0
    width = max(len(row["name"]) for row in rows)
    for kind in ("table", "figure"):
        print(f"{kind}s: fewest paper {kind} NAME")
        for row in (row for row in rows if row["kind"] == kind):
            print(f"  {row['name']:<{width}}  {row['title']}\n  {'':<{width}}  {', '.join(row['datasets'])}")
    return 0


def _row(kind: str, made: Table | figures.Figure) -> dict[str, Any]:
    return {"name": made.name, "kind": kind, "title": made.title, "datasets": list(made.datasets)}


def run_table(request: PaperTableRequest) -> int:
    """Measure, print, write."""
    if request.name == EXAMPLES:
        return run_examples(request)
    table = paper.find(request.name, request.data_dir, request.quick)
    if request.out is not None and request.out.exists() and not request.out.is_dir():
        raise UsageError(f"--out {request.out} is a file", do="name a folder")
    kept = f"{table.stored_as}-quick" if table.quick else table.stored_as
    store = Store() if request.out is None else FileStore(request.out, kept)
    splits = request.splits or (QUICK_SPLITS if request.quick else SPLITS)
    try:
        records = run(table, request.data or table.datasets, splits, store, n_jobs=request.n_jobs, tell=tell)
    except KeyboardInterrupt:
        if isinstance(store, FileStore):
            say_where(store.path)
        raise
    lines = summarise(table, records)
    if request.out is not None:
        write_table(table, records, request.out)
    document = json.dumps(as_dict(table, lines), indent=1, allow_nan=False, ensure_ascii=False)
    print(document if request.as_json else as_text(table, lines))
    return 0


def run_examples(request: PaperTableRequest) -> int:
    """Explain single cases of each dataset, and print them; a dataset that is not here is passed over unless named."""
    from fewest.experiments.paper.examples import DATASETS, examples

    shown = []
    for dataset in request.data or DATASETS:
        try:
            shown.append(examples(dataset, request.data_dir, request.quick))
        except DataError as error:
            if request.data is not None:
                raise
            tell(f"{dataset} is left out: {error}")
    if request.out is not None:
        for made in shown:
            write_text(request.out / f"examples-{made.dataset}.md", made.as_markdown())
    documents = [made.as_dict() for made in shown]
    text = "\n\n".join(made.text() for made in shown)
    print(json.dumps(documents, indent=1, ensure_ascii=False) if request.as_json else text)
    return 0


def say_where(path: Path) -> None:
    """What an interrupted run leaves behind."""
    tell(f"what is finished is in {path}; the same command goes on from there")


def tell(line: str) -> None:
    """A line of progress."""
    print(line, file=sys.stderr, flush=True)
