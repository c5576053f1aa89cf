"""The paper's figures, drawn from what was measured here: ``find("closeness")`` gives one, `draw` and `save` make it.

A figure that shows tables takes their records; one that shows a model fits it on split 0. Each has a table twin.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pandas as pd

from fewest.errors import UsageError
from fewest.experiments import paper
from fewest.experiments.paper.base import Record, Tell, bind, silent
from fewest.experiments.paper.data import Place
from fewest.experiments.paper.models import CLUSTERS
from fewest.experiments.paper.runner import make_folder
from fewest.reporting.plots.display import needs_matplotlib
from fewest.tables.files import write_bytes, write_text

Records = Mapping[str, Sequence[Record]]

STYLE = {
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "fewest",  # otherwise the names inside the file are drawn at random
}
WIDTH, HEIGHT = 3.9, 3.2  # inches of a panel
ACROSS = 3
ENTRY, LETTER = 1.5, 0.085  # inches of an entry of the legend, and of a letter of it beside half an inch
# Name -> module, class, and the tables it shows: it can be drawn where one of them is there.
_FIGURES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "closeness": ("table_figures", "ClosenessFigure", ("sev1", "sevc", "sevcf")),
    "credibility": ("table_figures", "CredibilityFigure", ("sev1", "sevc", "sevcf")),
    "flexibility": ("table_figures", "FlexibilityFigure", ("sevc", "sevcf")),
    "counterfactual_scatter": ("table_figures", "CounterfactualsFigure", ("counterfactuals",)),
    "allopt_bars": ("table_figures", "AllOptFigure", ("allopt1", "alloptc")),
    "cluster_maps": ("model_figures", "ClusterMapsFigure", ()),
    "regions": ("model_figures", "RegionsFigure", ()),
    "hypercube": ("model_figures", "HypercubeFigure", ()),
    "two_cases": ("illustrations", "TwoCasesFigure", ()),
    "soft_kmeans": ("illustrations", "SoftKMeansFigure", ()),
    "theorems": ("illustrations", "TheoremsFigure", ()),
}


class Drawing(NamedTuple):
    """A picture, which is a matplotlib Figure, and its table twin: what is drawn, as numbers."""

    picture: Any
    numbers: pd.DataFrame


@dataclass(frozen=True)
class Figure(ABC):
    """One of the paper's figures, bound to a data folder and to full or quick settings as tables are.

    Examples
    --------
    >>> from fewest.experiments.paper import figures
    >>> figures.find("closeness").tables
    ('sev1', 'sevc', 'sevcf')
    """

    name: ClassVar[str]
    title: ClassVar[str]
    caption: ClassVar[str]  # what is seen, in a sentence or two
    datasets: ClassVar[tuple[str, ...]] = tuple(CLUSTERS)  # those it can be drawn for, in the order shown
    tables: ClassVar[tuple[str, ...]] = ()  # whose records it shows; none where it fits models of its own

    folder: Place = None
    quick: bool = False

    def __post_init__(self) -> None:
        bind(self)

    @abstractmethod
    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """The picture of some datasets."""


def draw(figure: Figure, datasets: Sequence[str], records: Records, tell: Tell = silent) -> Drawing:
    """Draw a figure for some of its datasets, from tables' records, whatever matplotlib settings its user has.

    Examples
    --------
    >>> from fewest.experiments.paper import figures
    >>> sev1 = [Record("german", "L2LR", {"sev": 1.1, "l_inf": 0.4})]
    >>> drawing = draw(figures.find("closeness"), ["german"], {"sev1": sev1})
    >>> drawing.numbers["sev"].tolist()
    [1.1]
    """
    check(figure, datasets)
    with _style():
        return figure.draw(datasets, records, tell)


def check(figure: Figure, datasets: Sequence[str]) -> None:
    """Refuse datasets that a figure cannot be drawn for."""
    unknown = [name for name in datasets if name not in figure.datasets]
    if unknown:
        raise UsageError(
            f'the figure "{figure.name}" has no dataset "{unknown[0]}"', do=f"choose from {', '.join(figure.datasets)}"
        )


def save(drawing: Drawing, folder: str | Path, stem: str) -> list[Path]:
    """Write ``STEM.svg``, ``STEM.png`` and ``STEM.csv``; the same drawing gives the same bytes."""
    place = make_folder(folder)
    svg, png = io.StringIO(), io.BytesIO()
    with _style():
        drawing.picture.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        drawing.picture.savefig(png, format="png", dpi=150, metadata={"Software": None})
    paths = [place / f"{stem}.{kind}" for kind in ("svg", "png", "csv")]
    write_text(paths[0], svg.getvalue())
    write_bytes(paths[1], png.getvalue())
    write_text(paths[2], drawing.numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    return paths


def blank(panels: int, across: int = ACROSS, height: float = HEIGHT) -> tuple[Any, list[Any]]:
    """An empty picture, and the axes of its panels; no window is opened."""
    with needs_matplotlib("figures"):
        from matplotlib.figure import Figure as Picture
    columns = min(across, max(1, panels))
    rows = -(-panels // columns)
    picture = Picture(figsize=(WIDTH * columns + 0.6, height * rows), layout="constrained")
    axes = picture.subplots(rows, columns, squeeze=False).ravel()
    for spare in axes[panels:]:
        spare.remove()
    return picture, list(axes[:panels])


def means(records: Records, tables: Sequence[str]) -> pd.DataFrame:
    """Mean of every figure over the splits, by dataset and method; methods in the order they come."""
    seen: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for table in tables:
        fresh: dict[tuple[str, str], list[Mapping[str, float]]] = {}
        for record in records.get(table, ()):
            fresh.setdefault((record.dataset, record.method), []).append(record.figures)
        seen.update(fresh)  # tables that are stored together bring the same records
    if not seen:
        raise UsageError("no record of these tables was found", do=f"measure {', '.join(tables)} first")
    lines = {key: pd.DataFrame(figures).mean() for key, figures in seen.items()}
    out = pd.DataFrame(list(lines.values()), index=pd.MultiIndex.from_tuples(lines, names=["dataset", "method"]))
    return out.astype(float)


def one_legend(picture: Any, axes: Sequence[Any]) -> None:
    """One legend under the picture in place of one in each panel."""
    entries: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
        if panel.get_legend() is not None:
            panel.get_legend().remove()
    widest = max(ENTRY, 0.5 + LETTER * max(map(len, entries), default=0))
    fitting = max(1, int(picture.get_figwidth() / widest))
    picture.legend(
        list(entries.values()), list(entries), loc="outside lower center", ncols=min(fitting, len(entries)),
        frameon=False,
    )  # fmt: skip


@contextmanager
def _style() -> Iterator[None]:
    with needs_matplotlib("figures"):
        from matplotlib import style
    with style.context(["default", STYLE]):
        yield


def names() -> tuple[str, ...]:
    """Names that `find` knows: figures of tables that are there, and figures that need none.

    Examples
    --------
    >>> "closeness" in names()
    True
    """
    there = set(paper.names())
    return tuple(name for name, (_, _, tables) in _FIGURES.items() if not tables or there.intersection(tables))


def find(name: str, folder: Place = None, quick: bool = False) -> Figure:
    """One of `names()`, bound to a data folder and to full or quick settings, as tables are.

    Examples
    --------
    >>> find("closeness", quick=True).title
    'Sparsity and closeness'
    """
    if name not in names():
        raise UsageError(f'there is no figure "{name}"', do=f"choose from {', '.join(names())}")
    module, kind, _ = _FIGURES[name]
    figure: Figure = getattr(import_module(f"{__name__}.{module}"), kind)(folder=folder, quick=quick)
    return figure
