"""A density of one's own: any function from a table to one log-density per row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.credibility.base import Credibility, check_quantile
from fewest.decision import Decision
from fewest.errors import DataError, UsageError
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Floats
from fewest.tables.schema import Schema

DECIMALS = 9  # rounding takes away what the rows beside a row may change in the last bits
SAMPLE = 8


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
    decision : Decision
    X : table
        Training rows.
    y : (n,) labels
        Their labels; the rows that do not have the positive label are used. Read as in `references.single`.
    density : callable
        A table of raw rows -> one log-density per row. A row's value may not depend on the rows beside it.
    quantile : float
        Quantile of the accepted cases' own log-densities below which nothing counts as credible; 0 sets no floor.
    schema : Schema, optional
        Default: read off X.
    groups : mapping, optional
        Feature -> columns, for tables that are encoded already.

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
