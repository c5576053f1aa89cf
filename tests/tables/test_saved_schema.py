"""A schema as JSON and back."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from fewest.tables.saved_schema import plain, schema_from_json, schema_to_json
from fewest.tables.schema import Schema


def test_a_schema_is_the_same_after_json() -> None:
    table = {"age": [20, 40], "rate": [0.5, 1.25], "job": pd.Categorical(["b", "a"]), "at": pd.Timestamp(2026, 1, 31)}
    schema = Schema.infer(pd.DataFrame(table))
    content = json.loads(json.dumps(schema_to_json(schema)))
    again = schema_from_json(**content)
    assert again.features == schema.features
    assert again.dtypes == schema.dtypes
    assert content["dtypes"]["age"] == "int64"


def test_what_is_missing_or_not_finite_is_null() -> None:
    values = (np.int64(3), float("nan"), "a", pd.NA, pd.Timestamp(2026, 1, 31), {"x": np.inf})
    assert plain(values) == [3, None, "a", None, "2026-01-31T00:00:00", {"x": None}]
