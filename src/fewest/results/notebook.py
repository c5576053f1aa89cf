"""Answers in a notebook: plain data in, one small block of HTML out. No script, so that untrusted notebooks show it.

Colours follow the reader's light or dark setting; a block is never larger than 20 kB, whatever the table is like.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fewest.results.drawing import HEADINGS, STYLE, Bar, Bars, CaseRow, bar_chart, case_table, corners_of, counted, cube
from fewest.tables.cards import GROUND, MAX_BYTES
from fewest.tables.wording import clip

MOST_DRAWN = 4


@dataclass(frozen=True)
class Limits:
    """How much of wide tables and long texts is shown."""

    text: int
    sentence: int
    changed: int
    same: int


LIMITS = (
    Limits(text=120, sentence=3000, changed=60, same=200),
    Limits(text=60, sentence=2000, changed=40, same=80),
    Limits(text=40, sentence=1000, changed=20, same=20),
    Limits(text=16, sentence=300, changed=5, same=5),
)


@dataclass(frozen=True)
class Card:
    """What is shown for one case."""

    sentence: str
    proof: str
    rows: Sequence[CaseRow] = ()  # All features; none where they are not known
    proved: bool = False  # Whether the changed features are a proved answer, of which no part is one
    headings: Sequence[str] = HEADINGS  # Of the table

    def html(self) -> str:
        """The block."""
        return _first_that_fits(self._within(limits) for limits in LIMITS)

    def _within(self, limits: Limits) -> str:
        changed = [row.clipped(limits.text) for row in self.rows if row.changed]
        same = [row.clipped(limits.text) for row in self.rows if not row.changed]
        shown = [*changed[: limits.changed], *same[: limits.same]]
        names = [row.feature for row in changed]
        parts = [
            _paragraph(clip(self.sentence, limits.sentence), "fw-say"),
            _paragraph(self.proof),
            case_table(shown, self.headings) if shown else Markup(""),
            _paragraph(_left_out(len(changed) - limits.changed, len(same) - limits.same)),
        ]
        if self.proved and 0 < len(names) <= MOST_DRAWN:
            words = ("not an answer", "changes the outcome")
            parts.append(cube(names, corners_of(len(names), names), words=words))
        return _block(parts)


@dataclass(frozen=True)
class Overview:
    """What is shown for a whole table."""

    title: str
    counts: Mapping[str, int]  # How cases ended, in words -> how many
    sizes: Mapping[int, int]  # Number of features -> how many cases need that many
    first: Sequence[tuple[str, str]]  # Label and sentence of the first cases
    figures: Sequence[tuple[str, str]]  # Name and text of each figure

    def html(self) -> str:
        """The block."""
        return _first_that_fits(self._within(limits) for limits in LIMITS)

    def _within(self, limits: Limits) -> str:
        lines = Markup("").join(
            Markup("<li><strong>{}</strong>: {}</li>").format(clip(label, limits.text), clip(said, limits.sentence))
            for label, said in self.first
        )
        parts = [
            _paragraph(self.title, "fw-say"),
            _pairs("How the cases ended", [(name, f"{count:,}") for name, count in self.counts.items()]),
            _histogram(self.sizes),
            Markup("<p>{}</p><ol>{}</ol>").format("The first ones:", lines) if self.first else Markup(""),
            Markup("<details><summary>More figures</summary>{}</details>").format(_pairs("Figures", self.figures)),
        ]
        return _block(parts)


def _left_out(changed: int, same: int) -> str:
    counts = ((changed, "changed"), (same, "unchanged"))
    parts = [counted(count, f"further {word} feature") for count, word in counts if count > 0]
    return f"Not shown: {' and '.join(parts)}." if parts else ""


def _paragraph(text: str, kind: str = "") -> Markup:
    return Markup('<p class="{}">{}</p>').format(kind, text) if text else Markup("")


def _pairs(title: str, pairs: Sequence[tuple[str, str]]) -> Markup:
    rows = Markup("").join(Markup('<tr><th scope="row">{}</th><td class="n">{}</td></tr>').format(*p) for p in pairs)
    return Markup("<table><caption>{}</caption><tbody>{}</tbody></table>").format(title, rows)


def _histogram(sizes: Mapping[int, int]) -> Markup:
    total = sum(sizes.values())
    bars = [Bar(counted(size, "feature"), count, count / total) for size, count in sorted(sizes.items())]
    return bar_chart(Bars("Features changed.", "How many must change?", bars)) if bars else Markup("")


def _block(parts: Sequence[Markup]) -> str:
    inner = Markup("").join(parts)
    return Markup('<style>{}{}</style><div class="fw fw-card">{}</div>').format(Markup(STYLE), Markup(GROUND), inner)


def _first_that_fits(pages: Iterable[str]) -> str:
    """The fullest page that is small enough; text that UTF-8 cannot hold would make it impossible to save."""
    page = ""
    for page in pages:
        sound = page.encode("utf-8", "replace")
        if len(sound) < MAX_BYTES:
            return sound.decode("utf-8")
    return page.encode("utf-8", "replace").decode("utf-8")
