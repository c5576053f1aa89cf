"""What sparsity costs in accuracy: among all near-optimal trees (TOpt's choice), and along All-Opt's path (of C1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.reporting.plots.display import LINES, Display, marker, shade

SMALLEST, LARGEST = 14.0, 260.0
MEASURES = {"roc_auc": "AUC", "accuracy": "accuracy"}


@dataclass
class FrontDisplay(Display):
    """Training accuracy against mean SEV-T of the trees in a Rashomon set.

    A point stands for all trees with the same accuracy, leaves and mean SEV-T, its size for their number; points that
    nothing else beats are filled, and the chosen tree is marked with a star. No information is in colour alone.

    Parameters
    ----------
    table : DataFrame
        As in ``TOptClassifier.front_``.

    Examples
    --------
    >>> from fewest.models.rashomon import TOptClassifier
    >>> frame = pd.DataFrame({"age": [20, 25, 30, 50, 60, 70], "job": ["none", "none", "clerk"] * 2})
    >>> model = TOptClassifier(bound=0.2).fit(frame, ["bad", "bad", "bad", "ok", "ok", "bad"])
    >>> FrontDisplay.from_estimator(model).table["trees"].sum() == model.n_trees_
    np.True_
    """

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Of a fitted `TOptClassifier`."""
        if not hasattr(estimator, "front_"):
            raise UsageError(f"{type(estimator).__name__} has no front_", do="pass a fitted TOptClassifier")
        return cls(estimator.front_)

    def _draw(self, ax: Any) -> None:
        drawn = self.table[self.table["mean_sev_t"].notna()]
        if len(drawn) == 0:
            raise UsageError("no tree of the set decides a case positive that can be turned", do="enlarge the set")
        sizes = _sizes(drawn["trees"].to_numpy(dtype=float))
        best = drawn["pareto"].to_numpy(dtype=bool)
        for kept, face, label in ((~best, "none", "other trees"), (best, "0.35", "nothing better in all three")):
            rows = drawn[kept]
            ax.scatter(
                rows["mean_sev_t"], rows["accuracy"], s=sizes[kept], facecolors=face, edgecolors="0.35",
                linewidths=0.8, label=f"{label} ({int(rows['trees'].sum()):,})",
            )  # fmt: skip
        mark = drawn[drawn["chosen"].to_numpy(dtype=bool)]
        ax.scatter(
            mark["mean_sev_t"], mark["accuracy"], marker="*", s=220, facecolors="white", edgecolors="black",
            linewidths=1.4, zorder=3, label="chosen",
        )  # fmt: skip
        ax.set_xlabel("mean SEV-T (features to change per case)")
        ax.set_ylabel("training accuracy")
        ax.set_title(f"{int(self.table['trees'].sum()):,} near-optimal trees")
        ax.legend(loc="best", frameon=False)


def _sizes(trees: Any) -> Any:
    """Areas of the points: by the logarithm of how many trees, because sets have one and thousands side by side."""
    scale = np.log1p(trees)
    return SMALLEST + (LARGEST - SMALLEST) * (scale - np.log1p(1.0)) / max(1.0, float(np.log1p(10_000.0)))


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
    >>> from matplotlib.figure import Figure
    >>> front = pd.DataFrame({"c1": [0.0, 0.1], "c2": [0.0, 1.0], "accuracy": [0.8, 0.795], "roc_auc": [0.85, 0.85],
    ...                       "mean_sev": [1.5, 1.1], "positives": 9, "unreachable": 0, "chosen": [False, True]})
    >>> TrainingFrontDisplay(front).plot(Figure().subplots()).ax_.get_xlabel()
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
        ax.set_ylabel(" and ".join(MEASURES.get(measure, measure) for measure in self.measures))
        ax.set_title("numbers: C1")
        ax.legend(frameon=False, fontsize="small")

    def _line(self, ax: Any, drawn: pd.DataFrame, measure: str, place: int) -> None:
        """One measure: its band, its paths from the warm-up on, its stops, its star."""
        name = MEASURES.get(measure, measure)
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
            drawn["mean_sev"], drawn[measure], marker=marker(place), s=36, facecolors=faces,
            edgecolors="black", linewidths=0.8, zorder=3, label=name,
        )  # fmt: skip
        star = drawn[drawn["chosen"].to_numpy(dtype=bool)]
        ax.scatter(
            star["mean_sev"], star[measure], marker="*", s=200, facecolors="white", edgecolors="black", linewidths=1.3,
            zorder=4, label="chosen" if place == 0 else None,
        )  # fmt: skip
