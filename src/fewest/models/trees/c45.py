"""C4.5 (Quinlan 1993, Release 8): gain ratio, priced thresholds, error-based pruning.

Quinlan, "C4.5: Programs for Machine Learning" (1993), Sections 2.2-2.4 and 3 for the tests and the choice between
them, 4.2 for pruning; "Improved Use of Continuous Attributes in C4.5" (JAIR 1996) for the price of a threshold. All
information is in bits; rows whose value is missing scale the gain by the known share and count as one more outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import betaincinv

from fewest.errors import UsageError, check_number
from fewest.models.trees.estimator import TreeClassifier
from fewest.models.trees.tree import Leaf, Split, Tree, encode_all, has_levels
from fewest.tables.arrays import Bools, Floats
from fewest.tables.schema import Schema

EPSILON = 1e-10  # gains closer than this are equal: they are sums of rounded logarithms
MAX_ASKED = 25  # Release 8 asks no more rows than this of a branch at a threshold
TOLERANCE = 0.1  # errors a leaf may be expected to make beyond its subtree, as in Quinlan's program


@dataclass(eq=False, repr=False)
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

    max_depth: int | None = None
    min_samples_leaf: int = 2
    multiway: bool = False
    pruning: bool = True
    confidence: float = 0.25

    def _grow(self, frame: pd.DataFrame, positive: npt.NDArray[np.bool_]) -> Tree:
        if not 0 < self.confidence < 1:
            raise UsageError(f"confidence is {self.confidence}", do="choose a number between 0 and 1, say 0.25")
        check_number("min_samples_leaf", self.min_samples_leaf, "ask for at least 1 row", least=1)
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


@dataclass(frozen=True)
class Test:
    """One test of one feature at one node."""

    __test__ = False  # not a test case, whatever its name makes pytest think

    feature: int
    gain: float  # information the test gives on the class, threshold's price taken off
    split_info: float  # information of the test's outcome itself
    codes: tuple[int, ...] = ()  # levels: one is set against all others, several have a branch each; () for a threshold
    low: float = np.nan  # the threshold falls between these neighbouring values of the node
    high: float = np.nan

    @property
    def ratio(self) -> float:
        """Gain per bit of the test's own information."""
        return self.gain / self.split_info

    def branches(self, column: Floats) -> tuple[npt.NDArray[np.intp], int]:
        """Branch of each row (n,), and the heaviest one, where rows go whose value is missing."""
        if not self.codes:
            branch = np.where(column <= self.low, 0, 1)
        elif len(self.codes) == 1:
            branch = np.where(column == self.codes[0], 0, 1)
        else:
            branch = np.searchsorted(self.codes, column)
        known = ~np.isnan(column)
        heaviest = int(np.argmax(np.bincount(branch[known])))
        return np.where(known, branch, heaviest).astype(np.intp), heaviest


def information(counts: npt.ArrayLike) -> Any:
    """Total information of counts along the last axis: rows times entropy, in bits."""
    table = np.asarray(counts, dtype=float)
    return _xlogx(table.sum(axis=-1)) - _xlogx(table).sum(axis=-1)


def threshold_test(feature: int, column: Floats, positive: Bools, min_leaf: int) -> Test | None:
    """The threshold of largest gain, less the price of choosing it; None where it gains nothing."""
    known = ~np.isnan(column)
    values, labels = column[known], positive[known]
    rows, total = len(values), len(column)
    order = np.argsort(values, kind="stable")
    values, hits = values[order], np.cumsum(labels[order])
    # Release 8: a tenth of the rows per class in each branch, within [min_leaf, 25].
    least = max(min(0.1 * rows / 2, MAX_ASKED), min_leaf)
    below = np.arange(1, rows)
    cuts = np.flatnonzero((values[:-1] < values[1:]) & (below >= least) & (rows - below >= least))
    if len(cuts) == 0:
        return None
    left, left_hits = below[cuts], hits[cuts]
    right, right_hits = rows - left, hits[-1] - left_hits
    before = information([rows - hits[-1], hits[-1]])
    after = information(np.stack([left - left_hits, left_hits], axis=-1)) + information(
        np.stack([right - right_hits, right_hits], axis=-1)
    )
    gains = (before - after) / total  # known share times gain per known row
    best = int(np.argmax(gains))
    gain = float(gains[best] - np.log2(len(cuts)) / total)
    if gain <= EPSILON:
        return None
    split_info = float(information([left[best], right[best], total - rows])) / total
    return Test(feature, gain, split_info, low=float(values[cuts[best]]), high=float(values[cuts[best] + 1]))


