"""Gradient descent on a head: cross-entropy, and what is added to it in the second phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from fewest.models.training._heads import Head
from fewest.models.training._history import Epoch
from fewest.models.training.settings import Optimizer

SCORED_AT_ONCE = 8192  # rows


class Batch(NamedTuple):
    """Rows of one step: their places in the training table, as the head takes them, and their log-odds."""

    numbers: Any
    rows: Any
    logits: Any


class Term(Protocol):
    """Something added to the cross-entropy."""

    def __call__(self, head: Head, batch: Batch) -> Any:
        """Its value on a batch."""
        ...


class Trainer:
    """Trains one head on one table, phase after phase.

    ``rows`` are all training rows as the head takes them, ``positive`` (n,) their labels; the learning rate must be
    given. ``random_state`` decides the order of rows; ``on_epoch`` is called with every `Epoch`.
    """

    def __init__(
        self,
        head: Head,
        rows: Any,
        positive: npt.NDArray[np.bool_],
        optimizer: Optimizer,
        random_state: int,
        on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    ) -> None:
        self.head = head
        self.rows = rows
        self.labels = torch.as_tensor(positive, dtype=torch.get_default_dtype(), device=rows.device)
        self.aims = self.labels
        self.optimizer = optimizer
        self.on_epoch = on_epoch
        self.source = torch.Generator().manual_seed(random_state)
        self.used, self.held = self._held_out(len(positive))

    def _held_out(self, n: int) -> tuple[Any, Any]:
        """Numbers of the rows to learn from, and of those that say when to stop."""
        order = torch.randperm(n, generator=self.source)
        count = 0 if self.optimizer.patience is None else max(1, int(n * self.optimizer.validation_fraction))
        return order[count:].to(self.rows.device), order[:count].to(self.rows.device)

    def run(
        self, phase: str, epochs: int, term: Term | None = None, before: Callable[[int], None] | None = None
    ) -> None:
        """Train for some epochs; with early stopping, keep the best of them by the loss on the rows held out.

        ``before`` is called with the number of each epoch, from 0 on, before it begins.
        """
        adam = torch.optim.Adam(self.head.parameters, lr=self.optimizer.rate_at(0.0))
        best, waited, kept = np.inf, 0, None
        for epoch in range(epochs):
            if before is not None:
                before(epoch)
            self.on_epoch(self._epoch(phase, adam, epoch / epochs, 1.0 / epochs, term))
            if self.optimizer.patience is None:
                continue
            with torch.no_grad():
                loss = float(self._loss(self.held, term)[0])
            if loss < best:
                best, waited, kept = loss, 0, self.snapshot()
            else:
                waited += 1
                if waited > self.optimizer.patience:
                    break
        if kept is not None:
            self.restore(kept)

    def _epoch(self, phase: str, adam: Any, begun: float, length: float, term: Term | None) -> Epoch:
        order = self.used[torch.randperm(len(self.used), generator=self.source).to(self.used.device)]
        steps = order.split(self.optimizer.batch_size)
        total = torch.zeros((), device=self.rows.device)
        right = torch.zeros((), device=self.rows.device)
        for step, numbers in enumerate(steps):
            for group in adam.param_groups:
                group["lr"] = self.optimizer.rate_at(begun + length * step / len(steps))
            adam.zero_grad()
            loss, logits = self._loss(numbers, term)
            loss.backward()
            adam.step()
            # Kept on the device: asking for a number would wait for it.
            total += loss.detach() * len(numbers)
            right += ((logits.detach() >= 0) == (self.labels[numbers] > 0)).sum()
        count = max(1, len(order))
        return Epoch(phase, float(total) / count, float(right) / count)

    def _loss(self, numbers: Any, term: Term | None) -> tuple[Any, Any]:
        rows = self.rows[numbers]
        logits = self.head.logits(rows)
        loss = binary_cross_entropy_with_logits(logits, self.aims[numbers])
        if self.optimizer.l2:
            loss = loss + self.optimizer.l2 * self.head.penalty()
        if term is not None:
            loss = loss + term(self.head, Batch(numbers, rows, logits))
        return loss, logits

    def soften(self, share: float) -> None:
        """Mix into the labels, by a share, the chances that the head gives now."""
        if share:
            self.aims = (
                share * torch.cat([torch.sigmoid(part) for part in self._scored()]) + (1.0 - share) * self.labels
            )

    def accuracy(self) -> float:
        """Accuracy of the head as it is now on all rows."""
        return float(((torch.cat(self._scored()) >= 0) == (self.labels > 0)).sum()) / len(self.labels)

    def _scored(self) -> list[Any]:
        """Log-odds of all rows, some at a time."""
        with torch.no_grad():
            return [self.head.logits(part) for part in self.rows.split(SCORED_AT_ONCE)]

    def snapshot(self) -> list[Any]:
        """Values of everything that is learned."""
        return [parameter.detach().clone() for parameter in self.head.parameters]

    def restore(self, values: list[Any]) -> None:
        """Go back to a snapshot."""
        with torch.no_grad():
            for parameter, value in zip(self.head.parameters, values, strict=True):
                parameter.copy_(value)
