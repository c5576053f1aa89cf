"""The paper's figures, drawn from what was measured here: ``find("closeness")`` gives one, `draw` and `save` make it.

A figure that shows tables takes their records; one that shows a model fits it on split 0. Each has a table twin.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from fewest.errors import UsageError
from fewest.experiments import paper
from fewest.experiments.paper.figures.base import Drawing, Figure, check, draw, save

__all__ = ["Drawing", "Figure", "check", "draw", "find", "names", "save"]

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
}


def names() -> tuple[str, ...]:
    """Names that `find` knows: figures of tables that are there, and figures that need none.

    Examples
    --------
    >>> "closeness" in names()
    True
    """
    there = set(paper.names())
    return tuple(name for name, (_, _, tables) in _FIGURES.items() if not tables or there.intersection(tables))


def find(name: str, folder: str | Path | None = None, quick: bool = False) -> Figure:
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
