"""Figures of explanations: how few features, how close, how usual, how stable, and for which people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.credibility import Credibility
from fewest.errors import DataError, UsageError, check_count, check_number
from fewest.explainer import Explainer
from fewest.results.explanation import STATUSES, Status
from fewest.results.explanations import Explanations
from fewest.results.population import Population
from fewest.tables.arrays import Floats
from fewest.tables.closeness import as_numbers, feature_distances
from fewest.tables.schema import Schema

EXPLAINED, UNREACHABLE, NEGATIVE = (
    STATUSES.index(status) for status in (Status.EXPLAINED, Status.UNREACHABLE, Status.ALREADY_NEGATIVE)
)


@dataclass(frozen=True)
class Sparsity:
    """SEV over the explained cases; outcomes that are not numbers are counted beside it (rule 3).

    Of the ``n`` explained cases ``share_one`` have SEV 1; the mean is NaN where there are none. ``unreachable``,
    ``not_credible`` and ``stopped`` cases are refused and have no SEV: proved impossible, not credible, stopped
    by the budget.
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


@dataclass(frozen=True)
class Closeness:
    """Distances over the explained cases; NaN where there are none.

    Cases that change no number count, with distance zero (rule 11). The paper's figures leave such cases out, and are
    means under one heading and medians under the other; both are given here, over the same cases.

    ``l_inf`` is the largest change of a number and ``l2`` the Euclidean length of the change of all numbers, both in
    standard deviations; ``l0`` counts the features changed. ``gower`` is the mean over all features of the change: as a
    share of the range seen for numbers, 1 for anything else that changes.
    """

    n: int
    median_l_inf: float
    mean_l_inf: float
    mean_l0: float
    median_l2: float
    mean_l2: float
    median_gower: float
    mean_gower: float


def closeness(out: Explanations) -> Closeness:
    """Median and mean distance between cases and what they were turned into.

    Examples
    --------
    >>> import fewest as fw
    >>> X = pd.DataFrame({"debt": [0, 10, 70, 90]})
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [10]}, X=X)
    >>> near = closeness(fw.Explainer(decision, refs).explain(X))
    >>> near.n, round(near.mean_gower, 3)
    (2, 0.778)
    """
    explained = out.answers.status == EXPLAINED
    if not explained.any():
        return Closeness(0, *(float("nan"),) * 7)
    schema, start = out.schema, out.frame
    if out.plus:  # it starts at the reference
        start = out.references.frame.iloc[np.maximum(out.answers.reference, 0)].set_index(start.index)
    steps = feature_distances(schema, start[explained], out.turned()[explained], np.arange(explained.sum()))
    numeric = np.array([feature.is_numeric for feature in schema.features])
    numbers = np.where(numeric, steps, 0.0)
    l_inf, l2 = numbers.max(axis=1), np.sqrt((numbers**2).sum(axis=1))
    gower = _shares_of_range(schema, steps).mean(axis=1)
    return Closeness(
        n=len(steps),
        median_l_inf=float(np.median(l_inf)),
        mean_l_inf=float(l_inf.mean()),
        mean_l0=float((steps > 0).sum(axis=1).mean()),
        median_l2=float(np.median(l2)),
        mean_l2=float(l2.mean()),
        median_gower=float(np.median(gower)),
        mean_gower=float(gower.mean()),
    )


def _shares_of_range(schema: Schema, steps: Floats) -> Floats:
    """Changes of numbers as a share of the range seen; of anything else, whether it changes."""
    shares = np.where(steps > 0, 1.0, 0.0)
    for j, feature in enumerate(schema.features):
        width = feature.maximum - feature.minimum
        if feature.is_numeric and np.isfinite(width) and width > 0:
            # A value that is lost or found counts as one standard deviation, as in all distances here.
            shares[:, j] = np.minimum(1.0, steps[:, j] * feature.scale / width)
    return shares


