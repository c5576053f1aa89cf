"""REVISE (Joshi et al. 2019): descend in the latent space of a variational autoencoder, so that rows stay usual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.experiments.peers.autoencoder import Autoencoder, fit_autoencoder
from fewest.experiments.peers.base import FittedPeer
from fewest.experiments.peers.score import Score

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class REVISE:
    """Least ``score above the threshold + closeness * distance`` over what an autoencoder of training rows can make.

    The score is the model's raw one, with its gradient as in `Wachter`. Of all rounded rows on the way that are turned,
    the nearest is kept. Needs torch (the extra ``train``).

    Parameters
    ----------
    latent, hidden : int
        Size of the latent space and of the hidden layers.
    epochs : int
        Of the autoencoder.
    steps : int
        Of the descent.
    rate : float
        Length of a step (Adam).
    closeness : float
        Weight of the distance, which is the mean change of a coordinate.
    margin : float
        How far below the threshold the descent aims.
    random_state : int

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9] * 20, "age": [30, 50, 40] * 40}); y = [0, 0, 0, 1, 1, 1] * 20
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> REVISE(epochs=5).fit(decision, X, y).explain(X.iloc[[4]]).found.tolist()
    [True]
    """

    latent: int = 8
    hidden: int = 64
    epochs: int = 30
    steps: int = 150
    rate: float = 0.1
    closeness: float = 0.5
    margin: float = 0.1
    random_state: int = 0

    name = "REVISE"

    def fit(self, decision: Decision, X: Any, y: Any) -> FittedPeer:
        """Read the model and train the autoencoder."""
        score = Score.fit(decision, X, y)
        space = score.space
        coder = fit_autoencoder(
            space, space.encode(space.schema.conform(X)), latent=self.latent, hidden=self.hidden, epochs=self.epochs,
            random_state=self.random_state,
        )  # fmt: skip
        return score.fitted(LatentDescent(self, score, coder).find)


@dataclass(frozen=True, eq=False)
class LatentDescent:
    """`REVISE` of a decision; all cases descend side by side."""

    settings: REVISE
    score: Score
    coder: Autoencoder

    def find(self, cases: pd.DataFrame) -> pd.DataFrame:
        """Rows (n, columns): the nearest turned ones that the descent came by, or the case itself."""
        space = self.score.space
        start = space.encode(cases)
        best, least = start.copy(), np.full(len(cases), np.inf)
        descent = self.coder.descent(start, self.settings.rate)
        for _ in range(self.settings.steps):
            points = descent.points()
            hard = space.harden(points)
            far = np.abs(hard - start).mean(axis=1)
            nearer = (self.score.excess(hard, cases) < 0) & (far < least)
            best[nearer], least[nearer] = hard[nearer], far[nearer]
            descent.step(self._downhill(points, start, cases))
        return space.decode(best, cases)

    def _downhill(self, points: Floats, start: Floats, cases: pd.DataFrame) -> Floats:
        """Gradient of the objective in the points, (n, d)."""
        above = self.score.excess(points, cases) > -self.settings.margin
        slope = self.settings.closeness * np.sign(points - start) / self.score.space.width
        if above.any():
            slope[above] += self.score.slope(points[above], cases.iloc[above])
        return np.asarray(slope)
