"""The clusters that references come from, as a map: rows, what the model says of them, and the centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError, check_count
from fewest.references import References
from fewest.reporting.plots._display import MARKERS, Display, shade

MOST = 1500  # points drawn; more hide each other


@dataclass
class ClusterMapDisplay(Display):
    """Rows in two dimensions: a marker per cluster, small dots for rows decided against, a star per centre.

    Parameters
    ----------
    table : DataFrame
        One row per reference: ``reference``, ``x``, ``y`` (its cluster's centre on the map), ``rows`` (assigned to it
        among those given), ``accepted`` (of these), ``score`` (of the reference).
    points : DataFrame
        Rows drawn: ``x``, ``y``, ``cluster`` (number of the reference), ``accepted``.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 1, 1, 1, 1, 9, 9], "age": [20, 21, 22, 60, 62, 30, 50]})
    >>> y = [0, 0, 0, 0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> refs = fw.references.clusters(decision, X, y, n_clusters=2)
    >>> display = ClusterMapDisplay.from_references(refs, X)
    >>> display.table["accepted"].tolist()
    [3, 2]
    >>> display.plot(Figure().subplots()).ax_.get_title()
    '7 of 7 rows'
    """

    points: pd.DataFrame
    of: int = 0

    @classmethod
    def from_references(cls, references: References, X: Any, most: int = MOST, random_state: int = 0) -> Self:
        """Of references made by clustering.

        Parameters
        ----------
        references : References
            Made by `references.clusters`. Clusters found in more than two dimensions are shown on the two principal
            axes of the rows.
        X : table
            Rows to show.
        most : int
            More rows than this are sampled for the picture; the table counts all.
        random_state : int
            Draws the sample.
        """
        from fewest.references.clustering import pca

        check_count("most", most)
        plain = references.plain()
        assigner: Any = plain.assigner
        if not all(hasattr(assigner, name) for name in ("space", "fitted", "centres")):
            raise UsageError("these references do not come from clusters", do="make them with references.clusters")
        frame = plain.schema.conform(X, unseen="allow")
        places, centres = assigner.fitted.transform(assigner.space.encode(frame)), assigner.centres
        if places.shape[1] > 2:
            flat = pca(2).fit(places)
            places, centres = flat.transform(places), flat.transform(centres)
        verdicts, cluster = plain.decision.verdicts(frame), assigner.assign(frame)
        if places.shape[1] == 1:
            places, centres = (np.column_stack([part, np.zeros(len(part))]) for part in (places, centres))
        points = pd.DataFrame({
            "x": places[:, 0], "y": places[:, 1], "cluster": cluster, "accepted": ~verdicts.positive,
        })  # fmt: skip
        table = pd.DataFrame({
            "reference": plain.names, "x": centres[:, 0], "y": centres[:, 1],
            "rows": np.bincount(cluster, minlength=len(plain)),
            "accepted": np.bincount(cluster[~verdicts.positive], minlength=len(plain)),
            "score": plain.score,
        })  # fmt: skip
        return cls(table, points=points.iloc[_sample(len(points), most, random_state)], of=len(points))

    def _draw(self, ax: Any) -> None:
        against = self.points[~self.points["accepted"]]
        ax.scatter(against["x"], against["y"], s=3, color="0.8", label="decided against", zorder=1)
        for number, name in enumerate(self.table["reference"]):
            own = self.points[self.points["accepted"] & (self.points["cluster"] == number)]
            ax.scatter(
                own["x"], own["y"], s=14, marker=MARKERS[number % len(MARKERS)], facecolors=shade(number),
                edgecolors="0.25", linewidths=0.4, label=name, zorder=2,
            )  # fmt: skip
        ax.scatter(
            self.table["x"], self.table["y"], s=230, marker="*", facecolors="white", edgecolors="black", linewidths=1.3,
            label="centre", zorder=3,
        )  # fmt: skip
        for line in self.table.itertuples():
            ax.annotate(
                line.reference, (line.x, line.y), (0, 9), textcoords="offset points", ha="center", fontsize=8, zorder=4,
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
            )  # fmt: skip
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_title(f"{len(self.points):,} of {self.of:,} rows")
        ax.legend(frameon=False, fontsize="x-small", loc="best", markerscale=0.8)


def _sample(count: int, most: int, random_state: int) -> npt.NDArray[np.int64]:
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(random_state).choice(count, most, replace=False))
