"""The Rashomon set: every sparse tree that is nearly as good as the best one (Section 5.2, "Search-based").

TreeFARMS (Xin et al., NeurIPS 2022) defined it for trees: objective = share misclassified + regularization * leaves;
a member's is at most 1 + bound times the least. Hundreds of thousands are kept as runs of numbered leaves, each leaf
described once; a `Tree` is made of one when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError, UsageError
from fewest.models.rashomon._search import Members, as_patterns, decisions, run_praxis, too_large, unfold
from fewest.models.trees.thresholds import BinaryColumns
from fewest.models.trees.tree import Leaf, Split, Tree

MAX_COLUMNS = 64
# PRAXIS also counts trivial trees and some just beyond the bound: up to here the true number is worth finding out.
COUNTED, COUNTED_PER_MEMBER = 10_000_000, 100


@dataclass(frozen=True)
class Member:
    """One tree of a Rashomon set."""

    index: int  # its place in the set
    objective: float  # loss + regularization * leaves
    loss: float  # share of the training rows it misclassifies
    leaves: int
    owner: RashomonSet = field(repr=False, compare=False)

    @cached_property
    def tree(self) -> Tree:
        """The tree over original features, made when it is asked for."""
        return self.owner.tree(self.index)


@dataclass(frozen=True, eq=False)
class RashomonSet:
    """All near-optimal sparse trees, best objective first.

    Attributes
    ----------
    columns : BinaryColumns
        The tests that trees are made of.
    start : (trees + 1,) int64
        First leaf of each tree.
    leaf : (leaves,) int32
        Leaves of all trees, from left to right, as positions in the four arrays that follow.
    needs, forbids : (distinct leaves,) uint64
        Bit c is set where column c must be 1, or must be 0, to end there.
    positive : (distinct leaves,) bool
        Decision.
    counts : (distinct leaves, 2) int64
        Training rows labelled negative and positive.
    regularization : float
    n_rows : int
        Training rows.
    """

    columns: BinaryColumns
    start: npt.NDArray[np.int64]
    leaf: npt.NDArray[np.int32]
    needs: npt.NDArray[np.uint64]
    forbids: npt.NDArray[np.uint64]
    positive: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int64]
    regularization: float
    n_rows: int

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, index: int) -> Member:
        if not -len(self) <= index < len(self):
            raise IndexError(f"the set has {len(self):,} trees")
        t = index % len(self)
        return Member(t, float(self.objective[t]), float(self.loss[t]), int(self.leaves[t]), self)

    def __iter__(self) -> Iterator[Member]:
        return (self[t] for t in range(len(self)))

    @cached_property
    def leaves(self) -> npt.NDArray[np.int64]:
        """Leaves of each tree (trees,)."""
        return np.diff(self.start)

    @cached_property
    def loss(self) -> npt.NDArray[np.float64]:
        """Share of the training rows that each tree misclassifies (trees,)."""
        wrong = np.where(self.positive, self.counts[:, 0], self.counts[:, 1])
        return np.add.reduceat(wrong[self.leaf], self.start[:-1]) / self.n_rows

    @cached_property
    def objective(self) -> npt.NDArray[np.float64]:
        """What the trees are ranked by (trees,)."""
        return self.loss + self.regularization * self.leaves

    @property
    def leaf_range(self) -> tuple[int, int]:
        """Fewest and most leaves of a tree."""
        return int(self.leaves.min()), int(self.leaves.max())

    def tree(self, index: int) -> Tree:
        """One member as a tree over original features; its leaves carry the training rows they hold."""
        leaves = self.leaf[self.start[index] : self.start[index + 1]]
        return Tree.build(self.columns.schema, self._nested(leaves, 0))

    def _nested(self, leaves: npt.NDArray[np.int32], above: int) -> Split | Leaf:
        """Leaves of a subtree, from left to right, as nested splits; ``above`` has the columns tested on the way."""
        if len(leaves) == 1:
            negatives, positives = (int(count) for count in self.counts[leaves[0]])
            total = negatives + positives
            return Leaf(bool(self.positive[leaves[0]]), positives / total if total else None, negatives, positives)
        needs, forbids = self.needs[leaves], self.forbids[leaves]
        shared = int(np.bitwise_and.reduce(needs | forbids)) & ~above
        for column in range(len(self.columns)):
            left = (needs >> np.uint64(column) & np.uint64(1)) == 1
            size = int(left.sum())
            # All leaves pass the test at the top, and its left ones come first; of no other test are both true.
            if shared >> column & 1 and 0 < size < len(leaves) and left[:size].all():
                name, test = self.columns.test(column)
                inner = above | 1 << column
                return Split(name, test, self._nested(leaves[:size], inner), self._nested(leaves[size:], inner))
        raise AssertionError("the leaves are not those of a tree")


def rashomon_set(
    columns: BinaryColumns,
    frame: pd.DataFrame,
    positive: npt.ArrayLike,
    *,
    regularization: float = 0.01,
    bound: float = 0.05,
    max_depth: int = 4,
    max_trees: int = 1_000_000,
    time_limit: float | None = 600.0,
    memory_limit: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> RashomonSet:
    """All trees over the columns whose objective is at most ``1 + bound`` times the least.

    Leaves decide by majority, and positive where it is a tie. A split into two leaves that decide alike is trivial;
    trees that have one are left out. Needs ``tree-praxis``.

    Parameters
    ----------
    columns : BinaryColumns
        Tests that trees may make: see `guess_thresholds`.
    frame : (n, columns)
        Training rows, conformed to the schema.
    positive : (n,) bool
        Labels.
    regularization : float
        What a leaf costs, as a share of the rows.
    bound : float
        How much worse than the best a tree may be: 0.05 is five percent of the objective.
    max_depth : int
        Tests on the longest path.
    max_trees : int
        A larger set is refused.
    time_limit : float, optional
        Seconds for the search.
    memory_limit : float, optional
        Gigabytes for the search.
    progress : callable, optional
        Called with a line of text now and then.

    Returns
    -------
    RashomonSet

    Examples
    --------
    >>> from fewest.tables.schema import Schema
    >>> from fewest.models.trees import guess_thresholds
    >>> frame = pd.DataFrame({"age": [20, 25, 30, 50, 60, 70], "job": ["none", "none", "clerk"] * 2})
    >>> y = [True, True, True, False, False, False]
    >>> trees = rashomon_set(guess_thresholds(Schema.infer(frame), frame, y), frame, y)
    >>> [(member.leaves, member.tree.describe(0)) for member in trees]
    [(2, 'age <= 40')]
    """
    labels = np.asarray(positive, dtype=bool)
    _check(columns, frame, labels, regularization, bound, max_depth, max_trees)
    tell = progress or (lambda line: None)
    bits = columns.transform(frame)
    max_counted = max(COUNTED, COUNTED_PER_MEMBER * max_trees)
    tell(f"searching trees over {len(columns)} columns and {len(frame):,} rows")
    job = {"bits": bits, "positive": labels, "regularization": float(regularization), "bound": float(bound),
           "max_depth": int(max_depth), "max_counted": max_counted}  # fmt: skip
    grown = run_praxis(job, time_limit, memory_limit)
    if grown.counted > max_counted:
        raise too_large(grown.counted, max_trees, exact=False)
    tell(f"unfolding up to {grown.counted:,} trees")
    members = unfold(grown, as_patterns(bits, labels), regularization * len(frame), bound, max_trees)
    tell(f"{len(members.start) - 1:,} trees")
    return _as_set(columns, members, regularization, len(frame))


def single_leaf(columns: BinaryColumns, positive: npt.NDArray[np.bool_], regularization: float) -> RashomonSet:
    """The set where nothing can be split: one leaf."""
    counts = np.array([[(~positive).sum(), positive.sum()]], dtype=np.int64)
    none = np.zeros(1, dtype=np.uint64)
    alone = Members(np.array([0, 1], dtype=np.int64), np.zeros(1, dtype=np.int32), none, none, counts)
    return _as_set(columns, alone, regularization, len(positive))


def _as_set(columns: BinaryColumns, members: Members, regularization: float, n_rows: int) -> RashomonSet:
    positive = decisions(members.counts)
    return RashomonSet(
        columns, members.start, members.leaf, members.needs, members.forbids, positive, members.counts,
        regularization, n_rows,
    )  # fmt: skip


def _check(
    columns: BinaryColumns, frame: pd.DataFrame, labels: npt.NDArray[Any], regularization: float, bound: float,
    max_depth: int, max_trees: int,
) -> None:  # fmt: skip
    if len(columns) == 0:
        raise DataError("there is no column to split on", do="guess thresholds with more estimators, or add features")
    if len(columns) > MAX_COLUMNS:
        raise UsageError(
            f"{len(columns)} binary columns, but a tree search takes at most {MAX_COLUMNS}",
            do="guess fewer thresholds: lower guess_estimators, or n_estimators of guess_thresholds",
        )
    if labels.shape != (len(frame),):
        raise DataError(f"{len(frame)} rows, but labels of shape {labels.shape}", do="pass one label per row")
    if labels.all() or not labels.any():
        raise DataError("the labels are all of one class", do="pass rows of both classes")
    if not 0 < regularization < 1:
        raise UsageError(f"regularization is {regularization:g}", do="choose a share above 0 and below 1, say 0.01")
    if not 0 <= bound < np.inf:
        raise UsageError(f"bound is {bound:g}", do="choose a share of the objective, say 0.05")
    if not 1 <= max_depth <= 32:
        raise UsageError(f"max_depth is {max_depth}", do="choose from 1 to 32 tests on a path, say 4")
    if max_trees < 1:
        raise UsageError(f"max_trees is {max_trees}", do="allow at least one tree")
