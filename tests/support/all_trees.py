"""Every tree there is over a few binary columns, with exact objectives: what Rashomon sets are checked against.

A tree is nested: a column with its left (the column is 1) and right tree, or a bool, the decision of a leaf.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from fewest.models.rashomon import RashomonSet
from fewest.models.trees import Leaf, Split

Nested = Any


def decision(y: Any) -> bool:
    return bool(2 * y.sum() >= len(y))


def every_tree(bits: Any, y: Any, depth: int) -> Iterator[tuple[Nested, int, int]]:
    """Trees with majority leaves and no empty side: tree, rows misclassified, leaves. Trivial ones are among them."""
    yield decision(y), int(min(y.sum(), len(y) - y.sum())), 1
    if depth == 0:
        return
    for column in range(bits.shape[1]):
        left = bits[:, column] == 1
        if left.all() or not left.any():
            continue
        rights = list(every_tree(bits[~left], y[~left], depth - 1))
        for tree, wrong, leaves in every_tree(bits[left], y[left], depth - 1):
            for other, more_wrong, more_leaves in rights:
                yield (column, tree, other), wrong + more_wrong, leaves + more_leaves


def is_trivial(tree: Nested) -> bool:
    if isinstance(tree, bool):
        return False
    _, left, right = tree
    alike = isinstance(left, bool) and isinstance(right, bool) and left == right
    return alike or is_trivial(left) or is_trivial(right)


def brute_set(bits: Any, y: Any, regularization: str, bound: str, depth: int) -> set[Nested]:
    """The Rashomon set by its definition, in fractions."""
    price, factor = Fraction(regularization) * len(y), 1 + Fraction(bound)
    objectives = {tree: wrong + price * leaves for tree, wrong, leaves in every_tree(bits, y, depth)}
    limit = factor * min(objectives.values())
    return {tree for tree, objective in objectives.items() if objective <= limit and not is_trivial(tree)}


def nested_of(trees: RashomonSet, index: int) -> Nested:
    """A member, through its neutral tree."""
    columns = trees.columns
    place = {columns.test(column): column for column in range(len(columns))}

    def walk(node: Split | Leaf) -> Nested:
        if isinstance(node, Leaf):
            return node.positive
        return place[node.feature, node.test], walk(node.left), walk(node.right)

    return walk(trees[index].tree.nested())


def as_nested_set(trees: RashomonSet) -> set[Nested]:
    out = {nested_of(trees, index) for index in range(len(trees))}
    assert len(out) == len(trees)
    return out


def noisy_bits(seed: int, rows: int, columns: int) -> tuple[Any, Any]:
    """Binary rows, and labels that a small tree explains in part; ties are common on purpose."""
    rng = np.random.default_rng(seed)
    bits = (rng.random((rows, columns)) < rng.uniform(0.25, 0.75, columns)).astype(np.uint8)
    clean = (bits[:, 0] & bits[:, 1 % columns]) | bits[:, columns - 1]
    y = np.where(rng.random(rows) < 0.25, rng.random(rows) < 0.5, clean == 1)
    y[:2] = [False, True]
    return bits, y.astype(bool)
