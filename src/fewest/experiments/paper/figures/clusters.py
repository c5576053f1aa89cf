"""Figure "Clustering results for different datasets": the PaCMAP embedding of the accepted rows, with centres."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import ClassVar

import pandas as pd

from fewest import references
from fewest.decision import Decision
from fewest.errors import FewestWarning
from fewest.experiments.paper.base import Tell
from fewest.experiments.paper.data import load_split
from fewest.experiments.paper.figures.base import Bound, Drawing, Records, blank
from fewest.experiments.paper.models import CLUSTERS, fit
from fewest.reporting.plots import ClusterMapDisplay

MODEL = "L2LR"
ROWS, QUICK_ROWS = 20_000, 400


class ClusterMapsFigure(Bound):
    """Maps of the clusters that references come from, one per dataset, of split 0.

    Examples
    --------
    >>> ClusterMapsFigure().title
    'Clusters of accepted cases'
    """

    name: ClassVar[str] = "cluster_maps"
    title: ClassVar[str] = "Clusters of accepted cases"
    caption: ClassVar[str] = (
        "Training rows of split 0 in the PaCMAP embedding of those labelled negative, with the paper's number of "
        "clusters. Markers: rows the model accepts, by cluster; dots: rows it decides against; stars: centres of "
        "clusters whose reference it accepts."
    )

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """Fit, cluster, draw; a panel per dataset."""
        picture, axes = blank(len(datasets))
        tables = []
        for panel, dataset in zip(axes, datasets, strict=True):
            tell(f"    {self.name}: {dataset}")
            display = self._map(dataset).plot(panel)
            panel.set_title(f"{dataset}: {panel.get_title()}")
            tables.append(display.table.assign(dataset=dataset))
        numbers = pd.concat(tables, ignore_index=True)
        return Drawing(picture, numbers[["dataset", *(name for name in numbers if name != "dataset")]])

    def _map(self, dataset: str) -> ClusterMapDisplay:
        rows = load_split(dataset, 0, self.folder)
        most = QUICK_ROWS if self.quick else ROWS
        X, y = rows.X_train[:most], rows.y_train[:most]
        decision = Decision(fit(MODEL, dataset, X, y, self.quick), positive=1)
        count, m = CLUSTERS[dataset]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewestWarning)  # a centre decided positive has no star: nothing to be done
            refs = references.clusters(
                decision, X, y, n_clusters=count, m=m, embedding="pacmap", assignment="embedding"
            )
        return ClusterMapDisplay.from_references(refs, X)
