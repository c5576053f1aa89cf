"""How accuracy trades against SEV-T among all near-optimal trees (the choice that TOpt makes)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.reporting.plots._display import new_axes

SMALLEST, LARGEST = 14.0, 260.0


@dataclass
class FrontDisplay:
    """Training accuracy against mean SEV-T of the trees in a Rashomon set.

    A point stands for all trees with the same accuracy, leaves and mean SEV-T, its size for their number; points that
    nothing else beats are filled, and the chosen tree is marked with a star. No information is in colour alone.

    Parameters
    ----------
    front : DataFrame
        As in ``TOptClassifier.front_``.

    Attributes
    ----------
    ax_, figure_
        Set by `plot`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from fewest.models.rashomon import TOptClassifier
    >>> frame = pd.DataFrame({"age": [20, 25, 30, 50, 60, 70], "job": ["none", "none", "clerk"] * 2})
    >>> model = TOptClassifier(bound=0.2).fit(frame, ["bad", "bad", "bad", "ok", "ok", "bad"])
    >>> FrontDisplay.from_estimator(model).plot().ax_.get_xlabel()
    'mean SEV-T (features to change per case)'
    """

    front: pd.DataFrame
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Of a fitted `TOptClassifier`."""
        if not hasattr(estimator, "front_"):
            raise UsageError(f"{type(estimator).__name__} has no front_", do="pass a fitted TOptClassifier")
        return cls(estimator.front_)

    def plot(self, ax: Any = None) -> Self:
        """Draw, into a new figure unless axes are given; returns itself."""
        if ax is None:
            ax = new_axes()
        drawn = self.front[self.front["mean_sev_t"].notna()]
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
        ax.set_title(f"{int(self.front['trees'].sum()):,} near-optimal trees")
        ax.legend(loc="best", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _sizes(trees: Any) -> Any:
    """Areas of the points: by the logarithm of how many trees, because sets have one and thousands side by side."""
    scale = np.log1p(trees)
    return SMALLEST + (LARGEST - SMALLEST) * (scale - np.log1p(1.0)) / max(1.0, float(np.log1p(10_000.0)))
