"""Maps: where SEV is 1 and where 2, over two features; and the clusters that references come from, with their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError, check_count
from fewest.references import References
from fewest.reporting.plots.display import Display, ink, marker
from fewest.results.explanation import STATUSES, Status
from fewest.tables.schema import Feature

if TYPE_CHECKING:
    from fewest.explainer import Explainer

ACCEPTED, NONE = "accepted", "not possible"
ENDS = (0.01, 0.99)
MOST = 1500  # points drawn; more hide each other


@dataclass
class RegionDisplay(Display):
    """SEV of every point of a grid over two numeric features; a star marks each reference.

    Parameters
    ----------
    table : DataFrame
        One row per point: the two features, and ``region``: "accepted", "SEV 1", "SEV 2", or "not possible".
    stars : DataFrame
        The references' values of the two features.

    Examples
    --------
    >>> import fewest as fw
    >>> X = pd.DataFrame({"debt": range(100), "rent": [7 * k % 100 for k in range(100)]})
    >>> y = X["debt"] + X["rent"] > 120
    >>> decision = fw.Decision(lambda rows: (rows["debt"] + rows["rent"]).to_numpy() / 240, positive=True)
    >>> explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    >>> display = RegionDisplay.from_explainer(explainer, X, steps=11)
    >>> sorted(set(display.table["region"]))
    ['SEV 1', 'SEV 2', 'accepted']
    """

    headline: ClassVar[str] = "How many features must change, by two of them"
    stars: pd.DataFrame

    @classmethod
    def from_explainer(
        cls, explainer: Explainer, X: Any, features: Sequence[str] | None = None, steps: int = 61
    ) -> Self:
        """Explain a grid of ``steps`` points per feature, over the spread of the rows of ``X``.

        ``features`` are two names, by default the first two numeric ones; others have the first reference's values.
        """
        check_count("steps", steps, least=2)
        schema, refs = explainer.schema, explainer.references
        numeric = [feature for feature in schema.features if feature.is_numeric]
        chosen = numeric[:2] if features is None else [schema.features[schema.index(name)] for name in features]
        if len(chosen) != 2 or any(not feature.is_numeric for feature in chosen):
            raise UsageError("a map needs two numeric features", do="name two columns with numbers")
        frame = schema.conform(X, unseen="allow")
        columns = [feature.columns[0] for feature in chosen]
        first, second = (
            _values(feature, frame[column], refs.frame[column], steps)
            for feature, column in zip(chosen, columns, strict=True)
        )
        grid = refs.frame.iloc[np.zeros(len(first) * len(second), dtype=int)].reset_index(drop=True)
        grid = grid.assign(**{columns[0]: np.tile(first, len(second)), columns[1]: np.repeat(second, len(first))})
        out = explainer.explain(grid)
        return cls(grid[columns].assign(region=_regions(out.answers.status, out.answers.moved)), refs.frame[columns])

    def _draw(self, ax: Any) -> None:
        from matplotlib.colors import BoundaryNorm, ListedColormap
        from matplotlib.patches import Patch

        across, up = self.table.columns[:2]
        x, y = np.unique(self.table[across]), np.unique(self.table[up])
        shown = sorted(set(self.table["region"]), key=_order)
        code = (
            self.table["region"].map({region: k for k, region in enumerate(shown)}).to_numpy().reshape(len(y), len(x))
        )
        faces = [self.face(_number(region)) for region in shown]
        norm = BoundaryNorm(np.arange(len(shown) + 1) - 0.5, len(shown))
        ax.pcolormesh(x, y, code, cmap=ListedColormap(faces), norm=norm, shading="nearest", rasterized=True)
        for number, region in enumerate(shown):
            row, column = _middle((code == number) & ~self._near_stars(x, y))
            ax.text(x[column], y[row], region, ha="center", va="center", color=ink(faces[number]), fontsize=9)
        ax.plot(
            self.stars[across], self.stars[up], linestyle="none", marker="*", markersize=15, markerfacecolor="white",
            markeredgecolor="black", label="reference",
        )  # fmt: skip
        ax.set_xlabel(across)
        ax.set_ylabel(up)
        keys = [Patch(facecolor=face, edgecolor="0.3", label=name) for face, name in zip(faces, shown, strict=True)]
        stars, _ = ax.get_legend_handles_labels()
        ax.legend(handles=[*keys, *stars], fontsize="x-small", loc="best")

    def _near_stars(self, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Points under a star or next to one, where no name should stand."""
        inside = np.zeros((len(y), len(x)), dtype=bool)
        for across, up in self.stars.to_numpy(dtype=float):
            inside |= np.abs(y - up)[:, None] / np.ptp(y) + np.abs(x - across) / np.ptp(x) < 0.06
        return inside


