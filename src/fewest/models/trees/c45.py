"""C4.5 (Quinlan 1993, Release 8): gain ratio, priced thresholds, error-based pruning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError
from fewest.models.trees._gain_ratio import Bools, Floats, Test, choose, level_tests, threshold_test
from fewest.models.trees._pruning import Node, prune
from fewest.models.trees._wide import encode_all
from fewest.models.trees.estimator import TreeClassifier
from fewest.models.trees.tree import Leaf, Split, Tree, has_levels
from fewest.tables.schema import Schema


class C45Classifier(TreeClassifier):
    """Quinlan's C4.5.

    A node takes the test of largest gain ratio among those of at least average gain. Numbers are split at values of
    the training table; a threshold pays log2(candidates) / rows of its gain. Missing values scale a test's gain by
    the known share and take the heavier branch. Subtrees are replaced by leaves, never raised.

    Parameters
    ----------
    max_depth : int or None
        Tests on the longest path; a multiway test counts once.
    min_samples_leaf : int
        Rows that at least two branches of a test must have (all of them, unless the test is multiway).
    multiway : bool
        Whether a test on levels has a branch for each (in the neutral tree: a chain of tests) or sets one level
        against all others, which is C4.5 on 0/1 columns.
    pruning : bool
        Whether to prune.
    confidence : float
        Of the upper limit on the error rate; smaller prunes more.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 30, 40, 50, 60, 70], "job": ["a", "b", "c"] * 2})
    >>> model = C45Classifier().fit(frame, ["ok", "ok", "ok", "bad", "bad", "bad"])
    >>> model.tree_.describe(0), model.predict(frame).tolist()
    ('age <= 40', ['ok', 'ok', 'ok', 'bad', 'bad', 'bad'])
    """

    def __init__(
        self,
        max_depth: int | None = None,
        min_samples_leaf: int = 2,
        multiway: bool = False,
        pruning: bool = True,
        confidence: float = 0.25,
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.multiway = multiway
        self.pruning = pruning
        self.confidence = confidence

    def _grow(self, frame: pd.DataFrame, positive: npt.NDArray[np.bool_]) -> Tree:
        if not 0 < self.confidence < 1:
            raise UsageError(f"confidence is {self.confidence}", do="choose a number between 0 and 1, say 0.25")
        if self.min_samples_leaf < 1:
            raise UsageError(f"min_samples_leaf is {self.min_samples_leaf}", do="ask for at least 1 row")
        if self.max_depth is not None and self.max_depth < 0:
            raise UsageError(f"max_depth is {self.max_depth}", do="choose 0 or more, or None for no limit")
        codes = encode_all(self.schema_, frame)
        growth = _Growth(self.schema_, codes, positive, self.min_samples_leaf, self.multiway)
        root = growth.node(np.arange(len(codes)), self.max_depth)
        if self.pruning:
            root = prune(root, self.confidence)
        distinct = [np.unique(codes[~np.isnan(codes[:, j]), j]) for j in range(len(self.schema_))]
        return Tree.build(self.schema_, _nested(self.schema_, root, distinct))


@dataclass(frozen=True, eq=False)
class _Growth:
    """What stays the same while a tree is grown."""

    schema: Schema
    codes: Floats
    positive: Bools
    min_leaf: int
    multiway: bool

    def node(self, rows: npt.NDArray[np.intp], depth: int | None) -> Node:
        """The subtree of some rows, at most so deep."""
        labels = self.positive[rows]
        positives = int(labels.sum())
        leaf = Node(len(rows) - positives, positives)
        if leaf.errors == 0 or len(rows) < 2 * self.min_leaf or depth == 0:
            return leaf
        test = choose(self._tests(rows, labels))
        if test is None:
            return leaf
        branch, heaviest = test.branches(self.codes[rows, test.feature])
        deeper = None if depth is None else depth - 1
        children = tuple(self.node(rows[branch == b], deeper) for b in range(int(branch.max()) + 1))
        return Node(leaf.negatives, leaf.positives, test, children, heaviest)

    def _tests(self, rows: npt.NDArray[np.intp], labels: Bools) -> list[Test]:
        tests: list[Test] = []
        for j, feature in enumerate(self.schema.features):
            column = self.codes[rows, j]
            if has_levels(feature):
                levels = len(feature.levels)
                tests += level_tests(j, column, labels, levels, self.min_leaf, self.multiway)
            else:
                test = threshold_test(j, column, labels, self.min_leaf)
                tests += [] if test is None else [test]
        return tests


def _nested(schema: Schema, node: Node, distinct: list[Floats]) -> Split | Leaf:
    """Nested splits of a grown tree."""
    test = node.test
    if test is None:
        return _leaf(node)
    feature = schema.features[test.feature]
    children = [_nested(schema, child, distinct) for child in node.children]
    if len(test.codes) > 1:
        return _chain(feature.name, feature.levels, node, children)
    at: float | frozenset[Any] = (
        frozenset([feature.levels[test.codes[0]]]) if test.codes else _observed(test, distinct[test.feature])
    )
    return Split(feature.name, at, children[0], children[1], missing_left=node.heaviest == 0)


def _leaf(node: Node) -> Leaf:
    share = node.positives / node.rows
    return Leaf(share >= 0.5, share, node.negatives, node.positives)


def _observed(test: Test, values: Floats) -> float:
    """The largest value of the whole training table that is not above the middle of the node's two neighbours."""
    middle = np.searchsorted(values, test.low / 2 + test.high / 2, side="right")
    return float(values[min(middle, np.searchsorted(values, test.high)) - 1])


def _chain(name: str, levels: tuple[Any, ...], node: Node, children: list[Split | Leaf]) -> Split | Leaf:
    """A multiway test as tests of one level after the other.

    The heaviest branch comes last: what no test of the chain picks out, missing and unknown values too, ends there.
    Levels without a row at this node are decided as the node would.
    """
    assert node.test is not None
    codes = node.test.codes
    out = children[node.heaviest]
    for b in reversed(range(len(codes))):
        if b != node.heaviest:
            out = Split(name, frozenset([levels[codes[b]]]), children[b], out)
    absent = frozenset(level for code, level in enumerate(levels) if code not in codes)
    return Split(name, absent, _leaf(Node(node.negatives, node.positives)), out) if absent else out
