"""What a credibility floor costs: mean SEV and the share of cases that nothing credible turns, against the floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.reporting.plots._display import Display

if TYPE_CHECKING:
    from fewest.explainer import Explainer

QUANTILES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5)


@dataclass
class FloorDisplay(Display):
    """Mean SEV and share NOT_CREDIBLE for several floors: a help to choose one.

    A floor is worth raising as long as the line stays flat and the bars stay low. The mean is over explained cases, so
    it can fall where the cases that need the most changes become NOT_CREDIBLE: read it together with the bars.

    Parameters
    ----------
    table : DataFrame
        One row per floor: ``quantile``, ``floor`` (log-density), ``mean_sev``, ``not_credible`` (share of the cases
        decided against), ``explained``, ``log_density`` (mean over explained cases).

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 8, 9], "age": [30, 40, 50, 30, 60]}); y = [0, 0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> dense = fw.credibility.mixture(decision, X, y, n_components=1)
    >>> explainer = fw.Explainer(decision, fw.references.single(decision, X, y), credibility=dense, n_jobs=1)
    >>> display = FloorDisplay.from_explainer(explainer, X, quantiles=(0.0, 1.0))
    >>> display.table["mean_sev"].tolist()
    [1.0, 2.0]
    >>> display.plot().ax_.get_xlabel()
    'floor (quantile of the accepted cases)'
    """

    @classmethod
    def from_explainer(cls, explainer: Explainer, X: Any, quantiles: Sequence[float] = QUANTILES) -> Self:
        """Explain the cases once for every floor.

        Parameters
        ----------
        explainer : Explainer
            With a credibility; its own floor does not matter.
        X : table
            Cases.
        quantiles : sequence of float
            Floors to try, as quantiles of the accepted cases' own densities.
        """
        credibility = explainer.credibility
        if credibility is None:
            raise UsageError("this explainer has no credibility", do="pass credibility= to the Explainer")
        if len(quantiles) == 0:
            raise UsageError("there is no floor to try", do="pass at least one quantile")
        rows = []
        for quantile in sorted(quantiles):
            dense = credibility.at(quantile)
            out = explainer.with_(credibility=dense).explain(X)
            counts = out.counts()
            summary = out.summary()
            against = max(1, summary["decided against"])
            rows.append(
                {
                    "quantile": dense.quantile,
                    "floor": dense.floor,
                    "mean_sev": summary["mean SEV"],
                    "not_credible": counts["NOT_CREDIBLE"] / against,
                    "explained": counts["EXPLAINED"],
                    "log_density": summary.get("mean log-likelihood", float("nan")),
                }
            )
        return cls(pd.DataFrame(rows))

    def _draw(self, ax: Any) -> None:
        places = np.arange(len(self.table))
        share = ax.twinx()
        share.bar(places, self.table["not_credible"], width=0.6, color="0.85", edgecolor="0.5", label="not credible")
        share.set_ylim(0, 1)
        share.set_ylabel("share of cases that nothing credible turns (bars)")
        ax.plot(places, self.table["mean_sev"], marker="o", color="black", label="mean SEV")
        ax.set_zorder(share.get_zorder() + 1)
        ax.patch.set_visible(False)
        ax.set_xticks(places, [f"{quantile:g}" for quantile in self.table["quantile"]])
        ax.set_ylim(bottom=min(1.0, *self.table["mean_sev"].fillna(1.0)) - 0.1)
        ax.set_xlabel("floor (quantile of the accepted cases)")
        ax.set_ylabel("mean SEV of explained cases (line)")
