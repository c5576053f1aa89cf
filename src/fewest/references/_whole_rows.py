"""Rows of people as references: everyone who was accepted, or for each case the row that somebody proposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, UsageError
from fewest.references.base import References
from fewest.references.spread import Spread
from fewest.references.training_rows import TrainingRows
from fewest.tables.closeness import Distances
from fewest.tables.frames import to_frame
from fewest.tables.schema import Schema


@dataclass(frozen=True, eq=False, kw_only=True)
class Paired(References):
    """For each case a row of its own, found by its label.

    Attributes
    ----------
    labels : Index
        Label of the case that each row belongs to.
    """

    labels: pd.Index[Any]
    not_kept = "rows are paired with cases by their labels, which run folders and saved explainers do not hold"

    def candidates(self, frame: pd.DataFrame, far: Distances | None = None) -> npt.NDArray[np.int32]:
        """The row of each case (n, 1)."""
        place = self.labels.get_indexer(frame.index)
        if (place < 0).any():
            label = frame.index[int(np.argmax(place < 0))]
            raise DataError(f"case {label} has no row of its own", do="give both tables the same index")
        return np.asarray(place, dtype=np.int32)[:, None]

    def flexible(self, *_: Any, **__: Any) -> References:
        """Proposed rows stay as they are."""
        raise UsageError("the rows of references.paired are taken as they are", do="use single or clusters")

    def under(self, decision: Decision) -> Paired:
        """The same rows for another decision: one that it refuses may still hold changes that are enough."""
        if decision is self.decision:
            return self
        return replace(self, decision=decision, score=decision.verdicts(self.frame).score)


def paired(
    decision: Decision,
    rows: Any,
    *,
    X: Any = None,
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Paired:
    """Compare each case with a row of its own: the counterfactual of another tool, or what a colleague proposes.

    The answer is the smallest part of the proposed changes that is enough. Values are taken as they are proposed.

    Parameters
    ----------
    decision : Decision
    rows : table
        One row per case, with the index labels of the cases.
    X : table, optional
        Training rows to read the schema from. Default: the rows themselves.
    schema, groups : optional
        As in `single`.

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> proposed = pd.DataFrame({"debt": [3, 1], "age": [60, 20]}, index=[2, 3])
    >>> out = fw.Explainer(decision, fw.references.paired(decision, proposed, X=X)).explain(X.iloc[2:])
    >>> [str(answer.changes[0]) for answer in out]
    ['debt had been 3 instead of 8', 'debt had been 1 instead of 9']
    """
    frame = to_frame(rows, None if schema is None else schema.columns)
    if not frame.index.is_unique:
        label = frame.index[frame.index.duplicated()][0]
        raise DataError(f"there are two rows for case {label}", do="keep one row per case")
    schema = schema or Schema.infer(frame if X is None else X, groups, decision.columns)
    frame = schema.conform(frame, unseen="allow")
    if len(frame) == 0:
        raise DataError("the table of rows is empty", do="pass one row for each case")
    return Paired(
        decision=decision, schema=schema, frame=frame.reset_index(drop=True), labels=frame.index,
        names=tuple(f"row of case {label}" for label in frame.index), support=np.full(len(frame), -1),
        score=decision.verdicts(frame).score, provenance={"kind": "paired", "rows": len(frame)},
    )  # fmt: skip


def accepted(
    decision: Decision,
    X: Any,
    y: Any,
    *,
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> References:
    """Compare with every accepted training row: the one that needs the fewest features, the closest among equals.

    Rows that are labelled as accepted and that the model accepts, each kept once. They are rows of people: neither
    `References.save` nor run folders take them, and `Explainer.save` does with ``training_rows=True`` alone.

    Parameters
    ----------
    decision : Decision
    X : table
        Training rows.
    y : (n,) labels
        Read as in `single`.
    schema, groups : optional
        As in `single`.

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> out = fw.Explainer(decision, fw.references.accepted(decision, X, y)).explain(X)
    >>> str(out[2].changes[0]), out[2].reference
    ('debt had been 2 instead of 8', 'row 1')
    """
    training = TrainingRows.read(decision, X, y, schema, groups, compare=True)
    schema, people = training.schema, training.accepted
    verdicts = decision.verdicts(people)
    kept = ~verdicts.positive & ~people.duplicated().to_numpy()
    if not kept.any():
        raise DataError(
            "the model refuses every row that is labelled as accepted", do="check the labels and `positive=`"
        )
    rows = people[kept]
    return References(
        decision, schema, rows.reset_index(drop=True), tuple(f"row {label}" for label in rows.index),
        np.ones(len(rows), dtype=np.int64), verdicts.score[kept], "sparsest",
        {"kind": "accepted", "rows": len(rows)}, spread=Spread.of(schema, people),
    )  # fmt: skip