def _values(feature: Feature, rows: pd.Series[Any], reference: pd.Series[Any], steps: int) -> npt.NDArray[Any]:
    """Values of the grid, over nearly all rows and the references; whole numbers where there are only these."""
    low, high = rows.quantile(ENDS[0]), rows.quantile(ENDS[1])
    low, high = min(low, reference.min()), max(high, reference.max())
    values = np.linspace(float(low), float(high), steps)
    whole = feature.kind == "integer"
    values = np.unique(values.round(0 if whole else feature.decimals))
    if len(values) < 2:
        raise UsageError(f'"{feature.name}" has one value only', do="name a feature that varies")
    return values.astype(np.int64) if whole else values


def _regions(status: npt.NDArray[np.int8], moved: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    size = moved.sum(axis=1)
    named = np.array([NONE, *(f"SEV {k}" for k in range(1, int(size.max(initial=0)) + 1))], dtype=object)
    explained = status == STATUSES.index(Status.EXPLAINED)
    regions = named[np.where(explained, size, 0)]
    regions[status == STATUSES.index(Status.ALREADY_NEGATIVE)] = ACCEPTED
    return np.asarray(regions)


def _order(region: str) -> tuple[int, str]:
    return ({ACCEPTED: 0, NONE: 2}.get(region, 1), region)


def _number(region: str) -> int:
    """The same filling in every map; of greys darker where more must change, darkest where nothing helps."""
    number = {ACCEPTED: 0, NONE: 3}.get(region)
    return min(2, int(region.split()[1])) if number is None else number


def _middle(inside: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """The point of a region that is farthest from its edge: where its name fits best."""
    from scipy.ndimage import distance_transform_edt

    deep = distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
    row, column = np.unravel_index(int(np.argmax(deep)), deep.shape)
    return int(row), int(column)


@dataclass
class ClusterMapDisplay(Display):
    """Rows in two dimensions: a marker per cluster, small dots for refused rows, a star per centre.

    Parameters
    ----------
    table : DataFrame
        One row per reference: ``reference``, ``x``, ``y`` (its cluster's centre on the map), ``rows`` (assigned to it
        among those given), ``accepted`` (of these), ``score`` (of the reference).
    points : DataFrame
        Rows drawn: ``x``, ``y``, ``cluster`` (number of the reference), ``accepted``.

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 1, 1, 1, 1, 9, 9], "age": [20, 21, 22, 60, 62, 30, 50]})
    >>> y = [0, 0, 0, 0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> refs = fw.references.clusters(decision, X, y, n_clusters=2)
    >>> display = ClusterMapDisplay.from_references(refs, X)
    >>> display.table["accepted"].tolist()
    [3, 2]
    """

    points: pd.DataFrame
    of: int = 0

    @classmethod
    def from_references(cls, references: References, X: Any, most: int = MOST, random_state: int = 0) -> Self:
        """Of references made by `references.clusters`, with the rows of ``X``.

        Clusters found in more than two dimensions are shown on the two principal axes of the rows. More than ``most``
        rows are sampled for the picture; the table counts all.
        """
        from fewest.references.clustering import pca

        check_count("most", most)
        plain = references.plain()
        assigner: Any = plain.assigner
        if not all(hasattr(assigner, name) for name in ("space", "fitted", "places")):
            raise UsageError("these references do not come from clusters", do="make them with references.clusters")
        frame = plain.schema.conform(X, unseen="allow")
        places, centres = assigner.fitted.transform(assigner.space.encode(frame)), assigner.places
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
        ax.scatter(against["x"], against["y"], s=3, color="0.8", label="refused", zorder=1)
        for number, name in enumerate(self.table["reference"]):
            own = self.points[self.points["accepted"] & (self.points["cluster"] == number)]
            ax.scatter(
                own["x"], own["y"], s=14, marker=marker(number), facecolors=self.face(number),
                edgecolors="0.25", linewidths=0.4, label=name, zorder=2,
            )  # fmt: skip
        ax.scatter(
            self.table["x"], self.table["y"], s=230, marker="*", facecolors="white", edgecolors="black", linewidths=1.3,
            label="centre", zorder=3,
        )  # fmt: skip
        for line, lower in zip(self.table.itertuples(), self._crowded(), strict=True):
            ax.annotate(
                line.reference, (line.x, line.y), (0, -19 if lower else 9), textcoords="offset points", ha="center",
                fontsize=8, zorder=4,
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
            )  # fmt: skip
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_title(f"{len(self.points):,} of {self.of:,} rows", fontsize=10)
        ax.legend(frameon=False, fontsize="x-small", loc="best", markerscale=0.8)

    def _crowded(self) -> list[bool]:
        """Whether the name of each centre stands below it: another centre is close above."""
        x, y = (self.table[name].to_numpy(dtype=float) for name in ("x", "y"))
        wide, high = (np.ptp(self.points[name]) or 1.0 for name in ("x", "y"))
        near = (np.abs(x[:, None] - x) < 0.25 * wide) & (y > y[:, None]) & (y - y[:, None] < 0.12 * high)
        return [bool(row.any()) for row in near]


def _sample(count: int, most: int, random_state: int) -> npt.NDArray[np.int64]:
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(random_state).choice(count, most, replace=False))
