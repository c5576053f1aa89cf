"""Threshold guessing: the few 0/1 columns that optimal-tree searches (GOSDT, PRAXIS) work on.

McTavish et al., "Fast Sparse Decision Tree Optimization via Reference Ensembles" (AAAI 2022), Section 4: the splits a
boosted ensemble of stumps makes are the splits worth offering to the exact search.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError
from fewest.models.trees.tree import WideColumns, encode_all, encode_feature
from fewest.tables.arrays import Floats, Ints32
from fewest.tables.schema import Schema

Bits = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class BinaryColumns:
    """Tests on original features, each of which is one 0/1 column of a binary table.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 40], "job": ["none", "clerk"]})
    >>> columns = BinaryColumns(Schema.infer(frame), np.array([0, 1], dtype=np.int32), np.array([30.5, np.nan]),
    ...     (None, "clerk"))
    >>> columns.names
    ('age <= 30.5', 'job is clerk')
    >>> columns.transform(frame).tolist()
    [[1, 0], [0, 1]]
    >>> columns.test(1)
    ('job', frozenset({'clerk'}))
    """

    schema: Schema
    feature: Ints32  # (c,): feature each column tests
    threshold: Floats  # (c,): the column is 1 where the number is at most this; NaN for a test of a level
    level: tuple[Any | None, ...]  # (c,): the column is 1 where the value is this level; None for a threshold

    def __len__(self) -> int:
        return len(self.feature)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Each column's test as it reads."""
        return tuple(
            f"{self.schema.names[j]} " + (f"is {level}" if np.isnan(at) else f"<= {at:.15g}")
            for j, at, level in zip(self.feature, self.threshold.tolist(), self.level, strict=True)
        )

    def transform(self, frame: pd.DataFrame) -> Bits:
        """The columns (n, c) of rows conformed to the schema; 0 where the value is missing."""
        out = np.zeros((len(frame), len(self)), dtype=np.uint8)
        for j in np.unique(self.feature):
            feature = self.schema.features[j]
            codes = encode_feature(feature, frame)
            for column in np.flatnonzero(self.feature == j):
                if np.isnan(self.threshold[column]):
                    out[:, column] = codes == feature.levels.index(self.level[column])
                else:
                    out[:, column] = codes <= self.threshold[column]
        return out

    def test(self, column: int) -> tuple[str, float | frozenset[Any]]:
        """Feature name and test of a column, as `Split` takes them: 1 goes left, 0 and missing go right."""
        name = self.schema.names[self.feature[column]]
        threshold = float(self.threshold[column])
        return name, frozenset([self.level[column]]) if np.isnan(threshold) else threshold

    def select(self, kept: npt.ArrayLike) -> BinaryColumns:
        """Some of the columns, by position."""
        at = np.asarray(kept, dtype=np.intp)
        return BinaryColumns(self.schema, self.feature[at], self.threshold[at], tuple(self.level[c] for c in at))


def guess_thresholds(
    schema: Schema,
    frame: pd.DataFrame,
    y: npt.ArrayLike,
    *,
    n_estimators: int = 50,
    max_depth: int = 1,
    learning_rate: float = 0.1,
    random_state: int = 0,
    backselect: bool = True,
) -> BinaryColumns:
    """The tests a boosted ensemble of small trees makes, as binary columns.

    Parameters
    ----------
    schema : Schema
    frame : (n, columns)
        Training rows, conformed to the schema; missing numbers count as the median here.
    y : (n,)
        Labels of two classes.
    n_estimators, max_depth, learning_rate, random_state
        Of the boosted ensemble.
    backselect : bool
        Drop the least important columns for as long as the ensemble, fitted again on the binary columns, is no less
        accurate on the training rows.

    Returns
    -------
    BinaryColumns
        In feature and threshold order; without columns where nothing splits the rows.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 30, 31, 60], "job": ["clerk", "none", "clerk", "none"]})
    >>> guess_thresholds(Schema.infer(frame), frame, [0, 0, 1, 1]).names
    ('age <= 30.5',)
    """
    labels = _labels(frame, y)
    settings = {"n_estimators": n_estimators, "max_depth": max_depth, "learning_rate": learning_rate,
                "random_state": random_state}  # fmt: skip
    wide = WideColumns.of(schema)
    ranks, values = _ranked(wide.spread(encode_all(schema, frame)))
    columns = _used(schema, wide, values, _boost(ranks, labels, None, settings))
    if backselect and len(columns) > 1:
        columns = columns.select(_backselect(columns.transform(frame), labels, settings))
    return columns


