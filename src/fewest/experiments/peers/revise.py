"""REVISE (Joshi et al. 2019): descend in the latent space of a variational autoencoder, so that rows stay usual."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import MissingExtraError
from fewest.experiments.peers.base import FittedPeer
from fewest.experiments.peers.score import Score
from fewest.experiments.peers.space import PeerSpace
from fewest.tables.arrays import Floats

BATCH = 128
MOST_ROWS = 5000
RATE = 2e-3


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
        return score.fitted(partial(self._find, score, coder))

    def _find(self, score: Score, coder: Autoencoder, cases: pd.DataFrame) -> pd.DataFrame:
        """Rows (n, columns): the nearest turned ones that the descent came by, or the case itself."""
        space = score.space
        start = space.encode(cases)
        best, least = start.copy(), np.full(len(cases), np.inf)
        descent = coder.descent(start, self.rate)
        for _ in range(self.steps):
            points = descent.points()
            hard = space.harden(points)
            far = np.abs(hard - start).mean(axis=1)
            nearer = (score.excess(hard, cases) < 0) & (far < least)
            best[nearer], least[nearer] = hard[nearer], far[nearer]
            descent.step(self._downhill(score, points, start, cases))
        return space.decode(best, cases)

    def _downhill(self, score: Score, points: Floats, start: Floats, cases: pd.DataFrame) -> Floats:
        """Gradient of the objective in the points, (n, d)."""
        above = score.excess(points, cases) > -self.margin
        slope = self.closeness * np.sign(points - start) / score.space.width
        if above.any():
            slope[above] += score.slope(points[above], cases.iloc[above])
        return np.asarray(slope)


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """A variational one of the points of a space: two small networks, to the middle and spread of places, and back."""

    space: PeerSpace
    encoder: Any
    decoder: Any

    def decode(self, places: Any) -> Any:
        """Points of latent places, as a tensor that remembers how it was made: (n, d)."""
        import torch

        raw = self.decoder(places)
        numeric = self.space.numeric
        parts = [
            raw[:, span] if numeric[span.start] else torch.softmax(raw[:, span], dim=1)
            for span in self.space.spans
            if span.stop > span.start
        ]
        return torch.cat(parts, dim=1)

    def descent(self, start: Floats, rate: float) -> LatentPlaces:
        """A descent from the latent places of points."""
        import torch

        with torch.no_grad():
            middle, _ = self.encoder(torch.from_numpy(start).float()).chunk(2, dim=1)
        places = middle.clone().requires_grad_(True)
        return LatentPlaces(self, places, torch.optim.Adam([places], lr=rate))


@dataclass(eq=False)
class LatentPlaces:
    """Latent places that move downhill."""

    coder: Autoencoder
    places: Any
    optimiser: Any
    made: Any = None

    def points(self) -> Floats:
        """Where the places lead now, (n, d)."""
        self.made = self.coder.decode(self.places)
        return np.asarray(self.made.detach().numpy(), dtype=np.float64)

    def step(self, slope: Floats) -> None:
        """Move against a gradient that is known in the points."""
        import torch

        self.optimiser.zero_grad()
        self.made.backward(torch.from_numpy(slope).float())
        self.optimiser.step()


def fit_autoencoder(
    space: PeerSpace, points: Floats, *, latent: int, hidden: int, epochs: int, random_state: int
) -> Autoencoder:
    """Train an autoencoder on points (n, d), of more than 5,000 a sample; torch's random state is left as it was."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("REVISE needs torch", do='pip install "fewest[train]"') from error
    random = np.random.default_rng(random_state)
    chosen = random.permutation(len(points))[:MOST_ROWS]
    rows = torch.from_numpy(points[chosen]).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_state)
        coder = Autoencoder(space, _net(space.width, hidden, 2 * latent), _net(latent, hidden, space.width))
        optimiser = torch.optim.Adam([*coder.encoder.parameters(), *coder.decoder.parameters()], lr=RATE)
        for _ in range(epochs):
            for batch in torch.randperm(len(rows)).split(BATCH):
                optimiser.zero_grad()
                _loss(coder, rows[batch]).backward()
                optimiser.step()
    for part in (coder.encoder, coder.decoder):
        part.requires_grad_(False)
    return coder


def _net(inputs: int, hidden: int, outputs: int) -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


def _loss(coder: Autoencoder, rows: Any) -> Any:
    """What is lost on the way there and back, and how far the latent places are from a standard normal."""
    import torch

    middle, spread = coder.encoder(rows).chunk(2, dim=1)
    places = middle + torch.exp(0.5 * spread) * torch.randn_like(middle)
    made, numeric = coder.decode(places), torch.from_numpy(coder.space.numeric)
    numbers = ((made - rows)[:, numeric] ** 2).sum(dim=1)
    levels = -(rows[:, ~numeric] * torch.log(made[:, ~numeric] + 1e-7)).sum(dim=1)
    usual = -0.5 * (1 + spread - middle**2 - torch.exp(spread)).sum(dim=1)
    return (numbers + levels + 0.2 * usual).mean()
