"""The work of ``fewest paper figure``: measure what the figure shows, draw it, write it, print its numbers."""

from __future__ import annotations

import json
from pathlib import Path

from fewest.apps.cli._paper_table import say_where, tell
from fewest.experiments import paper
from fewest.experiments.paper import FileStore, Record, figures, run
from fewest.experiments.paper.everything import PICTURES, Plan
from fewest.experiments.paper.figures import Figure


def run_figure(name: str, plan: Plan, as_json: bool) -> int:
    """Measure, draw, write, print."""
    figure = figures.find(name, plan.folder, plan.quick)
    datasets = list(plan.datasets or figure.datasets)
    figures.check(figure, datasets)
    try:
        drawing = figures.draw(figure, datasets, _records(figure, plan, datasets), tell)
    except KeyboardInterrupt:
        say_where(Path(plan.out))
        raise
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
        table = paper.find(name, plan.folder, plan.quick)
        store = FileStore(plan.out, plan.stem(table.stored_as))
        splits = {dataset: plan.splits_of(dataset, name) for dataset in datasets if dataset in table.datasets}
        records[name] = run(table, list(splits), splits, store, n_jobs=plan.n_jobs, tell=tell)
    return records