def simple_between(low: float, high: float) -> float:
    """The number with the fewest decimals strictly between two others, the nearest to their middle.

    It separates them as ``value <= number`` does: where no double lies in between, it is ``low``.
    """
    gap = high - low
    if not np.isfinite(gap) or gap <= 0:
        return low
    first = -int(np.floor(np.log10(gap))) - 1
    for decimals in range(first, first + 19):
        # Through text: the double nearest to a short decimal, which a product of powers of ten need not be.
        number = float(f"{round((low / 2 + high / 2) * 10.0**decimals)}e{-decimals}") if decimals < 300 else low
        if low < number < high:
            return number
    return low


def _labels(frame: pd.DataFrame, y: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    labels = np.asarray(y)
    if len(frame) == 0:
        raise DataError("there are no rows to guess thresholds from", do="pass the training rows")
    if labels.shape != (len(frame),):
        raise DataError(f"{len(frame)} rows, but labels of shape {labels.shape}", do="pass one label per row")
    classes = pd.unique(labels)
    if len(classes) != 2:
        raise DataError(
            f"thresholds are guessed between two classes, but the labels have {len(classes)}",
            do="pass rows of both classes, and of no other",
        )
    return np.asarray(labels == max(classes))


def _ranked(table: Floats) -> tuple[Floats, list[Floats]]:
    """Values replaced by their rank among the column's distinct values, and those values.

    Trees ask for nothing but the order; ranks survive scikit-learn's rounding to float32, and a split tells between
    which two neighbouring values it lies. Missing numbers take the rank of the median.
    """
    ranks = np.zeros(table.shape)
    values: list[Floats] = []
    for c in range(table.shape[1]):
        known = ~np.isnan(table[:, c])
        distinct, place = np.unique(table[known, c], return_inverse=True)
        ranks[known, c] = place
        ranks[~known, c] = np.floor(np.median(place)) if known.any() else 0
        values.append(distinct)
    return ranks, values


def _boost(table: Any, labels: Any, weight: Any, settings: dict[str, Any]) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(**settings).fit(table, labels, sample_weight=weight)


def _used(schema: Schema, wide: WideColumns, values: list[Floats], ensemble: Any) -> BinaryColumns:
    """Distinct splits of an ensemble fitted on ranks."""
    splits = {
        (int(column), int(np.floor(rank)))
        for member in ensemble.estimators_[:, 0]
        for column, rank in zip(member.tree_.feature, member.tree_.threshold, strict=True)
        if column >= 0
    }
    feature, threshold, level = [], [], []
    for column, rank in sorted(splits):
        j, code = int(wide.feature[column]), int(wide.level[column])
        feature.append(j)
        level.append(None if code < 0 else schema.features[j].levels[code])
        threshold.append(simple_between(*map(float, values[column][rank : rank + 2])) if code < 0 else np.nan)
    return BinaryColumns(schema, np.array(feature, dtype=np.int32), np.array(threshold, dtype=float), tuple(level))


def _backselect(bits: Bits, labels: npt.NDArray[np.bool_], settings: dict[str, Any]) -> list[int]:
    """Columns left when the least important go, one after the other, until accuracy would be lost."""
    # Rows that agree in all columns and the label are one row with a weight: the same fit, at a fraction of the time.
    rows, count = np.unique(np.column_stack([bits, labels]), axis=0, return_counts=True)
    table, labels = rows[:, :-1].astype(np.float32), rows[:, -1].astype(bool)
    kept = list(range(table.shape[1]))
    ensemble = _boost(table, labels, count, settings)
    enough = ensemble.score(table, labels, sample_weight=count)
    while len(kept) > 1:
        least = int(np.argmin(ensemble.feature_importances_))
        fewer = kept[:least] + kept[least + 1 :]
        ensemble = _boost(table[:, fewer], labels, count, settings)
        if ensemble.score(table[:, fewer], labels, sample_weight=count) < enough:
            break
        kept = fewer
    return kept
