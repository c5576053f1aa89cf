"""Gradient descent on a head: cross-entropy, and what is added to it in the second phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fewest.models.training._heads import Head
from fewest.models.training._settings import Schedule

AT_ONCE = 8192  # rows scored at a time


class Batch(NamedTuple):
    """Rows of one step.

    Attributes
    ----------
    numbers : (b,) tensor
        Their places in the training table.
    rows : tensor
        As the head takes them.
    logits : (b,) tensor
        Their log-odds.
    """

    numbers: Any
    rows: Any
    logits: Any


class Term(Protocol):
    """Something added to the cross-entropy."""

    def __call__(self, head: Head, batch: Batch) -> Any:
        """Its value on a batch."""
        ...


class Epoch(NamedTuple):
    """What one pass over the rows came to.

    Attributes
    ----------
    phase : str
    loss : float
        Mean over the steps.
    accuracy : float
        Of the rows as they were met.
    """

    phase: str
    loss: float
    accuracy: float


class Trainer:
    """Trains one head on one table, phase after phase.

    Parameters
    ----------
    head : Head
    rows : tensor
        All training rows, as the head takes them.
    positive : (n,) bool
    schedule : Schedule
    random_state : int
        Decides the order of rows.
    on_epoch : callable
        Called with every `Epoch`.

    Examples
    --------
    >>> from fewest.models.training._heads import Blocks, LinearHead
    >>> head = LinearHead(Blocks(np.array([0]), 1), "cpu")
    >>> schedule = Schedule(batch_size=2, learning_rate=0.1, shape="constant", l2=0.0)
    >>> trainer = Trainer(head, head.rows(np.array([[-1.0], [1.0]])), np.array([False, True]), schedule, 0)
    >>> trainer.run("warm-up", 50)
    >>> head.logits(trainer.rows).tolist()[0] < -1
    True
    """

    def __init__(
        self,
        head: Head,
        rows: Any,
        positive: npt.NDArray[np.bool_],
        schedule: Schedule,
        random_state: int,
        on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    ) -> None:
        import torch

        self.head = head
        self.rows = rows
        self.labels = torch.as_tensor(positive, dtype=torch.get_default_dtype(), device=rows.device)
        self.aims = self.labels
        self.schedule = schedule
        self.on_epoch = on_epoch
        self.source = torch.Generator().manual_seed(random_state)
        self.used, self.held = self._held_out(len(positive))

    def _held_out(self, n: int) -> tuple[Any, Any]:
        """Numbers of the rows to learn from, and of those that say when to stop."""
        import torch

        order = torch.randperm(n, generator=self.source)
        count = 0 if self.schedule.patience is None else max(1, int(n * self.schedule.validation_fraction))
        return order[count:].to(self.rows.device), order[:count].to(self.rows.device)

    def run(
        self, phase: str, epochs: int, term: Term | None = None, before: Callable[[int], None] | None = None
    ) -> None:
        """Train for some epochs; with early stopping, keep the best of them by the loss on the rows held out.

        Parameters
        ----------
        phase : str
        epochs : int
        term : Term, optional
            Added to the cross-entropy.
        before : callable, optional
            Called with the number of each epoch, from 0 on, before it begins.
        """
        import torch

        optimizer = torch.optim.Adam(self.head.parameters, lr=self.schedule.learning_rate)
        best, waited, kept = np.inf, 0, None
        for epoch in range(epochs):
            if before is not None:
                before(epoch)
            self.on_epoch(self._epoch(phase, optimizer, epoch / epochs, 1.0 / epochs, term))
            if self.schedule.patience is None:
                continue
            with torch.no_grad():
                loss = float(self._loss(self.held, term)[0])
            if loss < best:
                best, waited, kept = loss, 0, self.snapshot()
            else:
                waited += 1
                if waited > self.schedule.patience:
                    break
        if kept is not None:
            self.restore(kept)

    def _epoch(self, phase: str, optimizer: Any, begun: float, length: float, term: Term | None) -> Epoch:
        import torch

        order = self.used[torch.randperm(len(self.used), generator=self.source).to(self.used.device)]
        steps = order.split(self.schedule.batch_size)
        total = torch.zeros((), device=self.rows.device)
        right = torch.zeros((), device=self.rows.device)
        for step, numbers in enumerate(steps):
            for group in optimizer.param_groups:
                group["lr"] = self.schedule.rate_at(begun + length * step / len(steps))
            optimizer.zero_grad()
            loss, logits = self._loss(numbers, term)
            loss.backward()
            optimizer.step()
            # Kept on the device: asking for a number would wait for it.
            total += loss.detach() * len(numbers)
            right += ((logits.detach() >= 0) == (self.labels[numbers] > 0)).sum()
        count = max(1, len(order))
        return Epoch(phase, float(total) / count, float(right) / count)

    def _loss(self, numbers: Any, term: Term | None) -> tuple[Any, Any]:
        from torch.nn.functional import binary_cross_entropy_with_logits

        rows = self.rows[numbers]
        logits = self.head.logits(rows)
        loss = binary_cross_entropy_with_logits(logits, self.aims[numbers])
        if self.schedule.l2:
            loss = loss + self.schedule.l2 * self.head.penalty()
        if term is not None:
            loss = loss + term(self.head, Batch(numbers, rows, logits))
        return loss, logits

    def soften(self, share: float) -> None:
        """Mix into the labels, by a share, the chances that the head gives now."""
        import torch

        if share:
            with torch.no_grad():
                given = torch.cat([torch.sigmoid(self.head.logits(part)) for part in self.rows.split(AT_ONCE)])
            self.aims = share * given + (1.0 - share) * self.labels

    def snapshot(self) -> list[Any]:
        """Values of everything that is learned."""
        return [parameter.detach().clone() for parameter in self.head.parameters]

    def restore(self, values: list[Any]) -> None:
        """Go back to a snapshot."""
        import torch

        with torch.no_grad():
            for parameter, value in zip(self.head.parameters, values, strict=True):
                parameter.copy_(value)
