"""Scales: which values of a changed feature are enough, as a stretch of the range seen, with the case on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fewest.results.drawing._pieces import fill, html_table, joined, wide

WIDTH, HEIGHT, MARGIN = 240, 24, 8


@dataclass(frozen=True)
class Scale:
    """What is enough of one change, in words; for a number also where its ends, the case and the answer lie."""

    feature: str
    case: str
    shown: str
    enough: str
    ends: tuple[float, float] | None = None
    seen: tuple[float, float] | None = None
    at: tuple[float, float] | None = None  # the case's value and the one shown


def scales(lines: Sequence[Scale]) -> Markup:
    """A table of what is enough; numbers with a scale: a stretch, a cross for the case, a dot for the answer.

    Examples
    --------
    >>> page = scales([Scale("<age>", "30", "41", "38 or more", (38.0, 75.0), (19.0, 75.0), (30.0, 41.0))])
    >>> "&lt;age&gt;" in page, "38 or more" in page, page.count("<svg")
    (True, True, 1)
    """
    heads = ("feature", "this case", "shown", "enough, the others as shown", "on the range seen")
    rows = (
        fill(
            '<tr><th scope="row">{feature}</th><td>{case}</td><td>{shown}</td><td>{enough}</td><td>{scale}</td></tr>',
            feature=line.feature, case=line.case, shown=line.shown, enough=line.enough, scale=_scale(line),
        )
        for line in lines
    )  # fmt: skip
    return wide(html_table(heads, rows), "What is enough")


def _scale(line: Scale) -> Markup:
    if line.ends is None or line.seen is None or line.at is None:
        return Markup("")
    numbers = (*line.ends, *line.seen, *line.at)
    low, high = min(numbers), max(numbers)
    if not all(map(math.isfinite, numbers)) or not high > low:
        return Markup("")

    def place(value: float) -> float:
        return round(MARGIN + (WIDTH - 2 * MARGIN) * (value - low) / (high - low), 1)

    start, end, case, shown = (place(value) for value in (*line.ends, *line.at))
    middle = HEIGHT / 2
    marks = joined([
        fill('<path class="fw-axis" d="M{a} {y}H{b}"></path>', a=MARGIN, b=WIDTH - MARGIN, y=middle),
        fill('<rect class="fw-bar" x="{x}" y="{y}" width="{w}" height="6"></rect>', x=start, y=middle - 3,
             w=round(max(end - start, 2.0), 1)),
        fill('<path class="fw-cross" d="M{a} {t}L{b} {u}M{a} {u}L{b} {t}"></path>', a=case - 4, b=case + 4,
             t=middle - 4, u=middle + 4),
        fill('<circle class="fw-turned" cx="{x}" cy="{y}" r="5"></circle>', x=shown, y=middle),
    ])  # fmt: skip
    return fill(
        '<svg role="img" viewBox="0 0 {w} {h}" width="{w}" height="{h}">'
        "<title>{enough}; this case: {case}</title>{marks}</svg>",
        w=WIDTH, h=HEIGHT, enough=line.enough, case=line.case, marks=marks,
    )  # fmt: skip
