"""Trees whose leaves are linear functions (LightGBM's `linear_tree`), as sums of terms of a few columns each.

What a leaf adds depends on the columns of its path and of its function alone. Leaves of the same columns are one term;
on a cube a term of k features has 2**k values, which makes the model additive over its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewest.engine.structure._trees import ModelTree, stack
from fewest.engine.structure.base import Additive, Ensemble
from fewest.engine.structure.question import FoundQuestion, Link, Question
from fewest.tables.arrays import Floats, Ints

WIDEST = 6  # columns of a tree up to which its leaves are one term; larger trees have a term for each path


@dataclass(frozen=True)
class LinearTree:
    """A tree and, for each node, what it adds as a leaf: ``constant + sum of factor * column``.

    A leaf one of whose columns is missing adds the tree's own value instead.
    """

    tree: ModelTree
    constant: Floats
    columns: Sequence[Ints]
    factors: Sequence[Floats]


def read_linear_leaves(
    trees: Sequence[LinearTree], link: Link, question: Question, prepare: Callable[[Any], Floats], width: int
) -> FoundQuestion:
    """Read trees with linear leaves as an `Additive` of terms."""
    walked = stack([part.tree for part in trees], 0.0, link, question, prepare, width).structure
    assert isinstance(walked, Ensemble)
    of_leaf = [places for part in trees for places in _columns_of_leaves(part)]
    terms, term_of = _terms(of_leaf)
    counts = [len(columns) for part in trees for columns in part.columns]
    begin = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    constant = np.concatenate([np.zeros(0), *(part.constant for part in trees)])
    used = np.concatenate([np.zeros(0, np.int64), *(own for part in trees for own in part.columns)]).astype(np.int64)
    factor = np.concatenate([np.zeros(0), *(own for part in trees for own in part.factors)])

    def added(model_input: Any) -> Floats:
        from fewest.engine.structure.walk import linear_leaf_sums  # imports numba, which takes a while

        return np.asarray(
            linear_leaf_sums(
                prepare(model_input), walked.column, walked.threshold, walked.left, walked.right, walked.missing_left,
                walked.category, walked.left_levels, walked.value, walked.root, constant, begin, used, factor, term_of,
                len(terms),
            )
        )  # fmt: skip

    size = float(sum(np.abs(part.constant).max() + np.abs(part.tree.leaves).max() for part in trees))
    first = np.array([places[0] if places else 0 for places in terms], dtype=np.int32)
    reading = link.reading(question, 1e-10 * (1.0 + size), added, first, growth=1e-11)
    reading = replace(reading, several=tuple(terms))
    return FoundQuestion(Additive(reading, np.ones(len(terms)), 0.0), link)


def _columns_of_leaves(part: LinearTree) -> list[frozenset[int]]:
    """For each node of a tree the columns that decide what it adds as a leaf; none for inner nodes."""
    tree, found = part.tree, [frozenset[int]()] * len(part.tree.column)
    left, right = np.asarray(tree.left), np.asarray(tree.right)
    waiting: list[tuple[int, frozenset[int]]] = [(0, frozenset())]
    while waiting:
        node, above = waiting.pop()
        if tree.column[node] >= 0:
            above = above | {int(tree.column[node])}
            waiting += [(int(left[node]), above), (int(right[node]), above)]
        else:
            found[node] = above | set(part.columns[node].tolist())
    every = frozenset().union(*found)
    if len(every) > WIDEST:
        return found
    return [every if column < 0 else frozenset() for column in tree.column]


def _terms(of_leaf: Sequence[frozenset[int]]) -> tuple[list[tuple[int, ...]], Ints]:
    """The sets of columns that no other set holds, and for each leaf the number of one that holds its own."""
    terms: list[frozenset[int]] = []
    number: dict[frozenset[int], int] = {}
    for columns in sorted(set(of_leaf), key=lambda one: (-len(one), sorted(one))):
        holder = next((place for place, term in enumerate(terms) if columns <= term), None)
        if holder is None:
            holder = len(terms)
            terms.append(columns)
        number[columns] = holder
    return [tuple(sorted(term)) for term in terms], np.array([number[columns] for columns in of_leaf], dtype=np.int64)
