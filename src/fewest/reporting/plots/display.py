"""What the displays share: a table, axes, and marks that differ without colour."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import pandas as pd

from fewest.errors import MissingExtraError

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
LINES = ("-", "--", "-.", ":")
HATCHES = ("", "///", "...", "xxx", "---", "ooo")
SHADES = ("white", "0.75", "0.45", "0.1")


@dataclass
class Display(ABC):
    """A table of numbers that can be drawn; `plot` sets ``ax_`` and ``figure_``."""

    table: pd.DataFrame
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, ax: Any = None) -> Self:
        """Draw, into a new figure unless axes are given; returns itself."""
        if ax is None:
            with needs_matplotlib("plots"):
                import matplotlib.pyplot as plt
            ax = plt.subplots()[1]
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw into axes; each display does this in its own way."""


@contextmanager
def needs_matplotlib(what: str) -> Iterator[None]:
    """Say what to install where an import of matplotlib fails."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(f"{what} need matplotlib", do='pip install "fewest[plots]"') from error


def marker(number: int) -> str:
    """Marker of the number-th kind."""
    return MARKERS[number % len(MARKERS)]


def key_markers(ax: Any, labels: Iterable[str], variants: Iterable[str], edge: str = "black") -> None:
    """Entries of a legend without points: a marker for each label, a grey for each variant."""
    for number, label in enumerate(labels):
        ax.scatter([], [], marker=marker(number), facecolors="none", edgecolors=edge, label=label)
    for number, variant in enumerate(variants):
        ax.scatter([], [], marker="o", facecolors=shade(number), edgecolors="black", label=variant)


def shade(number: int) -> str:
    """Grey of the number-th kind, light ones first."""
    return SHADES[number % len(SHADES)]


def ink(face: str) -> str:
    """What can be read on a grey."""
    return "black" if face == "white" or float(face) > 0.5 else "white"
