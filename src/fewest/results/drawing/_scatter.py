"""Points on two axes: a shape for each group, and the same figures in a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fewest.results.drawing._pieces import NOTHING, figure, fill, framed, html_table, inside, joined, twin
from fewest.tables.wording import clip

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 400, 70, 80, 34
SHAPES = 6  # kinds of marks; further groups share the last one


@dataclass(frozen=True)
class Point:
    """One point: where it is, which group it is of, what it is called, and where it leads."""

    x: float
    y: float
    group: str
    label: str
    href: str | None = None


@dataclass(frozen=True)
class _Axis:
    """A range of values on a stretch of the picture."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return round(self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low), 1)

    def ticks(self) -> list[float]:
        """A handful of round values."""
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next((times for times in (1, 2, 5) if (self.high - self.low) / (step * times) <= 6), 10)
        first = math.ceil(self.low / step)
        return [k * step for k in range(first, math.floor(self.high / step) + 1)]


def scatter(
    title: str, question: str, x_label: str, y_label: str, points: Sequence[Point], folded: bool = True
) -> Markup:
    """Points with a shape per group and a table; points with a figure that is not known are in the table alone.

    Where points have an ``href``, their marks lead there by the mouse, and their rows by the keyboard as well. It must
    stay within the site, so it starts with ``/``, ``?`` or ``#``; others are left out.

    Examples
    --------
    >>> page = scatter("Distance and margin", "?", "distance", "density", [Point(1, 2, "1 feature", "case <3>")])
    >>> "case &lt;3&gt;" in page, "<script" in page
    (True, False)
    """
    drawn = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    groups = list(dict.fromkeys(point.group for point in points))
    parts = [_picture(title, question, (x_label, y_label), drawn, groups) if drawn else NOTHING]
    hidden = len(points) - len(drawn)
    if hidden:
        note = f"{hidden} without a figure {'is' if hidden == 1 else 'are'} in the table alone."
        parts.append(fill("<p>{note}</p>", note=note))
    if points:
        parts.append(twin("Show as table", _table(title, (x_label, y_label), points), folded))
    return framed(title, question, *parts)


def _axis(values: Iterable[float], start: float, end: float) -> _Axis:
    known = list(values)
    low, high = min(known), max(known)
    if high - low <= 1e-12 * max(1.0, abs(low), abs(high)):  # all the same: some room on both sides
        room = max(0.5, abs(low) / 10)
        low, high = low - room, high + room
    edge = (high - low) / 25
    return _Axis(low - edge, high + edge, start, end)


def _picture(
    title: str, question: str, labels: tuple[str, str], points: Sequence[Point], groups: Sequence[str]
) -> Markup:
    x = _axis((point.x for point in points), LEFT, WIDTH - 12)
    y = _axis((point.y for point in points), HEIGHT - BOTTOM, TOP)
    shape = {group: min(k, SHAPES - 1) for k, group in enumerate(groups)}
    linked = any(inside(point.href) for point in points)
    # Marks that lead somewhere must not stand inside an image; without links the whole is one image.
    return fill(
        '<svg role="{role}" viewBox="0 0 {width} {height}" width="{width}" height="{height}"{named}>'
        "<title>{title}</title><desc>{question} The same figures are in the table.</desc>{axes}{marks}{legend}</svg>",
        role="group" if linked else "img", width=WIDTH, height=HEIGHT,
        named=fill(' aria-label="{title}"', title=title) if linked else "",
        title=title, question=question, axes=_axes(x, y, labels),
        marks=joined(_mark(point, x.at(point.x), y.at(point.y), shape[point.group]) for point in points),
        legend=_legend(groups),
    )  # fmt: skip


def _mark(point: Point, x: float, y: float, shape: int) -> Markup:
    mark, href = _shape(x, y, shape), inside(point.href)
    if not href:
        return mark
    return fill(
        '<a href="{href}" tabindex="-1" aria-label="{label}">{mark}</a>', href=href, label=point.label, mark=mark
    )


def _shape(x: float, y: float, shape: int) -> Markup:
    """A circle, square, diamond, triangle, cross or star, the same size for the eye."""
    if shape == 0:
        return fill('<circle class="fw-g0" cx="{x}" cy="{y}" r="4"></circle>', x=x, y=y)
    paths = ("", "m-3.5-3.5h7v7h-7z", "m0-5l5 5-5 5-5-5z", "m0-5l5 8.5h-10z", "m-4 0h8m-4-4v8", "m-4-4l8 8m0-8l-8 8")
    return fill('<path class="fw-g{k}" d="M{x} {y}{path}"></path>', k=shape, x=x, y=y, path=paths[shape])


def _axes(x: _Axis, y: _Axis, labels: tuple[str, str]) -> Markup:
    foot = HEIGHT - BOTTOM
    parts = [fill('<path class="fw-axis" d="M{a} {b}V{c}H{d}"></path>', a=LEFT, b=TOP, c=foot, d=WIDTH - 12)]
    parts += [
        fill('<text x="{x}" y="{y}" text-anchor="middle">{t}</text>', x=x.at(value), y=foot + 18, t=figure(value))
        for value in x.ticks()
    ]
    parts += [
        fill('<text x="{x}" y="{y}" text-anchor="end">{t}</text>', x=LEFT - 6, y=y.at(value) + 4, t=figure(value))
        for value in y.ticks()
    ]
    parts.append(
        fill('<text x="{x}" y="{y}" text-anchor="middle">{t}</text>', x=(LEFT + WIDTH) / 2, y=foot + 38, t=labels[0])
    )
    parts.append(fill('<text x="4" y="14">{t}</text>', t=labels[1]))
    return joined(parts)


def _legend(groups: Sequence[str]) -> Markup:
    parts = []
    for k, group in enumerate(groups[:SHAPES]):
        at, name = LEFT + k * 94, group if k < SHAPES - 1 or len(groups) == SHAPES else "others"
        parts.append(_shape(at + 4, HEIGHT - 10, k))
        parts.append(fill('<text x="{x}" y="{y}">{name}</text>', x=at + 13, y=HEIGHT - 6, name=clip(name, 11)))
    return joined(parts)


def _table(title: str, labels: tuple[str, str], points: Sequence[Point]) -> Markup:
    rows = (
        fill(
            '<tr><td>{label}</td><td class="n">{x}</td><td class="n">{y}</td><td>{group}</td></tr>',
            label=fill('<a href="{to}">{label}</a>', to=inside(p.href), label=p.label) if inside(p.href) else p.label,
            x=figure(p.x), y=figure(p.y), group=p.group,
        )
        for p in points
    )  # fmt: skip
    return html_table(("case", *labels, "group"), rows, title)
