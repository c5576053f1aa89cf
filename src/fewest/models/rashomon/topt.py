"""TOpt: among all sparse trees that are nearly as good as the best, the one whose decisions need the fewest reasons.

Section 5.2 of the paper ("Search-based SEV Optimization"): the member of the Rashomon set with the least mean SEV-T
over the training rows that it decides positive. The test rows have no part in the choice.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError, UsageError
from fewest.models.rashomon import _kernels
from fewest.models.rashomon.base import Masks, RashomonSet, as_patterns, rashomon_set, single_leaf
from fewest.models.trees.estimator import TreeClassifier
from fewest.models.trees.thresholds import BinaryColumns, guess_thresholds
from fewest.models.trees.tree import Tree
from fewest.tables.arrays import Bools, Ints
from fewest.tables.schema import Feature

SAME = 1e-12


@dataclass(eq=False, repr=False)
class TOptClassifier(TreeClassifier):
    """The sparsest-to-explain of all near-optimal sparse trees. Needs ``tree-praxis``.

    Parameters
    ----------
    regularization : float
        What a leaf costs, as a share of the rows; less makes larger trees and many more of them.
    bound : float
        How much worse than the best objective a tree may be: 0.05 is five percent.
    max_depth : int
        Tests on the longest path.
    guess_estimators, guess_depth, random_state
        Number and depth of the boosted trees that guess the thresholds.
    max_trees : int
        A larger set is an error, which says how to make it smaller.
    time_limit : float, optional
        Seconds for finding the set.
    tolerance : float, optional
        Choose only among trees whose training accuracy is within this of the best one's; default: the whole set.
    positive : label, optional
        The class whose decisions are to need few reasons. Default: the second in order.
    verbose : bool
        Report on stderr what is going on.

    Attributes
    ----------
    tree_ : Tree
        The chosen one: least mean SEV-T, then most accurate, then fewest leaves, then first by objective. Where no
        tree decides a row positive that can be turned, the one of the best objective.
    columns_ : BinaryColumns
        The tests that trees could be made of.
    n_trees_ : int
        Trees in the set.
    leaf_range_ : tuple of int
        Fewest and most leaves of a tree in the set.
    front_ : DataFrame
        Distinct (mean_sev_t, accuracy, leaves) on the training rows, best first, with the number of ``trees`` that
        have them, whether no other is at least as good in all three (``pareto``), and which is ``chosen``.
    objective_ : float
        Objective of the chosen tree.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 25, 30, 50, 60, 70], "job": ["none", "none", "clerk"] * 2})
    >>> model = TOptClassifier(bound=0.2).fit(frame, ["bad", "bad", "bad", "ok", "ok", "bad"])
    >>> model.n_trees_, model.leaf_range_
    (2, (3, 3))
    >>> model.front_[["mean_sev_t", "accuracy", "leaves", "trees"]]
       mean_sev_t  accuracy  leaves  trees
    0         1.0       1.0       3      2
    >>> model = TOptClassifier(bound=0.2, positive="bad").fit(frame, ["bad", "bad", "bad", "ok", "ok", "bad"])
    >>> str(model.positive_)
    'bad'
    """

    regularization: float = 0.01
    bound: float = 0.05
    max_depth: int = 4
    guess_estimators: int = 50
    guess_depth: int = 1
    max_trees: int = 1_000_000
    time_limit: float | None = 600.0
    tolerance: float | None = None
    random_state: int = 0
    verbose: bool = False
    positive: Any = None

    columns_: BinaryColumns = field(init=False)
    n_trees_: int = field(init=False)
    leaf_range_: tuple[int, int] = field(init=False)
    front_: pd.DataFrame = field(init=False)
    objective_: float = field(init=False)

    def _grow(self, frame: pd.DataFrame, positive: Bools) -> Tree:
        if self.tolerance is not None and not self.tolerance >= 0:
            raise UsageError(f"tolerance is {self.tolerance}", do="choose a share of the rows, say 0.01, or None")
        self.columns_ = guess_thresholds(
            self.schema_, frame, positive, n_estimators=self.guess_estimators, max_depth=self.guess_depth,
            random_state=self.random_state,
        )  # fmt: skip
        if len(self.columns_) == 0:
            trees = single_leaf(self.columns_, positive, self.regularization)
        else:
            trees = rashomon_set(
                self.columns_, frame, positive, regularization=self.regularization, bound=self.bound,
                max_depth=self.max_depth, max_trees=self.max_trees, time_limit=self.time_limit, progress=self._tell,
            )  # fmt: skip
        self._tell("scoring them")
        scores = score_set(trees, frame, positive)
        chosen = choose(scores, self.tolerance)
        self.n_trees_, self.leaf_range_ = len(trees), trees.leaf_range
        self.front_ = front(scores, chosen)
        self.objective_ = trees[chosen].objective
        return trees[chosen].tree

    def _tell(self, line: str) -> None:
        if self.verbose:
            print(line, file=sys.stderr)


def choose(scores: pd.DataFrame, tolerance: float | None = None) -> int:
    """Row of the tree with the least mean SEV-T; ties by accuracy, then fewer leaves, then the first.

    With a tolerance, trees are left out that are less accurate by more than it than the best one that has a mean SEV-T.
    """
    scored = scores["mean_sev_t"].notna()
    if not scored.any():
        return 0
    if tolerance is not None:
        scored &= scores["accuracy"] >= scores["accuracy"][scored].max() - tolerance - SAME
    rows = np.flatnonzero(scored)
    picked = scores.iloc[rows]
    return int(rows[np.lexsort((picked["leaves"], -picked["accuracy"], picked["mean_sev_t"]))[0]])


def front(scores: pd.DataFrame, chosen: int) -> pd.DataFrame:
    """Distinct outcomes of a set's trees, best first: see `TOptClassifier.front_`."""
    keys = ["mean_sev_t", "accuracy", "leaves"]
    table = scores.groupby(keys, dropna=False).size().rename("trees").reset_index()
    table = table.sort_values(keys, ascending=[True, False, True], ignore_index=True)
    table["pareto"] = _undominated(table)
    own = scores.iloc[chosen]
    same = [table[key].eq(own[key]) | (table[key].isna() & np.isnan(own[key])) for key in keys]
    table["chosen"] = same[0] & same[1] & same[2]
    return table


