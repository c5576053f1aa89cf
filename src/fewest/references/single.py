"""One reference for everybody: the mean/mode, median/mode or medoid of the negatively labelled rows (SEV1, rule 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fewest.decision import Decision
from fewest.errors import check_word
from fewest.references._centres import CENTRES, Centre, centre_of
from fewest.references.base import ON_POSITIVE, OnPositive, References, build
from fewest.references.spread import Spread
from fewest.references.training_rows import TrainingRows, warn_where_predict_differs
from fewest.tables.schema import Schema


def single(
    decision: Decision,
    X: Any,
    y: Any,
    *,
    centre: Centre = "mean",
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    on_positive: OnPositive = "error",
) -> References:
    """The typical case that was not decided against.

    Parameters
    ----------
    decision : Decision
    X : table
        Training rows.
    y : (n,) labels
        Their labels, as the model knows them; the rows that do not have the positive label are used. Or booleans, True
        where a row was accepted (not with a model whose classes are booleans or 0 and 1: there they are labels).
    centre : str
        ``mean``: mean of numbers, most frequent level of the rest; ``median``: the median instead of the mean;
        ``medoid``: the real row nearest to the median centre, among those the model accepts.
    schema : Schema, optional
        Default: read off X.
    groups : mapping, optional
        Feature -> columns, for tables that are encoded already.
    on_positive : str
        What to do when the model decides against the reference itself: ``error`` or ``allow``.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> single(Decision(LogisticRegression().fit(X, y)), X, y).frame.to_dict("records")
    [{'debt': 2, 'age': 40}]
    """
    check_word("centre", centre, CENTRES)
    check_word("on_positive", on_positive, ON_POSITIVE)
    training = TrainingRows.read(decision, X, y, schema, groups)
    schema, rows = training.schema, training.accepted
    warn_where_predict_differs(decision, training.frame)
    pool = None
    if centre == "medoid":
        accepted = rows[~decision.verdicts(rows).positive]
        pool = accepted if len(accepted) else rows
    values = centre_of(schema, rows, centre, pool)
    refs = build(
        decision, schema, [values], [centre], [len(rows)], on_positive=on_positive,
        provenance={"kind": "single", "centre": centre, "rows": len(rows)},
    )  # fmt: skip
    return replace(refs, spread=Spread.of(schema, rows, [rows]))
