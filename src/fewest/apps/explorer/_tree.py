"""The tree of a run, where a single tree decides: the way a case went, and the way it would have gone."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pandas as pd
from markupsafe import Markup

from fewest.errors import DataError, FewestError
from fewest.models.trees import Tree
from fewest.models.trees.file import from_dict
from fewest.reporting import tree_svg, tree_text
from fewest.reporting.tree_drawing import STYLE
from fewest.reporting.tree_paths import changed, one_row, path_of
from fewest.results.explanation import Explanation
from fewest.runs.run import Run

TREE, FRONT = "tree.json", "front.csv"
LARGEST_FILE = 20_000_000
MOST_TREES = 100
SHRINKABLE = 1500  # pixels; a drawing as wide as this can still be read when a page of 1,280 shows it whole
FRONT_WORDS = {
    "mean_sev_t": "mean SEV-T", "accuracy": "accuracy", "leaves": "leaves", "trees": "trees like it",
    "pareto": "none is better", "chosen": "chosen",
}  # fmt: skip


@dataclass(frozen=True)
class Front:
    """What there was to choose from: headings, the first rows, and how many more there are."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    hidden: int = 0


@dataclass(frozen=True)
class DrawnTree:
    """A tree as a picture, in words, and as the tests a case passes."""

    svg: Markup = field(default_factory=Markup)
    words: str = ""
    path: tuple[tuple[str, str, str], ...] = ()
    why: str = ""
    fits: bool = False


def draw(run: Run, case: pd.DataFrame | None, answer: Explanation | None) -> DrawnTree:
    """The tree of a run with the path of one case; where there is none, why."""
    if not (run.path / TREE).is_file():
        return DrawnTree(why=f"The run folder holds no {TREE}: the model is not a single tree, or it was not kept.")
    try:
        tree, names = _read(run)
        svg = tree_svg(tree, case=case, answer=answer, names=names)
    except FewestError as error:
        return DrawnTree(why=f"The tree cannot be drawn: {error.message}")
    # The style is a file of its own here: the page allows none inside it.
    plain = Markup(svg.replace(f"<style>{STYLE}</style>\n", ""))
    width = re.search(r'<svg[^>]* width="(\d+)"', svg)
    fits = width is not None and int(width[1]) <= SHRINKABLE
    return DrawnTree(plain, tree_text(tree, names), tuple(_steps(tree, case, answer)), fits=fits)


def has_tree(run: Run) -> bool:
    """Whether a run holds its tree."""
    return (run.path / TREE).is_file()


def front(run: Run) -> Front | None:
    """The front of a set of trees, where the folder holds one."""
    path = run.path / FRONT
    if not path.is_file() or path.stat().st_size > LARGEST_FILE:
        return None
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError):
        return None
    columns = [name for name in FRONT_WORDS if name in table.columns]
    if not columns or "accuracy" not in columns:
        return None
    rows = tuple(
        tuple(_cell(name, value) for name, value in zip(columns, row, strict=True))
        for row in table[columns][:MOST_TREES].itertuples(index=False)
    )
    return Front(tuple(FRONT_WORDS[name] for name in columns), rows, max(0, len(table) - MOST_TREES))


def _read(run: Run) -> tuple[Tree, tuple[str, str]]:
    path = run.path / TREE
    if path.stat().st_size > LARGEST_FILE:
        raise DataError(f"{TREE} is too large to draw", do="look at it in another way")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        negative, positive = (str(name) for name in content["names"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{TREE} cannot be read", do="save the tree again") from error
    return from_dict(content), (negative, positive)


def _steps(tree: Tree, case: pd.DataFrame | None, answer: Explanation | None) -> list[tuple[str, str, str]]:
    """The tests on the two paths, and how each of the two answers them."""
    if case is None:
        return []
    before = one_row(tree, case)
    turned = changed(tree, before, answer) if answer is not None and answer.changes else None
    paths = [path_of(tree, before), path_of(tree, turned)]
    sides = [{node: child == tree.left[node] for node, child in pairwise(path)} for path in paths]
    asked = dict.fromkeys([*sides[0], *sides[1]])
    return [(f"{tree.describe(node)}?", _said(sides[0], node), _said(sides[1], node)) for node in asked]


def _said(side: dict[int, Any], node: int) -> str:
    return ("yes" if side[node] else "no") if node in side else "not asked"


def _cell(name: str, value: Any) -> str:
    if name in ("pareto", "chosen"):
        return "yes" if str(value) == "True" else ""
    if isinstance(value, float):
        return "-" if pd.isna(value) else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
