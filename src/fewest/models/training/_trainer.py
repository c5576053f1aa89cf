"""Gradient descent on a head: cross-entropy, and what is added to it in the second phase.

That is All-Opt's terms (Section 5.1 of the paper) or ExpO's (its appendix).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from fewest.errors import UsageError
from fewest.models.training._heads import Head, LinearHead, Targets
from fewest.models.training.classifiers import History
from fewest.models.training.settings import AlignedBatch, Optimizer, SevLoss

SCORED_AT_ONCE = 8192  # rows
HALF = 0.5
LEAST = 1e-10  # of a score or a weight whose logarithm is taken


class Batch(NamedTuple):
    """Rows of one step: their places in the training table, as the head takes them, and their log-odds."""

    numbers: Any
    rows: Any
    logits: Any


class Term:
    """Something added to the cross-entropy."""

    sev_estimate = float("nan")  # of mean SEV, over the epoch

    def start_epoch(self, epoch: int) -> None:
        """Called with the number of each epoch, from 0 on, before it begins."""

    def __call__(self, head: Head, batch: Batch) -> Any:
        """Its value on a batch."""
        raise NotImplementedError


class Trainer:
    """Trains one head on one table, phase after phase.

    ``rows`` are all training rows as the head takes them, ``positive`` (n,) their labels; the learning rate must be
    given. ``random_state`` decides the order of rows; every epoch goes into the history.
    """

    def __init__(
        self,
        head: Head,
        rows: Any,
        positive: npt.NDArray[np.bool_],
        optimizer: Optimizer,
        random_state: int,
        history: History,
    ) -> None:
        self.head, self.rows, self.optimizer, self.history = head, rows, optimizer, history
        self.labels = torch.as_tensor(positive, dtype=torch.get_default_dtype(), device=rows.device)
        self.aims = self.labels
        self.changes = 0  # how often the head may have changed
        self.source = torch.Generator().manual_seed(random_state)
        order = torch.randperm(len(rows), generator=self.source).to(rows.device)
        count = 0 if optimizer.patience is None else max(1, int(len(rows) * optimizer.validation_fraction))
        self.used, self.held = order[count:], order[:count]  # rows to learn from, and those that say when to stop

    def run(self, phase: str, epochs: int, term: Term | None = None) -> None:
        """Train for some epochs; with early stopping, keep the best of them by the loss on the rows held out."""
        adam = torch.optim.Adam(self.head.parameters, lr=self.optimizer.rate_at(0.0), fused=True)
        best, waited, kept = np.inf, 0, None
        for epoch in range(epochs):
            if term is not None:
                term.start_epoch(epoch)
            done = self._epoch(adam, epoch / epochs, 1.0 / epochs, term)
            self.history.add(phase, *done, float("nan") if term is None else term.sev_estimate)
            if self.optimizer.patience is None:
                continue
            with torch.no_grad():
                loss = float(self._loss(self.held, self.rows[self.held], self.aims[self.held], term)[0])
            if loss < best:
                best, waited, kept = loss, 0, self.snapshot()
            else:
                waited += 1
                if waited > self.optimizer.patience:
                    break
        if kept is not None:
            self.restore(kept)

    def _epoch(self, adam: Any, begun: float, length: float, term: Term | None) -> tuple[float, float]:
        """One pass over the rows: mean loss over the steps, accuracy of the rows as they were met."""
        self.changes += 1
        order = self.used[torch.randperm(len(self.used), generator=self.source).to(self.used.device)]
        # Put in order once: taking the rows of each step one by one costs more than a small model's arithmetic.
        rows, aims = self.rows[order], self.aims[order]
        losses, logits = [], []
        starts = range(0, len(order), self.optimizer.batch_size)
        for step, start in enumerate(starts):
            for group in adam.param_groups:
                group["lr"] = self.optimizer.rate_at(begun + length * step / len(starts))
            part = slice(start, start + self.optimizer.batch_size)
            adam.zero_grad()
            loss, found = self._loss(order[part], rows[part], aims[part], term)
            loss.backward()
            adam.step()
            # Kept on the device: asking for a number would wait for it.
            losses.append(loss.detach() * len(found))
            logits.append(found.detach())
        if not losses:
            return 0.0, 0.0
        right = (torch.cat(logits) >= 0) == (self.labels[order] > 0)
        return float(torch.stack(losses).sum()) / len(order), float(right.sum()) / len(order)

    def _loss(self, numbers: Any, rows: Any, aims: Any, term: Term | None) -> tuple[Any, Any]:
        logits = self.head.logits(rows)
        loss = binary_cross_entropy_with_logits(logits, aims)
        if self.optimizer.l2:
            loss = loss + self.optimizer.l2 * self.head.penalty()
        if term is not None:
            loss = loss + term(self.head, Batch(numbers, rows, logits))
        return loss, logits

    def soften(self, share: float) -> None:
        """Mix into the labels, by a share, the chances that the head gives now."""
        if share:
            self.aims = share * torch.sigmoid(self._scored()) + (1.0 - share) * self.labels

    def accuracy(self) -> float:
        """Accuracy of the head as it is now on all rows."""
        return float(((self._scored() >= 0) == (self.labels > 0)).sum()) / len(self.labels)

    def _scored(self) -> Any:
        """Log-odds of all rows (n,), some at a time."""
        with torch.no_grad():
            return torch.cat([self.head.logits(part) for part in self.rows.split(SCORED_AT_ONCE)])

    def snapshot(self) -> list[Any]:
        """Values of everything that is learned."""
        return [parameter.detach().clone() for parameter in self.head.parameters]

    def restore(self, values: list[Any]) -> None:
        """Go back to a snapshot."""
        self.changes += 1
        with torch.no_grad():
            for parameter, value in zip(self.head.parameters, values, strict=True):
                parameter.copy_(value)


def sev_loss(aligned: Any, margin: float = 0.0) -> Any:
    """How far queries are from being turned by one feature: the mean of ``max(least score, 0.5 - margin)``.

    The least score is over all ways to align one original feature with any of the references the query is compared
    with; ``aligned`` (queries, references, features) has their log-odds. The paper's formula has no margin, which
    leaves explanations a hair below the threshold.
    """
    least = torch.sigmoid(aligned.flatten(1).amin(dim=1))  # the sigmoid is increasing: one per query is enough
    return least.clamp(min=HALF - margin).mean()


def raised_loss(raised: Any, margin: float = 0.0) -> Any:
    """How far queries are from one feature that brings the decision about (SEV+), on the scale of `sev_loss`.

    ``raised`` (queries, references, features) has the log-odds of references with one feature taken from the query.
    The mean of ``max(1 - greatest score, 0.5 - margin)``.
    """
    return sev_loss(-raised, margin)


def volume_loss(references: Any, weights: Any) -> Any:
    """Mean logarithm of the sides of the box around a reference inside which no column alone crosses the boundary.

    A side is ``abs(log-odds of the reference) / abs(weight of the column)``; scores and weights count from 1e-10 on.
    """
    depth = references.abs().clamp(min=LEAST).log().mean()
    return depth - weights.abs().clamp(min=LEAST).log().mean()


def reference_loss(references: Any, theta: float = 0.05) -> Any:
    """What references cost that are not safely on the negative side: the mean of ``max(score, 0.5 - theta)``.

    ``references`` (queries, references) has the log-odds of those each query is compared with. The paper writes a sum
    over queries; a mean over the same keeps its weight when batches change size.
    """
    return torch.sigmoid(references).clamp(min=HALF - theta).mean()


def anchored(aligned: Any, logits: Any) -> Any:
    """The same log-odds of aligned queries, without the way out of lowering every score of the batch alike.

    A model that refuses nobody needs no explanations: the plain loss rewards that, and accuracy pays. Here
    the mean score of a batch is left to the cross-entropy alone: values are unchanged, their gradient with respect
    to it is zero.
    """
    level = logits.mean()
    return aligned - (level - level.detach())


class AllOptTerm(Term):
    """``c1 * SEV loss + c2 * reference loss`` over the queries of a batch that are decided positive.

    ``targets`` is what the rows are compared with; ``refresh``, called with the number of each epoch, gives new
    targets, or None to keep them. ``names`` are those of the features; those that the loss does not name keep still.
    """

    def __init__(
        self, c1: float, c2: float, loss: SevLoss, targets: Targets, refresh: Callable[[int], Targets | None],
        names: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.c1, self.c2, self.loss = c1, c2, loss
        self.free = None if loss.features is None else [k for k, name in enumerate(names) if name in loss.features]
        self.names = tuple(names) if self.free is None else tuple(names[k] for k in self.free)
        self.targets, self.refresh = targets, refresh
        self.queries, self.unturned = 0, 0.0

    def start_epoch(self, epoch: int) -> None:
        """Look at the references again where they depend on the model, and count queries anew."""
        self.targets = self.refresh(epoch) or self.targets
        self.queries, self.unturned = 0, 0.0

    @property
    def sev_estimate(self) -> float:  # type: ignore[override]
        """1 + the share of queries that no single feature turned: at most their mean SEV. NaN where none was asked."""
        return float("nan") if self.queries == 0 else 1.0 + float(self.unturned) / self.queries

    def __call__(self, head: Head, batch: Batch) -> Any:
        """Value on a batch; zero where nothing in it is decided positive."""
        loss = batch.logits.new_zeros(())
        # Batches are in random order: the first queries are a fair sample.
        found = (batch.logits.detach() >= 0).nonzero()[:, 0][: self.loss.queries_per_step]
        if len(found) == 0:
            return loss
        numbers = batch.numbers[found]
        by_volume, term = self.loss.kind == "volume", self.loss.term
        if self.c2 or by_volume or term:
            chosen = head.logits(self.targets.references)[self.targets.candidates[numbers]]
        if self.c2:
            loss = loss + self.c2 * reference_loss(chosen, self.loss.reference_margin)
        if self.c1 and by_volume:
            loss = loss + self.c1 * volume_loss(chosen, self._weights(head))
        if term:
            aligned = self._aligned(head, batch.rows[found], numbers)
        elif self.c1 and not by_volume:
            aligned = self._furthest(head, batch.rows[found], numbers)
        if self.c1 and not by_volume:
            loss = loss + self.c1 * self._sev_loss(aligned, batch.logits)
        if term:
            given = AlignedBatch(numbers, batch.logits[found], aligned, chosen, self.names)
            loss = loss + _one_number(term(given))
        return loss

    def _aligned(self, head: Head, rows: Any, numbers: Any) -> Any:
        """Log-odds of queries with one of the features aligned that may change: (n, k, features)."""
        aligned = self.targets.aligned(head, rows, numbers)
        return aligned if self.free is None else aligned[:, :, self.free]

    def _furthest(self, head: Head, rows: Any, numbers: Any) -> Any:
        """The same with the one feature that turns a query furthest, (n, 1, 1): no other has a part in the loss.

        So no other needs a gradient: all are scored without, and these once more.
        """
        with torch.no_grad():
            aligned = self._aligned(head, rows, numbers)
            flat = aligned.flatten(1)
            place = flat.argmax(dim=1) if self.loss.kind == "plus" else flat.argmin(dim=1)
            reference, feature = place // aligned.shape[2], place % aligned.shape[2]
            if self.free is not None:
                feature = torch.as_tensor(self.free, device=feature.device)[feature]
            taken = self.targets.taken(head, rows, numbers, reference, feature)
        return head.logits(taken)[:, None, None]

    def _sev_loss(self, aligned: Any, logits: Any) -> Any:
        """The SEV loss of queries, which are counted."""
        self.queries += len(aligned)
        flat = aligned.detach().flatten(1)
        plus = self.loss.kind == "plus"
        self.unturned += (flat.amax(dim=1) < 0).sum() if plus else (flat.amin(dim=1) >= 0).sum()
        if self.loss.anchor:
            aligned = anchored(aligned, logits)
        return (raised_loss if plus else sev_loss)(aligned, self.loss.margin)

    def _weights(self, head: Head) -> Any:
        """Weights of the encoded columns of the features that may change."""
        assert isinstance(head, LinearHead)
        if self.free is None:
            return head.weight
        return head.weight[torch.isin(head.feature_of, torch.as_tensor(self.free, device=head.feature_of.device))]


def _one_number(value: Any) -> Any:
    """What a term of the user's gave, if it can be added to a loss."""
    if not (isinstance(value, torch.Tensor) and value.ndim == 0):
        shown = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
        raise UsageError(f"the loss term gave {shown}", do="let it return a tensor with one number, such as a mean")
    return value


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


