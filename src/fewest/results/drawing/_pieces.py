"""Text on its way into a page, tables of a case, and bars: escaped, whole in the table, short in the picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fewest.tables.wording import clip

SHORT = 28
HEADINGS = ("Feature", "This case", "Typical accepted case", "Would have changed it")
HEADINGS_PLUS = (*HEADINGS[:3], "Would have been enough")
WIDTH, LABEL, COUNT, ROW = 640, 220, 110, 26
MOST = 8  # more bars are read worse than a table
NOTHING = Markup("<p>There is nothing to draw.</p>")


def fill(template: str, **values: Any) -> Markup:
    """A template with its values escaped; `Markup` values are fragments already and stay as they are."""
    return Markup(template).format(**{name: _sound(value) for name, value in values.items()})


def _sound(value: Any) -> Any:
    """Text that UTF-8 can hold: a lone surrogate or a control character would spoil the page it stands on."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    whole = value.encode("utf-8", "replace").decode("utf-8")
    return "".join(char if char >= " " or char in "\n\t" else "\ufffd" for char in whole)


def joined(parts: Any) -> Markup:
    """Fragments one after the other."""
    return Markup("").join(parts)


def percent(share: float) -> str:
    """A share as people write it: whole, unless that would hide that it is not all or nothing.

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


def counted(count: int, what: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> counted(1, "feature"), counted(2_000, "case")
    ('1 feature', '2,000 cases')
    """
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def figure(value: float) -> str:
    """A number on an axis or in a table: four figures, without noise."""
    return f"{value:.4g}" if math.isfinite(value) else "not known"


def html_table(heads: Sequence[str], rows: Iterable[Markup], caption: str = "", kind: str = "") -> Markup:
    """A table with its headings."""
    return fill(
        "<table{kind}>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
        kind=fill(' class="{kind}"', kind=kind) if kind else "",
        caption=fill("<caption>{caption}</caption>", caption=caption) if caption else "",
        head=joined(fill('<th scope="col">{text}</th>', text=text) for text in heads),
        body=joined(rows),
    )


def twin(summary: str, table: Markup, folded: bool) -> Markup:
    """The table beside a picture, folded away or open."""
    return fill(
        "<details{state}><summary>{summary}</summary><div class=\"fw-wide\">{table}</div></details>",
        state=Markup("" if folded else " open"), summary=summary, table=table,
    )  # fmt: skip


@dataclass(frozen=True)
class CaseRow:
    """One feature of a case, as text."""

    feature: str
    case: str
    reference: str
    after: str
    changed: bool

    def clipped(self, length: int) -> CaseRow:
        """The same with texts of up to that many characters."""
        feature, case, reference, after = (
            clip(text, length) for text in (self.feature, self.case, self.reference, self.after)
        )
        return CaseRow(feature, case, reference, after, self.changed)


def case_table(
    rows: Sequence[CaseRow], headings: Sequence[str] = HEADINGS, folded: bool = True, *, mark: str = "changed"
) -> Markup:
    """A table of a case's features; changed ones first and bold, the others dimmed and, where ``folded``, put away.

    What is put away opens on a click; a table without changed rows is never folded. ``mark`` stands beside the name of
    a changed feature, for those who do not see bold.

    Examples
    --------
    >>> page = case_table([CaseRow("age", "30", "41", "30", False), CaseRow("<b>", "48", "18", "18", True)])
    >>> page.index("&lt;b&gt;") < page.index("age"), "1 more feature, unchanged" in page
    (True, True)
    """
    changed = [row for row in rows if row.changed]
    same = [row for row in rows if not row.changed]
    if folded and changed and same:
        more, rest = f"{counted(len(same), 'more feature')}, unchanged", _case_rows(same, headings, mark)
        hidden = fill("<details><summary>{more}</summary>{rest}</details>", more=more, rest=rest)
        inner = joined([_case_rows(changed, headings, mark), hidden])
    else:
        inner = _case_rows([*changed, *same], headings, mark)
    return wide(inner, "Features of the case")


def wide(inner: Markup, name: str) -> Markup:
    """A part that scrolls where it is too wide, with the keyboard as well."""
    return fill(
        '<div class="fw fw-wide" tabindex="0" role="group" aria-label="{name}">{inner}</div>', name=name, inner=inner
    )


