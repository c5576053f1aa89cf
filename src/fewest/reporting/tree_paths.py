"""A tree in words, which way a case goes through it, and at which tests a change matters."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.models.trees import Tree
from fewest.results.explanation import Explanation
from fewest.tables.schema import Feature
from fewest.tables.values import written
from fewest.tables.wording import cell


def one_row(tree: Tree, case: Any) -> pd.DataFrame:
    """A case as a typed table of one row."""
    frame = case if isinstance(case, pd.DataFrame) else pd.DataFrame([dict(case)])
    if len(frame) != 1:
        raise UsageError(f"{len(frame)} rows were given where one case is drawn", do="pass one row")
    return tree.schema.conform(frame, unseen="allow")


def changed(tree: Tree, case: pd.DataFrame, answer: Explanation) -> pd.DataFrame:
    """The case with an answer's changes written in."""
    values = dict(case.iloc[0])
    for change in answer.changes:
        values.update(written(tree.schema, change.feature, change.after))
    return one_row(tree, values)


def path_of(tree: Tree, case: pd.DataFrame | None) -> tuple[int, ...]:
    """Nodes a case passes, root and leaf included."""
    if case is None:
        return ()
    inner = np.flatnonzero(tree.feature >= 0).tolist()
    parent = {int(child): node for node in inner for child in (tree.left[node], tree.right[node])}
    path = [int(tree.apply(tree.encode(case))[0])]
    while path[-1] != 0:
        path.append(parent[path[-1]])
    return tuple(reversed(path))


def decisive(
    tree: Tree,
    case: pd.DataFrame | None,
    turned: pd.DataFrame | None,
    path: tuple[int, ...],
    answer: Explanation | None,
) -> dict[int, tuple[str, str]]:
    """For each changed feature the first test on the turned path that the change decides, and what to write there.

    Two parts each, because a long name may be shortened and the values may not.
    """
    if case is None or turned is None:
        return {}
    stated = {change.feature: (change.before, change.after) for change in answer.changes} if answer else {}
    before, after = tree.encode(case)[0], tree.encode(turned)[0]
    out: dict[int, tuple[str, str]] = {}
    named: set[int] = set()
    for node, child in pairwise(path):
        j = int(tree.feature[node])
        if j in named or _child(tree, node, before[j]) == child:
            continue
        named.add(j)
        feature = tree.schema.features[j]
        values = stated.get(feature.name) or tuple(_value(feature, codes[j]) for codes in (before, after))
        out[node] = (f"here: {feature.heading}", f" {cell(values[0])} -> {cell(values[1])}")
    return out


def _child(tree: Tree, node: int, code: float) -> int:
    """Where a value goes at a test, whatever came before."""
    if np.isnan(code):
        left = bool(tree.missing_left[node])
    elif tree.level_set[node] >= 0:
        left = bool(tree.levels_left[tree.level_set[node], int(code)])
    else:
        left = bool(code <= tree.threshold[node])
    return int(tree.left[node] if left else tree.right[node])


def _value(feature: Feature, code: float) -> Any:
    if np.isnan(code):
        return None
    if not feature.levels:
        return float(code)
    return feature.levels[int(code)] if int(code) < len(feature.levels) else "unknown"


def tree_text(tree: Tree, names: tuple[str, str] = ("negative", "positive")) -> str:
    """A tree as indented questions with their answers.

    Parameters
    ----------
    tree : Tree
    names : pair of str
        What a negative and a positive leaf are called.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewest.tables.schema import Schema
    >>> from fewest.models.trees import Leaf, Split
    >>> schema = Schema.infer(pd.DataFrame({"priors": [0, 9]}))
    >>> leaves = Leaf(False, negatives=60, positives=20), Leaf(True, positives=20)
    >>> print(tree_text(Tree.build(schema, Split("priors", 3.5, *leaves)), names=("good", "bad")))
    priors <= 3.5?
      yes: good (80 rows, 20 of them bad)
      no: bad (20 rows, 20 of them bad)
    """
    lines: list[str] = []
    # A stack and not recursion: a text has no limit on its depth.
    todo = [(0, "")]
    while todo:
        node, lead = todo.pop()
        if tree.feature[node] < 0:
            lines.append(f"{lead}{_leaf(tree, node, names)}")
            continue
        lines.append(f"{lead}{tree.describe(node)}?")
        deeper = " " * (len(lead) - len(lead.lstrip()) + 2)
        todo += [(int(tree.right[node]), f"{deeper}no: "), (int(tree.left[node]), f"{deeper}yes: ")]
    return "\n".join(lines)


def _leaf(tree: Tree, node: int, names: tuple[str, str]) -> str:
    name = names[int(tree.positive[node])]
    rows = int(tree.counts[node].sum())
    return f"{name} ({rows:,} rows, {int(tree.counts[node, 1]):,} of them {names[1]})" if rows else name
