"""Text on its way into a page: escaped, whole in the table, short in the picture."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

SHORT = 28


def fill(template: str, **values: Any) -> Markup:
    """A template with its values escaped; `Markup` values are fragments already and stay as they are.

    Examples
    --------
    >>> fill("<td>{cell}</td>", cell="<b>")
    Markup('<td>&lt;b&gt;</td>')
    """
    return Markup(template).format(**{name: _sound(value) for name, value in values.items()})


def _sound(value: Any) -> Any:
    """Text that UTF-8 can hold: a lone surrogate or a control character would spoil the page it stands on."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    whole = value.encode("utf-8", "replace").decode("utf-8")
    return "".join(sign if sign >= " " or sign in "\n\t" else "\ufffd" for sign in whole)


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


def figure(value: float) -> str:
    """A number on an axis or in a table: four figures, without noise.

    Examples
    --------
    >>> figure(0.30000000000000004), figure(1200.0), figure(float("nan"))
    ('0.3', '1200', 'not known')
    """
    return f"{value:.4g}" if math.isfinite(value) else "not known"


def twin(summary: str, table: Markup, folded: bool) -> Markup:
    """The table beside a picture, folded away or open."""
    return fill(
        "<details{state}><summary>{summary}</summary><div class=\"fw-wide\">{table}</div></details>",
        state=Markup("" if folded else " open"), summary=summary, table=table,
    )  # fmt: skip
