"""What sparsity costs while All-Opt weighs it more and more (the choice of C1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import pandas as pd

from fewest.errors import UsageError
from fewest.reporting.plots._display import LINES, MARKERS, Display, shade

WORDS = {"roc_auc": "AUC", "accuracy": "accuracy"}


@dataclass
class TrainingFrontDisplay(Display):
    """Measures against mean SEV on the rows held out, from stop to stop of a path.

    Each measure has its marker and its line, and a band that reaches from its best value down by the tolerance. The
    chosen stop is starred; C1 is written at the stops of the first measure. No information is in colour alone.

    Parameters
    ----------
    table : DataFrame
        As in ``AllOptSearchCV.front_``.
    tolerance : float
        Height of the bands.
    max_unreachable : float
        Stops with more than this share of positive rows without SEV are out of the race: hollow, and no best.
    measures : sequence of str
        Columns drawn.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> mpl.use("agg")
    >>> front = pd.DataFrame({"c1": [0.0, 0.1], "c2": [0.0, 1.0], "accuracy": [0.8, 0.795], "roc_auc": [0.85, 0.85],
    ...                       "mean_sev": [1.5, 1.1], "positives": 9, "unreachable": 0, "chosen": [False, True]})
    >>> TrainingFrontDisplay(front).plot().ax_.get_xlabel()
    'mean SEV on the rows held out (fewer is better)'
    """

    tolerance: float = 0.01
    max_unreachable: float = 0.05
    measures: Sequence[str] = ("roc_auc", "accuracy")

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Of a fitted `AllOptSearchCV`."""
        if not (hasattr(estimator, "front_") and hasattr(estimator, "measures")):
            raise UsageError(f"{type(estimator).__name__} has no path", do="pass a fitted AllOptSearchCV")
        return cls(estimator.front_, estimator.tolerance, estimator.max_unreachable, tuple(estimator.measures))

    def _draw(self, ax: Any) -> None:
        drawn = self.table[self.table["mean_sev"].notna()]
        if len(drawn) == 0:
            raise UsageError("at no stop is a row decided positive that can be turned", do="train with other settings")
        for place, measure in enumerate(self.measures):
            self._line(ax, drawn, measure, place)
        for _, stop in drawn.iterrows():
            ax.annotate(
                f"{stop['c1']:g}", (stop["mean_sev"], stop[self.measures[0]]), (7, 4), textcoords="offset points",
                fontsize="x-small",
            )  # fmt: skip
        ax.margins(0.12)
        ax.set_xlabel("mean SEV on the rows held out (fewer is better)")
        ax.set_ylabel(" and ".join(WORDS.get(measure, measure) for measure in self.measures))
        ax.set_title("numbers: C1")
        ax.legend(frameon=False, fontsize="small")

    def _line(self, ax: Any, drawn: pd.DataFrame, measure: str, place: int) -> None:
        """One measure: its band, its paths from the warm-up on, its stops, its star."""
        name = WORDS.get(measure, measure)
        usable = (drawn["unreachable"] <= self.max_unreachable * drawn["positives"]).to_numpy(dtype=bool)
        best = float(drawn[measure][usable | (not usable.any())].max())
        ax.axhspan(
            best - self.tolerance, best, facecolor="0.92", edgecolor="0.6", hatch=("...", "///")[place % 2],
            linewidth=0.0, zorder=0, label=f"within {self.tolerance:g} of the best {name}",
        )  # fmt: skip
        start = drawn[drawn["c1"] == 0]
        for _, branch in drawn[drawn["c1"] > 0].groupby("c2"):
            walked = pd.concat([start, branch])
            ax.plot(walked["mean_sev"], walked[measure], LINES[place % len(LINES)], color="0.35", linewidth=1.0)
        faces = [shade(place + 1) if kept else "none" for kept in usable]
        ax.scatter(
            drawn["mean_sev"], drawn[measure], marker=MARKERS[place % len(MARKERS)], s=36, facecolors=faces,
            edgecolors="black", linewidths=0.8, zorder=3, label=name,
        )  # fmt: skip
        star = drawn[drawn["chosen"].to_numpy(dtype=bool)]
        ax.scatter(
            star["mean_sev"], star[measure], marker="*", s=200, facecolors="white", edgecolors="black", linewidths=1.3,
            zorder=4, label="chosen" if place == 0 else None,
        )  # fmt: skip