@dataclass(frozen=True)
class Likelihood:
    """Log-densities over the explained cases; NaN where there are none.

    Mean and median are of what the ``n`` explained cases were turned into; ``share_credible`` of these are at or above
    the credibility's floor.
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
        raise UsageError("SEV+ leads to refused cases; a density of accepted cases says nothing of them",
                         do='explain with direction="minus"')  # fmt: skip
    explained = out.answers.status == EXPLAINED
    if not explained.any():
        return Likelihood(0, np.nan, np.nan, np.nan)
    values = credibility.log_density(out.turned()[explained])
    share = float((values >= credibility.floor).mean())
    return Likelihood(len(values), float(values.mean()), float(np.median(values)), share)


@dataclass(frozen=True)
class Stability:
    """How often the set of features changes under measurement noise; NaN where no case is explained.

    In ``share_changed`` of all draws of the ``n`` explained cases the set is another one, or there is none, and in
    ``share_turned`` of them because the noise alone changes the outcome; ``share_ever_changed`` of the cases have such
    a draw.
    """

    n: int
    share_changed: float
    share_ever_changed: float
    share_turned: float


def stability(explainer: Explainer, X: Any, noise: float = 0.05, repeats: int = 5, random_state: int = 0) -> Stability:
    """Share of cases whose set of features changes when their numbers move by measurement noise.

    Parameters
    ----------
    explainer : Explainer
    X : table
        Cases.
    noise : float
        Standard deviation of the noise, in standard deviations of each number. Moved numbers are typed like the
        feature, and stay within the range seen: a whole number moves by whole steps, or not at all.
    repeats : int
        Draws per case.
    random_state : int

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> stability(fw.Explainer(decision, fw.references.single(decision, X, y)), X)
    Stability(n=2, share_changed=0.0, share_ever_changed=0.0, share_turned=0.0)
    """
    check_number("noise", noise, "use a share of a standard deviation, e.g. 0.05", least=0)
    check_count("repeats", repeats)
    out = explainer.explain(X)
    explained = out.answers.status == EXPLAINED
    if not explained.any():
        return Stability(0, np.nan, np.nan, np.nan)
    cases, sets = out.frame[explained], out.answers.moved[explained]
    random = np.random.default_rng(random_state)
    draws = [explainer.explain(_shaken(out.schema, cases, noise, random)) for _ in range(repeats)]
    changed = np.array(
        [(draw.answers.status != EXPLAINED) | (draw.answers.moved != sets).any(axis=1) for draw in draws]
    )
    turned = np.array([draw.answers.status == NEGATIVE for draw in draws])
    return Stability(len(cases), float(changed.mean()), float(changed.any(axis=0).mean()), float(turned.mean()))


def _shaken(schema: Schema, cases: pd.DataFrame, noise: float, random: np.random.Generator) -> pd.DataFrame:
    """Cases whose numbers have moved, typed; missing values stay missing."""
    moved = {}
    for feature in schema.features:
        if not feature.is_numeric:
            continue
        column = cases[feature.columns[0]]
        numbers = as_numbers(column, feature)
        steps = random.normal(scale=noise * feature.scale, size=len(numbers))
        # A case outside the range seen stays where it is rather than being pulled inside.
        low, high = np.minimum(numbers, feature.minimum), np.maximum(numbers, feature.maximum)
        rounded = np.round(np.clip(numbers + steps, low, high), feature.decimals)
        moved[feature.columns[0]] = pd.Series(np.where(steps == 0, numbers, rounded), index=cases.index)
    return schema.conform(cases.assign(**moved), unseen="allow")


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
        One row per group, in order: ``n`` refused cases, ``explained``, ``mean_sev`` with ``low`` and ``high``,
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
    n = len(values)
    if n < 2:
        return float(values.mean()) if n else np.nan, np.nan, np.nan
    return _interval(float(values.mean()), values.var(ddof=1) / n, n - 1, level)


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
    return _interval(gap, one + two, freedom, level)


def _interval(middle: float, variance: float, freedom: float, level: float) -> tuple[float, float, float]:
    """A figure with its t interval."""
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, (1 + level) / 2) * np.sqrt(variance))
    return middle, middle - half, middle + half
