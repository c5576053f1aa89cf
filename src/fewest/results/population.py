"""A population of answers: what a table in memory (`Explanations`) and a run folder (`runs.Run`) have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from warnings import warn

import numpy as np
import pandas as pd

from fewest.errors import FewestWarning
from fewest.references.file import Saved
from fewest.results.explanation import STATUSES, About, Explanation, Status
from fewest.tables.cards import card_html
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import decoded, is_worse

KEPT = 1 << 21  # figures of more explained cases than this are medians and means of a regular draw


class Summary(dict[str, Any]):
    """Figures of a whole table; prints as lines."""

    def __str__(self) -> str:
        width = max(map(len, self))
        return "\n".join(f"{name:<{width}}  {figure(value)}" for name, value in self.items())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return card_html(["Figures"], (), [(name, figure(value)) for name, value in self.items()])


def figure(value: Any) -> str:
    """A figure of a summary as text."""
    if isinstance(value, float):
        return "-" if np.isnan(value) else f"{value:.4g}"
    return str(value)


@dataclass(frozen=True)
class Origin:
    """Where answers come from, as far as that is known."""

    # The choices a run was made with; empty for answers in memory
    settings: Mapping[str, Any] = field(default_factory=dict)
    fingerprints: tuple[tuple[str, str], ...] = ()  # What a run was made of: name and SHA-256 or version
    notes: tuple[str, ...] = ()  # What the search has to add
    keeps_cases: bool = True  # Whether the cases themselves are there
    names_cases: bool = False  # Whether cases have names of their own, beside their row


@dataclass(frozen=True)
class Tally:
    """Counts of a population; the sum of the tallies of its parts is its own."""

    counts: Mapping[str, int] = field(default_factory=dict)  # Status -> cases
    sev: Mapping[int, int] = field(default_factory=dict)  # SEV -> explained cases, ascending
    # Feature -> explained cases that change it, most frequent first
    features: Mapping[str, int] = field(default_factory=dict)

    def count(self, *statuses: Status) -> int:
        """Cases that ended in one of these ways."""
        return sum(self.counts.get(status.value, 0) for status in statuses)

    @property
    def cases(self) -> int:
        """Cases in all."""
        return sum(self.counts.values())

    @property
    def against(self) -> int:
        """Cases the model refused."""
        return self.cases - self.count(Status.ALREADY_NEGATIVE)

    @property
    def explained(self) -> int:
        """Cases with a SEV."""
        return self.count(Status.EXPLAINED)

    @property
    def mean_sev(self) -> float:
        """Mean over the explained cases; NaN where there are none."""
        return sum(size * count for size, count in self.sev.items()) / self.explained if self.explained else np.nan

    @property
    def share_one(self) -> float:
        """Share of the explained cases with SEV 1; NaN where there are none."""
        return self.sev.get(1, 0) / self.explained if self.explained else np.nan

    @property
    def largest(self) -> int:
        """Largest SEV; 0 where no case is explained."""
        return max(self.sev, default=0)

    @classmethod
    def total(cls, parts: Sequence[Tally]) -> Tally:
        """The tally of all parts together; its order does not depend on theirs."""
        sums = []
        for name in ("counts", "sev", "features"):
            total: Counter[Any] = Counter()
            for part in parts:
                total.update(getattr(part, name))
            sums.append(total)
        counts, sev, features = sums
        order = [status.value for status in STATUSES if status.value in counts]
        return cls(
            {name: counts[name] for name in order},
            {size: sev[size] for size in sorted(sev)},
            dict(sorted(((n, k) for n, k in features.items() if k), key=lambda item: (-item[1], item[0]))),
        )

    def to_dict(self) -> dict[str, dict[str, int]]:
        """As a manifest holds it."""
        sev = {str(size): count for size, count in self.sev.items()}
        return {"counts": dict(self.counts), "sev": sev, "features": dict(self.features)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Mapping[str, int]]) -> Tally:
        """Read what `to_dict` gave."""
        sev = {int(size): count for size, count in content["sev"].items()}
        return cls(dict(content["counts"]), sev, dict(content["features"]))


P = TypeVar("P", bound="Population")


class Population(Protocol):
    """Answers of many cases, in memory or on disk; report, plots, metrics, explorer and letters take either."""

    @property
    def schema(self) -> Schema:
        """The features."""

    @property
    def about(self) -> About:
        """Names of the outcomes, and what else sentences need."""

    @property
    def tally(self) -> Tally:
        """Counts by status, by SEV and by feature, with the figures that follow from them."""

    @property
    def origin(self) -> Origin:
        """Where the answers come from."""

    def __len__(self) -> int: ...

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The answers part by part in the columns of `results.record`: all of a run folder, or those named."""

    def records(self, rows: Sequence[int], columns: Sequence[str]) -> pd.DataFrame:
        """Some rows of the answers, in the order of the data."""

    def cases(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The cases themselves part by part, indexed by row number; nothing where they were not kept."""

    def explanation(self, row: int) -> Explanation:
        """The answer for one case, by its row number: sentence, changes, facts and proof."""

    def saved_references(self) -> Saved:
        """The references: names, values, support, scores, twins, signatures."""


def summarize(population: Population, seconds: float | None = None) -> Summary:
    """Figures of a population: counts by status, SEV, closeness, likelihood, proof."""
    tally, saved = population.tally, population.saved_references()
    names = np.array(saved.names, dtype=object)
    twins = set(names[np.array(saved.flexible_of) >= 0]) if saved.flexible_of else set()
    l_inf, density, proved, flexible = _Drawn(), _Drawn(), 0, 0
    for table in population.tables(("status", "l_inf", "log_density", "proved", "reference")):
        explained = table[table["status"] == Status.EXPLAINED.value]
        l_inf.add(explained["l_inf"])
        density.add(explained["log_density"].dropna())
        proved += int(explained["proved"].sum())
        flexible += int(explained["reference"].isin(twins).sum())
    likelihood = {"mean log-likelihood": density.mean, "median log-likelihood": density.median}
    used = {"flexibility used": flexible / tally.explained if tally.explained else np.nan}
    return Summary(
        {
            "cases": len(population),
            "refused": tally.against,
            "explained": tally.explained,
            "not possible": tally.count(Status.UNREACHABLE),
            "not credible": tally.count(Status.NOT_CREDIBLE),
            "stopped early": tally.count(Status.BUDGET),
            "mean SEV": tally.mean_sev,
            "largest SEV": tally.largest,
            "share with SEV 1": tally.share_one,
            "median largest change (SD)": l_inf.median,
            **(likelihood if density.seen else {}),
            **(used if saved.flexible_of else {}),
            "proved smallest": proved,
            **({} if seconds is None else {"seconds": float(seconds)}),
        }
    )


def wrong_ways(population: Population) -> list[tuple[Feature, int]]:
    """Features that explained cases move away from what their schema says is better, and in how many of them."""
    marked = {feature.name: feature for feature in population.schema.features if feature.better}
    found: Counter[str] = Counter()
    if not marked or population.about.plus:
        return []
    for table in population.tables(("status", "features", "from", "to")):
        moved = table[table["status"] == Status.EXPLAINED.value][["features", "from", "to"]]
        for names, before, after in moved.itertuples(index=False):
            for name, *ends in zip(names, before, after, strict=True):
                feature = marked.get(name)
                if feature is not None:
                    found[name] += is_worse(feature, *(decoded(end, feature, population.schema) for end in ends))
    return [(marked[name], count) for name, count in found.most_common() if count]


def wrong_way_line(feature: Feature, count: int) -> str:
    """A warning about answers that move a feature away from what is better."""
    way, better = ("down", "more") if feature.better == "up" else ("up", "less")
    answers = "1 explanation moves" if count == 1 else f"{count:,} explanations move"
    return f'{answers} "{feature.title}" {way}, although {better} of it is better'


def warned_of_wrong_ways(population: P) -> P:
    """The same population, after a warning of each such feature on behalf of whoever called the caller."""
    for feature, count in wrong_ways(population):
        held = f'constraints=Only("{feature.name}", "{feature.better}"), or other references'
        warn(f"{wrong_way_line(feature, count)}\n  Try: {held}", FewestWarning, stacklevel=3)
    return population


class _Drawn:
    """Numbers that come part by part: all of them, or a regular draw where they are very many."""

    def __init__(self) -> None:
        self.kept, self.step, self.seen = np.empty(0), 1, 0

    def add(self, column: pd.Series[Any]) -> None:
        values = column.to_numpy(dtype=float, na_value=np.nan)
        self.kept = np.concatenate([self.kept, values[-self.seen % self.step :: self.step]])
        self.seen += len(values)
        while len(self.kept) > KEPT:
            self.kept, self.step = self.kept[::2], 2 * self.step

    @property
    def mean(self) -> float:
        return float(self.kept.mean()) if self.seen else np.nan

    @property
    def median(self) -> float:
        return float(np.median(self.kept)) if self.seen else np.nan
