"""Objects in a notebook: what they print, as a small block of HTML with a table below. No script, 20 kB at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from fewest.tables.wording import cell, clip, is_missing

MAX_BYTES = 20_000
COLUMNS = 10
LIMITS = ((40, 120), (20, 40), (8, 16))  # rows and characters of a text; the first that fits is shown
# The block brings its own ground: a dark notebook on a light system, or the reverse, would hide the text.
GROUND = (
    ".fw-card{background:#fff;color:#1b1f24;padding:.6rem .8rem;border:1px solid #d5dae0;max-width:62rem}"
    ".fw-card p{margin:.4rem 0}.fw-card .fw-say{font-size:1.05em;font-weight:600}"
    "@media (prefers-color-scheme:dark){.fw-card{background:#16191d;color:#e8eaed;border-color:#39424c}}"
)
TABLE = ".fw-card th,.fw-card td{text-align:left;vertical-align:top;padding:.15rem .8rem .15rem 0}"
Rows = Iterable[Sequence[Any]]


class ShownAsCard:
    """Shows in a notebook what it prints, with the table of `_card_rows`.

    Examples
    --------
    >>> class Basket(ShownAsCard):
    ...     def __repr__(self):
    ...         return "<basket of 2>"
    ...     def _card_rows(self):
    ...         return ("fruit", "count"), [("apple", 3), ("<b>", 1)]
    >>> "basket of 2" in Basket()._repr_html_(), "&lt;b&gt;" in Basket()._repr_html_()
    (True, True)
    """

    def _card_rows(self) -> tuple[Sequence[str], Rows]:
        """Headings and rows of the table; none where the words are enough."""
        return (), ()

    def _card_lines(self) -> Sequence[str]:
        """What stands above the table."""
        return [line.strip().removeprefix("<").removesuffix(">") for line in repr(self).splitlines()]

    def _repr_html_(self) -> str:
        return card_html(self._card_lines(), *self._card_rows())


def card_html(lines: Sequence[str], headings: Sequence[str] = (), rows: Rows = ()) -> str:
    """The first line in bold, the others, and a table; long texts and tables are cut short."""
    rows, page = list(rows), ""
    for most, length in LIMITS:
        page = _page(lines, headings, rows, most, length)
        if len(page.encode("utf-8", "replace")) < MAX_BYTES:
            break
    return page.encode("utf-8", "replace").decode("utf-8")


def _page(lines: Sequence[str], headings: Sequence[str], rows: Sequence[Sequence[Any]], most: int, length: int) -> str:
    parts = [Markup('<p class="fw-say">{}</p>').format(clip(lines[0], 4 * length))]
    parts += [Markup("<p>{}</p>").format(clip(line.strip(), 4 * length)) for line in lines[1:most] if line.strip()]
    if rows:
        parts.append(_table(headings[:COLUMNS], [row[:COLUMNS] for row in rows[:most]], length))
    left = [
        *([f"{len(rows) - most} more rows"] if len(rows) > most else []),
        *([f"{len(rows[0]) - COLUMNS} more columns"] if rows and len(rows[0]) > COLUMNS else []),
    ]
    if left:
        parts.append(Markup("<p>Not shown: {}.</p>").format(" and ".join(left)))
    inner = Markup("").join(parts)
    return Markup('<style>{}{}</style><div class="fw fw-card">{}</div>').format(Markup(GROUND), Markup(TABLE), inner)


def _table(headings: Sequence[str], rows: Sequence[Sequence[Any]], length: int) -> Markup:
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(clip(text, length)) for text in headings)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            clip(str(row[0]), length),
            Markup("").join(Markup("<td>{}</td>").format(clip(_text(value), length)) for value in row[1:]),
        )
        for row in rows
    )
    return Markup("<table>{}<tbody>{}</tbody></table>").format(
        Markup("<thead><tr>{}</tr></thead>").format(head) if headings else "", body
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if is_missing(value) else cell(value)
