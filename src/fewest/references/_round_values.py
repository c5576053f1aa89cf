"""References are rounded when they are made, so that search, model and reader see the same numbers.

Numbers get their feature's decimals. Where that alone makes the model refuse a reference, its numbers get more
decimals, as few as it takes; the schema the references carry says how many, so that rounding again changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

import pandas as pd

from fewest.decision import Decision
from fewest.tables.schema import Schema

MOST_DECIMALS = 17  # no double of ordinary size needs more


def as_frame(
    schema: Schema, rows: Sequence[Mapping[Any, Any]], unseen: Literal["error", "allow"] = "allow"
) -> pd.DataFrame:
    """Rows of values as a table, rounded and typed as the schema says."""
    typed = pd.DataFrame([schema.snap(dict(row)) for row in rows], columns=list(schema.columns))
    return schema.conform(typed, unseen=unseen)


def finer(
    decision: Decision, schema: Schema, rows: Sequence[Mapping[Any, Any]], frame: pd.DataFrame, refused: Sequence[int]
) -> tuple[Schema, pd.DataFrame]:
    """Rounded rows, of which those that only rounding got refused have more decimals; and the schema that says so.

    Whole numbers stay whole: a row that is refused because of them stays refused.
    """
    values, most = frame.to_dict("records"), 0
    exact = _with_more(schema, MOST_DECIMALS)
    for number in refused if exact.features != schema.features else ():
        if decision.refuses(as_frame(exact, [rows[number]]))[0]:
            continue  # refused with all decimals too
        for more in range(1, MOST_DECIMALS + 1):
            trial = as_frame(_with_more(schema, more), [rows[number]])
            if not decision.refuses(trial)[0]:
                values[number], most = trial.to_dict("records")[0], max(most, more)
                break
    if not most:
        return schema, frame
    schema = _with_more(schema, most)
    return schema, as_frame(schema, values)


def holding(schema: Schema, rows: Sequence[Mapping[Any, Any]]) -> Schema:
    """The schema with as many decimals as the rows' numbers are written with, where that is more than it has."""
    features = []
    for feature in schema.features:
        cells = [row[column] for row in rows for column in feature.columns] if feature.kind == "number" else []
        needed = [_decimals(float(cell)) for cell in cells if not pd.isna(cell)]
        features.append(replace(feature, decimals=max([feature.decimals, *needed])))
    return replace(schema, features=tuple(features))


def _decimals(value: float) -> int:
    exponent = Decimal(repr(value)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _with_more(schema: Schema, more: int) -> Schema:
    """The schema with more decimals for every number that is not whole."""
    features = tuple(
        replace(feature, decimals=feature.decimals + more) if feature.kind == "number" else feature
        for feature in schema.features
    )
    return replace(schema, features=features)
