"""One tree as plain arrays, and many of them stacked into an `Ensemble`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.engine.structure.base import Ensemble
from fewest.engine.structure.question import EPS64, FoundQuestion, Link, Question
from fewest.tables.arrays import Bools, Floats, Ints32


@dataclass(frozen=True)
class ModelTree:
    """Node arrays of one tree; children count from the tree's own root, node 0. Leaves have a column below 0.

    ``levels`` maps a node with a categorical split to the levels that go left; a level beyond it goes where missing
    values go.
    """

    column: npt.NDArray[Any]
    threshold: npt.ArrayLike
    left: npt.ArrayLike
    right: npt.ArrayLike
    missing_left: npt.NDArray[Any]
    value: Floats
    levels: dict[int, Bools] = field(default_factory=dict)

    @property
    def leaves(self) -> Floats:
        """Values of the leaves."""
        return self.value[self.column < 0]


def sum_tolerance(leaves: Sequence[Floats], base: float, unit: float = EPS64) -> float:
    """Bound on the rounding of ``base + leaf + leaf + ...`` (leaves by tree) in arithmetic of this unit, in any order.

    Never below 1e-10 of the sum: the search expands the trees into a polynomial, whose many signed terms round more
    than the plain sum does, and votes of fully grown forests fall exactly on the threshold.
    """
    largest = float(sum(np.abs(values).max() for values in leaves))
    return max((len(leaves) + 64) * unit, 1e-10) * (abs(base) + largest) + 1e-300


def stack(
    trees: Sequence[ModelTree], base: float, link: Link, question: Question, prepare: Callable[[Any], Floats],
    source: int | Ints32, tolerance: float | None = None,
) -> FoundQuestion:  # fmt: skip
    """Lay all trees into one set of node arrays."""
    sizes = [len(tree.column) for tree in trees]
    root = np.cumsum([0, *sizes])[: len(trees)].astype(np.int32)
    category, left_levels = _categories(trees, root, sum(sizes))
    column = _joined([tree.column for tree in trees], np.int32)
    first = np.repeat(root, sizes)
    if tolerance is None:
        tolerance = sum_tolerance([tree.leaves for tree in trees], base)
    stacked = Ensemble(
        reading=link.reading(question, tolerance, prepare, source),
        column=np.maximum(column, -1),
        threshold=_joined([tree.threshold for tree in trees], np.float64),
        left=np.where(column >= 0, first + _joined([tree.left for tree in trees], np.int32), -1).astype(np.int32),
        right=np.where(column >= 0, first + _joined([tree.right for tree in trees], np.int32), -1).astype(np.int32),
        missing_left=_joined([tree.missing_left for tree in trees], np.bool_),
        category=category,
        left_levels=left_levels,
        value=_joined([tree.value for tree in trees], np.float64),
        root=root,
        base=float(base),
    )
    return FoundQuestion(stacked, link)


def _joined(parts: Sequence[Any], dtype: Any) -> Any:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype)


def _categories(trees: Sequence[ModelTree], root: Ints32, nodes: int) -> tuple[Ints32, Bools]:
    """Number the categorical splits and pad their tables: a level a split does not know goes with the missing."""
    width = max((len(row) for tree in trees for row in tree.levels.values()), default=1)
    category = np.full(nodes, -1, dtype=np.int32)
    rows: list[Bools] = []
    for tree, first in zip(trees, root, strict=True):
        for node, row in tree.levels.items():
            category[first + node] = len(rows)
            padded = np.full(width, tree.missing_left[node])
            padded[: len(row)] = row
            rows.append(padded)
    return category, np.array(rows, dtype=np.bool_).reshape(-1, width)
