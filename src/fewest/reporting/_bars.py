"""Counts as the bars of a chart."""

from __future__ import annotations

from collections.abc import Sequence

from fewest.results.drawing import Bar, Bars
from fewest.results.drawing import percent as percent


def bars(title: str, rows: Sequence[tuple[str, int]], total: int, question: str = "") -> Bars:
    """Bars of counts, each with its share of the total.

    Examples
    --------
    >>> [(bar.name, bar.percent) for bar in bars("SEV", [("1", 3), ("2", 1)], 4).bars]
    [('1', '75 %'), ('2', '25 %')]
    """
    return Bars(title, question, tuple(Bar(name, count, count / max(1, total)) for name, count in rows))
