"""Exceptions that say what is wrong, where, why, and what to do about it.

Each carries the exit code the command line ends with. Below them are the checks of options that are words or numbers: a
misspelt one is never taken for another.
"""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any


class FewestError(Exception):
    """Base of every error this package raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong and where.
    do : str, optional
        The remedy, shown on a line of its own.

    Examples
    --------
    >>> print(FewestError("the table has no rows", do="pass at least one row"))
    the table has no rows
      Try: pass at least one row
    """

    exit_code = 1

    def __init__(self, message: str, do: str | None = None) -> None:
        self.message = message
        self.do = do
        super().__init__(message if do is None else f"{message}\n  Try: {do}")


class UsageError(FewestError, ValueError):
    """The call itself makes no sense: a wrong option, an unknown feature name, a contradiction."""

    exit_code = 2


class DataError(FewestError, ValueError):
    """The data cannot be read or does not fit the schema."""

    exit_code = 3


class ModelError(FewestError, ValueError):
    """The model cannot be used: it raises, returns NaN, or changes its mind."""

    exit_code = 4


class DoubtError(ModelError):
    """What was read of the model does not reproduce it: nothing that was found with it counts."""


class PositiveReferenceError(ModelError):
    """A reference cannot serve, most often because the model refuses it as well."""


class UndefinedError(FewestError):
    """Some cases have no answer and the caller asked for strictness."""

    exit_code = 5


class VerificationError(FewestError):
    """An answer did not turn the user's own model. This is a bug and is never silent."""

    exit_code = 6


class TimeLimitError(FewestError):
    """The time limit was reached before the run ended."""

    exit_code = 7


class UnprovedError(FewestError):
    """Nothing was found to be wrong, but not everything that is claimed could be proved again."""

    exit_code = 8


class DriftError(FewestError):
    """More cases have other reasons than the caller allows."""

    exit_code = 9


class MissingExtraError(FewestError, ImportError):
    """An optional library is not installed."""

    exit_code = 2


class FewestWarning(UserWarning):
    """Something worth knowing that does not make an answer wrong.

    Examples
    --------
    >>> issubclass(FewestWarning, UserWarning)
    True
    """


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
    >>> check_count("n_jobs", 0)
    Traceback (most recent call last):
    fewest.errors.UsageError: n_jobs is 0
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
