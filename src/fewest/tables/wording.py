"""Values and names as a sentence prints them, so that nothing is lost: what is read back is what the model was asked.

Text is quoted as Python quotes it; characters that cannot be seen are spelled out. Numbers are the shortest decimals
that give the same number again, or (`Shortened`) decimals that the model was asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

VERB = " had been "
NARROW = (np.float16, np.float32)
PLAIN_BELOW = 1e15  # whole numbers above this are written with an exponent


class Shortened(float):
    """A number that is printed with fewer decimals than it has; in arithmetic and in files it is what it was.

    Examples
    --------
    >>> value = Shortened(0.10490011715303971, 3)
    >>> show(value), value
    ('0.105', 0.10490011715303971)
    """

    decimals: int

    def __new__(cls, value: float, decimals: int = 17) -> Shortened:
        """A number and the decimals it is printed with."""
        number = super().__new__(cls, value)
        number.decimals = decimals
        return number

    @property
    def shown(self) -> float:
        """The number that is printed, to be read as itself."""
        return float(np.round(float(self), self.decimals))


def is_missing(value: Any) -> bool:
    """Whether there is no value."""
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and bool(np.isnan(value)))


def shortest(value: Any) -> float:
    """A number as a person would write it: of a narrow float the shortest decimals that give it back."""
    return float(str(value)) if isinstance(value, NARROW) else float(value)


def show(value: Any) -> str:
    """A value as the sentence prints it: text in quotes, numbers plain."""
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
        number = value.shown if isinstance(value, Shortened) else shortest(value)
        return str(int(number)) if number.is_integer() and abs(number) < PLAIN_BELOW else repr(number)
    return printable(str(value))


def show_measured(value: Any, unit: str | None) -> str:
    """A value with its unit, which belongs to numbers only."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool) and not is_missing(value)
    return f"{show(value)} {printable(unit)}" if unit and is_number else show(value)


def heading(title: str, unit: str | None) -> str:
    """What stands at the head of a feature's values in a table."""
    return f"{title} ({printable(unit)})" if unit else title


def show_name(name: str) -> str:
    """A feature's name as the sentence prints it: in quotes only where it could be taken for something else."""
    return name if name.isprintable() and VERB not in f" {name} " and name[:1] not in "'\"" and name else repr(name)


def show_label(label: Any) -> str:
    """A class label or a level as a message prints it: as Python would, without numpy's name for its type."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def printable(text: str) -> str:
    """Text with the characters that cannot be seen spelled out."""
    return text if text.isprintable() else repr(text)[1:-1]


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence in a row."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def show_score(score: float, threshold: float, percent: bool, number: str = "") -> str:
    """A score with as many decimals as it takes to stand on the right side of the threshold.

    ``number`` says that the score is a predicted number (``up``), or minus one (``down``): the number is shown.
    """
    factor, unit, first = (100.0, " %", 0) if percent else (1.0, "", 3)
    if number == "down":
        score, threshold = -score, -threshold
    text = ""
    for decimals in range(first, 16):
        text = f"{score * factor:.{decimals}f}"
        shown, cut = float(text), threshold * factor
        if (shown <= cut) == (score <= threshold) if number == "down" else (shown < cut) == (score < threshold):
            break
    return f"{text}{unit}"


def clip(text: str, length: int) -> str:
    """Text of at most that many characters."""
    return text if len(text) <= length else text[: length - 1] + "\u2026"


def cell(value: Any) -> str:
    """A value as a table prints it: text without quotes where it cannot be taken for anything else."""
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
