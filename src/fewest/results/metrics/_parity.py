"""Whether some groups of people need more changes than others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import DataError, UsageError
from fewest.results.explanation import STATUSES, Status
from fewest.results.explanations import Explanations
from fewest.tables.arrays import Floats

EXPLAINED, UNREACHABLE, NEGATIVE = (
    STATUSES.index(status) for status in (Status.EXPLAINED, Status.UNREACHABLE, Status.ALREADY_NEGATIVE)
)


def parity(out: Explanations, by: Any, level: float = 0.95) -> pd.DataFrame:
    """SEV by group, with intervals.

    Parameters
    ----------
    out : Explanations
    by : (n,) labels
        Group of each case, e.g. the column of a protected feature. Cases without one (missing) are left out.
    level : float
        Confidence of the intervals: t intervals for means, Welch's for differences. They take cases as a sample of
        independent draws, and are NaN where a group has fewer than two explained cases.

    Returns
    -------
    DataFrame
        One row per group, in order: ``n`` cases decided against, ``explained``, ``mean_sev`` with ``low`` and ``high``,
        ``share_unreachable`` of the ``n``, and ``difference``, the mean SEV less that of everybody else, with
        ``difference_low`` and ``difference_high``.

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> out = fw.Explainer(decision, fw.references.single(decision, X, y)).explain(X)
    >>> parity(out, ["a", "b", "a", "b"])[["n", "mean_sev", "difference"]]
           n  mean_sev  difference
    group
    a      1       1.0         0.0
    b      1       1.0         0.0
    """
    if not 0 < level < 1:
        raise UsageError(f"level is {level!r}", do="use a number between 0 and 1, e.g. 0.95")
    labels = pd.Series(np.asarray(by, dtype=object))
    if labels.shape != (len(out),):
        raise DataError(f"there are {len(out)} cases but groups of shape {np.shape(by)}", do="pass one per case")
    status = out.answers.status
    against, explained = status != NEGATIVE, status == EXPLAINED
    sev = out.answers.moved.sum(axis=1).astype(float)
    known = labels.notna().to_numpy()
    rows = {}
    for group in sorted(labels[known].unique(), key=lambda label: (str(type(label)), str(label))):
        inside = (labels == group).to_numpy(dtype=bool)
        own, others = sev[explained & inside], sev[explained & ~inside & known]
        n = int((against & inside).sum())
        impossible = int((inside & (status == UNREACHABLE)).sum())
        rows[group] = (
            n, len(own), *_mean(own, level), impossible / n if n else np.nan, *_difference(own, others, level)
        )  # fmt: skip
    columns = ["n", "explained", "mean_sev", "low", "high", "share_unreachable", "difference", "difference_low",
               "difference_high"]  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("group")


def _mean(values: Floats, level: float) -> tuple[float, float, float]:
    """Mean with its t interval."""
    if len(values) == 0:
        return np.nan, np.nan, np.nan
    mean = float(values.mean())
    if len(values) < 2:
        return mean, np.nan, np.nan
    half = _quantile(level, len(values) - 1) * float(values.std(ddof=1)) / np.sqrt(len(values))
    return mean, mean - half, mean + half


def _difference(own: Floats, others: Floats, level: float) -> tuple[float, float, float]:
    """Difference of two means with Welch's interval."""
    if len(own) == 0 or len(others) == 0:
        return np.nan, np.nan, np.nan
    gap = float(own.mean() - others.mean())
    if len(own) < 2 or len(others) < 2:
        return gap, np.nan, np.nan
    one, two = own.var(ddof=1) / len(own), others.var(ddof=1) / len(others)
    if one + two == 0:
        return gap, gap, gap
    freedom = (one + two) ** 2 / (one**2 / (len(own) - 1) + two**2 / (len(others) - 1))
    half = _quantile(level, float(freedom)) * float(np.sqrt(one + two))
    return gap, gap - half, gap + half


def _quantile(level: float, freedom: float) -> float:
    """Quantile of the t distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))
