"""How far a model is from linear around a row: the terms of ExpO.

Plumb et al. 2020, "Regularizing Black-box Models for Improved Interpretability"; the appendix on ExpO of the paper. The
linear model is fitted to the very samples it is measured on. What it cannot fit is a projection of the model's own
outputs, so that the loss has a gradient without going back through the fit.
"""

from __future__ import annotations

from typing import Any, Literal

from fewest.models.training._heads import Head
from fewest.models.training._trainer import Batch

Regularizer = Literal["fidelity", "1d"]


def misfit(values: Any, offsets: Any) -> Any:
    """Mean squared residual of the best linear function of the offsets, with an intercept, over all rows.

    Parameters
    ----------
    values : (rows, samples) tensor
        What the model says around each row.
    offsets : (samples, columns) tensor
        Where around it, the same for every row.

    Examples
    --------
    >>> import torch
    >>> line = torch.tensor([[-1.0], [0.0], [1.0]])
    >>> bent = torch.tensor([[1.0, 0.0, 1.0]])  # the best line is level, at 2/3
    >>> round(float(misfit(bent, line)), 4), float(misfit(line.T, line)) < 1e-12
    (0.2222, True)
    """
    import torch

    design = torch.cat([offsets.new_ones(len(offsets), 1), offsets], dim=1)
    basis, _ = torch.linalg.qr(design)
    return ((values - (values @ basis) @ basis.T) ** 2).mean()


def misfit_1d(values: Any, steps: Any) -> Any:
    """Mean squared residual of the best line along one coordinate, over all rows.

    Parameters
    ----------
    values : (rows, samples) tensor
        What the model says around each row.
    steps : (rows, samples) tensor
        How far along its coordinate.

    Examples
    --------
    >>> import torch
    >>> round(float(misfit_1d(torch.tensor([[1.0, 0.0, 1.0]]), torch.tensor([[-1.0, 0.0, 1.0]]))), 4)
    0.2222
    """
    values = values - values.mean(dim=1, keepdim=True)
    steps = steps - steps.mean(dim=1, keepdim=True)
    slope = (values * steps).sum(dim=1, keepdim=True) / (steps**2).sum(dim=1, keepdim=True)
    return ((values - slope * steps) ** 2).mean()


class FidelityTerm:
    """``c`` times the misfit of linear models around the rows of a batch.

    Parameters
    ----------
    regularizer : str
        ``fidelity``: samples move all columns at once; ``1d``: one column, drawn for each row.
    c : float
    samples : int
        Points around each row.
    spread : float
        Standard deviation of the samples, in encoded columns.
    random_state : int

    Examples
    --------
    >>> import numpy as np, torch
    >>> from fewest.models.training._heads import Blocks, LinearHead
    >>> head = LinearHead(Blocks(np.array([0, 1]), 2), "cpu")
    >>> rows = head.rows(np.zeros((4, 2)))
    >>> term = FidelityTerm("fidelity", c=1.0, samples=20, spread=0.1, random_state=0)
    >>> loss = term(head, Batch(torch.arange(4), rows, head.logits(rows)))
    >>> loss.requires_grad, loss.item() < 1e-12  # no weights: level everywhere
    (True, True)
    """

    def __init__(self, regularizer: Regularizer, c: float, samples: int, spread: float, random_state: int) -> None:
        import torch

        self.regularizer = regularizer
        self.c = c
        self.samples = samples
        self.spread = spread
        self.source = torch.Generator().manual_seed(random_state)

    def __call__(self, head: Head, batch: Batch) -> Any:
        """Value on a batch, on samples drawn for it."""
        if self.regularizer == "1d":
            return self.c * self._along_one(head, batch.rows)
        return self.c * self._all_around(head, batch.rows)

    def _drawn(self, rows: Any, *shape: int) -> Any:
        import torch

        # Drawn on the CPU: the same numbers on every device.
        drawn = torch.randn(*shape, generator=self.source, dtype=rows.dtype) * self.spread
        return drawn.to(rows.device)

    def _all_around(self, head: Head, rows: Any) -> Any:
        """All rows of a batch share the offsets, drawn anew for each batch: one factorisation serves them all."""
        offsets = self._drawn(rows, self.samples, rows.shape[1])
        return misfit(head.logits(rows[:, None, :] + offsets).sigmoid(), offsets)

    def _along_one(self, head: Head, rows: Any) -> Any:
        import torch

        n, columns = rows.shape
        chosen = torch.randint(columns, (n,), generator=self.source).to(rows.device)
        steps = self._drawn(rows, n, self.samples)
        points = rows[:, None, :].repeat(1, self.samples, 1)
        points = points.scatter_add(2, chosen[:, None, None].expand(n, self.samples, 1), steps[..., None])
        return misfit_1d(head.logits(points).sigmoid(), steps)
