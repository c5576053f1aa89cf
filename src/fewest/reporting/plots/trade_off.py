"""Sparsity against closeness or credibility: where each way to explain stands, and where it moves a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.reporting.plots._display import MARKERS, Display, shade
from fewest.results.explanations import Explanations

WORDS = {
    "sev": "mean SEV",
    "l_inf": "mean largest change (sd)",
    "log_likelihood": "mean log-likelihood",
}


@dataclass
class TradeOffDisplay(Display):
    """Points of several models, each under several ways to explain it, joined in order by arrows.

    The marker says which model, the grey says which way: nothing is in colour alone.

    Parameters
    ----------
    table : DataFrame
        One row per point: ``label`` (the model), ``variant`` (the way, in the order of the arrows), and numbers.
    x, y : str
        Columns drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> table = pd.DataFrame({"label": ["LR", "LR"], "variant": ["one", "clusters"], "sev": [2.0, 1.5],
    ...                       "l_inf": [1.4, 1.1]})
    >>> TradeOffDisplay(table).plot(Figure().subplots()).ax_.get_xlabel()
    'mean SEV'
    """

    x: str = "sev"
    y: str = "l_inf"

    @classmethod
    def from_explanations(cls, explanations: Mapping[str, Mapping[str, Explanations]], y: str = "l_inf") -> Self:
        """Of explanations by model, then by the way they were made.

        Parameters
        ----------
        explanations : mapping
            Model -> way -> explanations.
        y : str
            ``l_inf``, or ``log_likelihood`` where the explainers have a credibility.
        """
        rows = [_point(label, way, out) for label, ways in explanations.items() for way, out in ways.items()]
        display = cls(pd.DataFrame(rows), y=y)
        display._drawn()
        return display

    def _drawn(self) -> pd.DataFrame:
        """Points that have both numbers."""
        unknown = [name for name in ("label", "variant", self.x, self.y) if name not in self.table]
        if unknown:
            raise UsageError(f'the table has no column "{unknown[0]}"', do=f"choose from {', '.join(self.table)}")
        drawn = self.table[np.isfinite(self.table[self.x]) & np.isfinite(self.table[self.y])]
        if len(drawn) == 0:
            raise UsageError(f"no point has both {self.x} and {self.y}", do="pass explanations that have them")
        return drawn

    def _draw(self, ax: Any) -> None:
        drawn = self._drawn()
        variants = list(dict.fromkeys(self.table["variant"]))
        labels = list(dict.fromkeys(self.table["label"]))
        for place, label in enumerate(labels):
            own = drawn[drawn["label"] == label]
            ends = own[[self.x, self.y]].to_numpy()
            for start, end in pairwise(ends):
                ax.annotate(
                    "", end, start, arrowprops={"arrowstyle": "->", "color": "0.55", "shrinkA": 4, "shrinkB": 4}
                )
            for variant, point in zip(own["variant"], ends, strict=True):
                ax.scatter(
                    *point, marker=MARKERS[place % len(MARKERS)], s=42, facecolors=shade(variants.index(variant)),
                    edgecolors="black", linewidths=0.9, zorder=3,
                )  # fmt: skip
        ax.margins(0.12)
        ax.set_xlabel(WORDS.get(self.x, self.x))
        ax.set_ylabel(WORDS.get(self.y, self.y))
        self._key(ax, labels, variants)

    def _key(self, ax: Any, labels: list[str], variants: list[str]) -> None:
        """Markers without points: first the models, then the ways."""
        for place, label in enumerate(labels):
            ax.scatter([], [], marker=MARKERS[place % len(MARKERS)], facecolors="none", edgecolors="black", label=label)
        for place, variant in enumerate(variants):
            ax.scatter([], [], marker="o", facecolors=shade(place), edgecolors="black", label=variant)
        ax.legend(frameon=False, fontsize="small")


def _point(label: str, variant: str, out: Explanations) -> dict[str, Any]:
    summary, sev = out.summary(), out.sev()
    explained = out.answers.moved.any(axis=1)
    return {
        "label": label,
        "variant": variant,
        "sev": float(sev.mean()) if len(sev) else np.nan,
        "l_inf": float(out.answers.l_inf[explained].mean()) if explained.any() else np.nan,
        "log_likelihood": float(summary.get("mean log-likelihood", np.nan)),
    }
