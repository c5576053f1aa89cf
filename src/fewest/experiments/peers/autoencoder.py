"""A small variational autoencoder of the points of a `PeerSpace`: numbers as they are, levels as a choice per block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.errors import MissingExtraError
from fewest.experiments.peers.space import PeerSpace

Floats = npt.NDArray[np.float64]

BATCH = 128
MOST_ROWS = 5000
RATE = 2e-3


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """Two small networks: from points to the middle and spread of latent places, and back.

    Attributes
    ----------
    space : Space
    encoder, decoder : torch modules
    """

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

    def descent(self, start: Floats, rate: float) -> CodeDescent:
        """A descent from the latent places of points."""
        import torch

        with torch.no_grad():
            middle, _ = self.encoder(torch.from_numpy(start).float()).chunk(2, dim=1)
        places = middle.clone().requires_grad_(True)
        return CodeDescent(self, places, torch.optim.Adam([places], lr=rate))


@dataclass(eq=False)
class CodeDescent:
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
    """Train an autoencoder on points (n, d); of more than 5,000 a sample.

    The global random state of torch is left as it was.
    """
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
