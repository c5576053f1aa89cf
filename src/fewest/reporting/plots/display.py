"""What the displays share: a table, axes, and marks that differ without colour."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import pandas as pd

from fewest.errors import MissingExtraError, check_word

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
LINES = ("-", "--", "-.", ":")
HATCHES = ("", "///", "...", "xxx", "---", "ooo")
SHADES = ("white", "0.75", "0.45", "0.1")
# Okabe and Ito's colours, which differ with every kind of colour blindness
COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2")
Style = Literal["screen", "paper"]


@dataclass
class Display(ABC):
    """A table of numbers that can be drawn; `plot` sets ``ax_`` and ``figure_``."""

    headline: ClassVar[str] = ""  # What the drawing shows, for its title

    table: pd.DataFrame
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)
    style: Style = field(default="screen", init=False, repr=False)

    def plot(self, ax: Any = None, *, style: Style = "screen") -> Self:
        """Draw, into a new figure unless axes are given; returns itself.

        ``style="screen"`` has colours and a title, ``"paper"`` greys and hatches alone, for print.
        """
        check_word("style", style, ("screen", "paper"))
        self.style = style
        if ax is None:
            with needs_matplotlib("plots"):
                import matplotlib.pyplot as plt
            ax = plt.subplots()[1]
        self._draw(ax)
        if style == "screen" and not ax.get_title():
            ax.set_title(self.headline, fontsize=10)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def face(self, number: int) -> str:
        """The filling of the number-th kind: a colour, on paper a grey."""
        return shade(number) if self.style == "paper" else COLOURS[number % len(COLOURS)]

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


def key_markers(
    ax: Any,
    labels: Iterable[str],
    variants: Iterable[str],
    edge: str = "black",
    face: Callable[[int], str] | None = None,
) -> None:
    """Entries of a legend without points: a marker for each label, a filling for each variant."""
    for number, label in enumerate(labels):
        ax.scatter([], [], marker=marker(number), facecolors="none", edgecolors=edge, label=label)
    for number, variant in enumerate(variants):
        ax.scatter([], [], marker="o", facecolors=(face or shade)(number), edgecolors="black", label=variant)


def shade(number: int) -> str:
    """Grey of the number-th kind, light ones first."""
    return SHADES[number % len(SHADES)]


def ink(face: str) -> str:
    """What can be read on a filling."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(face)
    return "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "white"


def percents(axis: Any) -> None:
    """Shares as per cent along an axis."""
    axis.set_major_formatter(lambda share, _: f"{share:.0%}")
