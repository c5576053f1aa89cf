"""Bars as plain numbers that the template draws: one row of an inline SVG and one row of its table twin each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 640
LABEL = 220  # room for the names on the left
COUNT = 60  # room for the figures on the right
ROW = 26


@dataclass(frozen=True)
class Bar:
    """One bar: its name, figure and place."""

    name: str
    count: int
    share: float
    y: int
    length: float

    @property
    def percent(self) -> str:
        """The share in per cent, whole unless that would hide it."""
        return percent(self.share)


@dataclass(frozen=True)
class Bars:
    """A bar chart: what it shows in words, and its bars from top to bottom."""

    title: str
    bars: tuple[Bar, ...]
    left: int = LABEL
    width: int = WIDTH

    @property
    def height(self) -> int:
        """Height of the drawing."""
        return max(1, len(self.bars)) * ROW


def percent(share: float) -> str:
    """A share as people write it.

    Examples
    --------
    >>> percent(0.8519), percent(0.001), percent(0.9999), percent(0.0)
    ('85 %', '0.1 %', '99.99 %', '0 %')
    """
    for decimals in range(5):
        text = f"{share * 100:.{decimals}f}"
        if (float(text) not in (0.0, 100.0)) or share in (0.0, 1.0):
            break
    return f"{text} %"


def bars(title: str, rows: Sequence[tuple[str, int]], total: int) -> Bars:
    """Bars of counts, drawn against the largest of them.

    Examples
    --------
    >>> [(bar.name, bar.percent) for bar in bars("SEV", [("1", 3), ("2", 1)], 4).bars]
    [('1', '75 %'), ('2', '25 %')]
    """
    most = max((count for _, count in rows), default=0) or 1
    room = WIDTH - LABEL - COUNT
    return Bars(
        title,
        tuple(
            Bar(name, count, count / max(1, total), k * ROW, round(room * count / most, 1))
            for k, (name, count) in enumerate(rows)
        ),
    )
