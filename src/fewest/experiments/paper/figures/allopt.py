"""Figure "All-Opt performance": SEV, l_inf and credibility before and after training for sparse decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pandas as pd

from fewest.errors import UsageError
from fewest.experiments.paper.base import Tell
from fewest.experiments.paper.figures.base import Bound, Drawing, Records, blank, means, one_legend
from fewest.reporting.plots import BeforeAfterDisplay

WORDS = {"sev": "mean SEV", "l_inf": "mean l_inf, sd", "log_likelihood": "mean log-likelihood"}


class AllOptFigure(Bound):
    """Bars of three models before and after All-Opt.

    Examples
    --------
    >>> AllOptFigure().tables
    ('allopt1', 'alloptc')
    """

    name: ClassVar[str] = "allopt_bars"
    title: ClassVar[str] = "All-Opt: before and after"
    caption: ClassVar[str] = (
        "Hatched bars are the models as they were fitted, solid ones the same kind of model trained for SEV."
    )
    tables: ClassVar[tuple[str, ...]] = ("allopt1", "alloptc")

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """A row per dataset and table, a panel per figure that was measured."""
        pairs = _pairs(datasets, records, self.tables)
        panels = list(pairs.groupby(["dataset", "table", "figure"], sort=False))
        picture, axes = blank(len(panels))
        for panel, ((dataset, table, figure), own) in zip(axes, panels, strict=True):
            BeforeAfterDisplay(own.reset_index(drop=True), what=WORDS[figure]).plot(panel)
            panel.set_title(f"{dataset}, {table}")
        one_legend(picture, axes)
        return Drawing(picture, pairs)


def _pairs(datasets: Sequence[str], records: Records, tables: Sequence[str]) -> pd.DataFrame:
    rows = []
    for table in (name for name in tables if records.get(name)):
        found = means(records, [table])
        for figure in (name for name in WORDS if {name, f"base_{name}"} <= set(found)):
            both = found[[f"base_{figure}", figure]].dropna()
            rows += [
                {
                    "dataset": dataset,
                    "table": table,
                    "figure": figure,
                    "label": method,
                    "before": before,
                    "after": after,
                }
                for (dataset, method), before, after in both.itertuples(name=None)
                if dataset in datasets
            ]
    if not rows:
        raise UsageError("no model was measured before and after", do=f"measure {' or '.join(tables)} first")
    return pd.DataFrame(rows).sort_values(["dataset", "table"], kind="stable", ignore_index=True)
