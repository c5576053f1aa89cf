"""Values and names as a sentence prints them, so that nothing is lost: what is read back is what the model was asked.

Text is quoted as Python quotes it; characters that cannot be seen are spelled out. Numbers are the shortest decimals
that give the same number again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

VERB = " had been "
NARROW = (np.float16, np.float32)
PLAIN_BELOW = 1e15  # whole numbers above this are written with an exponent


def is_missing(value: Any) -> bool:
    """Whether there is no value.

    Examples
    --------
    >>> is_missing(None), is_missing(float("nan")), is_missing(pd.NaT), is_missing("")
    (True, True, True, False)
    """
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and bool(np.isnan(value)))


def shortest(value: Any) -> float:
    """A number as a person would write it: of a narrow float the shortest decimals that give it back.

    Examples
    --------
    >>> shortest(np.float32(0.1)), shortest(0.1)
    (0.1, 0.1)
    """
    return float(str(value)) if isinstance(value, NARROW) else float(value)


def show(value: Any) -> str:
    """A value as the sentence prints it: text in quotes, numbers plain and exact.

    Examples
    --------
    >>> show("no account"), show(48), show(0.5)
    ("'no account'", '48', '0.5')
    >>> show("driver's"), show(True), show(None), show(np.float32(0.1))
    ('"driver\\'s"', 'yes', 'missing', '0.1')
    """
    if isinstance(value, dict):
        return "(" + ", ".join(f"{show_name(str(name))} {show(part)}" for name, part in value.items()) + ")"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, str):
        return repr(str(value))
    if is_missing(value):
        return "missing"
    if isinstance(value, pd.Timestamp):
        return str(value.date()) if value.tz is None and value == value.normalize() else str(value)
    if isinstance(value, float | np.floating):
        number = shortest(value)
        return str(int(number)) if number.is_integer() and abs(number) < PLAIN_BELOW else repr(number)
    return printable(str(value))


def show_measured(value: Any, unit: str | None) -> str:
    """A value with its unit, which belongs to numbers only.

    Examples
    --------
    >>> show_measured(9, "years"), show_measured(None, "years"), show_measured("none", "years"), show_measured(9, None)
    ('9 years', 'missing', "'none'", '9')
    """
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool) and not is_missing(value)
    return f"{show(value)} {printable(unit)}" if unit and is_number else show(value)


def heading(title: str, unit: str | None) -> str:
    """What stands at the head of a feature's values in a table.

    Examples
    --------
    >>> heading("Years in current job", "years"), heading("housing", None)
    ('Years in current job (years)', 'housing')
    """
    return f"{title} ({printable(unit)})" if unit else title


def show_name(name: str) -> str:
    """A feature's name as the sentence prints it: in quotes only where it could be taken for something else.

    Examples
    --------
    >>> show_name("duration_months"), show_name("a had been 3 instead of 4"), show_name("two\\nlines")
    ('duration_months', "'a had been 3 instead of 4'", "'two\\\\nlines'")
    """
    return name if name.isprintable() and VERB not in f" {name} " and name[:1] not in "'\"" and name else repr(name)


def show_label(label: Any) -> str:
    """A class label or a level as a message prints it: as Python would, without numpy's name for its type.

    Examples
    --------
    >>> show_label(np.str_("bad")), show_label(np.int64(0)), show_label("0")
    ("'bad'", '0', "'0'")
    """
    return repr(label.item() if isinstance(label, np.generic) else label)


def printable(text: str) -> str:
    """Text with the characters that cannot be seen spelled out.

    Examples
    --------
    >>> printable("good"), printable("go\\nod")
    ('good', 'go\\\\nod')
    """
    return text if text.isprintable() else repr(text)[1:-1]


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence in a row.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def show_score(score: float, threshold: float, percent: bool) -> str:
    """A score with as many decimals as it takes to stand on the right side of the threshold.

    Examples
    --------
    >>> show_score(0.484, 0.5, percent=True), show_score(0.4999, 0.5, percent=True)
    ('48 %', '49.99 %')
    """
    factor, unit, first = (100.0, " %", 0) if percent else (1.0, "", 3)
    text = ""
    for decimals in range(first, 16):
        text = f"{score * factor:.{decimals}f}"
        if (float(text) < threshold * factor) == (score < threshold):
            break
    return f"{text}{unit}"


def clip(text: str, length: int) -> str:
    """Text of at most that many characters.

    Examples
    --------
    >>> clip("a long name", 6)
    'a lon…'
    """
    return text if len(text) <= length else text[: length - 1] + "\u2026"


def cell(value: Any) -> str:
    """A value as a table prints it: text without quotes where it cannot be taken for anything else.

    Examples
    --------
    >>> cell("no account"), cell(48), cell("48"), cell("missing"), cell(None)
    ('no account', '48', "'48'", "'missing'", 'missing')
    """
    return str(value) if isinstance(value, str) and _is_bare(value) else show(value)


def _is_bare(text: str) -> bool:
    if not text.isprintable() or text != text.strip() or text[:1] in ("", "'", '"', "("):
        return False
    return text not in ("yes", "no", "missing") and not _is_number(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
