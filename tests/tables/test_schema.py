"""The original features: kinds, groups, conforming tables, and refusals that name the cell."""

from __future__ import annotations

import ast
import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest.datasets
from fewest import Schema
from fewest.errors import DataError, FewestWarning, UsageError
from fewest.tables.one_hot import find_one_hot


def mixed() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [30, 40, 50],
            "rate": [1.25, 2.5, 3.75],
            "job": pd.Series(["a", "b", "a"], dtype="str"),
            "grade": pd.Categorical(["low", "high", "low"], categories=["low", "high"], ordered=True),
            "owner": [True, False, True],
            "seen": pd.to_datetime(["2020-01-01", "2020-02-01", "2020-03-01"]),
            "maybe": pd.array([1, None, 3], dtype="Int64"),
        }
    )


def test_kinds_are_read() -> None:
    schema = Schema.infer(mixed())
    kinds = {feature.name: feature.kind for feature in schema.features}
    assert kinds == {
        "age": "integer", "rate": "number", "job": "category", "grade": "category", "owner": "boolean",
        "seen": "datetime", "maybe": "integer",
    }  # fmt: skip
    assert schema.features[3].ordered
    assert schema.features[1].decimals == 2


def test_a_one_hot_group_is_one_feature() -> None:
    X = pd.DataFrame({"own": [1, 0], "rent": [0, 1], "age": [3, 4]})
    schema = Schema.infer(X, groups={"housing": ["own", "rent"]})
    assert schema.names == ("housing", "age")
    assert schema.features[0].kind == "indicators"
    assert schema.feature_of == {"own": 0, "rent": 0, "age": 1}


@pytest.mark.parametrize("groups", [{"g": ["nope"]}, {"g": []}, {"g": ["own"], "h": ["own"]}, {"age": ["own", "rent"]}])
def test_bad_groups_are_refused(groups: dict[str, list[str]]) -> None:
    with pytest.raises(UsageError):
        Schema.infer(pd.DataFrame({"own": [1, 0], "rent": [0, 1], "age": [3, 4]}), groups=groups)


def test_reordered_and_extra_columns_are_put_right() -> None:
    schema = Schema.infer(mixed())
    shuffled = mixed()[mixed().columns[::-1]].assign(extra=1)
    assert schema.conform(shuffled).equals(mixed())


def test_missing_columns_are_named() -> None:
    with pytest.raises(DataError, match=r"lacks 2 of 7 columns: rate, job"):
        Schema.infer(mixed()).conform(mixed().drop(columns=["rate", "job"]))


def test_an_unseen_level_is_named_with_its_row() -> None:
    cases = mixed()
    cases["job"] = ["a", "b", "astronaut"]
    with pytest.raises(DataError, match=r'row 2 .*column "job": value \'astronaut\''):
        Schema.infer(mixed()).conform(cases)
    assert Schema.infer(mixed()).conform(cases, unseen="allow")["job"].iloc[2] == "astronaut"
    cases = mixed().astype({"grade": object})
    cases.loc[0, "grade"] = "middling"
    with pytest.raises(DataError, match="never seen"):
        Schema.infer(mixed()).conform(cases, unseen="allow")


def test_text_in_a_number_is_named() -> None:
    cases = mixed().astype({"age": object})
    cases.loc[1, "age"] = "forty"
    with pytest.raises(DataError, match=r'row 1 .*column "age": \'forty\' is not a number'):
        Schema.infer(mixed()).conform(cases)


def test_numbers_come_back_in_the_training_dtype() -> None:
    cases = mixed().astype({"age": float})
    assert Schema.infer(mixed()).conform(cases)["age"].dtype == np.int64
    cases.loc[0, "age"] = np.nan
    assert np.isnan(Schema.infer(mixed()).conform(cases)["age"].iloc[0])


def test_near_names_are_suggested() -> None:
    with pytest.raises(UsageError, match="did you mean age"):
        Schema.infer(mixed()).index("aeg")


def test_snap_gives_displayed_values() -> None:
    schema = Schema.infer(mixed())
    assert schema.snap({"age": 39.6, "rate": 2.34567, "job": "a"}) == {"age": 40, "rate": 2.35, "job": "a"}


@pytest.mark.parametrize("table", [pd.DataFrame(), pd.DataFrame({"a": []})])
def test_empty_tables_are_refused(table: pd.DataFrame) -> None:
    with pytest.raises(DataError):
        Schema.infer(table)


@pytest.mark.parametrize("label", ["housing", "Where they live"])
def test_a_label_that_another_feature_has_is_refused(label: str) -> None:
    schema = Schema.infer(pd.DataFrame({"age": [30, 40], "housing": ["rent", "own"]}))
    schema = schema.with_("housing", label="Where they live")
    with pytest.raises(UsageError, match=f'the label "{label}" of "age" is also what "housing" is called'):
        schema.with_("age", label=label)
    assert schema.with_("housing", label="Where they live").features == schema.features


