"""The Rashomon set: every sparse tree that is nearly as good as the best one (Section 5.2, "Search-based").

TreeFARMS (Xin et al., NeurIPS 2022) defined it for trees: objective = share misclassified + regularization * leaves;
a member's is at most 1 + bound times the least. Splits are found by PRAXIS in a child process and unfolded to all trees
within the bound: rows are counted and objectives added up here, in whole rows, whatever PRAXIS rounds. Hundreds of
thousands of trees are kept as runs of numbered leaves, each leaf described once; a `Tree` is made of one when it is
asked for.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from signal import Signals
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import (
    DataError,
    FewestError,
    MissingExtraError,
    ModelError,
    TimeLimitError,
    UsageError,
    check_number,
)
from fewest.models.rashomon import _kernels, _praxis
from fewest.models.trees.thresholds import BinaryColumns
from fewest.models.trees.tree import Leaf, Split, Tree
from fewest.tables.arrays import Bools, Ints, Ints32

Masks = npt.NDArray[np.uint64]
SCRIPT = Path(_praxis.__file__)
SMALLER = "make it smaller: a larger regularization, or a smaller bound or max_depth"
MAX_OPTIONS = 50_000_000
SAME = 1e-10  # objectives closer than this (relative) are the same: sums of decimals are rounded
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
    """All near-optimal sparse trees, best objective first."""

    columns: BinaryColumns  # the tests that trees are made of
    start: Ints  # (trees + 1,): first leaf of each tree
    leaf: Ints32  # (leaves,): leaves of all trees, from left to right, as positions in the four arrays that follow
    needs: Masks  # (distinct leaves,): bit c is set where column c must be 1 to end there
    forbids: Masks  # (distinct leaves,): where it must be 0
    positive: Bools  # (distinct leaves,): decision
    counts: Ints  # (distinct leaves, 2): training rows labelled negative and positive
    regularization: float
    n_rows: int  # training rows

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
        raise _too_large(grown.counted, max_trees, exact=False)
    tell(f"unfolding up to {grown.counted:,} trees")
    members = unfold(grown, as_patterns(bits, labels), regularization * len(frame), bound, max_trees)
    found = RashomonSet(columns, *members, regularization, len(frame))
    tell(f"{len(found):,} trees")
    return found


def single_leaf(columns: BinaryColumns, positive: Bools, regularization: float) -> RashomonSet:
    """The set where nothing can be split: one leaf."""
    counts = np.array([[(~positive).sum(), positive.sum()]], dtype=np.int64)
    start, leaf, none = np.array([0, 1]), np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.uint64)
    return RashomonSet(columns, start, leaf, none, none, _decisions(counts), counts, regularization, len(positive))


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
    check_number("bound", bound, "choose a share of the objective, say 0.05", least=0)
    check_number("max_depth", max_depth, "choose from 1 to 32 tests on a path, say 4", least=1, most=32)
    check_number("max_trees", max_trees, "allow at least one tree", least=1)


class Grown(NamedTuple):
    """What was found: splits as `_praxis` describes them, and the trees it counts before the exact bound."""

    parent: Ints32
    column: Ints32
    counted: int


def run_praxis(job: dict[str, Any], time_limit: float | None = None, memory_limit: float | None = None) -> Grown:
    """Run PRAXIS in a child process; what can go wrong becomes errors that name the fix."""
    if find_spec("praxis") is None:
        raise MissingExtraError("the search for near-optimal trees needs tree-praxis", do='pip install "fewest[trees]"')
    with TemporaryDirectory(prefix="fewest-") as folder:
        given, result, said = (Path(folder) / name for name in ("job.npz", "result.npz", "said.txt"))
        np.savez(given, **job, memory_limit=memory_limit or 0.0)
        with said.open("wb") as errors:
            try:
                done = subprocess.run(
                    [sys.executable, str(SCRIPT), str(given), str(result)],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, timeout=time_limit, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise TimeLimitError(
                    f"the search for near-optimal trees did not finish in {time_limit:g} seconds",
                    do=f"raise time_limit, or {SMALLER}",
                ) from None
        if done.returncode != 0:
            raise _failure(done.returncode, said.read_text(errors="replace").strip(), memory_limit)
        with np.load(result) as held:
            return Grown(held["parent"], held["column"], int(held["counted"]))


def _failure(code: int, said: str, memory_limit: float | None) -> FewestError:
    """What an exit code means."""
    if code == _praxis.REFUSED:
        return UsageError(said, do="raise the regularization")
    last = said.splitlines()[-1] if said else "it printed nothing"
    if code == _praxis.NO_MEMORY or "bad_alloc" in said or "MemoryError" in said:
        allowed = "" if memory_limit is None else f" of {memory_limit:g} GB"
        return ModelError(
            f"the search for near-optimal trees ran out of memory{allowed}", do=f"raise memory_limit, or {SMALLER}"
        )
    if code < 0:
        return ModelError(
            f"the search for near-optimal trees was stopped by signal {Signals(-code).name}: {last}",
            do=f"it may have run out of memory; {SMALLER}",
        )
    return ModelError(f"the search for near-optimal trees failed: {last}", do=f"{SMALLER}; or report this")


def as_patterns(bits: npt.NDArray[np.uint8], positive: Bools) -> tuple[Masks, Ints]:
    """Distinct rows of a binary table as masks (bit c is column c), with the rows of either label (m, 2)."""
    mask = np.zeros(len(bits), dtype=np.uint64)
    for column in range(bits.shape[1]):
        mask |= bits[:, column].astype(np.uint64) << np.uint64(column)
    distinct, place = np.unique(mask, return_inverse=True)
    weight = np.zeros((len(distinct), 2), dtype=np.int64)
    np.add.at(weight, (place, positive.astype(np.int64)), 1)
    return distinct, weight


def unfold(
    grown: Grown, patterns: tuple[Masks, Ints], price: float, bound: float, max_trees: int
) -> tuple[Ints, Ints32, Masks, Masks, Bools, Ints]:
    """All trees made of the splits whose objective, in rows, is at most ``1 + bound`` times the least.

    ``start``, ``leaf``, ``needs``, ``forbids``, ``positive`` and ``counts`` of the `RashomonSet`.
    """
    needs, forbids = _kernels.paths(grown.parent, grown.column)
    place_of, firsts = _places(needs, forbids)
    needs, forbids = needs[firsts], forbids[firsts]
    counts = np.asarray(_kernels.count_rows(needs, forbids, *patterns))
    positive = _decisions(counts)
    rows, errors = counts.sum(axis=1)[place_of], counts.min(axis=1)[place_of]
    best = _kernels.cheapest(grown.parent, rows, errors, price)
    limit = (best[0, 0] + price * best[0, 1]) * (1 + bound) * (1 + SAME)
    budget = _kernels.budgets(grown.parent, rows, best, price, limit)
    room = min(MAX_OPTIONS, 16 * max_trees + 1_000_000)
    options, begin, count = _kernels.list_options(
        grown.parent, errors, positive[place_of], budget, price, max_trees, room
    )
    if count < 0 or count > max_trees:
        raise _too_large(grown.counted if count < 0 else int(count), max_trees, exact=count >= 0)
    start, leaf = _kernels.write_trees(options, begin, place_of)
    used, leaf = np.unique(leaf, return_inverse=True)
    return start, leaf.astype(np.int32), needs[used], forbids[used], positive[used], counts[used]


def _decisions(counts: Ints) -> Bools:
    """Whether leaves with these rows of either label decide positive: by majority, and where it is a tie."""
    return np.asarray(counts[:, 1] >= counts[:, 0])


def _too_large(count: int, max_trees: int, exact: bool) -> ModelError:
    """The error for a set that is not unfolded."""
    size = f"{count:,} trees" if exact else f"up to {count:,} trees"
    return ModelError(
        f"the Rashomon set has {size}, more than max_trees = {max_trees:,}", do=f"{SMALLER}; or raise max_trees"
    )


def _places(needs: Masks, forbids: Masks) -> tuple[Ints, Ints]:
    """Place of each node, and one node of each place: nodes reached by the same tests in any order are one place."""
    order = np.lexsort((forbids, needs))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(needs[order]) != 0) | (np.diff(forbids[order]) != 0)
    place_of = np.empty(len(order), dtype=np.int64)
    place_of[order] = np.cumsum(new) - 1
    return place_of, order[new]
