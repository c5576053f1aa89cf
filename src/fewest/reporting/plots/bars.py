"""Bars: how many features must change, which ones come up, and a figure before and after a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from fewest.errors import UsageError, check_count
from fewest.reporting.plots.display import HATCHES, Display, percents
from fewest.results.explanation import STATUSES, Status
from fewest.results.explanations import Explanations

NONE = "none"


def _side_by_side(
    table: pd.DataFrame, face: Callable[[int], str]
) -> Iterator[tuple[pd.DataFrame, float, float, dict[str, Any]]]:
    """Rows of each label, where its bars stand beside the others', how wide they are, and how they look."""
    labels = list(dict.fromkeys(table["label"]))
    width = 0.8 / len(labels)
    for number, label in enumerate(labels):
        look = {"color": face(number), "hatch": HATCHES[number % len(HATCHES)], "edgecolor": "0.3", "linewidth": 0.8}
        own = table[table["label"] == label]
        yield own, (number - (len(labels) - 1) / 2) * width, width, {**look, "label": label}


@dataclass
class SevDistributionDisplay(Display):
    """Share of the refused cases by the number of features that must change.

    Cases that are not explained stand apart, under "none": they have no SEV.

    Parameters
    ----------
    table : DataFrame
        One row per label and number: ``label``, ``sev`` (text; "none" for cases without an answer), ``cases``,
        ``share``.

    Examples
    --------
    >>> import fewest as fw
    >>> debts = pd.DataFrame({"bank": [0, 1, 6, 9], "shop": [1, 0, 5, 1]})
    >>> decision = fw.Decision(lambda rows: rows.sum(axis=1).to_numpy() / 16, positive=True)
    >>> refs = fw.references.single(decision, debts, [False, False, True, True])
    >>> display = SevDistributionDisplay.from_explanations(fw.Explainer(decision, refs, n_jobs=1).explain(debts))
    >>> display.table["sev"].tolist(), display.table["share"].tolist()
    (['1'], [1.0])
    """

    headline: ClassVar[str] = "How many features must change"

    @classmethod
    def from_explanations(cls, explanations: Explanations | Mapping[str, Explanations]) -> Self:
        """Of one table of explanations, or of several under labels."""
        named = explanations if isinstance(explanations, Mapping) else {"": explanations}
        parts = [_sev_shares(label, out) for label, out in named.items()]
        if not parts or all(len(part) == 0 for part in parts):
            raise UsageError("no case was refused", do="pass explanations of cases that were")
        return cls(pd.concat(parts, ignore_index=True))

    def _draw(self, ax: Any) -> None:
        numbers = sorted({int(text) for text in self.table["sev"] if text != NONE})
        shown = [str(number) for number in numbers] + ([NONE] if (self.table["sev"] == NONE).any() else [])
        for own, off, width, look in _side_by_side(self.table, self.face):
            drawn = own.set_index("sev")[["share", "cases"]].reindex(shown, fill_value=0)
            bars = ax.bar(np.arange(len(shown)) + off, drawn["share"], width, **look)
            ax.bar_label(bars, [f"{count:,}" for count in drawn["cases"]], padding=2, fontsize="small")
        ax.set_xticks(np.arange(len(shown)), shown)
        ax.set_ylim(0, 1.05)
        percents(ax.yaxis)
        ax.set_xlabel("features that must change (SEV)")
        ax.set_ylabel("share of the refused cases")
        if set(self.table["label"]) != {""}:
            ax.legend(frameon=False)


def _sev_shares(label: str, out: Explanations) -> pd.DataFrame:
    sev = out.sev.dropna().to_numpy(dtype=np.int64)
    against = len(out) - out.counts()["ALREADY_NEGATIVE"]
    sizes, tally = np.unique(sev, return_counts=True)
    rows = [(label, str(size), int(count)) for size, count in zip(sizes, tally, strict=True)]
    if against > len(sev):
        rows.append((label, NONE, against - len(sev)))
    table = pd.DataFrame(rows, columns=["label", "sev", "cases"])
    return table.assign(share=table["cases"] / max(1, against))


