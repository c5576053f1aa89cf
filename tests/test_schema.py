"""The original features: kinds, groups, conforming tables, and refusals that name the cell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fewest import Schema
from fewest.errors import DataError, UsageError


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