def _undominated(table: pd.DataFrame) -> Bools:
    """Rows that no row above, which has no larger SEV-T, matches in accuracy and leaves as well; NaN never."""
    best = np.full(int(table["leaves"].max()) + 1, -np.inf)
    out = np.zeros(len(table), dtype=bool)
    rows = zip(table["mean_sev_t"], table["accuracy"], table["leaves"], strict=True)
    for row, (sev, accuracy, leaves) in enumerate(rows):
        if not np.isnan(sev) and accuracy > best[leaves]:
            out[row] = True
            best[leaves:] = np.maximum(best[leaves:], accuracy)
    return out


def score_set(trees: RashomonSet, frame: pd.DataFrame, positive: npt.ArrayLike, *, n_jobs: int = 1) -> pd.DataFrame:
    """Accuracy and SEV-T of every tree on some rows.

    SEV-T of a case decided positive is the least number of original features that must change for it to end in a
    negative leaf; columns that test one feature count once, and a leaf that no value leads to is none.

    Parameters
    ----------
    trees : RashomonSet
    frame : (n, columns)
        Rows conformed to the schema.
    positive : (n,) bool
        Their labels.
    n_jobs : int
        The result does not depend on it.

    Returns
    -------
    DataFrame
        One row per tree: ``accuracy``, ``leaves``, ``mean_sev_t`` over the rows that the tree decides positive,
        ``share_sev_1`` of them, and their number ``decided``. Both are NaN where the tree decides no row positive, or
        one that cannot be turned.

    Examples
    --------
    >>> from fewest.tables.schema import Schema
    >>> from fewest.models.trees import guess_thresholds
    >>> frame = pd.DataFrame({"age": [20, 25, 30, 50, 60, 70], "job": ["none", "none", "clerk"] * 2})
    >>> y = [True, True, True, False, False, True]
    >>> trees = rashomon_set(guess_thresholds(Schema.infer(frame), frame, y), frame, y)
    >>> score_set(trees, frame, y)
       accuracy  leaves  mean_sev_t  share_sev_1  decided
    0       1.0       3         1.0          1.0        4
    1       1.0       3         1.0          1.0        4
    """
    labels = np.asarray(positive, dtype=bool)
    if labels.shape != (len(frame),) or len(frame) == 0:
        raise DataError(f"{len(frame)} rows, but labels of shape {labels.shape}", do="pass one label per row")
    sums = sum_up(trees, frame, labels, n_jobs)
    decided = sums[:, _kernels.DECIDED]
    counted = np.where((decided > 0) & (sums[:, _kernels.UNREACHED] == 0), decided, np.nan)
    return pd.DataFrame(
        {
            "accuracy": 1 - sums[:, _kernels.WRONG] / len(frame),
            "leaves": trees.leaves,
            "mean_sev_t": sums[:, _kernels.TOTAL] / counted,
            "share_sev_1": sums[:, _kernels.ONES] / counted,
            "decided": decided,
        }
    )


