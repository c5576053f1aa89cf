"""Figures "Explanation performance under different models and metrics": SEV against l_inf, and against likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pandas as pd

from fewest.errors import UsageError
from fewest.experiments.paper.base import Tell
from fewest.experiments.paper.figures.base import Bound, Drawing, Records, blank, means, one_legend
from fewest.experiments.paper.models import MODELS
from fewest.reporting.plots import TradeOffDisplay

# The paper marks one flexibility; its tables have all three, and so has the figure of flexibility.
VARIANTS = {"SEV1": "{kind}", "clusters": "{kind} clusters", "clusters + F 0.10": "{kind} clusters 0.10"}


class TradeOffFigure(Bound):
    """What the two figures share."""

    tables: ClassVar[tuple[str, ...]] = ("sev1", "sevc", "sevcf")
    figure: ClassVar[str]
    drawn_as: ClassVar[str]

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """A panel per dataset; a marker per model, joined from SEV1 to clusters to flexible clusters."""
        picture, axes = blank(len(datasets))
        points = self._points(datasets, means(records, self.tables))
        for panel, dataset in zip(axes, datasets, strict=True):
            own = points[points["dataset"] == dataset].drop(columns="dataset")
            if own[["sev", self.drawn_as]].dropna().empty:
                panel.text(0.5, 0.5, "nothing measured", ha="center", transform=panel.transAxes)
            else:
                TradeOffDisplay(own, y=self.drawn_as).plot(panel)
            panel.set_title(dataset)
        one_legend(picture, axes)
        return Drawing(picture, points)

    def _points(self, datasets: Sequence[str], found: pd.DataFrame) -> pd.DataFrame:
        rows = [
            {"dataset": dataset, "label": kind, "variant": variant, "sev": line.get("sev", float("nan")),
             self.drawn_as: line.get(self.figure, float("nan"))}
            for dataset in datasets
            for kind in MODELS
            for variant, method in VARIANTS.items()
            if (dataset, method.format(kind=kind)) in found.index
            for line in [found.loc[(dataset, method.format(kind=kind))]]
        ]  # fmt: skip
        if not rows:
            raise UsageError("no record of these datasets was found", do="measure the tables on them first")
        return pd.DataFrame(rows)


class ClosenessFigure(TradeOffFigure):
    """Mean SEV against mean l_inf.

    Examples
    --------
    >>> ClosenessFigure().drawn_as
    'l_inf'
    """

    name: ClassVar[str] = "closeness"
    title: ClassVar[str] = "Sparsity and closeness"
    caption: ClassVar[str] = (
        "Mean SEV against the mean of the largest change of a number, in standard deviations, noughts kept. "
        "Down and to the left is better."
    )
    figure: ClassVar[str] = "l_inf"
    drawn_as: ClassVar[str] = "l_inf"


class CredibilityFigure(TradeOffFigure):
    """Mean SEV against the mean log-likelihood of the explanations under the regularised mixture.

    Examples
    --------
    >>> CredibilityFigure().figure
    'sane_log_likelihood'
    """

    name: ClassVar[str] = "credibility"
    title: ClassVar[str] = "Sparsity and credibility"
    caption: ClassVar[str] = (
        "Mean SEV against the mean log-likelihood of the explanations, under a regularised mixture of the accepted "
        "cases: the paper's mixture is singular on one-hot columns. Up and to the left is better."
    )
    figure: ClassVar[str] = "sane_log_likelihood"
    drawn_as: ClassVar[str] = "log_likelihood"
