"""``fewest train topt``: a table in; the tree, what it is chosen from, and how well it does, out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewest.apps.cli._text import clean
from fewest.apps.cli._train_table import check_folder, cut, read_labels, read_training
from fewest.experiments.paper.data import Rows
from fewest.experiments.paper.trees import measure
from fewest.models.rashomon import TOptClassifier
from fewest.models.trees.file import as_dict, save_tree
from fewest.reporting import tree_svg, tree_text
from fewest.tables.files import write_text

if TYPE_CHECKING:
    from fewest.apps.cli._train import TOptRequest

FILES = ("tree.json", "tree.svg", "front.csv")
HOW_TO_USE = "tree.json is a model for `fewest explain --model`; front.csv holds all there was to choose from."


def run(request: TOptRequest) -> int:
    """Fit on the training part, measure on the other, print, write."""
    check_folder(request.out)
    X, column = read_training(request.data, request.target)
    labels = read_labels(column, request.positive)
    rows = Rows(*cut(X, labels.y, request.test_size, request.random_state))
    model = TOptClassifier(
        regularization=request.regularization, bound=request.bound, max_depth=request.depth,
        random_state=request.random_state, verbose=True,
    ).fit(rows.X_train, rows.y_train)  # fmt: skip
    figures = measure(model, rows)
    files = [] if request.out is None else _write(model, labels.names, request.out)
    if request.as_json:
        print(json.dumps(_as_dict(model, figures, labels.names, files), indent=1, allow_nan=False))
    else:
        print(clean(_as_text(model, figures, labels.names, files)))
    return 0


def _write(model: TOptClassifier, names: tuple[str, str], folder: Path) -> list[str]:
    """Files for programs, people and spreadsheets.

    The tree alone is written: a skops file cannot hold the estimator, which keeps a schema and a table.
    """
    folder.mkdir(parents=True, exist_ok=True)
    save_tree(model.tree_, folder / "tree.json", names)
    write_text(folder / "tree.svg", tree_svg(model.tree_, names=names))
    write_text(folder / "front.csv", str(model.front_.to_csv(index=False, lineterminator="\n")))
    return [str(folder / name) for name in FILES]


def _as_dict(
    model: TOptClassifier, figures: dict[str, float], names: tuple[str, str], files: list[str]
) -> dict[str, Any]:
    known = {name: value if np.isfinite(value) else None for name, value in figures.items()}
    return {
        **known, "trees": model.n_trees_, "leaf_range": list(model.leaf_range_), "objective": model.objective_,
        "model": as_dict(model.tree_, names), "files": files,
    }  # fmt: skip


def _as_text(model: TOptClassifier, figures: dict[str, float], names: tuple[str, str], files: list[str]) -> str:
    fewest, most = model.leaf_range_
    sev = "-" if np.isnan(figures["sev_t"]) else f"{figures['sev_t']:.2f}"
    lines = [
        f"train accuracy  {figures['train_accuracy']:.3f}",
        f"test accuracy   {figures['test_accuracy']:.3f}",
        f"mean SEV-T      {sev} over {figures['decided']:,.0f} test rows decided {names[1]}"
        + (f"; {figures['unreachable']:,.0f} cannot be changed" if figures["unreachable"] else ""),
        f"chosen from     {model.n_trees_:,} trees of {fewest} to {most} leaves",
        "",
        tree_text(model.tree_, names),
    ]
    if files:
        lines += ["", f"Written: {', '.join(files)}.", HOW_TO_USE]
    return "\n".join(lines)
