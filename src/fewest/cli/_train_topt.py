"""``fewest train topt``: a table in; the tree, what it is chosen from, and how well it does, out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.cli._files import read_table
from fewest.cli._text import clean, label_key
from fewest.errors import DataError, UsageError
from fewest.files import write_text
from fewest.paper.data import Rows
from fewest.paper.trees import measure
from fewest.rashomon import TOptClassifier
from fewest.reporting import tree_svg, tree_text
from fewest.trees.saved import as_dict, save_tree

FILES = ("tree.json", "tree.svg", "front.csv")
SAID_OF_FILES = "tree.json holds the tree for `fewest.trees.saved.load_tree`; front.csv all there was to choose from."


@dataclass(frozen=True)
class Request:
    """What was asked on the command line."""

    data: Path
    target: str
    positive: str | None = None
    regularization: float = 0.01
    bound: float = 0.05
    depth: int = 4
    test_size: float = 0.2
    random_state: int = 0
    out: Path | None = None
    as_json: bool = False


class Labels(NamedTuple):
    """Labels as 0 and 1, and what those are called."""

    y: npt.NDArray[np.int64]
    names: tuple[str, str]


def run(request: Request) -> int:
    """Fit on the training part, measure on the other, print, write."""
    if request.out is not None and request.out.exists() and not request.out.is_dir():
        raise UsageError(f"--out {request.out} is a file", do="name a folder")
    table = read_table(request.data)
    if request.target not in table.columns:
        raise DataError(f'{request.data.name} has no column "{request.target}"', do="check --target")
    labels = read_labels(table[request.target], request.positive)
    rows = _split(table.drop(columns=request.target), labels.y, request)
    model = TOptClassifier(
        regularization=request.regularization, bound=request.bound, depth=request.depth,
        random_state=request.random_state, verbose=True,
    ).fit(rows.X_train, rows.y_train)  # fmt: skip
    figures = measure(model, rows)
    files = [] if request.out is None else _write(model, labels.names, request.out)
    if request.as_json:
        print(json.dumps(_as_dict(model, figures, labels.names, files), indent=1, allow_nan=False))
    else:
        print(clean(_as_text(model, figures, labels.names, files)))
    return 0


def read_labels(column: pd.Series[Any], positive: str | None) -> Labels:
    """Which rows are of the class being explained.

    Parameters
    ----------
    column : Series
    positive : str, optional
        That class as it is written on the command line; all others together are the other one. Default: the second
        of two.

    Examples
    --------
    >>> read_labels(pd.Series(["good", "bad", "good"]), "bad")
    Labels(y=array([0, 1, 0]), names=('good', 'bad'))
    """
    if column.isna().any():
        row = int(np.flatnonzero(column.isna().to_numpy())[0])
        raise DataError(f'row {row}, column "{column.name}": the label is missing', do="leave such rows out")
    classes = sorted(column.unique().tolist(), key=lambda label: (isinstance(label, str), label))
    known = {label_key(label): str(label) for label in classes}
    shown = ", ".join(list(known.values())[:5]) + (", ..." if len(known) > 5 else "")
    if len(known) < 2 or (len(known) > 2 and positive is None):
        raise DataError(
            f'column "{column.name}" has {len(known)} classes ({shown}), but two are needed',
            do="check --target" if len(known) < 2 else "check --target, or name one with --positive",
        )
    chosen = list(known)[-1] if positive is None else label_key(positive)
    if chosen not in known:
        raise UsageError(f'--positive {positive}: "{column.name}" has no such class', do=f"its classes are {shown}")
    others = [name for key, name in known.items() if key != chosen]
    y = np.array([label_key(label) == chosen for label in column]).astype(np.int64)
    return Labels(y, (others[0] if len(others) == 1 else f"not {known[chosen]}", known[chosen]))


def _split(X: pd.DataFrame, y: npt.NDArray[np.int64], request: Request) -> Rows:
    from sklearn.model_selection import train_test_split

    if not 0 < request.test_size < 1:
        raise UsageError(f"--test-size {request.test_size:g}", do="choose a share between 0 and 1, say 0.2")
    try:
        parts = train_test_split(X, y, test_size=request.test_size, stratify=y, random_state=request.random_state)
    except ValueError as error:
        raise DataError(f"the table cannot be split: {error}", do="pass more rows of both classes") from error
    return Rows(*parts)


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
        + (f"; {figures['unreachable']:,.0f} cannot be turned" if figures["unreachable"] else ""),
        f"chosen from     {model.n_trees_:,} trees of {fewest} to {most} leaves",
        "",
        tree_text(model.tree_, names),
    ]
    if files:
        lines += ["", f"Written: {', '.join(files)}.", SAID_OF_FILES]
    return "\n".join(lines)
