"""Around the cases: groups of people, the references they are compared with, and warnings to read first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fewest.results.drawing import Bar
from fewest.results.population import Population
from fewest.tables.schema import Feature
from fewest.tables.values import Cells
from fewest.tables.wording import cell

LEVELS = 12  # further levels are gathered under "others"
NORMAL = 1.96
OFTEN = 0.5
MISSING, OTHERS = "missing", "others"


@dataclass(frozen=True)
class GroupLine:
    """One group: cases, those refused, those explained, and the mean number of features changed with its 95 % interval.

    Figures are None where they are not known.
    """

    name: str
    cases: int
    against: int
    explained: int
    mean_sev: float | None
    low: float | None
    high: float | None


def group_lines(parts: Iterable[tuple[pd.Series[Any], pd.DataFrame]], feature: Feature) -> list[GroupLine]:
    """Figures of each group, summed up part by part: the column that groups, and beside it ``status`` and ``sev``.

    The groups are laid down by the feature's levels, or by the first part.
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


@dataclass(frozen=True)
class ReferenceView:
    """One reference."""

    name: str
    score: float | None  # the model's score of it
    support: int | None  # training rows it stands for
    used: int  # cases compared with it
    rows: tuple[tuple[str, str], ...]  # title of each feature and its value as text
    signature: str  # who signed it and when; empty where nobody has
    note: str  # what was written beside the signature
    broken: tuple[str, ...]  # what has changed since it was signed

    @property
    def is_signed(self) -> bool:
        """Whether somebody signed it, with the values it has."""
        return bool(self.signature) and not self.broken


def reference_views(population: Population, used: Counter[str]) -> list[ReferenceView]:
    """The references, in their order."""
    saved, schema = population.saved_references(), population.schema
    cells = Cells.of(schema.conform(saved.frame, unseen="allow"))
    signatures = saved.signatures or [None] * len(saved)
    return [
        ReferenceView(
            name=saved.names[k],
            score=None if np.isnan(saved.score[k]) else saved.score[k],
            support=saved.support[k] if saved.support[k] >= 0 else None,
            used=used[saved.names[k]],
            rows=tuple((feature.heading, cell(cells.value(k, feature))) for feature in schema.features),
            signature="" if signature is None else str(signature),
            note="" if signature is None else signature.note,
            broken=saved.broken(k),
        )
        for k, signature in enumerate(signatures)
    ]


def often(bars: Sequence[Bar], explained: int) -> list[str]:
    """A warning for each feature that is in more than half of the explanations."""
    return [
        f'"{bar.name}" is in {bar.percent} of the explanations: they may say little about the single case.'
        for bar in bars
        if explained and bar.share > OFTEN
    ]
