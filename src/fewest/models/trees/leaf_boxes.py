"""The box of a leaf: its path's conditions merged per ORIGINAL feature into an interval or a set of levels.

`age <= 40` and `age > 20` are one condition on one feature, and so are `job_clerk <= 0.5` and `job_none <= 0.5`. A path
whose conditions contradict each other has an empty box: it is not a leaf, whatever the library's arrays say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fewest.models.trees.tree import Leaf, Split, Tree
from fewest.tables.arrays import Bools
from fewest.tables.schema import Feature

MAX_DECIMALS = 17
Value = Literal["nearest", "median", "mean"]  # what a leaf is entered with


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
            return tree.nested(node)
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
        return tree.split(node, first, second)

    return Tree.build(tree.schema, shrink(0, {}))


def _joined(first: Leaf, second: Leaf) -> Leaf:
    negatives, positives = first.negatives + second.negatives, first.positives + second.positives
    total = negatives + positives
    score = positives / total if total else 0.5 * (first.chance + second.chance)
    return Leaf(first.positive, score, negatives, positives)


def nearest_inside(feature: Feature, side: Interval, target: float, allowed: Sequence[float] | None = None) -> float:
    """The typed value in (low, high] next to a target; NaN where the interval holds none.

    Integers stay whole. Numbers get the feature's decimals, and more only where the interval is narrower than that;
    they keep off the upper end, which belongs to the box but is where libraries round. The target may lie outside, or
    be infinite; ``allowed`` are the only values that may be taken.
    """
    if allowed is not None:
        inside = [value for value in allowed if side.low < value <= side.high]
        return min(inside, key=lambda value: (abs(value - target), value), default=float("nan"))
    if not side.low < side.high:
        return float("nan")
    target = _finite(target, side)
    if feature.kind == "integer":
        value = np.floor(min(max(np.rint(target), np.floor(side.low) + 1), side.high))
        return float(value) if side.low < value <= side.high else float("nan")
    for decimals in range(feature.decimals, MAX_DECIMALS + 1):
        value = _decimal(target, side, decimals)
        if side.low < value < side.high:
            return value
    return float(np.nextafter(side.low, side.high))


def _finite(target: float, side: Interval) -> float:
    """The target itself where it is a number, otherwise an end of the interval that is one."""
    if np.isfinite(target):
        return target
    ends = [end for end in (side.low, side.high) if np.isfinite(end)]
    if not ends:
        return 0.0
    return ends[0] if target < 0 else ends[-1]


def _decimal(target: float, side: Interval, decimals: int) -> float:
    """The number with these decimals next to the target that is not at or beyond the ends, as far as rounding goes."""
    step = 10.0**-decimals
    value = round(target, decimals)
    if value <= side.low:
        value = round(np.floor(side.low / step) * step + step, decimals)
        if value <= side.low:
            value = round(value + step, decimals)
    elif value >= side.high:
        value = round(np.ceil(side.high / step) * step - step, decimals)
        if value >= side.high:
            value = round(value - step, decimals)
    return float(value)
