"""From a fitted model on raw rows to the neutral tree: every test is restated on the original feature it is about.

A library's tree tests encoded columns (a scaled number, a one-hot column, float32). What a test says of the raw value
is found by asking the model's own transformers: each level of a category is encoded once; for a number the largest
raw value that still goes left is found by halving, down to the last bit of a float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.engine.encoding import Encoding
from fewest.engine.structure import Ensemble, Opaque
from fewest.engine.structure import read as read_structure
from fewest.errors import FewestError, ModelError
from fewest.models.trees.file import as_dict
from fewest.models.trees.leaf_boxes import collapse
from fewest.models.trees.tree import Leaf, Split, Tree, decode_feature, has_levels
from fewest.tables.arrays import Bools, Floats, Ints, Ints32
from fewest.tables.schema import Feature, Schema

SAMPLE = 20_000
HALVINGS = 70
WIDENINGS = 12


def read(decision: Decision, schema: Schema, X: pd.DataFrame) -> Tree:
    """The neutral tree of a decision that a single decision tree makes; trivial splits are collapsed.

    Parameters
    ----------
    decision : Decision
        Its model is a decision tree, or a Pipeline that ends in one.
    schema : Schema
    X : (n, columns)
        Rows conformed to the schema, e.g. the training rows: the reading is held against the model on them.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> tree = read(Decision(DecisionTreeClassifier().fit(X, y)), Schema.infer(X), X)
    >>> tree.describe(0), tree.positive[tree.leaves].tolist()
    ('debt <= 5', [False, True])
    """
    encoding, structure = _structure(decision, schema)
    assert encoding.feature_of is not None
    feature_of = encoding.feature_of[structure.reading.source]
    probe = _Probe(encoding, structure, schema, X.iloc[:1])
    inner = np.flatnonzero(structure.column >= 0)
    number_nodes = [n for n in inner.tolist() if not has_levels(schema.features[feature_of[structure.column[n]]])]
    thresholds, ups = probe.thresholds(np.array(number_nodes, dtype=int), feature_of)
    at = {node: (thresholds[k], ups[k]) for k, node in enumerate(number_nodes)}
    tables = probe.levels(feature_of)
    cut = structure.reading.cut

    def nested(node: int) -> Split | Leaf:
        column = int(structure.column[node])
        if column < 0:
            value = float(structure.value[node]) + structure.base
            return Leaf(value >= cut, value)
        feature = schema.features[feature_of[column]]
        left, right = nested(int(structure.left[node])), nested(int(structure.right[node]))
        if node in at:
            threshold, up = at[node]
            missing = bool(probe.odd_left(feature, np.array([node]), pd.Series([np.nan]))[0])
            return Split(feature.name, threshold, right, left, not missing) if up else Split(
                feature.name, threshold, left, right, missing
            )  # fmt: skip
        goes = tables[feature.name][:, node]
        count = len(feature.levels)
        levels = frozenset(level for level, is_left in zip(feature.levels, goes, strict=False) if is_left)
        return Split(feature.name, levels, left, right, bool(goes[count + 1]), bool(goes[count]))

    tree = Tree.build(schema, nested(int(structure.root[0])))
    _hold_against(decision, tree, X)
    return collapse(tree)


def read_plain(decision: Decision, schema: Schema, X: pd.DataFrame) -> dict[str, Any]:
    """The same tree as plain values, as tree.json of a run folder has it."""
    return as_dict(read(decision, schema, X), (decision.negative_name, decision.positive_name))


def _structure(decision: Decision, schema: Schema) -> tuple[Encoding, Ensemble]:
    """Encoding and node arrays, or an error that says why this is not one tree on traceable columns."""
    name = type(decision.model).__name__
    do = "use references.single or clusters: they explain any model"
    encoding = Encoding.read(decision, schema)
    if len(decision.classes) > 2 and decision.against is None:
        raise ModelError(
            f"the tree has {len(decision.classes)} classes; leaves speak of two",
            do="say which class is wanted instead: Decision(model, positive=..., against=...)",
        )
    if encoding.feature_of is None:
        raise ModelError(f"the columns of {name} cannot be traced to single features: {encoding.reason}", do=do)
    structure = read_structure(
        encoding.final, positive=decision.positive_index, against=decision.against_index,
        kind=str(decision.kind), threshold=decision.cut,
    )  # fmt: skip
    if isinstance(structure, Opaque) or not isinstance(structure, Ensemble):
        why = structure.reason if isinstance(structure, Opaque) else f"{type(encoding.final).__name__} is not a tree"
        raise ModelError(f"leaves need a single decision tree: {why}", do=do)
    if structure.reading.several:
        raise ModelError(f"leaves need tests of one feature each, and {name} has some of several", do=do)
    if len(structure.root) != 1:
        raise ModelError(
            f"leaves need a single decision tree, but {type(encoding.final).__name__} has {len(structure.root)}", do=do
        )
    return encoding, structure


@dataclass(frozen=True, eq=False)
class _Probe:
    """Asks the transformers which way raw values of one feature go."""

    encoding: Encoding
    structure: Ensemble
    schema: Schema
    base: pd.DataFrame  # one row

    def prepared(self, rows: pd.DataFrame) -> Floats:
        """Raw rows as the tree's own columns; probing may leave the range a transformer is made for."""
        with np.errstate(all="ignore"):
            return self.structure.reading.prepare(self.encoding.transform(rows))

    def left(self, values: Floats, nodes: Ints) -> Bools:
        """Whether values of the tree's columns go left at nodes; the last axis runs over the nodes."""
        s = self.structure
        missing = np.isnan(values)
        out: Bools = np.where(missing, s.missing_left[nodes], np.nan_to_num(values) <= s.threshold[nodes])
        table = s.category[nodes]
        if (table >= 0).any():
            width = s.left_levels.shape[1]
            codes = np.where(missing, -1, np.nan_to_num(values)).astype(int)
            known = (codes >= 0) & (codes < width)
            in_set = np.where(known, s.left_levels[table, np.clip(codes, 0, width - 1)], s.missing_left[nodes])
            out = np.where(table >= 0, in_set, out)
        return out

    def goes_left(self, rows: pd.DataFrame, nodes: Ints) -> Bools:
        """Which way rows go at nodes: (rows, nodes), whatever their path."""
        return self.left(self.prepared(rows)[:, self.structure.column[nodes]], nodes)

    def rows(self, cells: dict[str, Any], count: int) -> pd.DataFrame:
        """The base row repeated, with other cells in some columns."""
        rows = self.base.iloc[np.zeros(count, dtype=int)].reset_index(drop=True)
        for column, values in cells.items():
            dtype = self.base[column].dtype
            series = pd.Series(values, name=column)
            whole = pd.api.types.is_integer_dtype(dtype) and pd.api.types.is_float_dtype(series.dtype)
            rows[column] = series if whole or series.isna().any() else series.astype(dtype)
        return rows

    def levels(self, feature_of: Ints32) -> dict[str, Bools]:
        """For each feature with levels: which of them go left at every node (levels, unknown, missing; nodes)."""
        column = self.structure.column
        out = {}
        for j in np.unique(feature_of[column[column >= 0]]).tolist():
            feature = self.schema.features[j]
            if has_levels(feature):
                nodes = np.flatnonzero((column >= 0) & (np.append(feature_of, -2)[column] == j))
                count = len(feature.levels)
                table = np.zeros((count + 2, len(column)), dtype=bool)
                table[:count, nodes] = self.goes_left(
                    self.rows(decode_feature(feature, np.arange(count)), count), nodes
                )
                if feature.kind == "category":
                    table[-2, nodes] = self.odd_left(feature, nodes, pd.Series(["\0unknown"]))
                    table[-1, nodes] = self.odd_left(feature, nodes, pd.Series([None], dtype=object))
                out[feature.name] = table
        return out

    def odd_left(self, feature: Feature, nodes: Ints, cell: pd.Series[Any]) -> Bools:
        """Whether an unknown or a missing value goes left at nodes; right where the model refuses such rows."""
        try:
            row = self.base.reset_index(drop=True).assign(**{feature.columns[0]: cell})
            return np.asarray(self.goes_left(row, nodes)[0])
        except FewestError:
            return np.zeros(len(nodes), dtype=bool)

    def thresholds(self, nodes: Ints, feature_of: Ints32) -> tuple[Floats, Bools]:
        """For tests on numbers: the largest raw value on the low side, and whether that side is the right one."""
        features = [self.schema.features[feature_of[column]] for column in self.structure.column[nodes]]
        low = np.array([feature.minimum for feature in features], dtype=float)
        high = np.array([feature.maximum for feature in features], dtype=float)
        span = np.maximum(high - low, 1.0)  # widened only where no value seen decides the test
        for _ in range(WIDENINGS):
            below, above = self._ask(low, nodes, features), self._ask(high, nodes, features)
            same = below == above
            if not same.any():
                break
            low, high = np.where(same, low - span, low), np.where(same, high + span, high)
            span = span * 4
        for _ in range(HALVINGS):
            middle = _between(low, high)
            like_low = self._ask(middle, nodes, features) == below
            low, high = np.where(like_low, middle, low), np.where(like_low, high, middle)
        # A test that no value in sight decides is constant: everything is on the side of its low end.
        return np.where(same, np.inf, low), ~below

    def _ask(self, values: Floats, nodes: Ints, features: list[Feature]) -> Bools:
        """Whether value k goes left at node k; one call of the transformers for all."""
        if len(nodes) == 0:
            return np.zeros(0, dtype=bool)
        rows = self.base.iloc[np.zeros(len(nodes), dtype=int)].reset_index(drop=True)
        for column in dict.fromkeys(feature.columns[0] for feature in features):
            mine = np.array([feature.columns[0] == column for feature in features])
            rows[column] = np.where(mine, values, float(pd.to_numeric(self.base[column]).iloc[0]))
        return self.left(self.prepared(rows)[np.arange(len(nodes)), self.structure.column[nodes]], nodes)


def _between(low: Floats, high: Floats) -> Floats:
    """The float64 halfway, counted in floats and not in size: the last bit is reached in 64 steps."""
    a, b = _ordered(low), _ordered(high)
    middle = (a >> 1) + (b >> 1) + (a & b & 1)
    bits = np.where(middle >= 0, middle, np.int64(-(2**63)) - middle)
    return np.asarray(bits).view(np.float64)


def _ordered(values: Floats) -> Ints:
    """Integers in the order of the floats they stand for."""
    bits = np.ascontiguousarray(values).view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _hold_against(decision: Decision, tree: Tree, X: pd.DataFrame) -> None:
    """Refuse a reading that does not decide as the model does."""
    rows = X.iloc[:: max(1, len(X) // SAMPLE)]
    if (tree.decide(rows) != decision.refuses(rows)).any():
        raise ModelError(
            "what was read of the tree does not reproduce its decisions: a transformer may not be monotone",
            do="use references.single or clusters: they explain any model",
        )
