"""A score on its scale: where the case is, where the cut-off is, and where the changes lead."""

from __future__ import annotations

from markupsafe import Markup

from fewest.results.drawing._pieces import fill, joined

WIDTH, HEIGHT, SIDE, LINE = 420, 88, 40, 50


def gauge(score: float, cut: float, after: float | None, texts: tuple[str, str, str]) -> Markup:
    """A score between 0 and 1 beside the cut-off, and the score after the changes where there is one.

    ``texts`` say the three as people read them. The drawing says nothing that the page around it does not say in words.

    Examples
    --------
    >>> page = gauge(0.94, 0.5, 0.48, ("94 %", "50 %", "48 %"))
    >>> "this case 94 %" in page, "cut-off 50 %" in page, "after the changes 48 %" in page
    (True, True, True)
    """
    words = [f"this case {texts[0]}", f"cut-off {texts[1]}"]
    marks = [_tick(cut), _text(cut, LINE + 28, words[1]), _dot(score, "fw-g1"), _text(score, LINE - 16, words[0])]
    if after is not None:
        words.append(f"after the changes {texts[2]}")
        marks += [_dot(after, "fw-g2"), _text(after, LINE - 34, words[2])]
    return fill(
        '<svg class="gauge" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        "<title>The score on its scale</title><desc>{words}</desc>"
        '<path class="fw-axis" d="M{left} {line}H{right}"></path>{marks}</svg>',
        width=WIDTH, height=HEIGHT, left=SIDE, right=WIDTH - SIDE, line=LINE, words=", ".join(words),
        marks=joined(marks),
    )  # fmt: skip


def _x(score: float) -> float:
    return round(SIDE + (WIDTH - 2 * SIDE) * min(max(score, 0.0), 1.0), 1)


def _dot(score: float, kind: str) -> Markup:
    return fill('<circle class="{kind}" cx="{x}" cy="{y}" r="7"></circle>', kind=kind, x=_x(score), y=LINE)


def _tick(score: float) -> Markup:
    return fill('<path class="fw-stays" d="M{x} {top}V{end}"></path>', x=_x(score), top=LINE - 11, end=LINE + 11)


def _text(score: float, y: int, text: str) -> Markup:
    anchor = "start" if score < 0.2 else "end" if score > 0.8 else "middle"
    return fill(
        '<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>', x=_x(score), y=y, anchor=anchor, text=text
    )
