"""Which features come up: how often each is among those that turn a decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from fewest.errors import UsageError, check_count
from fewest.reporting.plots._display import HATCHES, Display, shade
from fewest.results.explanation import STATUSES, Status
from fewest.results.explanations import Explanations


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

    @classmethod
    def from_explanations(cls, explanations: Explanations | Mapping[str, Explanations], most: int = 12) -> Self:
        """Of the explained cases of one table of explanations, or of several under labels.

        Parameters
        ----------
        explanations : Explanations or mapping of label to Explanations
        most : int
            Features shown at most: those with the largest shares.
        """
        check_count("most", most)
        named = explanations if isinstance(explanations, Mapping) else {"": explanations}
        if not named:
            raise UsageError("there are no explanations", do="pass at least one table of them")
        table = pd.concat([_shares(label, out) for label, out in named.items()], ignore_index=True)
        total = table.groupby("feature", sort=False)["share"].sum().sort_values(ascending=False, kind="stable")
        place = {feature: number for number, feature in enumerate(total.index[:most])}
        kept = table[table["feature"].isin(list(place))]
        return cls(kept.sort_values("feature", key=lambda names: names.map(place), kind="stable", ignore_index=True))

    def _draw(self, ax: Any) -> None:
        features, labels = (list(dict.fromkeys(self.table[name])) for name in ("feature", "label"))
        height = 0.8 / len(labels)
        for number, label in enumerate(labels):
            own = self.table[self.table["label"] == label].set_index("feature").reindex(features, fill_value=0)
            places = np.arange(len(features)) + (number - (len(labels) - 1) / 2) * height
            bars = ax.barh(
                places, own["share"], height, label=label, color=shade(number), hatch=HATCHES[number % len(HATCHES)],
                edgecolor="0.3", linewidth=0.8,
            )  # fmt: skip
            ax.bar_label(bars, [f"{count:,}" for count in own["cases"]], padding=3)
        ax.set_yticks(np.arange(len(features)), features)
        ax.invert_yaxis()
        ax.set_xlim(0, 1.1)
        ax.set_xlabel("share of the explanations")
        if labels != [""]:
            ax.legend(frameon=False)


def _shares(label: str, out: Explanations) -> pd.DataFrame:
    explained = out.answers.status == STATUSES.index(Status.EXPLAINED)
    if not explained.any():
        whose = f' of "{label}"' if label else ""
        raise UsageError(f"no case{whose} is explained", do="pass explanations with answers")
    tally = out.answers.moved[explained].sum(axis=0)
    order = [int(j) for j in np.argsort(-tally, kind="stable") if tally[j] > 0]
    titles = [out.schema.features[j].title for j in order]
    table = pd.DataFrame({"label": label, "feature": titles, "cases": tally[order].astype(int)})
    return table.assign(share=table["cases"] / int(explained.sum()))
