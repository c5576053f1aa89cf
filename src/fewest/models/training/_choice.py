"""Which stop of a path is kept: the sparsest of those that are nearly as good as the best."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import FewestWarning
from fewest.models.training._path import Stop, Tally

SAME = 1e-12


def point(stop: Stop, tallies: Sequence[Tally]) -> dict[str, Any]:
    """Figures of a stop, over all folds.

    Examples
    --------
    >>> folds = [Tally(10, 8, 0.7, 4, 4, 6, 2), Tally(10, 6, 0.9, 2, 0, 0, 0)]
    >>> point(Stop(0.1, 1.0), folds) == {
    ...     "c1": 0.1, "c2": 1.0, "accuracy": 0.7, "roc_auc": 0.8, "mean_sev": 1.5, "share_one": 0.5,
    ...     "positives": 6, "unreachable": 2}
    True
    """
    rows, right, _, positives, explained, features, ones = (sum(column) for column in zip(*tallies, strict=True))
    return {
        **stop._asdict(),
        "accuracy": right / rows,
        "roc_auc": float(np.mean([tally.roc_auc for tally in tallies])),
        "mean_sev": features / explained if explained else np.nan,
        "share_one": ones / explained if explained else np.nan,
        "positives": positives,
        "unreachable": positives - explained,
    }


def words(figures: dict[str, Any]) -> str:
    """A stop in one line.

    Examples
    --------
    >>> words(point(Stop(0.1, 1.0), [Tally(10, 8, 0.7, 4, 4, 6, 2)]))
    'c1 0.1  accuracy 0.800  AUC 0.700  mean SEV 1.50 over 4 rows'
    """
    sev = "-" if np.isnan(figures["mean_sev"]) else f"{figures['mean_sev']:.2f}"
    return (
        f"c1 {figures['c1']:g}  accuracy {figures['accuracy']:.3f}  AUC {figures['roc_auc']:.3f}  "
        f"mean SEV {sev} over {figures['positives'] - figures['unreachable']:,} rows"
    )


def mark(
    points: pd.DataFrame,
    measures: Sequence[str],
    tolerance: float,
    max_unreachable: float,
    baseline: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """The same stops, with ``pareto``, ``within`` and ``chosen``; see `AllOptSearchCV.front_`.

    Stops without rows decided positive, or with too many that have no SEV, are out of the race. Among those within
    the tolerance of the best that are left, the least mean SEV is taken, then the best measures, then the first. Where
    none is within in all measures, the one that lacks least is taken. The best is the baseline where one is given.

    Examples
    --------
    >>> points = pd.DataFrame({"roc_auc": [0.8, 0.795, 0.7], "mean_sev": [2.0, 1.5, 1.0], "positives": 9,
    ...                        "unreachable": 0})
    >>> mark(points, ["roc_auc"], 0.01, 0.05)[["pareto", "within", "chosen"]]
       pareto  within  chosen
    0    True    True   False
    1    True    True    True
    2    True   False   False
    """
    usable = points["mean_sev"].notna() & (points["unreachable"] <= max_unreachable * points["positives"])
    table = points.assign(pareto=_undominated(points, measures, usable.to_numpy(dtype=bool)), within=False)
    chosen = 0
    if usable.any():
        lack = _lack(points, measures, usable, baseline)
        table["within"] = usable & (lack <= tolerance + SAME)
        near = np.flatnonzero(table["within"])
        chosen = _sparsest(points, measures, near) if len(near) else int(lack.where(usable, np.inf).to_numpy().argmin())
    else:
        warnings.warn(
            "at no value of c1 are rows held out decided positive and can be turned; the model of the warm-up is kept",
            FewestWarning,
            stacklevel=3,
        )
    table["chosen"] = np.arange(len(table)) == chosen
    return table


def _lack(
    points: pd.DataFrame, measures: Sequence[str], usable: pd.Series[bool], baseline: Mapping[str, float] | None
) -> pd.Series[float]:
    """How much each stop is behind the best, in the measure where that is most."""
    values = points[list(measures)]
    best = values[usable].max() if baseline is None else pd.Series({name: baseline[name] for name in measures})
    return (best - values).max(axis=1)


def _sparsest(points: pd.DataFrame, measures: Sequence[str], rows: npt.NDArray[np.intp]) -> int:
    left = points.iloc[rows]
    order = np.lexsort((-left[list(measures)].sum(axis=1).round(12), left["mean_sev"].round(12)))
    return int(rows[order[0]])


def _undominated(points: pd.DataFrame, measures: Sequence[str], usable: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Stops in the race that no other matches in everything and beats in something."""
    values = np.column_stack([points[list(measures)].to_numpy(dtype=float), -points["mean_sev"].to_numpy(dtype=float)])
    out = usable.copy()
    for row in np.flatnonzero(usable):
        matched = (values >= values[row]).all(axis=1) & (values > values[row]).any(axis=1)
        out[row] = not (matched & usable).any()
    return out