def _case_rows(rows: Sequence[CaseRow], headings: Sequence[str], mark: str) -> Markup:
    return html_table(headings, (_row(row, mark) for row in rows), kind="fw-case")


def _row(row: CaseRow, mark: str) -> Markup:
    return fill(
        '<tr class="{kind}"><th scope="row">{feature}{mark}</th><td>{case}</td><td>{reference}</td><td>{after}</td>'
        "</tr>",
        kind="fw-changed" if row.changed else "fw-same",
        feature=row.feature,
        mark=fill(' <span class="fw-mark">({mark})</span>', mark=mark) if row.changed and mark else "",
        case=row.case,
        reference=row.reference,
        after=row.after,
    )


@dataclass(frozen=True)
class Bar:
    """One bar: its name, how many there are, which share of all that is, a note for the table, and where it leads."""

    name: str
    count: int
    share: float
    note: str = ""
    href: str | None = None

    @property
    def percent(self) -> str:
        """The share in per cent, whole unless that would hide it."""
        return percent(self.share)


@dataclass(frozen=True)
class Bars:
    """What a bar chart shows: a title, the question it answers, and the bars from top to bottom."""

    title: str
    question: str
    bars: Sequence[Bar]


def bar_chart(chart: Bars, folded: bool = True, *, columns: Sequence[str] = ("name", "cases", "share")) -> Markup:
    """A bar chart with its table, folded or open; the picture shows the first eight bars, the table all.

    Examples
    --------
    >>> "75 %" in bar_chart(Bars("SEV", "How many?", (Bar("1 feature", 3, 0.75),)))
    True
    """
    if not chart.bars:
        return framed(chart.title, chart.question, NOTHING)
    table = twin("Show as table", _bar_table(chart, columns), folded)
    return framed(chart.title, chart.question, _picture(chart), table)


def inside(href: str | None) -> str | None:
    """A link within the site; one that names a scheme or another host is dropped, as it can run a script."""
    return href if href and href.startswith(("/", "#", "?")) and not href.startswith(("//", "/\\")) else None


def framed(title: str, question: str, *parts: Markup) -> Markup:
    """A picture and what belongs to it, under a title and the question it answers."""
    return fill(
        '<figure class="fw fw-chart"><figcaption><strong>{title}</strong> {question}</figcaption>{parts}</figure>',
        title=title, question=question, parts=joined(parts),
    )  # fmt: skip


def _picture(chart: Bars) -> Markup:
    drawn = list(chart.bars[:MOST])
    more = f" The {len(drawn)} most frequent of {len(chart.bars)}." if len(chart.bars) > MOST else ""
    most = max((bar.count for bar in drawn), default=0) or 1
    linked = any(inside(bar.href) for bar in drawn)
    room = WIDTH - LABEL - COUNT
    return fill(
        '<svg role="{role}" viewBox="0 0 {width} {height}" width="{width}" height="{height}"{named}>'
        "<title>{title}</title><desc>{question}{more} The same figures are in the table.</desc>{bars}</svg>",
        role="group" if linked else "img", named=fill(' aria-label="{said}"', said=chart.question) if linked else "",
        width=WIDTH, height=len(drawn) * ROW, title=chart.title, question=chart.question, more=more,
        bars=joined(_bar(bar, k * ROW, round(room * bar.count / most, 1)) for k, bar in enumerate(drawn)),
    )  # fmt: skip


def _bar(bar: Bar, y: int, length: float) -> Markup:
    drawn, href = _plain_bar(bar, y, length), inside(bar.href)
    if not href:
        return drawn
    # The table has the same links for the keyboard: in a picture they would be reached twice.
    return fill('<a href="{href}" tabindex="-1" aria-label="{name}">{drawn}</a>', href=href, name=bar.name, drawn=drawn)


def _plain_bar(bar: Bar, y: int, length: float) -> Markup:
    return fill(
        '<text x="{left}" y="{line}" text-anchor="end">{name}</text>'
        '<rect class="fw-bar" x="{start}" y="{top}" width="{length}" height="18"></rect>'
        '<text x="{end}" y="{line}">{count} ({percent})</text>',
        left=LABEL - 8, line=y + 17, name=clip(bar.name, SHORT), start=LABEL, top=y + 4, length=length,
        end=LABEL + length + 6, count=f"{bar.count:,}", percent=bar.percent,
    )  # fmt: skip


