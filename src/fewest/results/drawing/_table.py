"""A case beside the typical one, feature by feature: what changes comes first, the rest is dimmed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fewest.results.drawing._text import fill, joined

HEADINGS = ("Feature", "This case", "Typical accepted case", "Would have turned it")


@dataclass(frozen=True)
class CaseRow:
    """One feature of a case, as text.

    Examples
    --------
    >>> CaseRow("duration", "48", "18", "18", True).changed
    True
    """

    feature: str
    case: str
    reference: str
    after: str
    changed: bool


def case_table(
    rows: Sequence[CaseRow], headings: Sequence[str] = HEADINGS, folded: bool = True, *, mark: str = "changed"
) -> Markup:
    """A table of a case's features; changed ones first and bold, the others dimmed and, where ``folded``, put away.

    Parameters
    ----------
    rows : sequence of CaseRow
    headings : four texts
    folded : bool
        Put the unchanged rows into a block that opens on a click. A table without changed rows is never folded.
    mark : str
        What stands beside the name of a changed feature, for those who do not see bold.

    Examples
    --------
    >>> page = case_table([CaseRow("age", "30", "41", "30", False), CaseRow("<b>", "48", "18", "18", True)])
    >>> page.index("&lt;b&gt;") < page.index("age"), "1 more feature, unchanged" in page
    (True, True)
    """
    changed = [row for row in rows if row.changed]
    same = [row for row in rows if not row.changed]
    if not (folded and changed and same):
        return _wrapped(_table([*changed, *same], headings, mark))
    more = f"{len(same)} more feature{'s' if len(same) != 1 else ''}, unchanged"
    rest = fill("<details><summary>{more}</summary>{table}</details>", more=more, table=_table(same, headings, mark))
    return _wrapped(joined([_table(changed, headings, mark), rest]))


def _wrapped(inner: Markup) -> Markup:
    return fill('<div class="fw fw-wide">{inner}</div>', inner=inner)


def _table(rows: Sequence[CaseRow], headings: Sequence[str], mark: str) -> Markup:
    head = joined(fill('<th scope="col">{text}</th>', text=text) for text in headings)
    body = joined(_row(row, mark) for row in rows)
    return fill(
        '<table class="fw-case"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>', head=head, body=body
    )


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
