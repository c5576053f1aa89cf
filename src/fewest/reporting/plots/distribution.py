"""How many features must change: the distribution of SEV, of one or several ways to explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.reporting.plots._display import HATCHES, Display, shade
from fewest.results.explanations import Explanations

NONE = "none"


@dataclass
class SevDistributionDisplay(Display):
    """Share of the cases decided against by the number of features that must change.

    Cases that are not explained stand apart, under "none": they have no SEV.

    Parameters
    ----------
    table : DataFrame
        One row per label and number: ``label``, ``sev`` (text; "none" for cases without an answer), ``cases``,
        ``share``.

    Examples
    --------
    >>> import fewest as fw
    >>> from matplotlib.figure import Figure
    >>> debts = pd.DataFrame({"bank": [0, 1, 6, 9], "shop": [1, 0, 5, 1]})
    >>> decision = fw.Decision(lambda rows: rows.sum(axis=1).to_numpy() / 16, positive=True)
    >>> refs = fw.references.single(decision, debts, [False, False, True, True])
    >>> display = SevDistributionDisplay.from_explanations(fw.Explainer(decision, refs, n_jobs=1).explain(debts))
    >>> display.table["sev"].tolist(), display.table["share"].tolist()
    (['1'], [1.0])
    >>> display.plot(Figure().subplots()).ax_.get_xlabel()
    'features that must change (SEV)'
    """

    @classmethod
    def from_explanations(cls, explanations: Explanations | Mapping[str, Explanations]) -> Self:
        """Of one table of explanations, or of several under labels."""
        named = explanations if isinstance(explanations, Mapping) else {"": explanations}
        parts = [_shares(label, out) for label, out in named.items()]
        if not parts or all(len(part) == 0 for part in parts):
            raise UsageError("no case was decided against", do="pass explanations of cases that were")
        return cls(pd.concat(parts, ignore_index=True))

    def _draw(self, ax: Any) -> None:
        numbers = sorted({int(text) for text in self.table["sev"] if text != NONE})
        shown = [str(number) for number in numbers] + ([NONE] if (self.table["sev"] == NONE).any() else [])
        labels = list(dict.fromkeys(self.table["label"]))
        width = 0.8 / len(labels)
        for place, label in enumerate(labels):
            own = self.table[self.table["label"] == label].set_index("sev")["share"]
            left = np.arange(len(shown)) + (place - (len(labels) - 1) / 2) * width
            ax.bar(
                left, own.reindex(shown, fill_value=0.0), width, label=label, color=shade(place),
                hatch=HATCHES[place % len(HATCHES)], edgecolor="0.3", linewidth=0.8,
            )  # fmt: skip
        ax.set_xticks(np.arange(len(shown)), shown)
        ax.set_ylim(0, 1)
        ax.set_xlabel("features that must change (SEV)")
        ax.set_ylabel("share of the cases decided against")
        if labels != [""]:
            ax.legend(frameon=False)


def _shares(label: str, out: Explanations) -> pd.DataFrame:
    sev = out.sev()
    against = len(out) - out.counts()["ALREADY_NEGATIVE"]
    sizes, tally = np.unique(sev, return_counts=True)
    rows = [(label, str(size), int(count)) for size, count in zip(sizes, tally, strict=True)]
    if against > len(sev):
        rows.append((label, NONE, against - len(sev)))
    table = pd.DataFrame(rows, columns=["label", "sev", "cases"])
    return table.assign(share=table["cases"] / max(1, against))
