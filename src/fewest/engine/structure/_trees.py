"""One tree as plain arrays, and many of them stacked into an `Ensemble`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.engine.structure.base import Ensemble, Reading
from fewest.engine.structure.question import EPS64
from fewest.tables.arrays import Bools, Floats, Ints32


@dataclass(frozen=True)
class ModelTree:
    """Node arrays of one tree; children count from the tree's own root, node 0. Leaves have column -1.

    ``levels`` maps a node with a categorical split to the levels that go left; a level beyond it goes where missing
    values go.
    """

    column: Ints32
    threshold: Floats
    left: Ints32
    right: Ints32
    missing_left: Bools
    value: Floats
    levels: dict[int, Bools] = field(default_factory=dict)

    def leaves(self) -> Floats:
        """Values of the leaves."""
        return self.value[self.column < 0]


def make_tree(
    column: npt.ArrayLike,
    threshold: npt.ArrayLike,
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    missing_left: npt.ArrayLike,
    value: npt.ArrayLike,
    levels: dict[int, Bools] | None = None,
) -> ModelTree:
    """Build a `ModelTree` with the right dtypes; inner nodes are those with a column >= 0."""
    columns = np.asarray(column, dtype=np.int32)
    columns = np.where(columns < 0, -1, columns).astype(np.int32)
    return ModelTree(
        columns,
        np.asarray(threshold, dtype=np.float64),
        np.asarray(left, dtype=np.int32),
        np.asarray(right, dtype=np.int32),
        np.asarray(missing_left, dtype=np.bool_),
        np.asarray(value, dtype=np.float64),
        levels or {},
    )


def sum_tolerance(trees: Sequence[ModelTree], base: float, unit: float = EPS64) -> float:
    """Bound on the rounding of ``base + leaf + leaf + ...`` in arithmetic of the given unit, in any order.

    Never below 1e-10 of the sum: the search expands the trees into a polynomial, whose many signed terms round more
    than the plain sum does, and votes of fully grown forests fall exactly on the threshold.
    """
    return max((len(trees) + 64) * unit, 1e-10) * (abs(base) + _largest_sum(trees)) + 1e-300


def _largest_sum(trees: Sequence[ModelTree]) -> float:
    """Sum over trees of the largest leaf value in magnitude."""
    return float(sum(np.abs(tree.leaves()).max() for tree in trees))


def stack(trees: Sequence[ModelTree], base: float, reading: Reading) -> Ensemble:
    """Lay all trees into one set of node arrays."""
    sizes = [len(tree.column) for tree in trees]
    root = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32) if trees else np.zeros(0, np.int32)
    category, left_levels = _categories(trees, root, sum(sizes))
    return Ensemble(
        reading=reading,
        column=_joined([tree.column for tree in trees], np.int32),
        threshold=_joined([tree.threshold for tree in trees], np.float64),
        left=_joined([_moved(tree, tree.left, first) for tree, first in zip(trees, root, strict=True)], np.int32),
        right=_joined([_moved(tree, tree.right, first) for tree, first in zip(trees, root, strict=True)], np.int32),
        missing_left=_joined([tree.missing_left for tree in trees], np.bool_),
        category=category,
        left_levels=left_levels,
        value=_joined([tree.value for tree in trees], np.float64),
        root=root,
        base=float(base),
    )


def _joined(parts: Sequence[Any], dtype: Any) -> Any:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)


def _moved(tree: ModelTree, children: Ints32, first: int) -> Ints32:
    return np.where(tree.column >= 0, children + first, -1).astype(np.int32)


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
