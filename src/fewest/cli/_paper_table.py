"""The work of ``fewest paper``: run what is not finished, then compare."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from fewest.errors import UsageError
from fewest.files import write_text
from fewest.paper import FileStore, Store, Table, as_dict, as_markdown, as_text, find, names, run, summarise

SPLITS, QUICK_SPLITS = 10, 2


@dataclass(frozen=True)
class Request:
    """What was asked on the command line."""

    name: str
    data: str | None = None
    splits: int | None = None
    out: Path | None = None
    jobs: int = 1
    quick: bool = False
    as_json: bool = False
    data_dir: Path | None = None


def run_list(as_json: bool) -> int:
    """Print the tables there are."""
    tables = [find(name) for name in names()]
    if as_json:
        rows = [{"name": table.name, "title": table.title, "datasets": list(table.datasets)} for table in tables]
        print(json.dumps(rows, indent=1))
        return 0
    width = max(len(table.name) for table in tables)
    for table in tables:
        print(f"{table.name:<{width}}  {table.title}\n{'':<{width}}  {', '.join(table.datasets)}")
    return 0


def run_table(request: Request) -> int:
    """Measure, print, write."""
    table = find(request.name, request.data_dir, request.quick)
    if request.out is not None and request.out.exists() and not request.out.is_dir():
        raise UsageError(f"--out {request.out} is a file", do="name a folder")
    stem = f"{table.name}-quick" if table.quick else table.name
    kept = f"{table.stored_as}-quick" if table.quick else table.stored_as
    store = Store() if request.out is None else FileStore(request.out, kept)
    splits = request.splits or (QUICK_SPLITS if request.quick else SPLITS)
    try:
        records = run(table, _datasets(request, table), splits, store, jobs=request.jobs, tell=_tell)
    except KeyboardInterrupt:
        if isinstance(store, FileStore):
            _tell(f"what is finished is in {store.path}; the same command goes on from there")
        raise
    lines = summarise(table, records)
    document = json.dumps(as_dict(table, lines), indent=1, allow_nan=False, ensure_ascii=False)
    if request.out is not None:
        write_text(request.out / f"{stem}.json", document + "\n")
        write_text(request.out / f"{stem}.md", as_markdown(table, lines))
    print(document if request.as_json else as_text(table, lines))
    return 0


def _datasets(request: Request, table: Table) -> list[str]:
    """Names of the datasets asked for, each once."""
    if request.data is None:
        return list(table.datasets)
    chosen = [name.strip() for name in request.data.split(",") if name.strip()]
    if not chosen:
        raise UsageError("--data names no dataset", do=f"choose from {', '.join(table.datasets)}")
    return list(dict.fromkeys(chosen))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
