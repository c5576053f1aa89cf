"""Whether the answer stays the same when a case's numbers are measured a little differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import check_count, check_number
from fewest.explainer import Explainer
from fewest.results.explanation import STATUSES, Status
from fewest.results.explanations import Explanations
from fewest.tables.closeness import as_numbers
from fewest.tables.schema import Schema

EXPLAINED = STATUSES.index(Status.EXPLAINED)
ALREADY_NEGATIVE = STATUSES.index(Status.ALREADY_NEGATIVE)


@dataclass(frozen=True)
class Stability:
    """How often the set of features changes under measurement noise; NaN where no case is explained.

    Attributes
    ----------
    n : int
        Explained cases.
    share_changed : float
        Share of all draws in which the set is another one, or there is none.
    share_ever_changed : float
        Share of the cases for which that happens in any draw.
    share_turned : float
        Share of all draws in which the noise alone turns the decision; part of ``share_changed``.
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
    changed = np.array([_other(draw, sets) for draw in draws])
    turned = np.array([draw.answers.status == ALREADY_NEGATIVE for draw in draws])
    return Stability(len(cases), float(changed.mean()), float(changed.any(axis=0).mean()), float(turned.mean()))


def _other(draw: Explanations, sets: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return np.asarray((draw.answers.status != EXPLAINED) | (draw.answers.moved != sets).any(axis=1))


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
