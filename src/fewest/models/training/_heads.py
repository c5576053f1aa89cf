"""Trainable models over encoded rows, which score every way to align one feature in a single pass.

A head sees a *batch*: ``rows``, whatever it makes of encoded rows, and ``targets``, whatever it needs of the references
that those rows are compared with. `Head.aligned` never loops over features: only what one feature adds is replaced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from fewest.tables.arrays import Floats, Ints


@dataclass(frozen=True)
class Blocks:
    """Which of ``count`` original features each encoded column belongs to: ``feature_of`` (columns,).

    A feature without columns changes nothing when it is aligned.
    """

    feature_of: Ints
    count: int


class Targets:
    """References as a head needs them, for some rows at a time; here by their encoded columns.

    ``references`` are rows that `Head.logits` takes, ``candidates`` (rows, k) the numbers of those that each row of the
    table is compared with.
    """

    def __init__(self, references: Any, candidates: Any) -> None:
        self.references = references
        self.candidates = candidates

    def __getitem__(self, numbers: Any) -> Any:
        """Of these rows, given by their numbers in the table: a tensor (n, k, ...)."""
        return self.references[self.candidates[numbers]]

    def aligned(self, head: Head, rows: Any, numbers: Any) -> Any:
        """Log-odds of these rows with one feature taken from each of their references: (n, k, features)."""
        return head.aligned(rows, self[numbers])

    def taken(self, head: Head, rows: Any, numbers: Any, reference: Any, feature: Any) -> Any:
        """These rows, each with one feature (n,) from one of its references (n,), as `Head.logits` takes them."""
        return head.taking(rows, self[numbers][torch.arange(len(rows), device=rows.device), reference], feature)


class RaisedTargets(Targets):
    """The other way round, for SEV+: references with one feature taken from the row."""

    def __init__(self, head: Head, Z: Floats, references: Floats, candidates: Ints) -> None:
        super().__init__(head.rows(references), torch.as_tensor(candidates, device=head.device))
        row = np.arange(len(Z)).repeat(candidates.shape[1])[:, None]
        self._rows = head.targets(references[candidates.ravel()], Z, row)

    def aligned(self, head: Head, rows: Any, numbers: Any) -> Any:
        """Log-odds of each row's references with one feature taken from the row: (n, k, features)."""
        start = self.references[self.candidates[numbers]]
        n, k = start.shape[:2]
        places = numbers[:, None] * k + torch.arange(k, device=numbers.device)
        return head.aligned(start.flatten(0, 1), self._rows[places.flatten()]).view(n, k, -1)

    def taken(self, head: Head, rows: Any, numbers: Any, reference: Any, feature: Any) -> Any:
        """One of each row's references (n,), with one feature (n,) from the row."""
        start = self.references[self.candidates[numbers, reference]]
        places = numbers * self.candidates.shape[1] + reference
        return head.taking(start, self._rows[places][:, 0], feature)


class Head(ABC):
    """What the trainer needs of a model; one that sees the encoded columns themselves, unless it says otherwise."""

    def __init__(self, blocks: Blocks, device: str) -> None:
        self.blocks, self.device = blocks, device
        self.feature_of = torch.as_tensor(blocks.feature_of, device=device)

    @property
    @abstractmethod
    def parameters(self) -> Sequence[Any]:
        """Tensors that are learned."""

    def rows(self, Z: Floats) -> Any:
        """Encoded rows (n, columns) as the tensor that `logits` takes, first axis n."""
        return torch.as_tensor(Z, dtype=torch.get_default_dtype(), device=self.device)

    def targets(self, Z: Floats, references: Floats, candidates: Ints) -> Targets:
        """What aligning needs, for rows (n, columns) that are compared with some of the references (n, k)."""
        return Targets(self.rows(references), torch.as_tensor(candidates, device=self.device))

    def taking(self, rows: Any, targets: Any, feature: Any) -> Any:
        """Rows, each with one feature (n,) as its target (n, ...) has it; again rows that `logits` takes."""
        return torch.where(self.feature_of == feature[:, None], targets, rows)

    @abstractmethod
    def logits(self, rows: Any) -> Any:
        """Log-odds of rows: (n,)."""

    def around(self, rows: Any, offsets: Any) -> Any:
        """Log-odds of rows with each of the offsets (samples, columns) added: (n, samples)."""
        return self.logits(rows[:, None, :] + offsets)

    @abstractmethod
    def aligned(self, rows: Any, targets: Any) -> Any:
        """Log-odds of rows with one feature aligned: (n, k, features)."""

    @abstractmethod
    def penalty(self) -> Any:
        """Squares that weight decay holds small: a number."""


