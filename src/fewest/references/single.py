"""One reference for everybody: the mean/mode, median/mode or medoid of the negatively labelled rows (SEV1, rule 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.closeness import as_numbers, feature_distances
from fewest.decision import Decision
from fewest.errors import DataError, UsageError
from fewest.references.base import OnPositive, References, build
from fewest.schema import Feature, Schema

Centre = Literal["mean", "median", "medoid"]


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
        Their labels; the rows that do not have the positive label are used.
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
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> single(Decision(LogisticRegression().fit(X, y)), X, y).frame.to_dict("records")
    [{'debt': 2, 'age': 40}]
    """
    if centre not in ("mean", "median", "medoid"):
        raise UsageError(f'centre "{centre}" is unknown', do="use mean, median or medoid")
    schema = schema or Schema.infer(X, groups, decision.columns)
    rows = negatives(decision, schema.conform(X), y)
    if centre == "medoid":
        values = _medoid(decision, schema, rows)
    else:
        values = {column: _centre(rows[column], feature, centre) for feature, column in _pairs(schema)}
        values.update(_indicator_modes(schema, rows))
    return build(
        decision, schema, [values], [centre], [len(rows)], on_positive=on_positive,
        provenance={"kind": "single", "centre": centre, "rows": len(rows)},
    )  # fmt: skip


def negatives(decision: Decision, frame: pd.DataFrame, y: Any) -> pd.DataFrame:
    """Rows whose label is not the positive one (with ``against``: whose label is that one)."""
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) != len(frame):
        raise DataError(f"there are {len(frame)} rows but labels of shape {labels.shape}", do="pass one label per row")
    wanted = labels == decision.against if decision.against is not None else labels != decision.positive
    if not np.any(wanted):
        raise DataError(
            f"no row is labelled other than {decision.positive!r}, so there is no accepted case to compare with",
            do="check the labels and `positive=`",
        )
    return frame[np.asarray(wanted)]


def _pairs(schema: Schema) -> list[tuple[Feature, str]]:
    return [(feature, column) for feature in schema.features for column in feature.columns]


def _centre(column: pd.Series[Any], feature: Feature, centre: str) -> Any:
    if feature.is_numeric or feature.kind == "datetime":
        numbers = as_numbers(column, feature)
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers) == 0:
            return np.nan
        middle = float(np.mean(numbers) if centre == "mean" else np.median(numbers))
        if feature.kind == "datetime":
            unit = np.datetime_data(column.dtype.base if hasattr(column.dtype, "base") else column.dtype)[0]
            return pd.Timestamp(int(middle), unit=unit)
        return middle
    return mode(column)


def mode(column: pd.Series[Any]) -> Any:
    """Most frequent value; the first in order among equals; missing only where there is nothing else."""
    counts = column.value_counts(dropna=True)
    if len(counts) == 0:
        return np.nan
    top = counts.index[counts.to_numpy() == counts.to_numpy().max()].tolist()
    return min(top, key=lambda level: (str(type(level)), level if not isinstance(level, str) else 0, str(level)))


def _indicator_modes(schema: Schema, rows: pd.DataFrame) -> dict[str, Any]:
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


def _medoid(decision: Decision, schema: Schema, rows: pd.DataFrame) -> dict[str, Any]:
    accepted = rows[~decision.verdicts(rows).positive]
    pool = accepted if len(accepted) else rows
    middle = {column: _centre(rows[column], feature, "median") for feature, column in _pairs(schema)}
    middle.update(_indicator_modes(schema, rows))
    centre = schema.conform(pd.DataFrame([schema.snap(middle)], columns=list(schema.columns)))
    far: npt.NDArray[np.float64] = feature_distances(schema, pool, centre, np.zeros(len(pool), dtype=np.int32))
    return dict(pool.iloc[int(np.argmin(np.round(far.sum(axis=1), 12)))])