def level_tests(
    feature: int, column: Floats, positive: Bools, levels: int, min_leaf: int, multiway: bool
) -> list[Test]:
    """Tests of a feature's levels: all at once, or each against the others (once where there are but two)."""
    known = ~np.isnan(column)
    codes = column[known].astype(np.intp)
    table = np.bincount(2 * codes + positive[known], minlength=2 * levels).reshape(-1, 2)
    rows, total = table.sum(axis=1), len(column)
    if multiway:
        present = np.flatnonzero(rows)
        # At least two branches must be worth having.
        if (rows >= min_leaf).sum() < 2:
            return []
        groups = [(tuple(present.tolist()), table[present])]
    else:
        single = [1] if levels == 2 else range(levels)
        groups = [((code,), np.stack([table[code], table.sum(axis=0) - table[code]])) for code in single]
        groups = [(group, branches) for group, branches in groups if (branches.sum(axis=1) >= min_leaf).all()]
    before = information(table.sum(axis=0))
    tests = []
    for group, branches in groups:
        gain = float(before - information(branches).sum()) / total
        split_info = float(information([*branches.sum(axis=1), total - len(codes)])) / total
        tests.append(Test(feature, gain, split_info, group))
    return tests


def choose(tests: Sequence[Test]) -> Test | None:
    """The test of largest gain ratio among those of at least average gain; the first of equals."""
    if not tests:
        return None
    average = sum(test.gain for test in tests) / len(tests)
    worth = [test for test in tests if test.gain >= average - EPSILON and test.gain > EPSILON]
    best: Test | None = None
    for test in worth:
        if best is None or test.ratio > best.ratio + EPSILON:
            best = test
    return best


def _xlogx(counts: Any) -> Any:
    return counts * np.log2(np.maximum(counts, 1.0))


@dataclass(frozen=True)
class Node:
    """A node of a growing C4.5 tree."""

    negatives: int  # training rows that reach it
    positives: int
    test: Test | None = None
    children: tuple[Node, ...] = ()  # in the order of the test's branches
    heaviest: int = 0  # the branch that missing values take

    @property
    def rows(self) -> int:
        """Training rows that reach it."""
        return self.negatives + self.positives

    @property
    def errors(self) -> int:
        """Rows that a leaf here would decide wrongly."""
        return min(self.negatives, self.positives)


def upper_error(errors: Any, rows: Any, confidence: float) -> Any:
    """The error rate at which so few errors have probability ``confidence``: the upper limit of the binomial."""
    errors, rows = np.asarray(errors, dtype=float), np.asarray(rows, dtype=float)
    inner = betaincinv(errors + 1, np.maximum(rows - errors, 1), 1 - confidence)
    return np.where(errors < rows, inner, 1.0)


def prune(node: Node, confidence: float) -> Node:
    """The tree with subtrees replaced by leaves from the bottom up."""
    return _pruned(node, confidence)[0]


def _pruned(node: Node, confidence: float) -> tuple[Node, float]:
    """The pruned subtree, and the errors expected of it on as many new rows."""
    alone = float(node.rows * upper_error(node.errors, node.rows, confidence)) if node.rows else 0.0
    if node.test is None:
        return node, alone
    children, expected = zip(*(_pruned(child, confidence) for child in node.children), strict=True)
    if alone <= sum(expected) + TOLERANCE:
        return Node(node.negatives, node.positives), alone
    return replace(node, children=children), float(sum(expected))
