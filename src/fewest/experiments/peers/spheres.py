"""Growing Spheres (Laugel et al. 2018): sample shells around a case until one holds a turned point, then undo.

The sample of a shell is scored in one call, one score for every row of it.
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

SMALLEST = 1e-3


@dataclass(frozen=True)
class GrowingSpheres:
    """The nearest turned point among samples of growing shells, with the smallest changes undone one by one.

    Parameters
    ----------
    radius : float
        Of the first ball, in the space of standardised numbers and 0/1 levels; also the thickness of shells. Where the
        first ball holds a turned point it is halved until none is in it.
    samples : int
        Points drawn from each shell.
    most : int
        Shells looked at before a case is given up.
    random_state : int

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 4, 8, 9, 9], "age": [30, 50, 40, 30, 50, 40]}); y = [0, 0, 0, 1, 1, 1]
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> out = GrowingSpheres().fit(decision, X, y).explain(X.iloc[[4]])
    >>> out.frame.to_dict("records"), out.found.tolist()
    ([{'debt': 6, 'age': 50}], [True])
    """

    radius: float = 0.5
    samples: int = 500
    most: int = 60
    random_state: int = 0

    name = "Growing Spheres"

    def fit(self, decision: Decision, X: Any, y: Any) -> FittedPeer:
        """Read the model and the scales of the training rows."""
        score = Score.fit(decision, X, y)
        return score.fitted(partial(self._find, score))

    def _find(self, score: Score, cases: pd.DataFrame) -> pd.DataFrame:
        """Rows (n, columns), the case itself where no shell held a turned point; each case has samples of its own."""
        points = [self._one(score, cases.iloc[[row]]) for row in range(len(cases))]
        return score.space.decode(np.concatenate(points), cases)

    def _one(self, score: Score, case: pd.DataFrame) -> Floats:
        """Point of one case (1, d); where it starts if nothing is found."""
        random = np.random.default_rng(self.random_state)
        start = score.space.encode(case)
        width = self.radius
        turned = self._turned(score, random, start, case, 0.0, width)
        while len(turned) and width > SMALLEST:
            width /= 2
            nearer = self._turned(score, random, start, case, 0.0, width)
            if len(nearer) == 0:
                break
            turned = nearer
        inner = width
        for _ in range(self.most):
            if len(turned):
                break
            turned = self._turned(score, random, start, case, inner, inner + width)
            inner += width
        if len(turned) == 0:
            return start
        nearest = turned[[np.argmin(((turned - start) ** 2).sum(axis=1))]]
        return _fewer(score, start, nearest, case)

    def _turned(
        self, score: Score, random: np.random.Generator, start: Floats, case: pd.DataFrame, low: float, high: float
    ) -> Floats:
        """Turned points among samples of a shell, rounded to what rows exist for."""
        space, count = score.space, self.samples
        away = random.normal(size=(count, space.width))
        # Uniform in volume; as a share of the outer radius, because powers of the dimension leave the range of floats.
        length = high * random.uniform((low / high) ** space.width, 1.0, count) ** (1 / space.width)
        points = start + away * (length / np.linalg.norm(away, axis=1))[:, None]
        points = space.harden(np.clip(points, np.minimum(space.low, start), np.maximum(space.high, start)))
        return points[score.excess_alike(points, case) < 0]


def _fewer(score: Score, start: Floats, point: Floats, case: pd.DataFrame) -> Floats:
    """Undo the change of one feature after the other, smallest first, while the point stays turned."""
    spans = score.space.spans
    change = [np.abs(point[0, span] - start[0, span]).max(initial=0.0) for span in spans]
    for j in np.argsort(change, kind="stable"):
        trial = point.copy()
        trial[:, spans[j]] = start[:, spans[j]]
        if score.excess_alike(trial, case)[0] < 0:
            point = trial
    return point
