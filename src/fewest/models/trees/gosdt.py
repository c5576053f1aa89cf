"""GOSDT: the tree of provably least error plus price per leaf, over guessed thresholds.

Lin et al., "Generalized and Scalable Optimal Sparse Decision Trees" (ICML 2020); thresholds as in `guess_thresholds`.
The search is that of the package ``gosdt``; only its result is used, read into the neutral tree.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import MissingExtraError, ModelError, TimeLimitError, UsageError, check_number
from fewest.models.trees.estimator import TreeClassifier
from fewest.models.trees.thresholds import BinaryColumns, guess_thresholds
from fewest.models.trees.tree import Leaf, Split, Tree


@dataclass(eq=False, repr=False)
class GOSDTClassifier(TreeClassifier):
    """Optimal sparse tree: least training error + regularization x leaves, on guessed thresholds. Needs ``gosdt``.

    Parameters
    ----------
    regularization : float
        Price of a leaf in training error; the package takes no less than one over the number of rows.
    max_depth : int or None
        Tests on the longest path.
    time_limit : int or None
        Seconds for the exact search. It is looked at between steps of the search, which can take longer.
    guess_estimators, guess_depth, random_state
        Number and depth of the boosted trees that guess the thresholds.

    Attributes
    ----------
    columns_ : BinaryColumns
        The tests the search could choose from.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 30, 40, 50], "job": ["none", "clerk", "none", "clerk"]})
    >>> model = GOSDTClassifier(regularization=0.1).fit(frame, ["bad", "ok", "bad", "ok"])
    >>> model.tree_.describe(0)
    'job is none'
    """

    regularization: float = 0.02
    max_depth: int | None = None
    time_limit: int | None = 60
    guess_estimators: int = 50
    guess_depth: int = 1
    random_state: int = 0

    columns_: BinaryColumns = field(init=False)

    def _grow(self, frame: pd.DataFrame, positive: npt.NDArray[np.bool_]) -> Tree:
        search = self._search()
        self.columns_ = guess_thresholds(
            self.schema_, frame, positive, n_estimators=self.guess_estimators, max_depth=self.guess_depth,
            random_state=self.random_state,
        )  # fmt: skip
        if len(self.columns_) == 0:
            return Tree.build(self.schema_, Leaf(True))
        try:
            with _silence():
                search.fit(self.columns_.transform(frame).astype(bool), positive)
        except RuntimeError as error:
            raise ModelError(f"GOSDT found no tree: {error}", do="raise regularization or set max_depth") from error
        status = search.result_.status.name
        if status == "TIMEOUT":
            raise TimeLimitError(
                f"GOSDT did not prove a tree optimal in time_limit={self.time_limit} seconds, over "
                f"{len(self.columns_)} tests with regularization={self.regularization}",
                do="raise regularization or time_limit, set max_depth, or guess fewer thresholds (guess_estimators)",
            )
        if status != "CONVERGED":
            raise ModelError(f"GOSDT ended with status {status}", do="raise regularization or set max_depth")
        return Tree.build(self.schema_, from_json(self.columns_, json.loads(search.result_.model)[0]))

    def _search(self) -> Any:
        """The package's own classifier."""
        check_number("regularization", self.regularization, "choose a price above 0, say 0.02", above=0)
        if self.max_depth is not None and self.max_depth < 0:
            raise UsageError(f"max_depth is {self.max_depth}", do="choose 0 or more, or None for no limit")
        try:
            from gosdt import GOSDTClassifier as Search
        except ImportError as error:
            raise MissingExtraError("GOSDTClassifier needs gosdt", do='pip install "fewest[trees]"') from error
        return Search(regularization=self.regularization, depth_budget=self.max_depth, time_limit=self.time_limit)


def from_json(columns: BinaryColumns, node: Mapping[str, Any]) -> Split | Leaf:
    """Nested splits of a tree that GOSDT wrote; a node's ``feature`` is a position in the columns.

    A node is a test with ``feature``, ``true`` (the column is 1) and ``false``; or a leaf with its ``prediction``. What
    else is written (``relation``, ``loss``, ``complexity``, names) is not needed.
    """
    if "prediction" in node:
        return Leaf(bool(int(node["prediction"])))
    if node.get("relation", "==") != "==" or str(node.get("reference", "true")).lower() not in ("true", "1"):
        raise ModelError(
            f"the tree tests {node.get('relation')} {node.get('reference')} on a 0/1 column",
            do="fit it on these columns",
        )
    name, test = columns.test(int(node["feature"]))
    return Split(name, test, from_json(columns, node["true"]), from_json(columns, node["false"]))


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what the package prints, from Python and from C++, off the terminal."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        for stream, saved in zip((1, 2), kept, strict=True):
            os.dup2(saved, stream)
            os.close(saved)
