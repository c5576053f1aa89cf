"""Which features come up: how often each is among those that turn a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.explanation import STATUSES, Status
from fewest.explanations import Explanations
from fewest.options import check_count
from fewest.plots._display import Display


@dataclass
class FeatureFrequencyDisplay(Display):
    """Share of the explanations that change each feature, the most frequent first.

    Parameters
    ----------
    table : DataFrame
        One row per feature: ``feature``, ``cases``, ``share``.

    Examples
    --------
    >>> import fewest as fw
    >>> rows = pd.DataFrame({"debt": [2, 3, 9, 8], "age": [44, 31, 52, 60]})
    >>> decision = fw.Decision(lambda table: table["debt"].to_numpy() / 10, positive=True)
    >>> explainer = fw.Explainer(decision, fw.references.single(decision, rows, rows["debt"] > 5), threads=1)
    >>> FeatureFrequencyDisplay.from_explanations(explainer.explain(rows)).table.to_dict("records")
    [{'feature': 'debt', 'cases': 2, 'share': 1.0}]
    """

    @classmethod
    def from_explanations(cls, explanations: Explanations, most: int = 12) -> Self:
        """Of the explained cases; at most so many features."""
        check_count("most", most)
        explained = explanations.answers.status == STATUSES.index(Status.EXPLAINED)
        if not explained.any():
            raise UsageError("no case is explained", do="pass explanations with answers")
        tally = explanations.answers.moved[explained].sum(axis=0)
        order = [int(j) for j in np.argsort(-tally, kind="stable") if tally[j] > 0][:most]
        features = explanations.schema.features
        table = pd.DataFrame({"feature": [features[j].title for j in order], "cases": tally[order].astype(int)})
        return cls(table.assign(share=table["cases"] / int(explained.sum())))

    def _draw(self, ax: Any) -> None:
        places = np.arange(len(self.table))
        bars = ax.barh(places, self.table["share"], color="0.75", edgecolor="0.3", linewidth=0.8)
        ax.bar_label(bars, [f"{count:,}" for count in self.table["cases"]], padding=3)
        ax.set_yticks(places, self.table["feature"])
        ax.invert_yaxis()
        ax.set_xlim(0, 1.1)
        ax.set_xlabel("share of the explanations")