def _bar_table(chart: Bars, columns: Sequence[str]) -> Markup:
    notes = any(bar.note for bar in chart.bars)
    rows = (
        fill(
            '<tr><th scope="row">{name}</th><td class="n">{count}</td><td class="n">{percent}</td>{note}</tr>',
            name=fill('<a href="{to}">{name}</a>', to=to, name=bar.name) if (to := inside(bar.href)) else bar.name,
            count=f"{bar.count:,}", percent=bar.percent,
            note=fill("<td>{note}</td>", note=bar.note) if notes else "",
        )
        for bar in chart.bars
    )  # fmt: skip
    return html_table([*columns, "note"] if notes else columns, rows, chart.title)


STYLE = """\
.fw { --fw-ink: #1b1f24; --fw-soft: #55606c; --fw-line: #d5dae0; --fw-bar: #2f6f9f; --fw-mark: #fff3c4;
  --fw-g0: #2f6f9f; --fw-g1: #b3541e; --fw-g2: #2e7d4f; --fw-g3: #7b3fa0; --fw-g4: #8a6d00; --fw-g5: #444b53; }
@media (prefers-color-scheme: dark) {
  .fw { --fw-ink: #e8ebee; --fw-soft: #a3adb8; --fw-line: #39424c; --fw-bar: #6cb2e3; --fw-mark: #4a3f12;
    --fw-g0: #6cb2e3; --fw-g1: #f0a070; --fw-g2: #7fd0a0; --fw-g3: #d0a0f0; --fw-g4: #e0c860; --fw-g5: #c0c8d0; }
}
.fw { color: var(--fw-ink); }
figure.fw { margin: .8rem 0; }
.fw figcaption { margin-bottom: .3rem; }
.fw-wide { overflow-x: auto; }
.fw table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }
.fw caption { text-align: left; color: var(--fw-soft); padding-bottom: .2rem; }
.fw th, .fw td { border-bottom: 1px solid var(--fw-line); padding: .25rem .8rem .25rem 0; text-align: left;
  vertical-align: top; }
.fw tbody th { font-weight: inherit; }
.fw td.n { text-align: right; white-space: nowrap; }
.fw tr.fw-changed { font-weight: 700; background: var(--fw-mark); }
.fw tr.fw-same { color: var(--fw-soft); }
.fw .fw-mark { font-weight: 400; font-size: .85em; }
.fw summary { cursor: pointer; color: var(--fw-soft); }
.fw svg { max-width: 100%; height: auto; display: block; }
.fw svg text { fill: var(--fw-ink); font: 13px system-ui, sans-serif; }
.fw .fw-bar { fill: var(--fw-bar); }
.fw .fw-axis, .fw .fw-edge { fill: none; stroke: var(--fw-soft); stroke-width: 1; }
.fw .fw-stays { fill: none; stroke: var(--fw-soft); stroke-width: 2; }
.fw .fw-cross { fill: none; stroke: var(--fw-soft); stroke-width: 2; }
.fw .fw-turned { fill: var(--fw-bar); }
.fw .fw-g0 { fill: var(--fw-g0); }
.fw .fw-g1 { fill: var(--fw-g1); }
.fw .fw-g2 { fill: var(--fw-g2); }
.fw .fw-g3 { fill: var(--fw-g3); }
.fw .fw-g4 { fill: none; stroke: var(--fw-g4); stroke-width: 2; }
.fw .fw-g5 { fill: none; stroke: var(--fw-g5); stroke-width: 2; }
@media print {
  .fw { --fw-ink: #000; --fw-soft: #333; --fw-line: #999; --fw-bar: #444; --fw-mark: #eee;
    --fw-g0: #000; --fw-g1: #555; --fw-g2: #222; --fw-g3: #666; --fw-g4: #000; --fw-g5: #333; }
  .fw svg, .fw tr { break-inside: avoid; }
  .fw-wide > details::details-content { content-visibility: visible; block-size: auto; }
}
"""
