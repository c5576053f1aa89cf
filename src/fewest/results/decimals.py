"""How many decimals a case is shown with: those of its features, and more where the model would decide otherwise.

A case of 0.10490011715303971 reads as 0.105 where the model, asked about the values as they are printed, gives the case
and the row it leads to the same outcomes. Goals are rounded when references are made; they are printed as they are.
The model is asked when cases are shown, not when they are explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from fewest.results.answers import Answers
from fewest.results.explanation import STATUSES, Status
from fewest.tables.arrays import Bools, Ints
from fewest.tables.frames import mix
from fewest.tables.schema import Schema
from fewest.tables.values import as_printed

ALL, NOT_ASKED = -1, -2
TRIED = range(9)  # decimals beyond those of the features, until the outcomes hold
ROWS = 50_000  # rows that are asked about at once


class Shown(Protocol):
    """Answers that are shown: those of `fewest.results.explanations`."""

    frame: pd.DataFrame
    answers: Answers
    references: Any
    plus: bool

    @property
    def schema(self) -> Schema: ...  # noqa: D102
    def turned(self) -> pd.DataFrame: ...  # noqa: D102
    def __getitem__(self, key: Any) -> Any: ...


def ask(out: Shown, rows: Sequence[int]) -> None:
    """Let the answers of these rows know how many decimals their cases are shown with."""
    asked = np.asarray(rows, dtype=np.int64)
    asked = asked[out.answers.decimals[asked] == NOT_ASKED]
    out.answers.decimals[asked] = 0
    for first in range(0, len(asked), ROWS):
        part = asked[first : first + ROWS]
        frame = out.frame.iloc[part]
        long = part[_differ(out.schema, frame, as_printed(out.schema, frame, 0)).any(axis=1)]
        if len(long):
            out.answers.decimals[long] = _enough(out[long])


def _enough(out: Shown) -> Ints:
    """The fewest decimals (n,) of those tried with which the outcomes hold."""
    schema, after, moved = out.schema, out.turned(), out.answers.moved
    goals = out.references.frame.iloc[np.maximum(out.answers.reference, 0)] if out.plus else after
    refused = out.answers.status != STATUSES.index(Status.ALREADY_NEGATIVE)
    found, left = np.full(len(out.frame), ALL), np.arange(len(out.frame))
    for more in TRIED:
        n, has, case = len(left), moved[left].any(axis=1), out.frame.iloc[left]
        short, places = as_printed(schema, case, more), np.arange(n, dtype=np.int32)
        take = {column: moved[left, j] for column, j in schema.feature_of.items()}
        named = mix(case, short, places, take)  # as the sentence shows the case: the changed features alone
        ends = (after.iloc[left], short) if out.plus else (short, after.iloc[left])
        rows = pd.concat([short, named[has], mix(*ends, places, take)[has]], ignore_index=True)
        whole, part, turned = np.split(out.references.decision.refuses(rows), [n, n + int(has.sum())])
        seen = _differ(schema, short, goals.iloc[left]) | ~_differ(schema, case, goals.iloc[left])
        holds = (seen | ~moved[left]).all(axis=1) & (whole == refused[left])  # changes are still to be seen
        holds[has] &= (part == refused[left][has]) & (turned == out.plus)
        found[left[holds]] = more
        left = left[~holds]
        if len(left) == 0:
            break
    return found


def _differ(schema: Schema, one: pd.DataFrame, other: pd.DataFrame) -> Bools:
    """Where the numbers of two tables differ (n, p); other features are printed as they are."""
    out = np.zeros((len(one), len(schema)), dtype=bool)
    for j, feature in enumerate(schema.features):
        if feature.kind == "number":
            a, b = (frame[feature.columns[0]].to_numpy(dtype=float, na_value=np.nan) for frame in (one, other))
            out[:, j] = (a != b) & ~(np.isnan(a) & np.isnan(b))
    return out
