"""SHAP top-k: the features with the largest Shapley values are set to a reference's, one more until the decision turns.

Attributions say what the score is made of, not what would turn it; this is what they give when they are used for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest import references
from fewest.decision import Decision
from fewest.engine.model_reading import ModelReading
from fewest.engine.structure import Additive, Ensemble
from fewest.errors import ModelError
from fewest.experiments.peers.base import FittedPeer, Floats
from fewest.experiments.peers.between import Between, read_inside
from fewest.experiments.peers.shapley import shapley_values
from fewest.references import References
from fewest.references.training_rows import TrainingRows
from fewest.tables.schema import Schema

BACKGROUND = 100


@dataclass(frozen=True)
class TopSHAP:
    """The first features by Shapley value, as many as turn the decision when set to a reference's values.

    LinearSHAP for additive models and interventional TreeSHAP for trees, against training rows; the values of a
    feature's encoded columns are one value.

    Parameters
    ----------
    towards : References, optional
        The first of them is the goal. Default: the mean/mode of the negatively labelled rows (SEV1's).
    background : int
        Training rows the values are against, at equal distances through the table.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9], "age": [30, 50, 40, 30, 50, 40]}); y = [0, 0, 0, 1, 1, 1]
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> out = TopSHAP().fit(decision, X, y).explain(X.iloc[[4]])
    >>> out.frame.to_dict("records"), out.found.tolist()
    ([{'debt': 2, 'age': 50}], [True])
    """

    towards: References | None = None
    background: int = BACKGROUND

    name = "SHAP top-k"

    def fit(self, decision: Decision, X: Any, y: Any) -> FittedPeer:
        """Read the model, the background and the goal."""
        search = Attribution.read(self, decision, X, y)
        return FittedPeer(decision, search.schema, search.find)


@dataclass(frozen=True, eq=False)
class Attribution:
    """`TopSHAP` of a decision."""

    decision: Decision
    schema: Schema
    inside: ModelReading
    background: Floats
    goal: pd.DataFrame

    @classmethod
    def read(cls, settings: TopSHAP, decision: Decision, X: Any, y: Any) -> Attribution:
        """Read the model, the background and the goal from training rows."""
        training = TrainingRows.read(decision, X, y)
        schema, rows = training.schema, training.frame
        inside = read_inside(decision, schema, rows)
        if not isinstance(inside.structure, Additive | Ensemble):
            raise ModelError(
                f"Shapley values are exact for additive models and trees, not for {type(decision.model).__name__}",
                do="choose another method",
            )
        goal = settings.towards or references.single(decision, rows, y, schema=schema, on_positive="allow")
        some = np.unique(np.linspace(0, len(rows) - 1, min(settings.background, len(rows))).astype(int))
        behind = inside.prepare(inside.encoding.transform(rows.iloc[some]))
        return cls(decision, schema, inside, behind, goal.frame.iloc[[0]])

    def values(self, cases: pd.DataFrame) -> Floats:
        """Shapley values of cases conformed to the schema, (n, p)."""
        assert isinstance(self.inside.structure, Additive | Ensemble)
        Z = self.inside.prepare(self.inside.encoding.transform(cases))
        found = shapley_values(self.inside.structure, self.inside.feature_of(), Z, self.background)
        return np.pad(found, ((0, 0), (0, len(self.schema) - found.shape[1])))

    def find(self, cases: pd.DataFrame) -> pd.DataFrame:
        """Rows (n, columns) with the first features of each case set to the goal's values."""
        n, p = len(cases), len(self.schema)
        goals = self.goal.iloc[np.zeros(n, dtype=np.int64)].set_index(cases.index)
        between = Between.read(self.decision, self.schema, self.inside, cases, goals)
        order = np.argsort(-self.values(cases), axis=1, kind="stable")
        rank = np.argsort(order, axis=1)
        first = rank[:, None, :] <= np.arange(p)[:, None]  # (n, sizes, p): the k + 1 first features
        excess = between.excess(np.repeat(np.arange(n), p), first.reshape(n * p, p)).reshape(n, p)
        size = np.argmax(excess < 0, axis=1)
        return between.rows(first[np.arange(n), size])
