"""One reference for everybody: the mean/mode, median/mode or medoid of the negatively labelled rows (SEV1, rule 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.errors import check_word
from fewest.references.base import ON_POSITIVE, OnPositive, References, scored
from fewest.references.spread import Spread
from fewest.references.training_rows import TrainingRows
from fewest.tables.closeness import as_numbers, feature_distances
from fewest.tables.schema import Feature, Schema

Centre = Literal["mean", "median", "medoid"]
CENTRES: tuple[Centre, ...] = ("mean", "median", "medoid")


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
    """The typical case that was accepted.

    Parameters
    ----------
    decision : Decision
    X : table
        Training rows.
    y : (n,) labels
        Their labels, as the model knows them; the rows that do not have the positive label are used. Or booleans, True
        where a row was accepted (not with a model whose classes are booleans or 0 and 1: there they are labels). For
        regressors the true numbers, or None: the model's own predictions say who is accepted.
    centre : str
        ``mean``: mean of numbers, most frequent level of the rest; ``median``: the median instead of the mean;
        ``medoid``: the real row nearest to the median centre, among those the model accepts.
    schema : Schema, optional
        Default: read off X.
    groups : mapping, optional
        Feature -> columns, for tables that are encoded already.
    on_positive : str
        What to do when the model refuses the reference itself: ``error`` or ``allow``.

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
    training = TrainingRows.read(decision, X, y, schema, groups, compare=True)
    schema, rows, pool = training.schema, training.accepted, None
    if centre == "medoid":
        accepted = rows[~decision.refuses(rows)]
        pool = accepted if len(accepted) else rows
    values = centre_of(schema, rows, centre, pool)
    refs = scored(
        decision, schema, [values], [centre], [len(rows)], on_positive=on_positive,
        provenance={"kind": "single", "centre": centre, "rows": len(rows)},
    )  # fmt: skip
    return replace(refs, spread=Spread.of(schema, rows, [rows]))


def centre_of(schema: Schema, rows: pd.DataFrame, centre: Centre, pool: pd.DataFrame | None = None) -> dict[str, Any]:
    """Values of the centre of rows, not typed yet; a medoid is the row of ``pool`` nearest to their median."""
    if centre != "medoid":
        return _middle(schema, rows, centre)
    pool = rows if pool is None else pool
    middle = pd.DataFrame([schema.snap(_middle(schema, rows, "median"))], columns=list(schema.columns))
    goal_of = np.zeros(len(pool), dtype=np.int32)
    far: npt.NDArray[np.float64] = feature_distances(schema, pool, schema.conform(middle), goal_of)
    return dict(pool.iloc[int(np.argmin(np.round(far.sum(axis=1), 12)))])


def mode(column: pd.Series[Any]) -> Any:
    """Most frequent value; the first in order among equals; missing only where there is nothing else."""
    counts = column.value_counts(dropna=True)
    if len(counts) == 0:
        return np.nan
    top = counts.index[counts.to_numpy() == counts.to_numpy().max()].tolist()
    return min(top, key=lambda level: (str(type(level)), level if not isinstance(level, str) else 0, str(level)))


def _middle(schema: Schema, rows: pd.DataFrame, centre: str) -> dict[str, Any]:
    values = {
        column: _column_middle(rows[column], feature, centre)
        for feature in schema.features
        for column in feature.columns
    }
    values.update(_group_modes(schema, rows))
    return values


def _column_middle(column: pd.Series[Any], feature: Feature, centre: str) -> Any:
    if feature.is_numeric or feature.kind == "datetime":
        numbers = as_numbers(column, feature)
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers) == 0:
            return np.nan
        middle = float(np.mean(numbers) if centre == "mean" else np.median(numbers))
        if feature.kind == "datetime":
            unit = np.datetime_data(column.dtype.base if hasattr(column.dtype, "base") else column.dtype)[0]
            return pd.Timestamp(int(middle), unit=unit, tz=getattr(column.dtype, "tz", None))
        return middle
    return mode(column)


def _group_modes(schema: Schema, rows: pd.DataFrame) -> dict[str, Any]:
    """For a one-hot group the most frequent level, for any other group its most frequent combination."""
    values: dict[str, Any] = {}
    for feature in schema.features:
        if len(feature.columns) == 1 and feature.kind not in ("indicators", "group"):
            continue
        columns = list(feature.columns)
        codes, combinations = pd.factorize(pd.MultiIndex.from_frame(rows[columns]))
        best = int(np.argmax(np.bincount(codes)))
        values.update(zip(columns, combinations[best], strict=True))
    return values