def _german_dummies(**how: bool) -> pd.DataFrame:
    return pd.get_dummies(fewest.datasets.load("german").X, **how)


def test_dummy_columns_without_groups_are_named_with_groups_to_paste() -> None:
    wide = _german_dummies()
    with pytest.warns(FewestWarning, match="look like levels of one feature") as caught:
        Schema.infer(wide)
    text = str(caught[0].message)
    groups = ast.literal_eval(text[text.index("groups=") + len("groups=") : text.index("\n  or groups={}")])
    raw = fewest.datasets.load("german").X
    levels = {name: raw[name].nunique() for name in raw if not pd.api.types.is_numeric_dtype(raw[name])}
    assert {name: len(columns) for name, columns in groups.items()} == levels
    schema = Schema.infer(wide, groups)
    assert schema.names.count("checking_status") == 1
    assert all(feature.kind == "indicators" for feature in schema.features if feature.name in levels)


def test_dummy_columns_whose_first_level_was_dropped_are_named_too() -> None:
    raw = fewest.datasets.load("german").X
    wide = _german_dummies(drop_first=True)
    text = [name for name in raw if not pd.api.types.is_numeric_dtype(raw[name])]
    # A feature of two levels leaves one column, which is a whole feature.
    several = {tuple(c for c in wide if c.startswith(f"{name}_")) for name in text if raw[name].nunique() > 2}
    assert set(find_one_hot(wide).values()) == several


def test_a_one_hot_encoder_s_own_names_are_read() -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    raw = fewest.datasets.load("german").X[["housing", "job", "age"]]
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["housing", "job"]), remainder="passthrough"
    ).set_output(transform="pandas")
    assert set(find_one_hot(encoder.fit_transform(raw))) == {"onehotencoder__housing", "onehotencoder__job"}


@pytest.mark.parametrize("rows", [4, 12, 200, 5_000])
@pytest.mark.parametrize("share", [0.002, 0.02, 0.3, 0.5, 0.98])
def test_columns_of_zeros_and_ones_that_have_nothing_to_do_with_each_other_raise_no_alarm(
    rows: int, share: float
) -> None:
    for seed in range(20):
        draw = np.random.default_rng(seed)
        cells = draw.random((rows, 8)) < share
        cells[:, 0] = draw.random(rows) < 1 - share
        table = pd.DataFrame(cells.astype(int), columns=[f"has_{name}" for name in "abcdefgh"])
        assert find_one_hot(table) == {}
        assert Schema.infer(table.astype(bool)).names == tuple(table.columns)


def test_groups_that_are_given_even_empty_ones_raise_no_alarm() -> None:
    wide = _german_dummies()
    assert len(Schema.infer(wide, {})) == wide.shape[1]


def test_columns_with_gaps_or_other_numbers_or_no_common_beginning_are_not_levels() -> None:
    jobs = pd.get_dummies(pd.DataFrame({"job": ["clerk", "cook", "none"] * 40}), dtype=float)
    assert set(find_one_hot(jobs)) == {"job"}
    assert find_one_hot(jobs.replace({"job_cook": {0.0: np.nan}})[["job_cook", "job_none"]]) == {}
    assert find_one_hot(jobs * 2) == {}
    assert find_one_hot(jobs.set_axis(["clerk", "cook", "none"], axis=1)) == {}
    taken = jobs.assign(job=1.5)
    assert set(find_one_hot(taken)) == {"job (levels)"}
    assert len(Schema.infer(taken, find_one_hot(taken))) == 2


TIME = pd.Timestamp("2026-01-01")


@pytest.mark.parametrize(
    "cells",
    [
        [TIME, TIME], [True, False], [dt.date(2026, 1, 1)] * 2, [1.0, True], [TIME, 1.0],
        pd.array([True, None], dtype="boolean"), pd.to_timedelta([1, 2]),
        pd.array([TIME, TIME], dtype="timestamp[ns][pyarrow]"), pd.array([True, False], dtype="bool[pyarrow]"),
    ],
)  # fmt: skip
def test_times_and_truth_values_are_not_taken_for_numbers(cells: Any) -> None:
    schema = Schema.infer(pd.DataFrame({"income": [1.5, 2.5]}))
    with pytest.raises(DataError, match=r'column "income" holds .*, where the model was trained on numbers'):
        schema.conform(pd.DataFrame({"income": cells}))


@pytest.mark.parametrize(
    "cells", [["1.5", "2"], [Decimal("1.5"), None], pd.array([1, None], dtype="Int64"), [None] * 2]
)
def test_what_stands_for_numbers_still_does(cells: Any) -> None:
    schema = Schema.infer(pd.DataFrame({"income": [1.5, 2.5]}))
    assert schema.conform(pd.DataFrame({"income": cells}))["income"].dtype == float
