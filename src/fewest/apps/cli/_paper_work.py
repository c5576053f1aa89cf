"""The work of ``fewest paper``: run what is not finished, compare, draw, and put all on one page."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fewest.apps.cli._command_groups import PaperTableRequest, names_in
from fewest.apps.cli._files import check_folder, read_table
from fewest.apps.cli._text import label_key
from fewest.errors import DataError, MissingExtraError, UsageError
from fewest.experiments import paper
from fewest.experiments.paper import (
    FileStore,
    OwnData,
    Record,
    Store,
    Table,
    as_dict,
    as_text,
    figures,
    summarise,
)
from fewest.experiments.paper.data import Place
from fewest.experiments.paper.everything import PICTURES, Plan, everything, write_page, write_table
from fewest.experiments.paper.figures import Figure
from fewest.tables.files import write_text

SPLITS, QUICK_SPLITS = 10, 2
EXAMPLES = "examples"


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
    chosen = request
    own = place(chosen.data_dir, chosen.data, chosen.csv, chosen.target, chosen.positive, chosen.n_clusters)
    if request.name == EXAMPLES:
        return run_examples(request, own)
    table = paper.find(request.name, own, request.quick, request.preset)
    check_folder(request.out)
    kept = f"{table.stored_as}-quick" if table.quick else table.stored_as
    store = Store() if request.out is None else FileStore(request.out, kept)
    datasets = names_in(request.data) or table.datasets
    splits = request.splits or (QUICK_SPLITS if request.quick else SPLITS)
    with _resumable(store.path if isinstance(store, FileStore) else None):
        records = paper.run_table(table, datasets, splits, store, n_jobs=request.jobs, tell=tell)
    lines = summarise(table, records)
    if request.out is not None:
        write_table(table, records, request.out)
    document = json.dumps(as_dict(table, lines), indent=1, allow_nan=False, ensure_ascii=False)
    print(document if request.as_json else as_text(table, lines))
    return 0


def place(
    data_dir: Path | None, data: str | None, csv: Path | None, target: str | None, positive: str | None, clusters: int
) -> Place:
    """The folder of the paper's data, or the table of ``--csv``."""
    if csv is None:
        if target is not None or positive is not None:
            raise UsageError("--target and --positive say what a table of yours is", do="add --csv FILE")
        return data_dir
    if data is not None or data_dir is not None:
        raise UsageError("--csv takes the place of the paper's data", do="leave --data and --data-dir out")
    if target is None or positive is None:
        raise UsageError("--csv needs --target and --positive", do="add --target COLUMN --positive LABEL")
    table = read_table(csv)
    if target not in table.columns:
        raise DataError(f'{csv.name} has no column "{target}"', do="check --target")
    labels = table[target].map(label_key, na_action="ignore")
    shown = {label_key(label): str(label) for label in table[target].dropna().unique()}
    labels = labels.map(shown, na_action="ignore")
    name = csv.name.split(".")[0]
    return OwnData.read(
        table.drop(columns=target), labels, shown.get(label_key(positive), positive), name=name, n_clusters=clusters
    )


def run_examples(request: PaperTableRequest, own: Place) -> int:
    """Explain single cases of each dataset, and print them; a dataset that is not here is passed over unless named."""
    from fewest.experiments.paper.examples import DATASETS, examples

    shown = []
    for dataset in [own.name] if isinstance(own, OwnData) else names_in(request.data) or DATASETS:
        try:
            shown.append(examples(dataset, own, request.quick))
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


@contextmanager
def _resumable(path: str | Path | None) -> Iterator[None]:
    """Say what an interrupted run leaves behind, where it keeps files."""
    try:
        yield
    except KeyboardInterrupt:
        if path is not None:
            tell(f"what is finished is in {path}; the same command goes on from there")
        raise


def tell(line: str) -> None:
    """A line of progress."""
    print(line, file=sys.stderr, flush=True)


def run_figure(name: str, plan: Plan, as_json: bool) -> int:
    """Measure, draw, write, print."""
    figure = figures.find(name, plan.folder, plan.quick)
    datasets = list(plan.datasets or figure.datasets)
    figures.check(figure, datasets)
    with _resumable(plan.out):
        drawing = figures.draw(figure, datasets, _records(figure, plan, datasets), tell)
    paths = figures.save(drawing, Path(plan.out) / PICTURES, plan.stem(name))
    for path in paths:
        tell(f"{path}")
    if as_json:
        rows = json.loads(drawing.numbers.to_json(orient="records"))
        document = {"figure": name, "title": figure.title, "files": [str(path) for path in paths], "numbers": rows}
        print(json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False))
    else:
        print(f"{figure.title}\n\n{drawing.numbers.to_string(index=False)}\n\n{figure.caption}")
    return 0


def _records(figure: Figure, plan: Plan, datasets: list[str]) -> dict[str, list[Record]]:
    """Records of the tables it shows; units in the folder are not measured again."""
    records: dict[str, list[Record]] = {}
    for name in (name for name in figure.tables if name in paper.names()):
        records[name] = []
        for preset in (None, *paper.find(name).beside):
            table = paper.find(name, plan.folder, plan.quick, preset)
            store = FileStore(plan.out, plan.stem(table.stored_as))
            there = [dataset for dataset in datasets if dataset in table.datasets]
            splits = {dataset: plan.splits_of(dataset, name) for dataset in there}
            try:
                records[name] += paper.run_table(table, there, splits, store, n_jobs=plan.n_jobs, tell=tell)
            except MissingExtraError as error:
                if preset is None:
                    raise
                tell(f"lines of {preset}'s procedure are left out: {error}")
    return records


def run_all(plan: Plan) -> int:
    """Make everything; the page is written again after each table and figure, so that there always is one."""
    with _resumable(plan.out):
        results = everything(plan, tell, partial(write_page, plan))
    for what, why in results.left_out:
        tell(f"left out: {what}: {why}")
    for what, error in results.failed:
        tell(f"failed: {what}: {type(error).__name__}: {error}")
    print(write_page(plan, results))
    return results.exit_code
