"""Figure "Median log likelihood and number of features changed": SEV beside other counterfactual explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pandas as pd

from fewest.errors import UsageError
from fewest.experiments.paper.base import Tell
from fewest.experiments.paper.figures.base import Bound, Drawing, Records, blank, means, one_legend
from fewest.reporting.plots._display import MARKERS, shade

X = "features"
TICKS = (1, 2, 5, 10, 20)
YS = {"l_inf": "mean largest change (sd)", "sane_log_likelihood_median": "median log-likelihood"}


class CounterfactualsFigure(Bound):
    """Features changed against closeness, and against log-likelihood; a marker per method, a grey per model.

    Examples
    --------
    >>> CounterfactualsFigure().tables
    ('counterfactuals',)
    """

    name: ClassVar[str] = "counterfactual_scatter"
    title: ClassVar[str] = "Features changed by different explanations"
    caption: ClassVar[str] = (
        "Features changed against the largest change (left; down and to the left is better) and against the "
        "log-likelihood of the explanation (right; up and to the left is better)."
    )
    datasets: ClassVar[tuple[str, ...]] = ("adult", "compas", "fico", "german", "headline")
    tables: ClassVar[tuple[str, ...]] = ("counterfactuals",)

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """Two panels per dataset."""
        found = _points(means(records, self.tables), datasets)
        there = list(dict.fromkeys(found["dataset"]))
        picture, axes = blank(len(YS) * len(there), across=len(YS))
        for number, panel in enumerate(axes):
            dataset, (y, words) = there[number // len(YS)], list(YS.items())[number % len(YS)]
            _scatter(panel, found, dataset, y)
            panel.set(title=dataset, xscale="log", xlabel="features changed", ylabel=words)
            panel.set_xticks(TICKS, [str(tick) for tick in TICKS])
            panel.minorticks_off()
        one_legend(picture, axes)
        return Drawing(picture, found)


def _points(found: pd.DataFrame, datasets: Sequence[str]) -> pd.DataFrame:
    """One row per method and model; their names are parted."""
    lines = found.reindex(columns=[X, *YS]).reset_index()
    lines = lines[lines["dataset"].isin(datasets)].dropna(subset=[X])
    if len(lines) == 0:
        raise UsageError("no record of these datasets was found", do="measure counterfactuals on them first")
    parts = lines["method"].str.split(n=1, expand=True)
    return lines.assign(model=parts[0], method=parts[1])[["dataset", "model", "method", X, *YS]].reset_index(drop=True)


def _scatter(panel: Any, found: pd.DataFrame, dataset: str, y: str) -> None:
    methods, models = (list(dict.fromkeys(found[name])) for name in ("method", "model"))
    for line in found[(found["dataset"] == dataset) & found[y].notna()].to_dict("records"):
        panel.scatter(
            line[X], line[y], marker=MARKERS[methods.index(line["method"]) % len(MARKERS)], s=46, edgecolors="black",
            facecolors=shade(models.index(line["model"])), zorder=3,
        )  # fmt: skip
    panel.margins(0.12)
    for number, method in enumerate(methods):
        panel.scatter([], [], marker=MARKERS[number % len(MARKERS)], facecolors="none", edgecolors="0.3", label=method)
    for number, model in enumerate(models):
        panel.scatter([], [], marker="o", facecolors=shade(number), edgecolors="black", label=model)