def sum_up(trees: RashomonSet, frame: pd.DataFrame, labels: Bools, n_jobs: int) -> Ints:
    """Per tree: rows misclassified, decided positive, of SEV-T 1, the sum of SEV-T, and those not to be turned."""
    cells = cells_of(trees.columns)
    shut = _kernels.closed(trees.needs, trees.forbids, cells.mask_of, cells.cells, cells.cells_from)
    patterns = as_patterns(trees.columns.transform(frame), labels)
    used = _kernels.columns_used(trees.start, trees.leaf, trees.needs, trees.forbids)
    order = np.argsort(used, kind="stable")
    out = np.zeros((len(trees), 5), dtype=np.int64)

    def part(first: int, last: int) -> None:
        _kernels.score_trees(
            order, used, first, last, trees.start, trees.leaf, trees.needs, trees.forbids, trees.positive, shut,
            cells.owner, cells.mask_of, *patterns, out,
        )  # fmt: skip

    edges = np.linspace(0, len(trees), max(1, n_jobs) + 1).astype(int).tolist()
    if n_jobs <= 1:
        part(0, len(trees))
    else:
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(part, edges[:-1], edges[1:]))
    return out


class TableCells(NamedTuple):
    """What values of each feature can look like in the binary columns; features are numbered by first appearance.

    ``owner[c]`` is the feature of column c, ``mask_of[j]`` its columns, ``cells[cells_from[j]:cells_from[j + 1]]`` the
    patterns its values make.
    """

    owner: Ints
    mask_of: Masks
    cells: Masks
    cells_from: Ints


def cells_of(columns: BinaryColumns) -> TableCells:
    """Patterns that typed values make: missing values and levels that are not known are nothing to move to."""
    present, owner = np.unique(columns.feature, return_inverse=True)
    masks, cells, cells_from = [], [], [0]
    for place, j in enumerate(present.tolist()):
        own = np.flatnonzero(owner == place)
        masks.append(sum(1 << column for column in own.tolist()))
        cells.extend(_cells(columns, columns.schema.features[j], own))
        cells_from.append(len(cells))
    return TableCells(
        owner.astype(np.int64), np.array(masks, dtype=np.uint64), np.array(cells, dtype=np.uint64),
        np.array(cells_from, dtype=np.int64),
    )  # fmt: skip


def _cells(columns: BinaryColumns, feature: Feature, own: Ints) -> list[int]:
    """Patterns of one feature, each once."""
    if not np.isnan(columns.threshold[own[0]]):
        ends = [*np.unique(columns.threshold[own]).tolist(), np.inf]
        lows = [-np.inf, *ends[:-1]]
        # A whole number lies in (low, high] unless both ends round down to the same one.
        values = [high for low, high in zip(lows, ends, strict=True) if _holds(feature, low, high)]
        found = [sum(1 << c for c in own.tolist() if value <= columns.threshold[c]) for value in values]
    else:
        found = [sum(1 << c for c in own.tolist() if columns.level[c] == level) for level in feature.levels]
    return list(dict.fromkeys(found))


def _holds(feature: Feature, low: float, high: float) -> bool:
    """Whether a value of the feature's type lies in (low, high]."""
    if feature.kind != "integer" or np.isinf(low) or np.isinf(high):
        return low < high
    return bool(np.floor(low) < np.floor(high))
