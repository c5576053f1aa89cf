"""One neutral tree behind every library's trees: binary tests on ORIGINAL features, laid out as plain arrays.

A test is `value <= threshold` on a number or `level in a set` on anything else, in raw units, whatever encoding the
library's own tree was fitted on. Everything that is shown for a tree (SEV-T, drawings, boxes) is shown for this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import DataError, ModelError
from fewest.tables.arrays import Bools, Floats, Ints, Ints32
from fewest.tables.closeness import as_numbers
from fewest.tables.schema import Feature, Schema


@dataclass(frozen=True)
class Leaf:
    """A leaf as `Tree.build` takes it."""

    positive: bool  # whether cases that end here are decided positive
    score: float | None = None  # the model's score here; 1 or 0 for None
    negatives: int = 0  # training rows of either label that end here, where they are known
    positives: int = 0

    @property
    def chance(self) -> float:
        """The score, or what stands for it."""
        return float(self.positive) if self.score is None else self.score


@dataclass(frozen=True)
class Split:
    """A test as `Tree.build` takes it."""

    feature: str  # name of an original feature
    test: float | frozenset[Any]  # numbers go left when ``value <= test``, others when their level is in the set
    left: Split | Leaf
    right: Split | Leaf
    missing_left: bool = False  # where a missing value goes
    unknown_left: bool = False  # where a level goes that the schema does not know


@dataclass(frozen=True, eq=False)
class Tree:
    """A decision tree over original features; node 0 is the root, children follow their parent.

    Rows are given as *codes* (`encode`): numbers as they are, other features as the position of their level, the
    number of levels for a level that is not known, NaN where missing.

    Attributes
    ----------
    schema : Schema
    feature : (nodes,) int32
        Feature tested, -1 at a leaf.
    threshold : (nodes,) float64
        A number goes left when ``value <= threshold``.
    left, right : (nodes,) int32
    missing_left : (nodes,) bool
    level_set : (nodes,) int32
        Row of ``levels_left`` for a test on levels, -1 otherwise.
    levels_left : (sets, width) bool
        Which codes go left; the last code a feature can have stands for levels that are not known.
    positive : (nodes,) bool
        Decision of a leaf.
    score : (nodes,) float64
        The model's score of a leaf.
    counts : (nodes, 2) int64
        Training rows labelled negative and positive; zeros where not known.

    Examples
    --------
    >>> schema = Schema.infer(pd.DataFrame({"age": [20, 40], "job": ["none", "clerk"]}))
    >>> tree = Tree.build(schema, Split("age", 30.5, Leaf(True), Split("job", frozenset(["none"]), Leaf(True),
    ...     Leaf(False))))
    >>> tree.decide(pd.DataFrame({"age": [20, 40, 40], "job": ["clerk", "clerk", "none"]})).tolist()
    [True, False, True]
    """

    schema: Schema
    feature: Ints32
    threshold: Floats
    left: Ints32
    right: Ints32
    missing_left: Bools
    level_set: Ints32
    levels_left: Bools
    positive: Bools
    score: Floats
    counts: Ints = field(repr=False)

    @classmethod
    def build(cls, schema: Schema, root: Split | Leaf) -> Tree:
        """Lay nested splits out as arrays."""
        rows: list[tuple[Any, ...]] = []
        sets: list[Bools] = []
        width = 1 + max((len(feature.levels) for feature in schema.features), default=0)

        def add(node: Split | Leaf) -> int:
            here = len(rows)
            if isinstance(node, Leaf):
                counts = (node.negatives, node.positives)
                rows.append((-1, np.nan, -1, -1, False, -1, node.positive, node.chance, *counts))
                return here
            j = schema.index(node.feature)
            row, threshold = -1, np.nan
            if isinstance(node.test, frozenset):
                row = len(sets)
                sets.append(_codes_of(schema.features[j], node.test, node.unknown_left, width))
            else:
                threshold = float(node.test)
            rows.append(())
            left, right = add(node.left), add(node.right)
            rows[here] = (j, threshold, left, right, node.missing_left, row, False, np.nan, 0, 0)
            return here

        add(root)
        feature, threshold, left, right, missing, level_set, positive, score, *counts = zip(*rows, strict=True)
        return cls(
            schema, np.array(feature, dtype=np.int32), np.array(threshold), np.array(left, dtype=np.int32),
            np.array(right, dtype=np.int32), np.array(missing), np.array(level_set, dtype=np.int32),
            np.array(sets, dtype=bool).reshape(-1, width), np.array(positive), np.array(score, dtype=float),
            np.array(counts, dtype=np.int64).T,
        )  # fmt: skip

    @property
    def n_nodes(self) -> int:
        """Nodes, leaves included."""
        return len(self.feature)

    @cached_property
    def leaves(self) -> Ints:
        """Nodes that are leaves, from left to right."""
        return np.flatnonzero(self.feature < 0)

    @cached_property
    def used(self) -> Ints:
        """Features tested somewhere."""
        return np.unique(self.feature[self.feature >= 0]).astype(np.int64)

    @cached_property
    def depth(self) -> int:
        """Tests on the longest path."""
        deep = np.zeros(self.n_nodes, dtype=int)
        for node in range(self.n_nodes):
            if self.feature[node] >= 0:
                deep[self.left[node]] = deep[self.right[node]] = deep[node] + 1
        return int(deep.max())

    def nested(self, node: int = 0) -> Split | Leaf:
        """The tree as nested splits: what `build` takes."""
        if self.feature[node] < 0:
            negatives, positives = (int(count) for count in self.counts[node])
            return Leaf(bool(self.positive[node]), float(self.score[node]), negatives, positives)
        return self.split(node, self.nested(int(self.left[node])), self.nested(int(self.right[node])))

    def split(self, node: int, left: Split | Leaf, right: Split | Leaf) -> Split:
        """The test of a node over two subtrees."""
        feature = self.schema.features[self.feature[node]]
        test: float | frozenset[Any] = float(self.threshold[node])
        unknown = False
        if self.level_set[node] >= 0:
            row = self.levels_left[self.level_set[node]]
            test = frozenset(level for code, level in enumerate(feature.levels) if row[code])
            unknown = bool(row[len(feature.levels)])
        return Split(feature.name, test, left, right, bool(self.missing_left[node]), unknown)

    def encode(self, frame: pd.DataFrame) -> Floats:
        """Codes of rows conformed to the schema: (n, features); zero for features the tree does not test."""
        codes = np.zeros((len(frame), len(self.schema)), order="F")
        for j in self.used.tolist():
            codes[:, j] = encode_feature(self.schema.features[j], frame)
        return codes

    def apply(self, codes: Floats) -> Ints32:
        """Leaf each row of codes ends in (n,)."""
        from fewest.models.trees._kernels import apply

        return np.asarray(
            apply(
                np.asarray(codes, dtype=np.float64), self.feature, self.threshold, self.left, self.right,
                self.missing_left, self.level_set, self.levels_left,
            )
        )  # fmt: skip

    def decide(self, frame: pd.DataFrame) -> Bools:
        """Whether each row is decided positive."""
        return np.asarray(self.positive[self.apply(self.encode(frame))])

    def paths(self) -> Iterator[tuple[int, tuple[tuple[int, bool], ...]]]:
        """Leaves with their path: (node, goes left) pairs from the root down."""
        stack: list[tuple[int, tuple[tuple[int, bool], ...]]] = [(0, ())]
        while stack:
            node, path = stack.pop()
            if self.feature[node] < 0:
                yield node, path
            else:
                stack.append((int(self.right[node]), (*path, (node, False))))
                stack.append((int(self.left[node]), (*path, (node, True))))

    def describe(self, node: int, left: bool = True) -> str:
        """The test of a node in words, as it reads on one of its sides."""
        feature = self.schema.features[self.feature[node]]
        if self.level_set[node] < 0:
            unit = f" {feature.unit}" if feature.unit else ""
            return f"{feature.title} {'<=' if left else '>'} {self.threshold[node]:.6g}{unit}"
        row = self.levels_left[self.level_set[node]][: len(feature.levels)]
        levels = [str(level) for level, goes in zip(feature.levels, row, strict=True) if goes == left]
        others = [str(level) for level, goes in zip(feature.levels, row, strict=True) if goes != left]
        if len(levels) <= len(others):
            return f"{feature.title} is {' or '.join(levels)}"
        return f"{feature.title} is not {' or '.join(others)}"


def has_levels(feature: Feature) -> bool:
    """Whether a tree tests the feature by its levels and not by a threshold."""
    return feature.kind in ("category", "boolean", "indicators")


def encode_feature(feature: Feature, frame: pd.DataFrame) -> Floats:
    """Codes of one feature (n,): see `Tree`."""
    if feature.kind in ("group", "datetime"):
        raise ModelError(
            f'the tree tests "{feature.name}", a feature of kind {feature.kind}, which has no threshold and no levels',
            do="declare its columns as features of their own",
        )
    if feature.kind == "indicators":
        cells = frame[list(feature.columns)].to_numpy(dtype=float)
        return np.where((cells == 1).any(axis=1), np.argmax(cells == 1, axis=1), len(feature.levels)).astype(float)
    column = frame[feature.columns[0]]
    if feature.is_numeric:
        return as_numbers(column, feature)
    if feature.kind == "boolean":
        truth = np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
        return np.where(np.isnan(truth) | (truth == 0) | (truth == 1), truth, len(feature.levels))
    codes = pd.Index(list(feature.levels)).get_indexer(column).astype(float)
    codes[codes < 0] = len(feature.levels)
    return np.where(column.isna().to_numpy(), np.nan, codes)


def decode_feature(feature: Feature, codes: Ints | Floats) -> dict[str, Any]:
    """Cells of one feature's columns; codes beyond its levels are missing."""
    if feature.kind == "indicators":
        return {column: (codes == k).astype(float) for k, column in enumerate(feature.columns)}
    if not has_levels(feature):
        return {feature.columns[0]: codes}
    levels = np.full(len(feature.levels) + 2, None, dtype=object)
    levels[: len(feature.levels)] = feature.levels
    cells = levels[codes.astype(np.int64)]
    return {feature.columns[0]: pd.array(cells, dtype="boolean") if feature.kind == "boolean" else cells}


