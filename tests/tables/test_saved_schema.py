"""A schema as JSON and back."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewest.tables.saved_schema import plain, schema_from_json, schema_to_json, without_extremes
from fewest.tables.schema import Feature, Schema


def test_a_schema_is_the_same_after_json() -> None:
    table = {"age": [20, 40], "rate": [0.5, 1.5], "job": pd.Categorical(["b", "a"]), "at": pd.Timestamp(2026, 1, 31)}
    schema = Schema.infer(pd.DataFrame(table))
    content = json.loads(json.dumps(schema_to_json(schema)))
    again = schema_from_json(**content)
    assert again.features == schema.features
    assert again.dtypes == schema.dtypes
    assert content["dtypes"]["age"] == "int64"


def test_what_is_missing_or_not_finite_is_null() -> None:
    values = (np.int64(3), float("nan"), "a", pd.NA, pd.Timestamp(2026, 1, 31), {"x": np.inf})
    assert plain(values) == [3, None, "a", None, "2026-01-31T00:00:00", {"x": None}]


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (3111, 98765, (3000, 100000)), (18, 72, (15, 75)), (-0.73, 0.0312, (-0.75, 0.035)), (0, 1, (0, 1)),
        (-np.inf, np.inf, (-np.inf, np.inf)), (0.3, 0.7, (0.3, 0.7)), (5, 5, (5, 5)),
    ],
)  # fmt: skip
def test_nobodys_smallest_or_largest_value_is_in_a_file(low: float, high: float, wanted: tuple[float, float]) -> None:
    rounded = without_extremes(Feature("a", "number", ("a",), minimum=low, maximum=high))
    assert (rounded.minimum, rounded.maximum) == wanted


@given(st.floats(-1e12, 1e12), st.floats(0, 1e12))
def test_a_range_in_round_numbers_holds_the_range_and_stays_as_it_is(low: float, more: float) -> None:
    feature = Feature("a", "number", ("a",), minimum=low, maximum=low + more)
    once = without_extremes(feature)
    assert once.minimum <= feature.minimum <= feature.maximum <= once.maximum
    assert without_extremes(once) == once
