"""Trainable models over encoded rows, which score every way to align one feature in a single pass.

A head sees a *batch*: ``rows``, whatever it makes of encoded rows, and ``targets``, whatever it needs of the references
that those rows are compared with. `Head.aligned` never loops over features: only what one feature adds is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """Which original feature each encoded column belongs to.

    Attributes
    ----------
    feature_of : (columns,) int64
        Number of the feature; every column belongs to one.
    count : int
        How many original features there are; one without columns changes nothing when it is aligned.

    Examples
    --------
    >>> Blocks(np.array([0, 1, 1]), 2).count
    2
    """

    feature_of: Ints
    count: int


class Head(Protocol):
    """What the trainer needs of a model."""

    @property
    def parameters(self) -> Sequence[Any]:
        """Tensors that are learned."""
        ...

    def rows(self, Z: Floats) -> Any:
        """Encoded rows (n, columns) as the tensor that `logits` takes, first axis n."""
        ...

    def targets(self, Z: Floats, references: Floats, candidates: Ints) -> Targets:
        """What aligning needs, for rows (n, columns) that are compared with some of the references (n, k)."""
        ...

    def logits(self, rows: Any) -> Any:
        """Log-odds of rows: (n,)."""
        ...

    def aligned(self, rows: Any, targets: Any) -> Any:
        """Log-odds of rows with one feature aligned: (n, k, features)."""
        ...

    def penalty(self) -> Any:
        """Squares that weight decay holds small: a number."""
        ...


class Targets(Protocol):
    """References as a head needs them, for some rows at a time."""

    def __getitem__(self, numbers: Any) -> Any:
        """Of these rows, given by their numbers in the table: a tensor with these as its first axis."""
        ...

    @property
    def references(self) -> Any:
        """The references themselves as rows that `Head.logits` takes."""
        ...

    @property
    def candidates(self) -> Any:
        """Numbers of the references each row of the table is compared with: a tensor (rows, k)."""
        ...


class EncodedTargets:
    """References by their encoded columns."""

    def __init__(self, references: Any, candidates: Any) -> None:
        self.references = references
        self.candidates = candidates

    def __getitem__(self, numbers: Any) -> Any:
        """Encoded references (n, k, columns) of some rows."""
        return self.references[self.candidates[numbers]]


class LinearHead:
    """Logistic regression: log-odds ``bias + z @ weight``.

    Examples
    --------
    >>> import torch
    >>> head = LinearHead(Blocks(np.array([0, 1]), 2), "cpu")
    >>> with torch.no_grad():
    ...     _ = head.weight.copy_(torch.tensor([1.0, 2.0]))
    >>> Z = np.array([[3.0, 5.0]])
    >>> targets = head.targets(Z, np.zeros((1, 2)), np.zeros((1, 1), dtype=np.int64))
    >>> head.logits(head.rows(Z)).tolist(), head.aligned(head.rows(Z), targets[[0]]).tolist()
    ([13.0], [[[10.0, 3.0]]])
    """

    def __init__(self, blocks: Blocks, device: str) -> None:
        import torch

        self.device = device
        self.blocks = blocks
        self.feature_of = torch.as_tensor(blocks.feature_of, device=device)
        self.weight = torch.zeros(len(blocks.feature_of), device=device, requires_grad=True)
        self.bias = torch.zeros((), device=device, requires_grad=True)

    @property
    def parameters(self) -> Sequence[Any]:
        """Weight and bias."""
        return [self.weight, self.bias]

    def rows(self, Z: Floats) -> Any:
        """The encoded columns themselves."""
        return _tensor(Z, self.device)

    def targets(self, Z: Floats, references: Floats, candidates: Ints) -> EncodedTargets:
        """The encoded references."""
        return _encoded_targets(references, candidates, self.device)

    def logits(self, rows: Any) -> Any:
        """Log-odds (n,)."""
        return rows @ self.weight + self.bias

    def aligned(self, rows: Any, targets: Any) -> Any:
        """Log-odds with one feature's share of the sum replaced: (n, k, features)."""
        change = (targets - rows[:, None, :]) * self.weight
        share = change.new_zeros(*change.shape[:2], self.blocks.count)
        return self.logits(rows)[:, None, None] + share.index_add(2, self.feature_of, change)

    def penalty(self) -> Any:
        """Squared weights."""
        return (self.weight**2).sum()


class NetworkHead:
    """A net of fully connected layers with ReLU between them.

    Aligning a feature changes what it adds to the first layer, a rank-one update where it has one column; only the
    layers after it are computed for every feature.

    Examples
    --------
    >>> head = NetworkHead(Blocks(np.array([0, 1, 1]), 2), (8, 4), "cpu", random_state=0)
    >>> [tuple(weight.shape) for weight in head.weights]
    [(3, 8), (8, 4), (4, 1)]
    """

    def __init__(self, blocks: Blocks, hidden: Sequence[int], device: str, random_state: int) -> None:
        import torch

        self.device = device
        self.blocks = blocks
        self.feature_of = torch.as_tensor(blocks.feature_of, device=device)
        source = torch.Generator().manual_seed(random_state)
        sizes = [len(blocks.feature_of), *hidden, 1]
        self.weights: list[Any] = []
        self.biases: list[Any] = []
        for wide, narrow in pairwise(sizes):
            bound = (6.0 / (wide + narrow)) ** 0.5  # Glorot's, as scikit-learn starts its nets
            for kept, shape in ((self.weights, (wide, narrow)), (self.biases, (narrow,))):
                start = (2.0 * torch.rand(shape, generator=source) - 1.0) * bound
                kept.append(start.to(device).requires_grad_())

    @property
    def parameters(self) -> Sequence[Any]:
        """Weights, then biases."""
        return [*self.weights, *self.biases]

    def rows(self, Z: Floats) -> Any:
        """The encoded columns themselves."""
        return _tensor(Z, self.device)

    def targets(self, Z: Floats, references: Floats, candidates: Ints) -> EncodedTargets:
        """The encoded references."""
        return _encoded_targets(references, candidates, self.device)

    def logits(self, rows: Any) -> Any:
        """Log-odds (n,)."""
        return self._after_first(rows @ self.weights[0] + self.biases[0])

    def aligned(self, rows: Any, targets: Any) -> Any:
        """Log-odds with one feature's part of the first layer replaced: (n, k, features)."""
        first = rows @ self.weights[0] + self.biases[0]
        change = targets - rows[:, None, :]
        n, k, _ = change.shape
        part = change.new_zeros(n, k, self.blocks.count, first.shape[1])
        part = part.index_add(2, self.feature_of, change[..., None] * self.weights[0])
        return self._after_first(first[:, None, None, :] + part)

    def penalty(self) -> Any:
        """Squared weights."""
        return sum((weight**2).sum() for weight in self.weights)

    def _after_first(self, values: Any) -> Any:
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            values = values.relu() @ weight + bias
        return values[..., 0]


def _tensor(Z: Floats, device: str) -> Any:
    import torch

    return torch.as_tensor(Z, dtype=torch.get_default_dtype(), device=device)


def _encoded_targets(references: Floats, candidates: Ints, device: str) -> EncodedTargets:
    import torch

    return EncodedTargets(_tensor(references, device), torch.as_tensor(candidates, device=device))
