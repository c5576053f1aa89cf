"""Options that are words or numbers, checked where they are given: a misspelt one is never taken for another."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any

from fewest.errors import UsageError


def check_word(name: str, value: Any, words: Iterable[str]) -> None:
    """Refuse a word that is not among those known.

    Examples
    --------
    >>> check_word("unseen", "alow", ("error", "allow"))
    Traceback (most recent call last):
    fewest.errors.UsageError: unseen "alow" is unknown
      Try: use "error" or "allow"; did you mean "allow"?
    """
    known = list(words)
    if isinstance(value, str) and value in known:
        return
    listed = " or ".join(filter(None, [", ".join(f'"{word}"' for word in known[:-1]), f'"{known[-1]}"']))
    near = difflib.get_close_matches(str(value).lower(), known, n=1)
    raise UsageError(
        f'{name} "{value}" is unknown', do=f"use {listed}" + (f'; did you mean "{near[0]}"?' if near else "")
    )


def check_count(name: str, value: Any, least: int = 1, do: str = "") -> None:
    """Refuse what is not a whole number from ``least`` on.

    Examples
    --------
    >>> check_count("threads", 0)
    Traceback (most recent call last):
    fewest.errors.UsageError: threads is 0
      Try: use a whole number from 1 on
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise UsageError(f"{name} is {value!r}", do=f"use a whole number from {least} on{do}")


def check_number(
    name: str, value: Any, do: str, *, least: float = -math.inf, most: float = math.inf, above: float = -math.inf
) -> None:
    """Refuse what is not a finite number from ``least`` to ``most`` and above ``above``.

    Examples
    --------
    >>> check_number("time_limit", -1, "use seconds, or None for no limit", least=0)
    Traceback (most recent call last):
    fewest.errors.UsageError: time_limit is -1
      Try: use seconds, or None for no limit
    """
    fits = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or not least <= value <= most or not value > above:
        raise UsageError(f"{name} is {value!r}", do=do)
