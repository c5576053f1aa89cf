"""Made-up cases on which a model is tried before it serves: no rows of people are kept with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.tables.schema import Feature, Schema

ROWS = 48


def made_up(schema: Schema, typical: pd.DataFrame, rows: int = ROWS) -> pd.DataFrame:
    """Cases drawn feature by feature from what the schema knows: ranges and levels. The same ones every time.

    Parameters
    ----------
    schema : Schema
    typical : (m, columns)
        Where the schema does not say what a value looks like, it is one of these rows'.
    rows : int

    Examples
    --------
    >>> X = pd.DataFrame({"age": [30, 40], "home": ["own", "rent"]})
    >>> cases = made_up(Schema.infer(X), X)
    >>> cases["age"].between(30, 40).all(), sorted(set(cases["home"]))
    (np.True_, ['own', 'rent'])
    """
    random = np.random.default_rng(0)
    out: dict[str, Any] = {}
    for feature in schema.features:
        out.update(_draw(feature, typical, random, rows))
    return schema.conform(pd.DataFrame(out), unseen="allow")


def _draw(feature: Feature, typical: pd.DataFrame, random: np.random.Generator, rows: int) -> dict[str, Any]:
    name = feature.columns[0]
    if feature.is_numeric and np.isfinite([feature.minimum, feature.maximum]).all():
        values = np.round(random.uniform(feature.minimum, feature.maximum, rows), feature.decimals)
        return {name: values.astype(np.int64) if feature.kind == "integer" else values}
    if feature.kind == "indicators":
        chosen = random.integers(0, len(feature.columns), rows)
        return {column: (chosen == k).astype(int) for k, column in enumerate(feature.columns)}
    if feature.kind in ("category", "boolean") and feature.levels:
        return {name: pd.Series([feature.levels[k] for k in random.integers(0, len(feature.levels), rows)])}
    taken = random.integers(0, len(typical), rows)
    return {column: typical[column].array[taken] for column in feature.columns}


def takes_missing(decision: Decision, schema: Schema, cases: pd.DataFrame) -> tuple[str, ...]:
    """Columns in which a model scores missing values.

    Parameters
    ----------
    decision : Decision
    schema : Schema
    cases : (n, columns)
        Cases the model can score.
    """
    single = [f.columns[0] for f in schema.features if len(f.columns) == 1]
    if _scores(decision, schema, cases, single):
        return tuple(single)
    return tuple(name for name in single if _scores(decision, schema, cases, [name]))


def _scores(decision: Decision, schema: Schema, cases: pd.DataFrame, empty: list[str]) -> bool:
    """Whether the model scores cases in which some columns are missing."""
    try:
        few = cases.iloc[:2].astype(dict.fromkeys(empty, object))
        few[empty] = None
        scores = decision.score(schema.conform(few, unseen="allow"))
    except Exception:
        return False
    return bool(np.isfinite(scores).all())
