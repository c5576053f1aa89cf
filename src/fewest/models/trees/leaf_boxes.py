"""The box of a leaf: its path's conditions merged per ORIGINAL feature into an interval or a set of levels.

`age <= 40` and `age > 20` are one condition on one feature, and so are `job_clerk <= 0.5` and `job_none <= 0.5`. A path
whose conditions contradict each other has an empty box: it is no leaf, whatever the library's arrays say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from fewest.models.trees.tree import Bools, Leaf, Split, Tree


@dataclass(frozen=True)
class Interval:
    """Numbers in (low, high], and perhaps missing ones."""

    low: float = -np.inf
    high: float = np.inf
    missing: bool = True

    @property
    def empty(self) -> bool:
        """Whether nothing is inside."""
        return not (self.low < self.high or self.missing)


@dataclass(frozen=True)
class Levels:
    """Codes of levels (the last one: levels that are not known), and perhaps missing ones."""

    inside: Bools
    missing: bool = True

    @property
    def empty(self) -> bool:
        """Whether nothing is inside."""
        return not (self.inside.any() or self.missing)


Side = Interval | Levels
Box = Mapping[int, Side]


def narrow(tree: Tree, box: Box, node: int, left: bool) -> Box:
    """The box of a node's child."""
    j = int(tree.feature[node])
    row = int(tree.level_set[node])
    missing = bool(tree.missing_left[node]) == left
    if row >= 0:
        width = len(tree.schema.features[j].levels) + 1
        goes = tree.levels_left[row, :width]
        side = box.get(j, Levels(np.ones(width, dtype=bool)))
        assert isinstance(side, Levels)
        return {**box, j: Levels(side.inside & (goes if left else ~goes), side.missing and missing)}
    whole = box.get(j, Interval())
    assert isinstance(whole, Interval)
    at = float(tree.threshold[node])
    bounds = {"high": min(whole.high, at)} if left else {"low": max(whole.low, at)}
    return {**box, j: replace(whole, missing=whole.missing and missing, **bounds)}


def boxes(tree: Tree) -> Iterator[tuple[int, Box]]:
    """Leaves that are not empty, from left to right, each with its box.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewest.tables.schema import Schema
    >>> schema = Schema.infer(pd.DataFrame({"age": [20, 50]}))
    >>> tree = Tree.build(schema, Split("age", 40.5, Split("age", 20.5, Leaf(True), Leaf(False)), Leaf(True)))
    >>> [(box[0].low, box[0].high) for _, box in boxes(tree)]
    [(-inf, 20.5), (20.5, 40.5), (40.5, inf)]
    """
    stack: list[tuple[int, Box]] = [(0, {})]
    while stack:
        node, box = stack.pop()
        if any(side.empty for side in box.values()):
            continue
        if tree.feature[node] < 0:
            yield node, box
        else:
            stack.append((int(tree.right[node]), narrow(tree, box, node, False)))
            stack.append((int(tree.left[node]), narrow(tree, box, node, True)))


def collapse(tree: Tree) -> Tree:
    """The same decisions without trivial splits: no empty side, and no test below which all leaves agree.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewest.tables.schema import Schema
    >>> schema = Schema.infer(pd.DataFrame({"age": [20, 50]}))
    >>> same = Split("age", 50.5, Leaf(False), Leaf(False))
    >>> collapse(Tree.build(schema, Split("age", 40.5, Leaf(True), same))).n_nodes
    3
    """

    def shrink(node: int, box: Box) -> Split | Leaf:
        if tree.feature[node] < 0:
            alone = tree.nested(node)
            assert isinstance(alone, Leaf)
            return alone
        parts = []
        for child, left in ((int(tree.left[node]), True), (int(tree.right[node]), False)):
            inner = narrow(tree, box, node, left)
            parts.append(None if inner[int(tree.feature[node])].empty else shrink(child, inner))
        first, second = parts
        if first is None or second is None:
            kept = second if first is None else first
            assert kept is not None
            return kept
        if isinstance(first, Leaf) and isinstance(second, Leaf) and first.positive == second.positive:
            return _joined(first, second)
        outer = _test_of(tree, node)
        return replace(outer, left=first, right=second)

    return Tree.build(tree.schema, shrink(0, {}))


def _joined(first: Leaf, second: Leaf) -> Leaf:
    negatives, positives = first.negatives + second.negatives, first.positives + second.positives
    total = negatives + positives
    score = positives / total if total else 0.5 * (_score(first) + _score(second))
    return Leaf(first.positive, score, negatives, positives)


def _score(leaf: Leaf) -> float:
    return float(leaf.positive) if leaf.score is None else leaf.score


def _test_of(tree: Tree, node: int) -> Split:
    """A node's test with nothing below it."""
    stump = Leaf(False)
    whole = tree.nested(node)
    assert isinstance(whole, Split)
    return replace(whole, left=stump, right=stump)
