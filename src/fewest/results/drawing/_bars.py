"""Bars: how often each thing comes up, as a picture and as the table it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fewest.results.drawing._text import SHORT, fill, joined, percent, twin
from fewest.tables.wording import clip

WIDTH, LABEL, COUNT, ROW = 640, 220, 110, 26
MOST = 8  # more bars are read worse than a table


@dataclass(frozen=True)
class Bar:
    """One bar: its name, how many there are, which share of all that is, and a note for the table.

    Examples
    --------
    >>> Bar("1 feature", 3, 0.75).percent
    '75 %'
    """

    name: str
    count: int
    share: float
    note: str = ""

    @property
    def percent(self) -> str:
        """The share in per cent, whole unless that would hide it."""
        return percent(self.share)


@dataclass(frozen=True)
class Bars:
    """What a bar chart shows: a title, the question it answers, and the bars from top to bottom.

    Examples
    --------
    >>> Bars("SEV", "How many features must change?", (Bar("1 feature", 3, 0.75),)).bars[0].count
    3
    """

    title: str
    question: str
    bars: Sequence[Bar]


def bar_chart(chart: Bars, folded: bool = True, *, columns: Sequence[str] = ("name", "cases", "share")) -> Markup:
    """A bar chart with its table; the picture shows the first eight bars, the table all.

    Parameters
    ----------
    chart : Bars
    folded : bool
        Whether the table waits for a click.
    columns : three texts
        Headings of the table.

    Examples
    --------
    >>> "75 %" in bar_chart(Bars("SEV", "How many?", (Bar("1 feature", 3, 0.75),)))
    True
    """
    if not chart.bars:
        nothing = fill("<p>{text}</p>", text="There is nothing to draw.")
        return _figure(chart, nothing, Markup(""))
    return _figure(chart, _picture(chart), twin("The same as a table", _table(chart, columns), folded))


def _figure(chart: Bars, picture: Markup, table: Markup) -> Markup:
    return fill(
        '<figure class="fw fw-chart"><figcaption><strong>{title}</strong> {question}</figcaption>{picture}{table}'
        "</figure>",
        title=chart.title, question=chart.question, picture=picture, table=table,
    )  # fmt: skip


def _picture(chart: Bars) -> Markup:
    drawn = list(chart.bars[:MOST])
    more = f" The {len(drawn)} most frequent of {len(chart.bars)}." if len(chart.bars) > MOST else ""
    most = max((bar.count for bar in drawn), default=0) or 1
    room = WIDTH - LABEL - COUNT
    return fill(
        '<svg role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        "<title>{title}</title><desc>{question}{more} The same figures are in the table.</desc>{bars}</svg>",
        width=WIDTH, height=len(drawn) * ROW, title=chart.title, question=chart.question, more=more,
        bars=joined(_bar(bar, k * ROW, round(room * bar.count / most, 1)) for k, bar in enumerate(drawn)),
    )  # fmt: skip


def _bar(bar: Bar, y: int, length: float) -> Markup:
    return fill(
        '<text x="{left}" y="{line}" text-anchor="end">{name}</text>'
        '<rect class="fw-bar" x="{start}" y="{top}" width="{length}" height="18"></rect>'
        '<text x="{end}" y="{line}">{count} ({percent})</text>',
        left=LABEL - 8, line=y + 17, name=clip(bar.name, SHORT), start=LABEL, top=y + 4, length=length,
        end=LABEL + length + 6, count=f"{bar.count:,}", percent=bar.percent,
    )  # fmt: skip


def _table(chart: Bars, columns: Sequence[str]) -> Markup:
    notes = any(bar.note for bar in chart.bars)
    heads = [*columns, "note"] if notes else list(columns)
    head = joined(fill('<th scope="col">{text}</th>', text=text) for text in heads)
    body = joined(
        fill(
            '<tr><th scope="row">{name}</th><td class="n">{count}</td><td class="n">{percent}</td>{note}</tr>',
            name=bar.name, count=f"{bar.count:,}", percent=bar.percent,
            note=fill("<td>{note}</td>", note=bar.note) if notes else "",
        )
        for bar in chart.bars
    )  # fmt: skip
    return fill(
        "<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
        title=chart.title, head=head, body=body,
    )  # fmt: skip
