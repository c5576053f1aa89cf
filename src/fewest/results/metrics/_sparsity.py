"""How few features turn a decision (the paper's mean SEV)."""

from __future__ import annotations

from dataclasses import dataclass

from fewest.results.explanation import Status
from fewest.results.population import Population


@dataclass(frozen=True)
class Sparsity:
    """SEV over the explained cases; outcomes that are not numbers are counted beside it (rule 3).

    Attributes
    ----------
    n : int
        Explained cases.
    mean_sev : float
        NaN where no case is explained.
    share_one : float
        Share of them with SEV 1.
    largest : int
    unreachable, not_credible, stopped : int
        Cases decided against that have no SEV: proved impossible, not credible, stopped by the budget.
    """

    n: int
    mean_sev: float
    share_one: float
    largest: int
    unreachable: int
    not_credible: int
    stopped: int


def sparsity(out: Population) -> Sparsity:
    """Mean SEV and the share of cases that a single feature turns.

    Examples
    --------
    >>> import fewest as fw, pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> sparsity(fw.Explainer(decision, fw.references.single(decision, X, y)).explain(X)).mean_sev
    1.0
    """
    tally = out.tally
    return Sparsity(
        n=tally.explained,
        mean_sev=tally.mean_sev,
        share_one=tally.share_one,
        largest=tally.largest,
        unreachable=tally.count(Status.UNREACHABLE),
        not_credible=tally.count(Status.NOT_CREDIBLE),
        stopped=tally.count(Status.BUDGET),
    )
