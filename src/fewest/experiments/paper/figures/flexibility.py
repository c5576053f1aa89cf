"""Figure "SEV/credibility change rate for varying flexibility": 0, 5, 10 and 20 per cent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pandas as pd

from fewest.errors import UsageError
from fewest.experiments.paper.base import Tell
from fewest.experiments.paper.figures.base import Bound, Drawing, Records, blank, means, one_legend
from fewest.experiments.paper.models import MODELS
from fewest.reporting.plots import FlexibilityDisplay

FIGURES = {"sev": "sev", "log_likelihood": "sane_log_likelihood"}


class FlexibilityFigure(Bound):
    """Mean SEV and log-likelihood of four models while the references may move further.

    Examples
    --------
    >>> FlexibilityFigure().tables
    ('sevc', 'sevcf')
    """

    name: ClassVar[str] = "flexibility"
    title: ClassVar[str] = "Sparsity and credibility for varying flexibility"
    caption: ClassVar[str] = (
        "Cluster references as they are (0) and moved within 5, 10 and 20 % of the accepted cases. The unmoved "
        "reference stays in the race, so mean SEV never rises."
    )
    tables: ClassVar[tuple[str, ...]] = ("sevc", "sevcf")

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """Two panels per dataset: SEV, log-likelihood."""
        picture, axes = blank(2 * len(datasets), across=2, height=2.6)
        lines = _lines(datasets, means(records, self.tables))
        for number, panel in enumerate(axes):
            dataset, y = datasets[number // 2], list(FIGURES)[number % 2]
            own = lines[lines["dataset"] == dataset]
            if own[y].notna().any():
                FlexibilityDisplay(own, y=y).plot(panel)
            panel.set_title(dataset)
        one_legend(picture, axes)
        return Drawing(picture, lines)


def _lines(datasets: Sequence[str], found: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for dataset, method in found.index:
        kind, *rest = method.split()
        if dataset in datasets and kind in MODELS and rest[:1] == ["clusters"]:
            line = found.loc[(dataset, method)]
            numbers = {name: line.get(figure, float("nan")) for name, figure in FIGURES.items()}
            rows.append({"dataset": dataset, "label": kind, "flexibility": float((rest[1:] or ["0"])[0]), **numbers})
    if not rows:
        raise UsageError("no record of these datasets was found", do="measure sevc and sevcf on them first")
    # A record of a plain cluster is in both tables; one of them does.
    return pd.DataFrame(rows).drop_duplicates(["dataset", "label", "flexibility"]).reset_index(drop=True)