class LinearHead(Head):
    """Logistic regression: log-odds ``bias + z @ weight``."""

    def __init__(self, blocks: Blocks, device: str) -> None:
        super().__init__(blocks, device)
        self.weight = torch.zeros(len(blocks.feature_of), device=device, requires_grad=True)
        self.bias = torch.zeros((), device=device, requires_grad=True)

    @property
    def parameters(self) -> Sequence[Any]:
        return [self.weight, self.bias]

    def logits(self, rows: Any) -> Any:
        return rows @ self.weight + self.bias

    def around(self, rows: Any, offsets: Any) -> Any:
        return self.logits(rows)[:, None] + offsets @ self.weight

    def aligned(self, rows: Any, targets: Any) -> Any:
        """Log-odds with one feature's share of the sum replaced."""
        change = (targets - rows[:, None, :]) * self.weight
        share = change.new_zeros(*change.shape[:2], self.blocks.count)
        return self.logits(rows)[:, None, None] + share.index_add(2, self.feature_of, change)

    def penalty(self) -> Any:
        return (self.weight**2).sum()


class NetworkHead(Head):
    """A net of fully connected layers with ReLU between them.

    Where a row has the value of its reference already, aligning that feature is not computed again.
    """

    def __init__(self, blocks: Blocks, hidden: Sequence[int], device: str, random_state: int) -> None:
        super().__init__(blocks, device)
        source = torch.Generator().manual_seed(random_state)
        self._of_column = torch.as_tensor(
            np.eye(blocks.count)[blocks.feature_of], dtype=torch.get_default_dtype(), device=device
        )
        self.weights: list[Any] = []
        self.biases: list[Any] = []
        for wide, narrow in pairwise([len(blocks.feature_of), *hidden, 1]):
            bound = (6.0 / (wide + narrow)) ** 0.5  # Glorot's, as scikit-learn starts its nets
            for kept, shape in ((self.weights, (wide, narrow)), (self.biases, (narrow,))):
                start = (2.0 * torch.rand(shape, generator=source) - 1.0) * bound
                kept.append(start.to(device).requires_grad_())

    @property
    def parameters(self) -> Sequence[Any]:
        return [*self.weights, *self.biases]

    def logits(self, rows: Any) -> Any:
        return self._after_first(rows @ self.weights[0] + self.biases[0])

    def around(self, rows: Any, offsets: Any) -> Any:
        """The first layer is linear: what rows and offsets add to it is computed once each."""
        first = rows @ self.weights[0] + self.biases[0]
        return self._after_first(first[:, None, :] + offsets @ self.weights[0])

    def aligned(self, rows: Any, targets: Any) -> Any:
        """Log-odds of the rows as they are, replaced where aligning a feature changes a column."""
        differ = (targets != rows[:, None, :]).to(rows.dtype)
        query, reference, feature = (differ @ self._of_column).nonzero(as_tuple=True)
        out = self.logits(rows)[:, None, None].repeat(1, targets.shape[1], self.blocks.count)
        out[query, reference, feature] = self.logits(self.taking(rows[query], targets[query, reference], feature))
        return out

    def penalty(self) -> Any:
        return sum((weight**2).sum() for weight in self.weights)

    def _after_first(self, values: Any) -> Any:
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            values = values.relu() @ weight + bias
        return values[..., 0]
