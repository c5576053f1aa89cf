"""Wachter, Mittelstadt and Russell (2017): a loss of the score plus a distance, the loss weighted up until it wins.

The distance is the sum over coordinates of the change in median absolute deviations. Its corner at zero is what makes
few features move, so it is stepped over exactly (proximal gradient) and not by a sub-gradient, which would leave every
number a little off.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.experiments.peers.base import FittedPeer
from fewest.experiments.peers.score import Score
from fewest.tables.arrays import Floats

MARGIN_GROWTH = 1.25


@dataclass(frozen=True)
class Wachter:
    """Least ``weight * (score - goal)^2 + distance``, the weight raised until the rounded row is turned.

    The score is the model's raw one (log-odds of a logistic regression or a booster), in which nothing saturates; only
    the part above the goal counts. Gradients are exact for additive models and networks. Trees have none: they get
    central differences over half a standard deviation, which see only splits that near.

    Parameters
    ----------
    raises : int
        How often the weight is raised before a case is given up.
    factor : float
        By how much.
    steps : int
        Gradient steps at each weight.
    margin : float
        How far below the threshold the goal lies; it grows by a quarter with every raise, since
        rounding can undo a narrow success: half a level is none.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 4, 8, 9, 9], "age": [30, 50, 40, 30, 50, 40]}); y = [0, 0, 0, 1, 1, 1]
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> out = Wachter().fit(decision, X, y).explain(X)
    >>> out.frame["debt"].tolist(), out.found.tolist()
    ([1, 2, 4, 5, 6, 5], [False, False, False, True, True, True])
    """

    raises: int = 30
    factor: float = 1.6
    steps: int = 10
    margin: float = 0.02

    name = "Wachter"

    def fit(self, decision: Decision, X: Any, y: Any) -> FittedPeer:
        """Read the model and the spread of the training rows."""
        score = Score.fit(decision, X, y)
        return score.fitted(partial(self._find, score))

    def _find(self, score: Score, cases: pd.DataFrame) -> pd.DataFrame:
        """Rows (n, columns) that are turned where the descent gets that far; all cases descend side by side."""
        space = score.space
        start = space.encode(cases)
        points, weight = start.copy(), self._first_weights(score, start, cases)
        still = np.arange(len(cases))
        for turn in range(self.raises):
            some = cases.iloc[still]
            margin = self.margin * MARGIN_GROWTH**turn
            points[still] = self._descend(score, start[still], points[still], some, weight[still], margin)
            still = still[score.excess(space.harden(points[still]), some) >= 0]
            if len(still) == 0:
                break
            weight[still] *= self.factor
        return space.decode(points, cases)

    def _first_weights(self, score: Score, start: Floats, cases: pd.DataFrame) -> Floats:
        """The largest weight of the loss at which nothing moves: sparse answers are approached from this side."""
        pull = np.abs(score.slope(start, cases)) * score.space.typical
        short = score.excess(start, cases) + self.margin
        return np.asarray(1.0 / np.maximum(2 * short * pull.max(axis=1), 1e-9))

    def _descend(
        self, score: Score, start: Floats, points: Floats, cases: pd.DataFrame, weight: Floats, margin: float
    ) -> Floats:
        """Proximal gradient steps of the length that suits a score which is linear nearby."""
        space = score.space
        for _ in range(self.steps):
            short = np.maximum(score.excess(points, cases) + margin, 0.0)
            slope = score.slope(points, cases)
            size = (slope**2).sum(axis=1)
            size[size == 0] = np.inf  # nothing to follow: stay
            step = points - (short / size)[:, None] * slope - start
            shrink = 1.0 / (2 * (weight * size)[:, None] * space.typical)
            step = np.sign(step) * np.maximum(np.abs(step) - shrink, 0.0)
            points = np.clip(start + step, np.minimum(space.low, start), np.maximum(space.high, start))
        return points
