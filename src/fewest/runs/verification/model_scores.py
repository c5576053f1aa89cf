"""Scores by the user's model; where a row is close to the threshold its score is that of the row alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.tables.arrays import Bools, Floats
from fewest.tables.schema import Schema
from fewest.tables.scores import SINGLE

CLOSE = 1e-7
CLOSE_SINGLE = 1e-4


@dataclass
class Scorer:
    """A decision that is asked about rows, and a count of them.

    Examples
    --------
    >>> scorer = Scorer(Decision(lambda rows: rows["debt"].to_numpy() / 100))
    >>> scorer.score(pd.DataFrame({"debt": [10, 90]})).tolist(), scorer.rows
    ([0.1, 0.9], 2)
    """

    decision: Decision
    rows: int = 0
    tolerance: float = 1e-8

    def score(self, frame: pd.DataFrame) -> Floats:
        """Score of each row (n,)."""
        self.rows += len(frame)
        scores, precision = self.decision.call(self.decision.arrange(frame), frame)
        single = precision == SINGLE
        self.tolerance = 2 * 10.0**-precision.decimals
        cut = self.decision.cut
        close = np.abs(scores - cut) <= (CLOSE_SINGLE if single else CLOSE) * max(1.0, abs(cut))
        scores = np.array(scores, dtype=np.float64)
        for row in np.flatnonzero(close):
            scores[row] = self.decision.score(frame.iloc[[row]])[0]
        return scores

    def same(self, stated: Floats, scored: Floats) -> Bools:
        """Whether stated scores are those of the model."""
        return np.abs(stated - scored) <= self.tolerance * np.maximum(1.0, np.abs(scored))


def replaced(schema: Schema, start: pd.DataFrame, goal: pd.DataFrame, moved: Bools) -> pd.DataFrame:
    """Rows of ``start`` in which the moved features have the values of the row of ``goal`` beside them.

    Examples
    --------
    >>> X = pd.DataFrame({"a": [1, 2], "b": ["p", "q"]})
    >>> replaced(Schema.infer(X), X, X.iloc[[1, 0]], np.array([[True, False], [False, True]])).values.tolist()
    [[2, 'p'], [2, 'p']]
    """
    out: dict[str, Any] = {}
    for j, feature in enumerate(schema.features):
        for column in feature.columns:
            a, b = start[column].reset_index(drop=True), goal[column].reset_index(drop=True)
            out[column] = b.where(moved[:, j], a) if a.dtype == b.dtype else _mixed(a, b, moved[:, j])
    return pd.DataFrame(out)


def _mixed(a: pd.Series[Any], b: pd.Series[Any], take: Bools) -> pd.Series[Any]:
    both = a.astype(object).where(~take, b.astype(object))
    return both.infer_objects()