@dataclass
class FeatureFrequencyDisplay(Display):
    """Share of the explanations that change each feature, the most frequent first.

    Parameters
    ----------
    table : DataFrame
        One row per label and feature: ``label``, ``feature``, ``cases``, ``share``.

    Examples
    --------
    >>> import fewest as fw
    >>> rows = pd.DataFrame({"debt": [2, 3, 9, 8], "age": [44, 31, 52, 60]})
    >>> decision = fw.Decision(lambda table: table["debt"].to_numpy() / 10, positive=True)
    >>> explainer = fw.Explainer(decision, fw.references.single(decision, rows, rows["debt"] > 5), n_jobs=1)
    >>> FeatureFrequencyDisplay.from_explanations(explainer.explain(rows)).table.to_dict("records")
    [{'label': '', 'feature': 'debt', 'cases': 2, 'share': 1.0}]
    """

    headline: ClassVar[str] = "Which features change"

    @classmethod
    def from_explanations(cls, explanations: Explanations | Mapping[str, Explanations], most: int = 12) -> Self:
        """Of the explained cases of one table of explanations, or of several under labels; features in most of them."""
        check_count("most", most)
        named = explanations if isinstance(explanations, Mapping) else {"": explanations}
        if not named:
            raise UsageError("there are no explanations", do="pass at least one table of them")
        table = pd.concat([_feature_shares(label, out) for label, out in named.items()], ignore_index=True)
        total = table.groupby("feature", sort=False)["share"].sum().sort_values(ascending=False, kind="stable")
        place = {feature: number for number, feature in enumerate(total.index[:most])}
        kept = table[table["feature"].isin(list(place))]
        return cls(kept.sort_values("feature", key=lambda names: names.map(place), kind="stable", ignore_index=True))

    def _draw(self, ax: Any) -> None:
        features = list(dict.fromkeys(self.table["feature"]))
        for rows, off, height, look in _side_by_side(self.table, self.face):
            own = rows.set_index("feature")[["share", "cases"]].reindex(features, fill_value=0)
            bars = ax.barh(np.arange(len(features)) + off, own["share"], height, **look)
            ax.bar_label(bars, [f"{count:,}" for count in own["cases"]], padding=3)
        ax.set_yticks(np.arange(len(features)), features)
        ax.invert_yaxis()
        ax.set_xlim(0, 1.1)
        percents(ax.xaxis)
        ax.set_xlabel("share of the explanations")
        if set(self.table["label"]) != {""}:
            ax.legend(frameon=False)


def _feature_shares(label: str, out: Explanations) -> pd.DataFrame:
    explained = out.answers.status == STATUSES.index(Status.EXPLAINED)
    if not explained.any():
        whose = f' of "{label}"' if label else ""
        raise UsageError(f"no case{whose} is explained", do="pass explanations with answers")
    tally = out.answers.moved[explained].sum(axis=0)
    order = [int(j) for j in np.argsort(-tally, kind="stable") if tally[j] > 0]
    titles = [out.schema.features[j].title for j in order]
    table = pd.DataFrame({"label": label, "feature": titles, "cases": tally[order].astype(int)})
    return table.assign(share=table["cases"] / int(explained.sum()))


@dataclass
class BeforeAfterDisplay(Display):
    """Two bars per label: hatched before a change (of the model, of the references), solid after it.

    Parameters
    ----------
    table : DataFrame
        One row per label: ``label``, ``before``, ``after``; ``before_sd`` and ``after_sd`` are drawn where they are.
    what : str
        Name of the figure, for the axis.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> table = pd.DataFrame({"label": ["LR", "MLP"], "before": [2.8, 2.6], "after": [1.1, 1.2]})
    >>> [text.get_text() for text in BeforeAfterDisplay(table).plot(Figure().subplots()).ax_.get_xticklabels()]
    ['LR', 'MLP']
    """

    headline: ClassVar[str] = "Before and after"
    what: str = "mean SEV"

    @classmethod
    def from_explanations(cls, pairs: Mapping[str, tuple[Explanations, Explanations]]) -> Self:
        """Mean SEV of pairs of explanations, by label."""
        rows = [
            {"label": label, "before": before.summary()["mean SEV"], "after": after.summary()["mean SEV"]}
            for label, (before, after) in pairs.items()
        ]
        return cls(pd.DataFrame(rows, columns=["label", "before", "after"]))

    def _draw(self, ax: Any) -> None:
        if len(self.table) == 0:
            raise UsageError("there is nothing to compare", do="pass at least one pair")
        places, width = np.arange(len(self.table)), 0.38
        for side, name, face, hatch in ((-1, "before", self.face(0), "///"), (1, "after", self.face(2), "")):
            spread = self.table.get(f"{name}_sd")
            bars = ax.bar(
                places + side * width / 2, self.table[name], width, label=name, color=face, hatch=hatch,
                edgecolor="0.2", linewidth=0.8, yerr=spread, error_kw={"ecolor": "0.2", "capsize": 2},
            )  # fmt: skip
            ax.bar_label(bars, [f"{value:.2f}" for value in self.table[name]], fontsize="x-small", padding=2)
        ax.set_xticks(places, self.table["label"])
        ax.margins(y=0.15)
        ax.set_ylabel(self.what)
        ax.legend(frameon=False, fontsize="small")
