"""How many features must change, by group of people: each level of a column, or each quarter of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fewest.tables.schema import Feature

LEVELS = 12  # further levels are gathered under "others"
NORMAL = 1.96
MISSING, OTHERS = "missing", "others"
Part = tuple["pd.Series[Any]", pd.DataFrame]


@dataclass(frozen=True)
class GroupLine:
    """One group.

    Attributes
    ----------
    name : str
    cases, against, explained : int
        Cases, those decided against, and those of them that are explained.
    mean_sev, low, high : float or None
        Mean number of features changed with its 95 % interval; None where it is not known.
    """

    name: str
    cases: int
    against: int
    explained: int
    mean_sev: float | None
    low: float | None
    high: float | None


def group_lines(parts: Iterable[Part], feature: Feature) -> list[GroupLine]:
    """Figures of each group, summed up part by part.

    Parameters
    ----------
    parts : iterable of pairs
        The column that groups, and the answers beside it with ``status`` and ``sev``.
    feature : Feature
        What the column is. The groups are laid down by its levels, or by the first part.

    Examples
    --------
    >>> answers = pd.DataFrame({"status": ["EXPLAINED", "EXPLAINED", "ALREADY_NEGATIVE"], "sev": [1, 2, None]})
    >>> lines = group_lines([(pd.Series(["a", "a", "b"]), answers)], Feature("home", "category", ("home",)))
    >>> [(line.name, line.against, line.mean_sev) for line in lines]
    [('a', 2, 1.5), ('b', 0, None)]
    """
    total, name_of, order = pd.DataFrame(), None, list[str]()
    for values, answers in parts:
        if name_of is None:
            name_of, order = _naming(values, feature)
        sums = _sums(name_of(values).to_numpy(), answers)
        total = sums if total.empty else total.add(sums, fill_value=0)
    places = {name: k for k, name in enumerate([*order, OTHERS, MISSING])}
    names = sorted(total.index, key=lambda name: (places.get(name, len(order)), name))
    return [_line(str(name), total.loc[name]) for name in names]


def _naming(values: pd.Series[Any], feature: Feature) -> tuple[Callable[[pd.Series[Any]], pd.Series[Any]], list[str]]:
    """The rule that names the group of each case, and the names in order."""
    if feature.is_numeric and values.nunique() > LEVELS:
        return _quarters(values.astype(float))
    frequent = values.dropna().map(str).value_counts()
    known = [str(level) for level in feature.levels] or sorted(frequent.index)
    kept = known if len(known) <= LEVELS else [str(level) for level in frequent.index[:LEVELS]]

    def named(column: pd.Series[Any]) -> pd.Series[Any]:
        text = column.astype(object).map(str).where(column.notna(), MISSING)
        return text.where(text.isin([*kept, MISSING]), OTHERS)

    return named, kept


def _quarters(values: pd.Series[Any]) -> tuple[Callable[[pd.Series[Any]], pd.Series[Any]], list[str]]:
    inner = np.unique(values.quantile([0.25, 0.5, 0.75]).to_numpy())
    between = [f"above {low:g}, up to {high:g}" for low, high in pairwise(inner)]
    labels = [f"up to {inner[0]:g}", *between, f"above {inner[-1]:g}"]

    def named(column: pd.Series[Any]) -> pd.Series[Any]:
        numbers = column.to_numpy(dtype=float, na_value=np.nan)
        names = np.array(labels, dtype=object)[np.searchsorted(inner, numbers)]
        return pd.Series(np.where(np.isnan(numbers), MISSING, names))

    return named, labels


def _sums(names: Any, answers: pd.DataFrame) -> pd.DataFrame:
    explained = (answers["status"] == "EXPLAINED").to_numpy()
    sev = np.where(explained, answers["sev"].to_numpy(dtype=float, na_value=0.0), 0.0)
    columns = {
        "cases": np.ones(len(answers)), "against": (answers["status"] != "ALREADY_NEGATIVE").to_numpy(dtype=float),
        "explained": explained.astype(float), "sev": sev, "squares": sev**2,
    }  # fmt: skip
    return pd.DataFrame(columns).groupby(np.asarray(names, dtype=object)).sum()


def _line(name: str, sums: pd.Series[Any]) -> GroupLine:
    cases, against, n = (int(sums[column]) for column in ("cases", "against", "explained"))
    if n == 0:
        return GroupLine(name, cases, against, 0, None, None, None)
    mean = float(sums["sev"]) / n
    if n == 1:
        return GroupLine(name, cases, against, n, mean, None, None)
    spread = max(0.0, (float(sums["squares"]) - n * mean**2) / (n - 1))
    room = NORMAL * float(np.sqrt(spread / n))
    return GroupLine(name, cases, against, n, mean, mean - room, mean + room)
