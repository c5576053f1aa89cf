"""Figure "SEV distribution": where SEV is 1 and where 2, and how that changes when the reference moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import pandas as pd

from fewest import references
from fewest.decision import Decision
from fewest.experiments.paper.base import Tell
from fewest.experiments.paper.data import Rows, load_split
from fewest.experiments.paper.figures.base import Bound, Drawing, Records, blank
from fewest.explainer import Explainer
from fewest.references import References
from fewest.reporting.plots import RegionDisplay

MOVED = 0.20  # the paper's largest flexibility
STEPS, QUICK_STEPS = 61, 31


class RegionsFigure(Bound):
    """A linear model on the two numbers that tell the classes apart best, around two references.

    Examples
    --------
    >>> RegionsFigure().title
    'Where SEV is 1 and where it is 2'
    """

    name: ClassVar[str] = "regions"
    title: ClassVar[str] = "Where SEV is 1 and where it is 2"
    caption: ClassVar[str] = (
        "A logistic regression on two numbers. Left: the mean of the accepted cases as reference; right: the same, "
        "moved within 20 % of the accepted cases to where the model scores lower. Cases get a smaller SEV as the "
        "reference moves away from the boundary."
    )

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """Two panels per dataset."""
        picture, axes = blank(2 * len(datasets), across=2)
        grids = []
        for number, dataset in enumerate(datasets):
            tell(f"    {self.name}: {dataset}")
            rows = load_split(dataset, 0, self.folder)
            for panel, refs in zip(axes[2 * number :], _two(rows), strict=False):
                steps = QUICK_STEPS if self.quick else STEPS
                display = RegionDisplay.from_explainer(
                    Explainer(refs.decision, refs, n_jobs=1), rows.X_train[list(refs.schema.columns)], steps=steps
                ).plot(panel)
                panel.set_title(f"{dataset}: {refs.names[0]}")
                grids.append(_shares(display).assign(dataset=dataset, reference=refs.names[0]))
        return Drawing(
            picture, pd.concat(grids, ignore_index=True)[["dataset", "reference", "region", "points", "share"]]
        )


def _two(rows: Rows) -> tuple[References, References]:
    """The mean reference of a model on two numbers, and its flexible twin as a reference of its own."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = rows.X_train[_telling(rows)]
    decision = Decision(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, rows.y_train), positive=1)
    middles = X.groupby(rows.y_train).mean().astype(float)
    # With few positives there would be nothing to map at a half: the line is drawn midway between the classes' means.
    decision = replace(decision, threshold=float(decision.score(middles).mean()))
    plain = references.single(decision, X, rows.y_train)
    twin = plain.flexible(MOVED).frame.iloc[1:]
    moved = references.supplied(decision, twin, schema=plain.schema)
    return plain, replace(moved, names=("mean, moved",))


def _telling(rows: Rows) -> list[str]:
    """The two numeric columns whose means differ most between the classes, in standard deviations."""
    numeric = rows.X_train.select_dtypes("number")
    apart = (numeric[rows.y_train == 1].mean() - numeric[rows.y_train == 0].mean()).abs() / numeric.std()
    chosen = set(apart.sort_values(ascending=False, kind="stable").index[:2])
    return [column for column in numeric if column in chosen]


def _shares(display: RegionDisplay) -> pd.DataFrame:
    counts = display.table["region"].value_counts().sort_index()
    return pd.DataFrame(
        {"region": counts.index, "points": counts.to_numpy(), "share": counts.to_numpy() / counts.sum()}
    )
