"""Figures that fit a model on split 0: maps of its clusters, regions of SEV, and the hypercube of one case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd

from fewest import references
from fewest.decision import Decision
from fewest.engine.cubes import Vertices
from fewest.experiments.paper.base import NotOfThisTableError, Tell
from fewest.experiments.paper.data import Rows, load_split
from fewest.experiments.paper.figures import Drawing, Figure, Records, blank
from fewest.experiments.paper.models import clusters_of, fit, quietly
from fewest.explainer import Explainer
from fewest.references import References
from fewest.reporting.plots import ClusterMapDisplay, HypercubeDisplay, RegionDisplay
from fewest.results.explanations import Explanations

MODEL = "L2LR"
MOST_ROWS, QUICK_ROWS = 20_000, 400
MOVED = 0.20  # the paper's largest flexibility
STEPS, QUICK_STEPS = 61, 31
SPAN = 4  # features that span the cube: sixteen vertices can still be read
CASES = 300


class ClusterMapsFigure(Figure):
    """Maps of the clusters that references come from, one per dataset, of split 0."""

    name: ClassVar[str] = "cluster_maps"
    title: ClassVar[str] = "Clusters of accepted cases"
    caption: ClassVar[str] = (
        "Training rows of split 0 in the PaCMAP embedding of those labelled negative, with the paper's number of "
        "clusters and the authors' code for them. Markers: rows the model accepts, by cluster; dots: rows it decides "
        "against; stars: centres of clusters whose reference it accepts."
    )

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """Fit, cluster, draw; a panel per dataset."""
        picture, axes = blank(len(datasets))
        tables = []
        for panel, dataset in zip(axes, datasets, strict=True):
            tell(f"    {self.name}: {dataset}")
            display = self._map(dataset).plot(panel, style="paper")
            panel.set_title(f"{dataset}: {panel.get_title()}")
            tables.append(display.table.assign(dataset=dataset))
        numbers = pd.concat(tables, ignore_index=True)
        return Drawing(picture, numbers[["dataset", *(name for name in numbers if name != "dataset")]])

    def _map(self, dataset: str) -> ClusterMapDisplay:
        rows = load_split(dataset, 0, self.folder)
        most = QUICK_ROWS if self.quick else MOST_ROWS
        X, y = rows.X_train[:most], rows.y_train[:most]
        decision = Decision(fit(MODEL, dataset, X, y, self.quick), positive=1)
        count, m = clusters_of(dataset, self.folder)
        with quietly():  # a centre decided positive has no star
            refs = references.clusters(decision, X, y, n_clusters=count, m=m, preset="authors")
        return ClusterMapDisplay.from_references(refs, X)


class RegionsFigure(Figure):
    """A linear model on the two numbers that tell the classes apart best, around two references."""

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
                ).plot(panel, style="paper")
                panel.set_title(f"{dataset}: {refs.names[0]}")
                counts = display.table["region"].value_counts().sort_index()
                grid = pd.DataFrame({"points": counts, "share": counts / counts.sum()}).rename_axis("region")
                grids.append(grid.reset_index().assign(dataset=dataset, reference=refs.names[0]))
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
    if numeric.shape[1] < 2:
        raise NotOfThisTableError("the plane of two numbers needs two columns of numbers")
    apart = (numeric[rows.y_train == 1].mean() - numeric[rows.y_train == 0].mean()).abs() / numeric.std()
    chosen = set(apart.sort_values(ascending=False, kind="stable").index[:2])
    return [column for column in numeric if column in chosen]


class HypercubeFigure(Figure):
    """The cube of the first test case that needs two features, or the most where none does."""

    name: ClassVar[str] = "hypercube"
    title: ClassVar[str] = "The SEV hypercube of one case"
    caption: ClassVar[str] = (
        "Digits say which features have the case's values (1) and which the reference's (0). Squares are decided "
        "against, circles accepted; the ring marks the explanation. Shown are the features of the answer and those "
        "that lower the score most by themselves; the others keep the case's values."
    )

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """A panel per dataset."""
        picture, axes = blank(len(datasets), across=2, height=4.6)
        picture.set_size_inches(picture.get_figwidth() * 1.5, picture.get_figheight())
        tables = []
        for panel, dataset in zip(axes, datasets, strict=True):
            tell(f"    {self.name}: {dataset}")
            rows = load_split(dataset, 0, self.folder)
            rows = rows.first(QUICK_ROWS) if self.quick else rows
            decision = Decision(fit(MODEL, dataset, rows.X_train, rows.y_train, self.quick), positive=1)
            refs = references.single(decision, rows.X_train, rows.y_train, on_positive="allow")
            out = Explainer(decision, refs, n_jobs=1, unseen="allow").explain(rows.X_test[:CASES])
            row = _case(out)
            display = HypercubeDisplay.from_explanations(out, row, _span(out, row)).plot(panel, style="paper")
            panel.set_title(f"{dataset}: case {out.frame.index[row]}, SEV {out[row].sev}")
            tables.append(display.table.assign(dataset=dataset, features=", ".join(display.features)))
        numbers = pd.concat(tables, ignore_index=True)
        return Drawing(picture, numbers[["dataset", "features", "vertex", "aligned", "score", "accepted", "answer"]])


def _case(out: Explanations) -> int:
    size = out.answers.moved.sum(axis=1)
    size[size > SPAN] = 0
    if not size.any():
        raise NotOfThisTableError(f"no case is explained with up to {SPAN} features")
    wanted = size == 2 if (size == 2).any() else size == size.max()
    return int(np.flatnonzero(wanted)[0])


def _span(out: Explanations, row: int) -> list[str]:
    """The features of the answer, then those that lower the score most alone; in column order."""
    singles = np.eye(len(out.schema), dtype=bool)
    goal_of = out.answers.reference[[row]]
    cube = Vertices(out.references.decision, out.schema, out.frame.iloc[[row]], out.references.frame, goal_of)
    score = cube.verdicts(np.zeros(len(singles), dtype=np.int64), singles).score
    score[score >= out.answers.score[row]] = np.inf  # these do not help, or have the reference's value already
    score[out.answers.moved[row]] = -np.inf
    best = [int(j) for j in np.argsort(score, kind="stable")[:SPAN] if score[j] < np.inf]
    return [out.schema.names[j] for j in sorted(best)]
