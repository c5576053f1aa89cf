"""TOpt: among all sparse trees that are nearly as good as the best, the one whose decisions need the fewest reasons.

Section 5.2 of the paper ("Search-based SEV Optimization"): the member of the Rashomon set with the least mean SEV-T
over the training rows that it decides positive. The test rows have no part in the choice.
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError
from fewest.models.rashomon.base import RashomonSet, rashomon_set, single_leaf
from fewest.models.rashomon.sev_of_members import score_set
from fewest.models.trees.estimator import TreeClassifier
from fewest.models.trees.thresholds import BinaryColumns, guess_thresholds
from fewest.models.trees.tree import Tree

SAME = 1e-12


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
    """

    columns_: BinaryColumns
    n_trees_: int
    leaf_range_: tuple[int, int]
    front_: pd.DataFrame
    objective_: float

    def __init__(
        self,
        regularization: float = 0.01,
        bound: float = 0.05,
        max_depth: int = 4,
        guess_estimators: int = 50,
        guess_depth: int = 1,
        max_trees: int = 1_000_000,
        time_limit: float | None = 600.0,
        tolerance: float | None = None,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.regularization = regularization
        self.bound = bound
        self.max_depth = max_depth
        self.guess_estimators = guess_estimators
        self.guess_depth = guess_depth
        self.max_trees = max_trees
        self.time_limit = time_limit
        self.tolerance = tolerance
        self.random_state = random_state
        self.verbose = verbose

    def _grow(self, frame: pd.DataFrame, positive: npt.NDArray[np.bool_]) -> Tree:
        if self.tolerance is not None and not self.tolerance >= 0:
            raise UsageError(f"tolerance is {self.tolerance}", do="choose a share of the rows, say 0.01, or None")
        self.columns_ = guess_thresholds(
            self.schema_, frame, positive, n_estimators=self.guess_estimators, max_depth=self.guess_depth,
            random_state=self.random_state,
        )  # fmt: skip
        trees = self._set(frame, positive)
        self._tell("scoring them")
        scores = score_set(trees, frame, positive)
        chosen = choose(scores, self.tolerance)
        self.n_trees_, self.leaf_range_ = len(trees), trees.leaf_range
        self.front_ = front(scores, chosen)
        self.objective_ = trees[chosen].objective
        return trees[chosen].tree

    def _set(self, frame: pd.DataFrame, positive: npt.NDArray[np.bool_]) -> RashomonSet:
        if len(self.columns_) == 0:
            return single_leaf(self.columns_, positive, self.regularization)
        return rashomon_set(
            self.columns_, frame, positive, regularization=self.regularization, bound=self.bound,
            max_depth=self.max_depth, max_trees=self.max_trees, time_limit=self.time_limit, progress=self._tell,
        )  # fmt: skip

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


def _undominated(table: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Rows that no row above, which has no larger SEV-T, matches in accuracy and leaves as well; NaN never."""
    best = np.full(int(table["leaves"].max()) + 1, -np.inf)
    out = np.zeros(len(table), dtype=bool)
    rows = zip(table["mean_sev_t"], table["accuracy"], table["leaves"], strict=True)
    for row, (sev, accuracy, leaves) in enumerate(rows):
        if not np.isnan(sev) and accuracy > best[leaves]:
            out[row] = True
            best[leaves:] = np.maximum(best[leaves:], accuracy)
    return out
