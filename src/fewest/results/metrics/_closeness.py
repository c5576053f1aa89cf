"""How far explanations are from their cases. Cases that change no number count, with distance zero (rule 11).

The paper's figures leave such cases out, and are means under one heading and medians under the other; both are given
here, over the same cases.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.results.explanation import STATUSES, Status
from fewest.results.explanations import Explanations
from fewest.tables.arrays import Floats
from fewest.tables.closeness import feature_distances
from fewest.tables.schema import Schema


@dataclass(frozen=True)
class Closeness:
    """Distances over the explained cases; NaN where there are none.

    Attributes
    ----------
    n : int
        Explained cases.
    median_l_inf, mean_l_inf : float
        Largest change of a number, in standard deviations.
    mean_l0 : float
        Features changed.
    median_l2, mean_l2 : float
        Euclidean length of the change of all numbers, in standard deviations.
    median_gower, mean_gower : float
        Mean over all features of the change: as a share of the range seen for numbers, 1 for anything else that
        changes.
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
    explained = out.answers.status == STATUSES.index(Status.EXPLAINED)
    if not explained.any():
        return Closeness(0, *(float("nan"),) * 7)
    start, after = _ends(out, explained)
    schema = out.schema
    steps = feature_distances(schema, start, after, np.arange(len(start)))
    numeric = np.array([feature.is_numeric for feature in schema.features])
    numbers = np.where(numeric, steps, 0.0)
    l_inf, l2 = numbers.max(axis=1), np.sqrt((numbers**2).sum(axis=1))
    gower = _shares_of_range(schema, steps).mean(axis=1)
    return Closeness(
        n=len(start),
        median_l_inf=float(np.median(l_inf)),
        mean_l_inf=float(l_inf.mean()),
        mean_l0=float((steps > 0).sum(axis=1).mean()),
        median_l2=float(np.median(l2)),
        mean_l2=float(l2.mean()),
        median_gower=float(np.median(gower)),
        mean_gower=float(gower.mean()),
    )


def _ends(out: Explanations, chosen: npt.NDArray[np.bool_]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows as they are and as they were turned; SEV+ starts at the reference."""
    start = out.frame
    if out.plus:
        start = out.references.frame.iloc[np.maximum(out.answers.reference, 0)].set_index(start.index)
    return start[chosen], out.turned()[chosen]


def _shares_of_range(schema: Schema, steps: Floats) -> Floats:
    """Changes of numbers as a share of the range seen; of anything else, whether it changes."""
    shares = np.where(steps > 0, 1.0, 0.0)
    for j, feature in enumerate(schema.features):
        width = feature.maximum - feature.minimum
        if feature.is_numeric and np.isfinite(width) and width > 0:
            # A value that is lost or found counts as one standard deviation, as in all distances here.
            shares[:, j] = np.minimum(1.0, steps[:, j] * feature.scale / width)
    return shares
