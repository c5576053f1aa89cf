"""All-Opt's terms on a batch: the SEV loss over its positive queries and the loss of positive references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fewest.models.training._heads import Head, Targets
from fewest.models.training._loss import anchored, reference_loss, sev_loss
from fewest.models.training._trainer import Batch


class Weights(NamedTuple):
    """How much All-Opt's terms count, and how they are cut off.

    Examples
    --------
    >>> Weights(c1=0.5).margin
    0.05
    """

    c1: float
    c2: float = 0.0
    margin: float = 0.05
    anchor: bool = True
    most: int | None = None


class AllOptTerm:
    """``c1 * SEV loss + c2 * reference loss`` over the queries of a batch that are decided positive.

    Parameters
    ----------
    weights : Weights
    targets : Targets
        What the rows are compared with.
    refresh : callable
        Called with the number of each epoch; gives new targets, or None to keep them.
    """

    def __init__(self, weights: Weights, targets: Targets, refresh: Callable[[int], Targets | None]) -> None:
        self.weights = weights
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
        weights = self.weights
        loss = batch.logits.new_zeros(())
        found = (batch.logits.detach() >= 0).nonzero()[:, 0]
        if weights.most is not None:
            found = found[: weights.most]  # batches are in random order: the first are a fair sample
        if len(found) == 0:
            return loss
        numbers = batch.numbers[found]
        if weights.c2:
            scores = head.logits(self.targets.references)
            loss = loss + weights.c2 * reference_loss(scores[self.targets.candidates[numbers]], weights.margin)
        if not weights.c1:
            return loss
        aligned = head.aligned(batch.rows[found], self.targets[numbers])
        self.queries += len(found)
        self.unturned += (aligned.detach().flatten(1).amin(dim=1) >= 0).sum()
        if weights.anchor:
            aligned = anchored(aligned, batch.logits)
        return loss + weights.c1 * sev_loss(aligned, weights.margin)
