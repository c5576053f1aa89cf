"""Where SEV is 1, where it is 2: a map over two features, the others as in the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError, check_count
from fewest.reporting.plots._display import Display, ink, shade
from fewest.results.explanation import STATUSES, Status
from fewest.tables.schema import Feature

if TYPE_CHECKING:
    from fewest.explainer import Explainer

ACCEPTED, NONE = "accepted", "not possible"
ENDS = (0.01, 0.99)


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
    >>> from matplotlib.figure import Figure
    >>> import fewest as fw
    >>> X = pd.DataFrame({"debt": range(100), "rent": [7 * k % 100 for k in range(100)]})
    >>> y = X["debt"] + X["rent"] > 120
    >>> decision = fw.Decision(lambda rows: (rows["debt"] + rows["rent"]).to_numpy() / 240, positive=True)
    >>> explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    >>> display = RegionDisplay.from_explainer(explainer, X, steps=11)
    >>> sorted(set(display.table["region"]))
    ['SEV 1', 'SEV 2', 'accepted']
    >>> display.plot(Figure().subplots()).ax_.get_ylabel()
    'rent'
    """

    stars: pd.DataFrame

    @classmethod
    def from_explainer(
        cls, explainer: Explainer, X: Any, features: Sequence[str] | None = None, steps: int = 61
    ) -> Self:
        """Explain a grid.

        Parameters
        ----------
        explainer : Explainer
        X : table
            Rows that say how far the features spread.
        features : two str, optional
            Default: the first two numeric ones. All others have the values of the first reference.
        steps : int
            Grid points per feature.
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
        faces = [_face(region) for region in shown]
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


def _face(region: str) -> str:
    """The same grey in every map: darker where more must change, darkest where nothing helps."""
    number = {ACCEPTED: 0, NONE: 3}.get(region)
    return shade(min(2, int(region.split()[1])) if number is None else number)


def _middle(inside: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """The point of a region that is farthest from its edge: where its name fits best."""
    from scipy.ndimage import distance_transform_edt

    deep = distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
    row, column = np.unravel_index(int(np.argmax(deep)), deep.shape)
    return int(row), int(column)
