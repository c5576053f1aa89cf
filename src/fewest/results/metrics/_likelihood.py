"""How usual the cases are that explanations lead to (the paper's credibility)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewest.credibility import Credibility
from fewest.errors import UsageError
from fewest.results.explanation import STATUSES, Status
from fewest.results.explanations import Explanations


@dataclass(frozen=True)
class Likelihood:
    """Log-densities over the explained cases; NaN where there are none.

    Attributes
    ----------
    n : int
        Explained cases.
    mean, median : float
        Of the log-densities of what cases were turned into.
    share_credible : float
        Share of them at or above the credibility's floor.
    """

    n: int
    mean: float
    median: float
    share_credible: float


def likelihood(out: Explanations, credibility: Credibility) -> Likelihood:
    """Mean and median log-density of explanations, whether or not they were searched for with this density.

    Examples
    --------
    >>> import fewest as fw, pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 8, 9], "age": [30, 40, 50, 30, 50]}); y = [0, 0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> out = fw.Explainer(decision, fw.references.single(decision, X, y)).explain(X)
    >>> dense = fw.credibility.supplied(decision, X, y, lambda rows: -abs(rows["age"] - 40.0))
    >>> likelihood(out, dense).mean
    -10.0
    """
    if out.plus:
        raise UsageError("SEV+ leads to cases decided against; a density of accepted cases says nothing of them",
                         do='explain with direction="minus"')  # fmt: skip
    explained = out.answers.status == STATUSES.index(Status.EXPLAINED)
    if not explained.any():
        return Likelihood(0, np.nan, np.nan, np.nan)
    values = credibility.log_density(out.turned()[explained])
    share = float((values >= credibility.floor).mean())
    return Likelihood(len(values), float(values.mean()), float(np.median(values)), share)
