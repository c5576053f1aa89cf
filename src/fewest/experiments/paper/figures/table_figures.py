"""Figures that show what tables measured: SEV against closeness, likelihood, flexibility, other methods, training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, ClassVar

import pandas as pd

from fewest.errors import UsageError
from fewest.experiments.paper.allopt import SHOWN as SHOWN_TRAINED
from fewest.experiments.paper.base import Tell
from fewest.experiments.paper.counterfactuals import SHOWN as SHOWN_BESIDE
from fewest.experiments.paper.figures import ACROSS, Drawing, Figure, Records, blank, means, one_legend
from fewest.experiments.paper.models import CLUSTER_WAYS, MODELS, PROCEDURES
from fewest.experiments.paper.points import FLEXIBILITY
from fewest.reporting.plots import BeforeAfterDisplay, FlexibilityDisplay, TradeOffDisplay
from fewest.reporting.plots.display import key_markers, marker, shade

# The paper marks one flexibility; its tables have all three, and so has the figure of flexibility.
VARIANTS = {"SEV1": "{kind}", "clusters": "{kind} {way}", "clusters + F 0.10": "{kind} {way} 0.10"}
FLEXIBILITY_FIGURES = {"sev": "sev", "log_likelihood": "sane_log_likelihood"}
BEFORE_AFTER = {"sev": "mean SEV", "l_inf": "mean l_inf, sd", "sane_log_likelihood": "mean log-likelihood"}
PANEL = ["dataset", "procedure"]
FEATURES = "features"
FEATURE_TICKS = (1, 2, 5, 10, 20)
AGAINST = {"l_inf": "mean largest change (sd)", "sane_log_likelihood_median": "median log-likelihood"}


class TradeOffFigure(Figure):
    """What the two figures share."""

    tables: ClassVar[tuple[str, ...]] = ("sev1", "sevc", "sevcf")
    figure: ClassVar[str]
    drawn_as: ClassVar[str]

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """A panel per dataset and procedure; a marker per model, joined from SEV1 to clusters to flexible clusters."""
        points = self._points(datasets, means(records, self.tables))
        panels = list(points.groupby(PANEL, sort=False))
        picture, axes = blank(len(panels), across=_across(points))
        for panel, ((dataset, procedure), own) in zip(axes, panels, strict=True):
            if own[["sev", self.drawn_as]].dropna().empty:
                _say_nothing(panel)
            else:
                TradeOffDisplay(own.drop(columns=PANEL), y=self.drawn_as).plot(panel, style="paper")
            panel.set_title(f"{dataset}: {procedure}")
        one_legend(picture, axes)
        return Drawing(picture, points)

    def _points(self, datasets: Sequence[str], found: pd.DataFrame) -> pd.DataFrame:
        there = set(found.index)
        rows = [
            {"dataset": dataset, "procedure": CLUSTER_WAYS[way][0], "label": kind, "variant": variant,
             "sev": line.get("sev", float("nan")), self.drawn_as: line.get(self.figure, float("nan"))}
            for dataset in datasets
            for way in _ways(dataset, there)
            for kind in MODELS
            for variant, method in VARIANTS.items()
            if (dataset, method.format(kind=kind, way=way)) in there
            for line in [found.loc[(dataset, method.format(kind=kind, way=way))]]
        ]  # fmt: skip
        return _found(rows, "the tables")


def _say_nothing(panel: Any) -> None:
    panel.text(0.5, 0.5, "nothing measured", ha="center", transform=panel.transAxes)


def _ways(dataset: str, there: set[tuple[str, str]]) -> list[str]:
    """Procedures that a dataset was measured with; the default where there is SEV1 alone."""
    known = [way for way in PROCEDURES if any((dataset, f"{kind} {way}") in there for kind in MODELS)]
    return known or [PROCEDURES[-1]]


def _across(lines: pd.DataFrame) -> int:
    """Panels in a row: both procedures of a dataset side by side."""
    return ACROSS if lines["procedure"].nunique() == 1 else len(PROCEDURES)


def _found(rows: pd.DataFrame | list[dict[str, Any]], tables: str) -> pd.DataFrame:
    """Records as a table, or an error that says what has to be measured first."""
    if len(rows) == 0:
        raise UsageError("no record of these datasets was found", do=f"measure {tables} on them first")
    return pd.DataFrame(rows)


class ClosenessFigure(TradeOffFigure):
    """Mean SEV against mean l_inf."""

    name: ClassVar[str] = "closeness"
    title: ClassVar[str] = "Sparsity and closeness"
    caption: ClassVar[str] = (
        "Mean SEV against the mean of the largest change of a number, in standard deviations, zeros kept; clusters by "
        "the paper's procedure and by ours. Down and to the left is better."
    )
    figure: ClassVar[str] = "l_inf"
    drawn_as: ClassVar[str] = "l_inf"


class CredibilityFigure(TradeOffFigure):
    """Mean SEV against the mean log-likelihood of the explanations under the regularised mixture."""

    name: ClassVar[str] = "credibility"
    title: ClassVar[str] = "Sparsity and credibility"
    caption: ClassVar[str] = (
        "Mean SEV against the mean log-likelihood of the explanations, under a regularised mixture of the accepted "
        "cases: the paper's mixture is singular on one-hot columns. Clusters by the paper's procedure and by ours. Up "
        "and to the left is better."
    )
    figure: ClassVar[str] = "sane_log_likelihood"
    drawn_as: ClassVar[str] = "log_likelihood"


class FlexibilityFigure(Figure):
    """Mean SEV and log-likelihood of four models while the references may move further."""

    name: ClassVar[str] = "flexibility"
    title: ClassVar[str] = "Sparsity and credibility for varying flexibility"
    caption: ClassVar[str] = (
        "Cluster references as they are (0) and moved within 5, 10 and 20 % of the accepted cases. The unmoved "
        "reference stays in the race, so mean SEV never rises."
    )
    tables: ClassVar[tuple[str, ...]] = ("sevc", "sevcf")

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """Two panels per dataset and procedure: SEV, log-likelihood."""
        lines = _flexibility_lines(datasets, means(records, self.tables))
        panels = list(lines.groupby(PANEL, sort=False))
        picture, axes = blank(2 * len(panels), across=2, height=2.6)
        for number, panel in enumerate(axes):
            ((dataset, procedure), own), y = panels[number // 2], list(FLEXIBILITY_FIGURES)[number % 2]
            if own[y].notna().any():
                FlexibilityDisplay(own.drop(columns="procedure"), y=y).plot(panel, style="paper")
            else:
                _say_nothing(panel)
            panel.set_title(f"{dataset}: {procedure}")
        one_legend(picture, axes)
        return Drawing(picture, lines)


def _flexibility_lines(datasets: Sequence[str], found: pd.DataFrame) -> pd.DataFrame:
    rows, there = [], set(found.index)
    for dataset in datasets:
        for way, kind, eps in product(PROCEDURES, MODELS, ("", *(f" {eps:.2f}" for eps in FLEXIBILITY))):
            if (dataset, f"{kind} {way}{eps}") in there:
                line = found.loc[(dataset, f"{kind} {way}{eps}")]
                numbers = {name: line.get(figure, float("nan")) for name, figure in FLEXIBILITY_FIGURES.items()}
                rows.append({"dataset": dataset, "procedure": CLUSTER_WAYS[way][0], "label": kind,
                             "flexibility": float(eps or 0), **numbers})  # fmt: skip
    return _found(rows, "sevc and sevcf")


class AllOptFigure(Figure):
    """Bars of three models before and after All-Opt."""

    name: ClassVar[str] = "allopt_bars"
    title: ClassVar[str] = "All-Opt: before and after"
    caption: ClassVar[str] = (
        "Hatched bars are the models as they were fitted, solid ones the same kind of model trained for SEV. "
        "Log-likelihoods are under the regularised mixture: the paper's is singular on one-hot columns."
    )
    tables: ClassVar[tuple[str, ...]] = ("allopt1", "alloptc")

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """A row per dataset, table and procedure, a panel per figure that was measured."""
        pairs = _pairs(datasets, records, self.tables)
        panels = list(pairs.groupby(["dataset", "table", "procedure", "figure"], sort=False))
        picture, axes = blank(len(panels))
        for panel, ((dataset, table, procedure, figure), own) in zip(axes, panels, strict=True):
            BeforeAfterDisplay(own.reset_index(drop=True), what=BEFORE_AFTER[figure]).plot(panel, style="paper")
            panel.set_title(f"{dataset}, {table}: {procedure}")
        one_legend(picture, axes)
        return Drawing(picture, pairs)


def _pairs(datasets: Sequence[str], records: Records, tables: Sequence[str]) -> pd.DataFrame:
    rows, columns = [], ["dataset", "table", "procedure", "figure", "label", "before", "after"]
    for table in (name for name in tables if records.get(name)):
        found = means(records, [table])
        for figure in (name for name in BEFORE_AFTER if {name, f"base_{name}"} <= set(found)):
            both = found[[f"base_{figure}", figure]].dropna()
            for (dataset, method), before, after in both.itertuples(name=None):
                label, procedure = SHOWN_TRAINED[method].split(", ")
                if dataset in datasets:
                    rows.append((dataset, table, procedure, figure, label, before, after))
    if not rows:
        raise UsageError("no model was measured before and after", do=f"measure {' or '.join(tables)} first")
    found = pd.DataFrame(rows, columns=columns)
    return found.sort_values(["dataset", "table", "procedure"], kind="stable", ignore_index=True)


class CounterfactualsFigure(Figure):
    """Features changed against closeness, and against log-likelihood; a marker per method, a grey per model."""

    name: ClassVar[str] = "counterfactual_scatter"
    title: ClassVar[str] = "Features changed by different explanations"
    caption: ClassVar[str] = (
        "Features changed against the largest change (left; down and to the left is better) and against the "
        "log-likelihood of the explanation (right; up and to the left is better)."
    )
    tables: ClassVar[tuple[str, ...]] = ("counterfactuals",)

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """Two panels per dataset."""
        found = _scattered(means(records, self.tables), datasets)
        there = list(dict.fromkeys(found["dataset"]))
        picture, axes = blank(len(AGAINST) * len(there), across=len(AGAINST))
        for number, panel in enumerate(axes):
            dataset, (y, words) = there[number // len(AGAINST)], list(AGAINST.items())[number % len(AGAINST)]
            _draw_scatter(panel, found, dataset, y)
            panel.set(title=dataset, xscale="log", xlabel="features changed", ylabel=words)
            panel.set_xticks(FEATURE_TICKS, [str(tick) for tick in FEATURE_TICKS])
            panel.minorticks_off()
        one_legend(picture, axes)
        return Drawing(picture, found)


def _scattered(found: pd.DataFrame, datasets: Sequence[str]) -> pd.DataFrame:
    """One row per method and model; their names are parted."""
    lines = found.reindex(columns=[FEATURES, *AGAINST]).reset_index()
    lines = _found(lines[lines["dataset"].isin(datasets)].dropna(subset=[FEATURES]), "counterfactuals")
    parts = lines["method"].str.split(n=1, expand=True)
    return lines.assign(model=parts[0], method=parts[1].replace(SHOWN_BESIDE))[
        ["dataset", "model", "method", FEATURES, *AGAINST]
    ].reset_index(drop=True)


def _draw_scatter(panel: Any, found: pd.DataFrame, dataset: str, y: str) -> None:
    methods, models = (list(dict.fromkeys(found[name])) for name in ("method", "model"))
    for line in found[(found["dataset"] == dataset) & found[y].notna()].to_dict("records"):
        panel.scatter(
            line[FEATURES], line[y], marker=marker(methods.index(line["method"])), s=46,
            edgecolors="black", facecolors=shade(models.index(line["model"])), zorder=3,
        )  # fmt: skip
    panel.margins(0.12)
    key_markers(panel, methods, models, edge="0.3")