def _codes_of(feature: Feature, levels: frozenset[Any], unknown: bool, width: int) -> Bools:
    if not has_levels(feature):
        raise ModelError(f'"{feature.name}" is a number but is tested by levels', do="give a threshold")
    strange = levels - set(feature.levels)
    if strange:
        raise ModelError(f'"{feature.name}" has no level {sorted(map(str, strange))[0]!r}', do="correct the test")
    row = np.zeros(width, dtype=bool)
    row[: len(feature.levels)] = [level in levels for level in feature.levels]
    row[len(feature.levels) :] = unknown
    return row


@dataclass(frozen=True, eq=False)
class WideColumns:
    """The numeric table scikit-learn's trees are fitted on: numbers as they are, a 0/1 column per level of the rest."""

    feature: Ints32  # (d,): feature of each column
    level: Ints32  # (d,): code of the level the column is 1 for; -1 for a number

    @classmethod
    def of(cls, schema: Schema) -> WideColumns:
        """One column for a number and for a feature of two levels (1 for the second), else one per level."""
        pairs: list[tuple[int, int]] = []
        for j, feature in enumerate(schema.features):
            if not has_levels(feature):
                pairs.append((j, -1))
            elif len(feature.levels) == 2:
                pairs.append((j, 1))
            else:
                pairs.extend((j, code) for code in range(len(feature.levels)))
        table = np.array(pairs, dtype=np.int32).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1])

    def spread(self, codes: Floats) -> Floats:
        """Wide table (n, d) of codes (n, features); a missing number stays NaN, a missing level is 0 everywhere."""
        picked = codes[:, self.feature]
        return np.where(self.level < 0, picked, picked == self.level)


def encode_all(schema: Schema, frame: pd.DataFrame) -> Floats:
    """Codes of every feature (n, features): what a tree is grown on."""
    codes = np.empty((len(frame), len(schema)), order="F")
    for j, feature in enumerate(schema.features):
        if feature.kind in ("group", "datetime"):
            raise DataError(
                f'"{feature.name}" is a feature of kind {feature.kind}, which a tree has no test for',
                do="turn it into numbers or levels first, say years or weekdays of a date",
            )
        codes[:, j] = encode_feature(feature, frame)
    return codes
