"""Methods that search the continuous space.

Wachter, Mittelstadt and Russell (2017): a loss of the score plus a distance, the loss weighted up until it wins. The
distance is the sum over coordinates of the change in median absolute deviations. Its corner at zero is what makes few
features move, so it is stepped over exactly (proximal gradient) and not by a sub-gradient, which would leave every
number a little off. Growing Spheres (Laugel et al. 2018): sample shells around a case until one holds a turned point,
then undo. REVISE (Joshi et al. 2019): descend in the latent space of a variational autoencoder, so rows stay usual.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import MissingExtraError
from fewest.experiments.peers.base import FittedPeer
from fewest.experiments.peers.space import PeerSpace, Score
from fewest.tables.arrays import Floats

MARGIN_GROWTH = 1.25
SMALLEST = 1e-3
BATCH = 128
MOST_ROWS = 5000
RATE = 2e-3


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
        return points[score.excess(points, case) < 0]


def _fewer(score: Score, start: Floats, point: Floats, case: pd.DataFrame) -> Floats:
    """Undo the change of one feature after the other, smallest first, while the point stays turned."""
    spans = score.space.spans
    change = [np.abs(point[0, span] - start[0, span]).max(initial=0.0) for span in spans]
    for j in np.argsort(change, kind="stable"):
        trial = point.copy()
        trial[:, spans[j]] = start[:, spans[j]]
        if score.excess(trial, case)[0] < 0:
            point = trial
    return point


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
        coder = _autoencoder(self, space, space.encode(space.schema.conform(X)))
        return score.fitted(partial(self._find, score, coder))

    def _find(self, score: Score, coder: Autoencoder, cases: pd.DataFrame) -> pd.DataFrame:
        """Rows (n, columns): the nearest turned ones that the descent came by, or the case itself."""
        import torch

        space = score.space
        start = space.encode(cases)
        best, least = start.copy(), np.full(len(cases), np.inf)
        with torch.no_grad():
            middle, _ = coder.encoder(torch.from_numpy(start).float()).chunk(2, dim=1)
        places = middle.clone().requires_grad_(True)
        optimiser = torch.optim.Adam([places], lr=self.rate)
        for _ in range(self.steps):
            made = coder.decode(places)
            points = np.asarray(made.detach().numpy(), dtype=np.float64)
            hard = space.harden(points)
            far = np.abs(hard - start).mean(axis=1)
            nearer = (score.excess(hard, cases) < 0) & (far < least)
            best[nearer], least[nearer] = hard[nearer], far[nearer]
            optimiser.zero_grad()
            made.backward(torch.from_numpy(self._downhill(score, points, start, cases)).float())
            optimiser.step()
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


def _autoencoder(settings: REVISE, space: PeerSpace, points: Floats) -> Autoencoder:
    """Train an autoencoder on points (n, d), of more than 5,000 a sample; torch's random state is left as it was."""
    try:
        import torch
        from torch import nn
    except ImportError as error:
        raise MissingExtraError("REVISE needs torch", do='pip install "fewest[train]"') from error
    chosen = np.random.default_rng(settings.random_state).permutation(len(points))[:MOST_ROWS]
    rows, latent = torch.from_numpy(points[chosen]).float(), settings.latent
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.random_state)
        encoder, decoder = (
            nn.Sequential(nn.Linear(inputs, settings.hidden), nn.ReLU(), nn.Linear(settings.hidden, outputs))
            for inputs, outputs in ((space.width, 2 * latent), (latent, space.width))
        )
        coder = Autoencoder(space, encoder, decoder)
        optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=RATE)
        for _ in range(settings.epochs):
            for batch in torch.randperm(len(rows)).split(BATCH):
                optimiser.zero_grad()
                _loss(coder, rows[batch]).backward()
                optimiser.step()
    for part in (encoder, decoder):
        part.requires_grad_(False)
    return coder


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