class FidelityTerm(Term):
    """``c`` times the misfit of linear models around the rows of a batch (Plumb et al. 2020).

    With ``fidelity``, samples move all columns at once; with ``1d`` one column, drawn for each row. ``spread`` is the
    standard deviation of the samples, in encoded columns.
    """

    def __init__(self, regularizer: str, c: float, samples: int, spread: float, random_state: int) -> None:
        self.regularizer, self.c, self.samples, self.spread = regularizer, c, samples, spread
        self.source = torch.Generator().manual_seed(random_state)

    def __call__(self, head: Head, batch: Batch) -> Any:
        """Value on a batch, on samples drawn for it."""
        rows = batch.rows
        if self.regularizer == "1d":
            return self.c * self._along_one(head, rows)
        # All rows of a batch share the offsets, drawn anew for each batch: one factorisation serves them all.
        offsets = self._drawn(rows, self.samples, rows.shape[1])
        return self.c * misfit(head.around(rows, offsets).sigmoid(), offsets)

    def _drawn(self, rows: Any, *shape: int) -> Any:
        # Drawn on the CPU: the same numbers on every device.
        drawn = torch.randn(*shape, generator=self.source, dtype=rows.dtype) * self.spread
        return drawn.to(rows.device)

    def _along_one(self, head: Head, rows: Any) -> Any:
        n, columns = rows.shape
        chosen = torch.randint(columns, (n,), generator=self.source).to(rows.device)
        steps = self._drawn(rows, n, self.samples)
        points = rows[:, None, :].repeat(1, self.samples, 1)
        points = points.scatter_add(2, chosen[:, None, None].expand(n, self.samples, 1), steps[..., None])
        return misfit_1d(head.logits(points).sigmoid(), steps)
