"""The negative leaves of a decision tree as references: SEV-T (Section 4.2).

A leaf is a box, not a point: a case enters it by changing only the features that are outside, each to a value inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.constraints import Constraints
from fewest.decision import Decision
from fewest.errors import ModelError, UsageError, check_word
from fewest.models.trees import Reach, Tree, boxes, read
from fewest.models.trees.leaf_boxes import Box, Interval, Levels, Value, nearest_inside
from fewest.models.trees.tree import decode_feature, encode_feature, has_levels
from fewest.references._round_values import holding
from fewest.references.base import References, scored
from fewest.references.single import centre_of
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Floats
from fewest.tables.schema import Schema
from fewest.tables.values import value_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Leaves(References):
    """The negative leaves of a tree; each row of ``frame`` is the typical case of one.

    ``support`` counts the negatively labelled training rows of each leaf.
    """

    tree: Tree = field(repr=False)
    typical: Floats = field(repr=False)  # (nodes, features): typical codes of each leaf's rows
    value: Value = "nearest"  # how a value inside a leaf is chosen
    negatives: int = 0  # negatively labelled training rows in all

    def reach(self, constraints: Constraints | None = None, weight: Floats | None = None) -> Reach:
        """How the leaves can be entered under constraints and weights."""
        return Reach.build(self.tree, self.typical, self.value, constraints, weight)

    def leaves_of(self, case: Any) -> pd.DataFrame:
        """Every negative leaf, and what of a case is outside it: the fewest features first (the paper's Table 3).

        Columns: ``leaf``, ``sev`` (features outside), ``features``, ``to`` (the value inside next to the case's own; of
        a category the leaf's typical level), ``support`` (accepted training rows in the leaf), ``credibility`` (their
        share). SEV-T is the first row's. Constraints and weights are not looked at: `fewest.Explainer` is for that.

        Parameters
        ----------
        case : table of one row, mapping or Series
            The case, in the columns that the tree was fitted on.

        Examples
        --------
        >>> import fewest as fw
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = pd.DataFrame({"debt": [1, 2, 8, 9, 8], "age": [30, 50, 30, 50, 70]}); y = [0, 0, 1, 1, 0]
        >>> decision = fw.Decision(DecisionTreeClassifier(random_state=0).fit(X, y))
        >>> fw.references.leaves(decision, X, y).leaves_of(X.iloc[[3]])[["leaf", "sev", "features", "to", "support"]]
             leaf  sev features    to  support
        0  leaf 1    1  (debt,)  (5,)        2
        1  leaf 3    1   (age,)  (61,)        1
        """
        row = case if isinstance(case, pd.DataFrame) else pd.DataFrame([dict(case)])
        if len(row) != 1:
            raise UsageError(f"leaves_of takes one case, and there are {len(row)}", do="pass one row")
        row = self.tree.schema.conform(row, unseen="allow")
        codes, features = self.tree.encode(row)[0], self.tree.schema.features
        negative = [box for node, box in boxes(self.tree) if not self.tree.positive[node]]
        found = []
        for number, box in enumerate(negative):
            outside = [j for j, side in box.items() if not _inside(side, float(codes[j]))]
            to = tuple(self._entered(number, j, box[j], float(codes[j])) for j in outside)
            found.append((self.names[number], len(outside), tuple(features[j].name for j in outside), to,
                          int(self.support[number]), self.credibility(number)))  # fmt: skip
        columns = ["leaf", "sev", "features", "to", "support", "credibility"]
        return pd.DataFrame(found, columns=columns).sort_values("sev", kind="stable", ignore_index=True)

    def _entered(self, number: int, j: int, side: Interval | Levels, code: float) -> Any:
        """The value a feature takes to be inside a leaf."""
        feature = self.tree.schema.features[j]
        if isinstance(side, Interval):
            value = nearest_inside(feature, side, code)
            return int(value) if feature.kind == "integer" and np.isfinite(value) else value
        return value_of(feature, self.frame.iloc[number])

    def flexible(self, *_: Any, **__: Any) -> References:
        """Leaves are boxes already: nothing of them is left to move."""
        raise UsageError("the leaves of a tree are boxes, and flexible as they are", do="use single or clusters")

    def under(self, decision: Decision) -> Leaves:
        """The same leaves; those of another tree, class or threshold are refused: other leaves would be negative."""
        choices = ("positive", "threshold", "against", "kind")
        same = all(getattr(decision, name) == getattr(self.decision, name) for name in choices)
        if decision.model is not self.decision.model or not same:
            raise UsageError("these leaves are those of another decision", do="make references.leaves of this one")
        return self if decision is self.decision else replace(self, decision=decision)

    def credibility(self, number: int) -> float | None:
        """Share of the negatives that are in a leaf: S / N- of Theorem 4.3."""
        return float(self.support[number]) / self.negatives


def _inside(side: Interval | Levels, code: float) -> bool:
    """Whether a code lies in one side of a box."""
    if np.isnan(code):
        return side.missing
    return bool(side.inside[int(code)]) if isinstance(side, Levels) else side.low < code <= side.high


def leaves(
    decision: Decision,
    X: Any,
    y: Any,
    *,
    value: Value = "nearest",
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Leaves:
    """Compare with the negative leaves of the tree that decides.

    Parameters
    ----------
    decision : Decision
        Its model is a single decision tree, or a Pipeline that ends in one.
    X, y, schema, groups
        As in `single`.
    value : str
        What a feature outside a leaf is set to: ``nearest``, the value in the leaf next to the case's own; ``median``
        or ``mean``, that of the leaf's negatively labelled training rows.

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(DecisionTreeClassifier().fit(X, y))
    >>> out = fw.Explainer(decision, fw.references.leaves(decision, X, y)).explain(X)
    >>> str(out[2].changes[0]), out[2].reference, out[2].credibility
    ('debt had been 5 instead of 8', 'leaf 1', 1.0)
    """
    check_word("value", value, ("nearest", "median", "mean"))
    training = TrainingRows.read(decision, X, y, schema, groups, compare=True)
    schema, good = training.schema, training.accepted
    tree = read(decision, schema, training.frame)
    places = [(node, box) for node, box in boxes(tree) if not tree.positive[node]]
    nodes = [node for node, _ in places]
    if not nodes:
        raise ModelError(
            "the tree has no negative leaf: it refuses everybody, and no change helps",
            do="grow the tree further, or raise the threshold",
        )
    typical, support = _typical(tree, good, "mean" if value == "mean" else "median")
    overall = schema.snap(centre_of(schema, good, "median"))
    rows = [_row(tree, node, box, typical, overall) for node, box in places]
    # A narrow box takes more decimals than its feature has; with fewer, the typical case would be outside its leaf.
    plain = scored(
        decision, holding(schema, rows), rows,
        [f"leaf {number}" for number in _numbers(tree, nodes)], support[nodes].tolist(), on_positive="error",
        provenance={"kind": "leaves", "value": value, "leaves": len(nodes), "negatives": len(good)},
    )  # fmt: skip
    return Leaves(
        decision=plain.decision, schema=plain.schema, frame=plain.frame, names=plain.names, support=plain.support,
        score=plain.score, provenance=plain.provenance, tree=tree, typical=typical, value=value, negatives=len(good),
    )  # fmt: skip


def _numbers(tree: Tree, nodes: list[int]) -> list[int]:
    """Leaves are numbered from left to right, positive ones included, as in a drawing."""
    return [int(np.searchsorted(tree.leaves, node)) + 1 for node in nodes]


def _typical(tree: Tree, rows: pd.DataFrame, centre: str) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Typical codes of the rows in each leaf (nodes, features), NaN where there are none; and how many there are."""
    leaf_of = tree.apply(tree.encode(rows))
    out = np.full((tree.n_nodes, len(tree.schema)), np.nan)
    for j, feature in enumerate(tree.schema.features):
        if feature.is_numeric:
            by_leaf = pd.Series(encode_feature(feature, rows)).groupby(leaf_of)
            middle = by_leaf.mean() if centre == "mean" else by_leaf.median()
            out[middle.index.to_numpy(), j] = middle.to_numpy()
        elif has_levels(feature):
            out[:, j] = _modes(encode_feature(feature, rows), leaf_of, tree.n_nodes, len(feature.levels))
    return out, np.bincount(leaf_of, minlength=tree.n_nodes)


def _modes(codes: Floats, leaf_of: npt.NDArray[np.int32], nodes: int, levels: int) -> Floats:
    """Most frequent known level in each node, the first among equals; NaN where there is none."""
    known = codes < levels
    cell = leaf_of[known].astype(np.int64) * levels + codes[known].astype(np.int64)
    counts = np.bincount(cell, minlength=nodes * levels).reshape(nodes, levels)
    return np.where(counts.any(axis=1), counts.argmax(axis=1), np.nan)


def _row(tree: Tree, node: int, box: Box, typical: Floats, overall: Mapping[str, Any]) -> dict[str, Any]:
    """The typical case of a leaf: medians and modes of its rows, and inside its box where the tree looks."""
    values = dict(overall)
    for j, feature in enumerate(tree.schema.features):
        code, side = float(typical[node, j]), box.get(j, Interval() if feature.is_numeric else None)
        if isinstance(side, Interval) and (j in box or np.isfinite(code)):
            code = nearest_inside(feature, side, code if np.isfinite(code) else side.low)
        elif isinstance(side, Levels) and not (np.isfinite(code) and side.inside[int(code)]):
            known = np.flatnonzero(side.inside[: len(feature.levels)])
            code = float(known[0]) if len(known) else np.nan
        if np.isfinite(code):
            values.update({column: cells[0] for column, cells in decode_feature(feature, np.array([code])).items()})
    return values
