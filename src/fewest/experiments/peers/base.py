"""What every counterfactual method gives: a row for each case, and whether the user's own model decides it otherwise.

A method may search wherever it likes; what it hands back is a raw row in the columns and dtypes of the training table,
scored again by the model. A row that is not decided otherwise is not a counterfactual and does not leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, VerificationError
from fewest.tables.arrays import Bools, Floats
from fewest.tables.closeness import feature_distances
from fewest.tables.frames import mix
from fewest.tables.schema import Feature, Schema


class Peer(Protocol):
    """A counterfactual method with its settings."""

    @property
    def name(self) -> str:
        """What it is called in tables."""

    def fit(self, decision: Decision, X: Any, y: Any) -> FittedPeer:
        """Get ready to explain the cases of a decision, from training rows and their labels alone."""


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """Cases and the rows they were turned into.

    Attributes
    ----------
    schema : Schema
    cases : (n, columns)
        As they are, conformed to the schema.
    frame : (n, columns)
        As they would have been, in the same columns and dtypes; the case itself where nothing was found.
    found : (n,) bool
        Where the method has an answer.

    Examples
    --------
    >>> X = pd.DataFrame({"debt": [8, 9], "age": [30, 50]})
    >>> out = Counterfactuals(Schema.infer(X), X, X.assign(debt=[2, 9]), np.array([True, False]))
    >>> out.changed.tolist(), out.l_inf.tolist()
    ([[True, False], [False, False]], [12.0, 0.0])
    """

    schema: Schema
    cases: pd.DataFrame
    frame: pd.DataFrame
    found: Bools

    def __len__(self) -> int:
        return len(self.cases)

    @cached_property
    def steps(self) -> Floats:
        """How far each feature moves (n, p): standard deviations for numbers, 1 for anything else that changes."""
        return feature_distances(self.schema, self.cases, self.frame, np.arange(len(self)))

    @property
    def changed(self) -> Bools:
        """Which original features have another raw value, (n, p)."""
        return np.asarray(self.steps > 0)

    @property
    def l_inf(self) -> Floats:
        """Largest change of a number, in standard deviations; zero where no number changes, (n,)."""
        numeric = np.array([feature.is_numeric for feature in self.schema.features])
        return np.asarray(np.where(numeric, self.steps, 0.0).max(axis=1))


@dataclass(frozen=True, eq=False)
class FittedPeer:
    """A method that knows a decision and its training rows.

    Its search, ``find``, takes refused cases (k, columns) and gives a row for each, conformed to the schema.

    Examples
    --------
    >>> X = pd.DataFrame({"debt": [8, 9, 3]})
    >>> decision = Decision(lambda rows: rows["debt"].to_numpy() / 10)
    >>> halved = FittedPeer(decision, Schema.infer(X), lambda cases: cases // 2)
    >>> halved.explain(X).frame["debt"].tolist()
    [4, 4, 3]
    """

    decision: Decision
    schema: Schema
    find: Callable[[pd.DataFrame], pd.DataFrame]

    def explain(self, X: Any) -> Counterfactuals:
        """One counterfactual for each refused case, where the search finds one that the model confirms.

        Cases that are not refused have nothing to be found.
        """
        decision, schema = self.decision, self.schema
        cases = schema.conform(X, unseen="allow")
        if len(cases) == 0:
            raise DataError("the table of cases is empty", do="pass at least one row")
        against = np.flatnonzero(decision.refuses(cases))
        found = np.zeros(len(cases), dtype=bool)
        if len(against) == 0:
            return Counterfactuals(schema, cases, cases, found)
        made = self.find(cases.iloc[against])
        found[against] = ~decision.refuses(made)
        row_of = np.zeros(len(cases), dtype=np.int64)
        row_of[against] = np.arange(len(against))
        frame = mix(cases, made, row_of, dict.fromkeys(schema.columns, found))
        return Counterfactuals(schema, cases, frame, found)


def turns_alone(decision: Decision, frame: pd.DataFrame) -> Bools:
    """Whether the model, asked about one row at a time, decides it negative, (n,).

    Examples
    --------
    >>> decision = Decision(lambda rows: rows["debt"].to_numpy() / 10)
    >>> turns_alone(decision, pd.DataFrame({"debt": [2, 9]})).tolist()
    [True, False]
    """
    scores = [decision.score(frame.iloc[[row]])[0] for row in range(len(frame))]
    return np.asarray(np.array(scores) < decision.cut, dtype=bool)


def check_counterfactuals(out: Counterfactuals, decision: Decision) -> int:
    """Check every claim of a method, or say which row breaks it; returns how many answers there are.

    Every answer is decided negative when the model is asked about it alone, changes something, and has a known level,
    or a whole number where the column has these, wherever it changes; cases without an answer are as they were.

    Examples
    --------
    >>> X = pd.DataFrame({"debt": [8, 9]})
    >>> decision = Decision(lambda rows: rows["debt"].to_numpy() / 10)
    >>> check_counterfactuals(Counterfactuals(Schema.infer(X), X, X.assign(debt=2), np.ones(2, dtype=bool)), decision)
    2
    """
    if dict(out.frame.dtypes) != dict(out.cases.dtypes):
        raise VerificationError("the rows do not have the dtypes of the cases")
    numbers = np.flatnonzero(out.found)
    wrong = numbers[~turns_alone(decision, out.frame.iloc[numbers])]
    _refuse(wrong, "the model does not decide it otherwise")
    _refuse(np.flatnonzero(out.found & ~out.changed.any(axis=1)), "nothing is changed in it")
    _refuse(np.flatnonzero(~out.found & out.changed.any(axis=1)), "it is changed though nothing was found")
    for j, feature in enumerate(out.schema.features):
        moved = np.flatnonzero(out.changed[:, j])
        impossible = moved[~possible_values(out.frame.iloc[moved], feature)]
        _refuse(impossible, f'"{feature.name}" has a value it cannot have')
    return len(numbers)


def _refuse(rows: npt.NDArray[np.intp], why: str) -> None:
    if len(rows):
        raise VerificationError(f"row {rows[0]}: {why} ({len(rows)} such rows)")


def possible_values(frame: pd.DataFrame, feature: Feature) -> Bools:
    """Whether the values of a feature could stand in the training table."""
    cells = frame[list(feature.columns)]
    if feature.kind == "category":
        return np.asarray(cells.isin(list(feature.levels)).all(axis=1), dtype=bool)
    if feature.kind == "indicators":
        return np.asarray(cells.isin([0, 1]).all(axis=1) & (cells.sum(axis=1) == 1), dtype=bool)
    if feature.kind == "integer":
        return np.asarray((cells.to_numpy(dtype=float) % 1 == 0).all(axis=1))
    return np.ones(len(frame), dtype=bool)
