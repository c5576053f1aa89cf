"""What is added to the cross-entropy: All-Opt's terms (Section 5.1 of the paper) and ExpO's (its appendix)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fewest.models.training._heads import Head, Targets
from fewest.models.training._trainer import Batch
from fewest.models.training.settings import SevLoss

HALF = 0.5


def sev_loss(aligned: Any, margin: float = 0.0) -> Any:
    """How far queries are from being turned by one feature: the mean of ``max(least score, 0.5 - margin)``.

    The least score is over all ways to align one original feature with any of the references the query is compared
    with; ``aligned`` (queries, references, features) has their log-odds. The paper's formula has no margin, which
    leaves explanations a hair below the threshold.
    """
    least = torch.sigmoid(aligned.flatten(1).amin(dim=1))  # the sigmoid is increasing: one per query is enough
    return least.clamp(min=HALF - margin).mean()


def reference_loss(references: Any, margin: float = 0.05) -> Any:
    """What references cost that are not safely on the negative side: the mean of ``max(score, 0.5 - margin)``.

    ``references`` (queries, references) has the log-odds of those each query is compared with. The paper writes a sum
    over queries; a mean over the same keeps its weight when batches change size.
    """
    return torch.sigmoid(references).clamp(min=HALF - margin).mean()


def anchored(aligned: Any, logits: Any) -> Any:
    """The same log-odds of aligned queries, without the way out of lowering every score of the batch alike.

    A model that decides against nobody needs no explanations: the plain loss rewards that, and accuracy pays. Here
    the mean score of a batch is left to the cross-entropy alone: values are unchanged, their gradient with respect
    to it is zero.
    """
    level = logits.mean()
    return aligned - (level - level.detach())


class AllOptTerm:
    """``c1 * SEV loss + c2 * reference loss`` over the queries of a batch that are decided positive.

    ``targets`` is what the rows are compared with; ``refresh``, called with the number of each epoch, gives new
    targets, or None to keep them.
    """

    def __init__(
        self, c1: float, c2: float, loss: SevLoss, targets: Targets, refresh: Callable[[int], Targets | None]
    ) -> None:
        self.c1, self.c2, self.loss = c1, c2, loss
        self.targets = targets
        self.refresh = refresh
        self.queries = 0
        self.unturned = 0.0

    def start_epoch(self, epoch: int) -> None:
        """Look at the references again where they depend on the model, and count queries anew."""
        self.targets = self.refresh(epoch) or self.targets
        self.queries, self.unturned = 0, 0.0

    @property
    def sev_estimate(self) -> float:
        """1 + the share of queries that no single feature turned: at most their mean SEV. NaN where there were none."""
        return float("nan") if self.queries == 0 else 1.0 + float(self.unturned) / self.queries

    def __call__(self, head: Head, batch: Batch) -> Any:
        """Value on a batch; zero where nothing in it is decided positive."""
        margin, loss = self.loss.margin, batch.logits.new_zeros(())
        # Batches are in random order: the first queries are a fair sample.
        found = (batch.logits.detach() >= 0).nonzero()[:, 0][: self.loss.queries_per_step]
        if len(found) == 0:
            return loss
        numbers = batch.numbers[found]
        if self.c2:
            scores = head.logits(self.targets.references)
            loss = loss + self.c2 * reference_loss(scores[self.targets.candidates[numbers]], margin)
        if not self.c1:
            return loss
        aligned = head.aligned(batch.rows[found], self.targets[numbers])
        self.queries += len(found)
        self.unturned += (aligned.detach().flatten(1).amin(dim=1) >= 0).sum()
        if self.loss.anchor:
            aligned = anchored(aligned, batch.logits)
        return loss + self.c1 * sev_loss(aligned, margin)


def misfit(values: Any, offsets: Any) -> Any:
    """Mean squared residual of the best linear function of the offsets, with an intercept, over all rows.

    ``values`` (rows, samples) is what the model says around each row, ``offsets`` (samples, columns) where around it.
    What the linear model cannot fit is a projection of the model's own outputs, so that the loss has a gradient
    without going back through the fit.
    """
    design = torch.cat([offsets.new_ones(len(offsets), 1), offsets], dim=1)
    basis, _ = torch.linalg.qr(design)
    return ((values - (values @ basis) @ basis.T) ** 2).mean()


def misfit_1d(values: Any, steps: Any) -> Any:
    """Mean squared residual of the best line along one coordinate, over all rows; both arguments (rows, samples)."""
    values = values - values.mean(dim=1, keepdim=True)
    steps = steps - steps.mean(dim=1, keepdim=True)
    slope = (values * steps).sum(dim=1, keepdim=True) / (steps**2).sum(dim=1, keepdim=True)
    return ((values - slope * steps) ** 2).mean()


class FidelityTerm:
    """``c`` times the misfit of linear models around the rows of a batch (Plumb et al. 2020).

    With ``fidelity``, samples move all columns at once; with ``1d`` one column, drawn for each row. ``spread`` is the
    standard deviation of the samples, in encoded columns.
    """

    def __init__(self, regularizer: str, c: float, samples: int, spread: float, random_state: int) -> None:
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
        # Drawn on the CPU: the same numbers on every device.
        drawn = torch.randn(*shape, generator=self.source, dtype=rows.dtype) * self.spread
        return drawn.to(rows.device)

    def _all_around(self, head: Head, rows: Any) -> Any:
        """All rows of a batch share the offsets, drawn anew for each batch: one factorisation serves them all."""
        offsets = self._drawn(rows, self.samples, rows.shape[1])
        return misfit(head.logits(rows[:, None, :] + offsets).sigmoid(), offsets)

    def _along_one(self, head: Head, rows: Any) -> Any:
        n, columns = rows.shape
        chosen = torch.randint(columns, (n,), generator=self.source).to(rows.device)
        steps = self._drawn(rows, n, self.samples)
        points = rows[:, None, :].repeat(1, self.samples, 1)
        points = points.scatter_add(2, chosen[:, None, None].expand(n, self.samples, 1), steps[..., None])
        return misfit_1d(head.logits(points).sigmoid(), steps)
