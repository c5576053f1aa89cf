"""Credibility: how dense accepted cases lie, and the least density an explanation may have (Sections 3.2, 4.3; rule 9).

The paper leaves the threshold open. Here it is a quantile of the density of the negatively labelled training rows
themselves, so it means the same under every density: with 0.05, an explanation must be at least as ordinary an
accepted case as the strangest twentieth of the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, UsageError, check_number
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Bools, Floats, Ints32
from fewest.tables.cards import ShownAsCard
from fewest.tables.schema import Schema

DECIMALS = 9  # rounding takes away what the rows beside a row may change in the last bits
SAMPLE = 8


class Density(Protocol):
    """A log-density of raw rows."""

    def log_density(self, frame: pd.DataFrame) -> Floats:
        """Of each row of a table conformed to the schema, (n,); a row's value depends on that row alone."""
        ...


@runtime_checkable
class PointDensity(Density, Protocol):
    """One that is defined on points whose coordinates belong to single features: vertices need no raw rows."""

    @property
    def feature_of(self) -> Ints32:
        """Feature of each coordinate."""
        ...

    def points(self, frame: pd.DataFrame) -> Floats:
        """Points of raw rows, (n, e)."""
        ...

    def at(self, points: Floats) -> Floats:
        """Log-density of points (n, e) -> (n,), each by itself."""
        ...


@dataclass(frozen=True, eq=False)
class Credibility(ShownAsCard):
    """A fitted density with a calibrated floor.

    Attributes
    ----------
    schema : Schema
        The features it speaks of.
    density : Density
    floor : float
        Least log-density that counts as credible; minus infinity for the quantile 0, which sets no floor.
    quantile : float
        The floor's quantile among ``negatives``.
    name : str
        What kind of density it is.
    negatives : (n,) float
        Log-densities of the negatively labelled training rows, sorted.
    provenance : mapping
        How it was made.

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 8, 9], "age": [30, 40, 50, 30, 50]}); y = [0, 0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> dense = fw.credibility.mixture(decision, X, y, quantile=0.5, n_components=1)
    >>> dense.credible(X).tolist()
    [True, True, True, False, False]
    >>> dense.at(1.0).credible(X).tolist()
    [False, True, False, False, False]
    >>> bool(dense.at(0.0).credible(X).all())
    True
    """

    schema: Schema = field(repr=False)
    density: Density = field(repr=False)
    floor: float
    quantile: float
    name: str
    negatives: Floats = field(repr=False)
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def calibrate(
        cls,
        schema: Schema,
        density: Density,
        negatives: Floats,
        quantile: float,
        name: str,
        provenance: Mapping[str, Any],
    ) -> Credibility:
        """Lay the floor at a quantile of the negatives' own log-densities."""
        check_quantile(quantile)
        if np.isnan(negatives).any():
            raise DataError("the density of an accepted case is NaN", do="look for values that it cannot take")
        made = cls(schema, density, -np.inf, 0.0, name, np.sort(negatives), dict(provenance))
        return made.at(quantile)

    def at(self, quantile: float) -> Credibility:
        """The same density with the floor at another quantile.

        The floor is the log-density of a real row (the lower one between two), never a value between them. 0 sets no
        floor at all: a vertex may be less dense than any row and still counts.
        """
        check_quantile(quantile)
        floor = -np.inf if quantile == 0 else float(np.quantile(self.negatives, quantile, method="lower"))
        return replace(self, floor=floor, quantile=float(quantile))

    def log_density(self, X: Any) -> Floats:
        """Log-density of each row of a table, (n,); the same bits for a row alone and in any batch."""
        return np.asarray(self.density.log_density(self.schema.conform(X, unseen="allow")), dtype=np.float64)

    def credible(self, X: Any) -> Bools:
        """Which rows are at or above the floor, (n,)."""
        return np.asarray(self.log_density(X) >= self.floor)


def check_quantile(quantile: float) -> None:
    """Refuse a floor outside [0, 1]."""
    do = "use a quantile between 0 and 1, e.g. 0.05; it is not a log-density"
    check_number("the floor", quantile, do, least=0, most=1)


@dataclass(frozen=True, eq=False)
class CalledDensity:
    """A function of raw rows."""

    function: Callable[[pd.DataFrame], Any]

    def log_density(self, frame: pd.DataFrame) -> Floats:
        """Of each row, (n,)."""
        values = np.asarray(self.function(frame), dtype=np.float64)
        if values.shape != (len(frame),):
            raise DataError(
                f"the density returned shape {values.shape} for {len(frame)} rows", do="return one number per row"
            )
        return np.asarray(np.round(values, DECIMALS))


def supplied(
    decision: Decision,
    X: Any,
    y: Any,
    density: Callable[[pd.DataFrame], Any],
    *,
    quantile: float = 0.05,
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Credibility:
    """A log-density that you have already.

    Parameters
    ----------
    decision, X, y, quantile, schema, groups
        As in `mixture`.
    density : callable
        A table of raw rows -> one log-density per row. A row's value may not depend on the rows beside it.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 8, 9], "age": [30, 40, 50, 30, 50]}); y = [0, 0, 0, 1, 1]
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> supplied(decision, X, y, lambda rows: -abs(rows["age"] - 40.0), quantile=0.5).floor
    -10.0
    """
    check_quantile(quantile)
    if not callable(density):
        raise UsageError(f"{density!r} is not a function", do="pass a function from a table to log-densities")
    training = TrainingRows.read(decision, X, y, schema, groups)
    rows = training.accepted
    called = CalledDensity(density)
    some = rows.iloc[:SAMPLE]
    alone = np.concatenate([called.log_density(some.iloc[[i]]) for i in range(len(some))])
    if not np.allclose(called.log_density(some), alone, rtol=0, atol=2 * 10.0**-DECIMALS, equal_nan=True):
        raise UsageError("a row's density changes with the rows beside it", do="let the function work row by row")
    provenance = {"kind": "supplied", "rows": len(rows)}
    return Credibility.calibrate(training.schema, called, called.log_density(rows), quantile, "supplied", provenance)
