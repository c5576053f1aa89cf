"""The terms All-Opt adds to the cross-entropy (Section 5.1 of the paper and its appendix on training)."""

from __future__ import annotations

from typing import Any

HALF = 0.5


def sev_loss(aligned: Any, margin: float = 0.0) -> Any:
    """How far queries are from being turned by one feature: the mean of ``max(least score, 0.5 - margin)``.

    The least score is over all ways to align one original feature with the reference, or with any of the references
    the query is compared with.

    Parameters
    ----------
    aligned : (queries, references, features) tensor
        Log-odds of each query with one feature aligned.
    margin : float
        How far below one half a score still counts. The paper's formula has none, which leaves explanations a hair
        below the threshold.

    Examples
    --------
    >>> import torch
    >>> probabilities = torch.tensor([[[0.9, 0.7]], [[0.2, 0.6]]])
    >>> round(float(sev_loss(torch.logit(probabilities))), 4)  # (0.7 + 0.5) / 2
    0.6
    """
    import torch

    least = torch.sigmoid(aligned.flatten(1).amin(dim=1))  # the sigmoid is increasing: one per query is enough
    return least.clamp(min=HALF - margin).mean()


def reference_loss(references: Any, margin: float = 0.05) -> Any:
    """What references cost that are not safely on the negative side: the mean of ``max(score, 0.5 - margin)``.

    The paper writes a sum over queries; a mean over the same keeps its weight when batches change size.

    Parameters
    ----------
    references : (queries, references) tensor
        Log-odds of the references that each query is compared with.
    margin : float

    Examples
    --------
    >>> import torch
    >>> round(float(reference_loss(torch.logit(torch.tensor([[0.3], [0.65]])))), 4)  # (0.45 + 0.65) / 2
    0.55
    """
    import torch

    return torch.sigmoid(references).clamp(min=HALF - margin).mean()


def anchored(aligned: Any, logits: Any) -> Any:
    """The same log-odds, without the way out of lowering every score alike.

    A model that decides against nobody needs no explanations: the plain loss rewards that, and accuracy pays. Here
    the mean score of a batch is left to the cross-entropy alone: values are unchanged, their gradient with respect
    to it is zero.

    Parameters
    ----------
    aligned : tensor
        Log-odds of aligned queries.
    logits : (n,) tensor
        Log-odds of all rows of the batch.

    Examples
    --------
    >>> import torch
    >>> bias = torch.tensor(1.0, requires_grad=True)
    >>> anchored(bias + torch.zeros(2), bias + torch.ones(3)).sum().backward()
    >>> float(bias.grad)
    0.0
    """
    level = logits.mean()
    return aligned - (level - level.detach())
