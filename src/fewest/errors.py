"""Exceptions that say what is wrong, where, why, and what to do about it.

Each carries the exit code the command line ends with.
"""

from __future__ import annotations


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


class UsageError(FewestError):
    """The call itself makes no sense: a wrong option, an unknown feature name, a contradiction."""

    exit_code = 2


class DataError(FewestError):
    """The data cannot be read or does not fit the schema."""

    exit_code = 3


class ModelError(FewestError):
    """The model cannot be used: it raises, returns NaN, or changes its mind."""

    exit_code = 4


class DoubtError(ModelError):
    """What was read of the model does not reproduce it: nothing that was found with it counts."""


class PositiveReferenceError(ModelError):
    """A reference cannot serve, most often because the model decides against it as well."""


class UndefinedError(FewestError):
    """Some cases have no answer and the caller asked for strictness."""

    exit_code = 5


class VerificationError(FewestError):
    """An answer did not turn the user's own model. This is a bug and is never silent."""

    exit_code = 6


class TimeLimitError(FewestError):
    """The time limit was reached before the run ended."""

    exit_code = 7


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
