"""NICE (Brughmans, Leyman and Martens 2023): as little of the nearest unlike neighbour as it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.engine.model_reading import ModelReading
from fewest.errors import ModelError, check_word
from fewest.experiments.peers.base import Bools, FittedPeer, Floats
from fewest.experiments.peers.between import Between, read_inside
from fewest.references.training_rows import TrainingRows
from fewest.tables.closeness import Distances
from fewest.tables.schema import Schema


@dataclass(frozen=True)
class NICE:
    """Values of the nearest training row that is decided, and labelled, negative; one by one until the decision turns.

    Nearest is by HEOM: numbers by their share of the range seen, anything else by whether it differs. Each step takes
    over the value with the largest fall of the raw score (``sparsity``), or the largest fall for the distance it adds
    (``proximity``).

    Parameters
    ----------
    reward : str

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9], "age": [30, 50, 40, 30, 50, 40]}); y = [0, 0, 0, 1, 1, 1]
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> out = NICE().fit(decision, X, y).explain(X.iloc[[4]])
    >>> out.frame.to_dict("records"), out.found.tolist()
    ([{'debt': 2, 'age': 50}], [True])
    """

    reward: Literal["sparsity", "proximity"] = "sparsity"

    @property
    def name(self) -> str:
        """With its reward, unless that is the usual one."""
        return "NICE" if self.reward == "sparsity" else f"NICE ({self.reward})"

    def fit(self, decision: Decision, X: Any, y: Any) -> FittedPeer:
        """Keep the training rows that are decided and labelled negative."""
        check_word("reward", self.reward, ("sparsity", "proximity"))
        training = TrainingRows.read(decision, X, y)
        schema, rows = training.schema, training.frame
        accepted = ~decision.verdicts(rows).positive
        justified = accepted & training.labels.accepted
        pool = rows[justified if justified.any() else accepted]
        if len(pool) == 0:
            raise ModelError("the model decides against every training row", do="check `positive=` and the threshold")
        search = Neighbours(self, decision, schema, pool, read_inside(decision, schema, rows))
        return FittedPeer(decision, schema, search.find)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """`NICE` of a decision."""

    settings: NICE
    decision: Decision
    schema: Schema
    pool: pd.DataFrame
    inside: ModelReading

    def find(self, cases: pd.DataFrame) -> pd.DataFrame:
        """Rows (n, columns) with as much of each case's neighbour as turns it."""
        near, far = self._nearest(cases)
        between = Between.read(self.decision, self.schema, self.inside, cases, self.pool.iloc[near])
        taken = [self._take(between, row, far[row]) for row in range(len(cases))]
        return between.rows(np.array(taken))

    def _nearest(self, cases: pd.DataFrame) -> tuple[npt.NDArray[np.int64], Floats]:
        """Number of the nearest row of the pool (n,), and the distance of each feature to it (n, p)."""
        distances = Distances.read(self.schema, cases, self.pool)
        share = _per_range(self.schema)
        everyone = np.arange(len(self.pool))
        near, far = np.empty(len(cases), dtype=np.int64), np.empty((len(cases), len(self.schema)))
        for row in range(len(cases)):
            steps = distances.between(np.full(len(everyone), row), everyone) * share
            near[row] = np.argmin((steps**2).sum(axis=1))
            far[row] = steps[near[row]]
        return near, far

    def _take(self, between: Between, row: int, far: Floats) -> Bools:
        """Features taken over from the neighbour, (p,)."""
        taken, left = np.zeros(len(far), dtype=bool), far > 0
        before = between.excess(np.array([row]), taken[None, :])[0]
        while before >= 0 and left.any():
            choices = np.flatnonzero(left)
            trials = np.repeat(taken[None, :], len(choices), axis=0)
            trials[np.arange(len(choices)), choices] = True
            after = between.excess(np.full(len(choices), row), trials)
            gain = (before - after) / (far[choices] if self.settings.reward == "proximity" else 1.0)
            best = int(np.argmax(gain))
            taken, before = trials[best], after[best]
            left[choices[best]] = False
        return taken


def _per_range(schema: Schema) -> Floats:
    """What turns a distance in standard deviations into a share of the range seen; 1 for anything but numbers."""
    out = np.ones(len(schema))
    for j, feature in enumerate(schema.features):
        width = feature.maximum - feature.minimum
        if feature.is_numeric and np.isfinite(width) and width > 0:
            out[j] = feature.scale / width
    return out
