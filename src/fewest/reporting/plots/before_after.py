"""Before and after: bars of one figure for several models, hatched before, solid after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.reporting.plots._display import Display
from fewest.results.explanations import Explanations


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
        for side, name, face, hatch in ((-1, "before", "white", "///"), (1, "after", "0.45", "")):
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
