"""What strangers send: read strictly, and refused with the place and the reason; never turned into a number."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

import fewest as fw
from fewest.apps.serving.refusals import RefusedError

pytest.importorskip("pydantic", reason='the service needs pip install "fewest[serve]"')
from fewest.apps.serving.answers import made_up, takes_missing
from fewest.apps.serving.instances import BodyReader, parse

LIMITS: dict[str, Any] = {"max_instances": 3, "max_alternatives": 5, "time_limit": 2.0}


def reader() -> BodyReader:
    """Reads bodies for a model of one column."""
    return BodyReader(fw.Schema.infer(pd.DataFrame({"a": [1, 2]})), **LIMITS)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "Expecting value"),
        (b"{", "line 1"),
        (b'{"a": 1} x', "Extra data"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "Exceeds the limit"),
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b'[{"b": {"c": 1, "c": 1}}]', "'c' stands twice"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b"\xef\xbb\xbf{}", "line 1"),
        ("{}".encode("utf-16"), "not UTF-8"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_the_reason(body: bytes, why: str) -> None:
    with pytest.raises(RefusedError, match=why) as caught:
        parse(body)
    assert caught.value.status == 400


def test_the_ordinary_parser_would_have_let_half_of_that_pass() -> None:
    """Negative control: the cases above are not refused by any parser."""
    assert json.loads(b'{"a": NaN, "b": 1, "b": 2, "c": 1e999}')["b"] == 2


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ([], "body"),
        ({}, "body"),
        ({"instances": [{}], "alternatives": 3}, "body"),
        ({"instances": []}, "instances"),
        ({"instances": {"a": 1}}, "instances"),
        ({"instances": [{}] * 4}, "instances"),
        ({"instances": [{}], "parameters": []}, "parameters"),
        ({"instances": [{}], "parameters": {"limit": 1}}, "parameters"),
        ({"instances": [{}], "parameters": {"alternatives": "3"}}, "parameters.alternatives"),
        ({"instances": [{}], "parameters": {"alternatives": True}}, "parameters.alternatives"),
        ({"instances": [{}], "parameters": {"alternatives": 6}}, "parameters.alternatives"),
        ({"instances": [{}], "parameters": {"alternatives": -1}}, "parameters.alternatives"),
        ({"instances": [{}], "parameters": {"alternatives": 1.5}}, "parameters.alternatives"),
        ({"instances": [{}], "parameters": {"time_limit": 0}}, "parameters.time_limit"),
        ({"instances": [{}], "parameters": {"time_limit": 3}}, "parameters.time_limit"),
        ({"instances": [{}], "parameters": {"time_limit": None}}, "parameters.time_limit"),
    ],
)
def test_a_body_of_another_shape_is_refused(content: Any, where: str) -> None:
    with pytest.raises(RefusedError) as caught:
        reader().read(json.dumps(content).encode())
    assert (caught.value.status, caught.value.parts["where"]) == (400, where)
    assert all(caught.value.parts.values())


def test_wishes_are_read() -> None:
    asked = reader().read(b'{"instances": [{"a": 1}], "parameters": {"alternatives": 2.0, "time_limit": 1}}')
    assert (asked.alternatives, asked.time_limit, asked.cells) == (2, 1.0, [[1]])
    assert reader().read(b'{"instances": [{"a": 1}]}').time_limit == 2.0


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    """A column of each kind."""
    return pd.DataFrame(
        {
            "number": [0.5, 1.5, 2.25],
            "count": [1, 2, 3],
            "whole": [1.0, 2.0, 3.0],
            "flag": [True, False, True],
            "job": pd.Categorical(["a", "b", "a"]),
            "code": [1, 2, 1],
            "day": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-05"]),
            "own": [1, 0, 0],
            "rent": [0, 1, 1],
        }
    ).astype({"code": "category"})


@pytest.fixture(scope="module")
def schema(wide: pd.DataFrame) -> fw.Schema:
    return fw.Schema.infer(wide, {"home": ["own", "rent"]})


GOOD: dict[str, Any] = {
    "number": 1, "count": 2.0, "whole": 2.5, "flag": True, "job": "b", "code": 2, "day": "2026-02-03",
    "own": 1, "rent": 0,
}  # fmt: skip


def read(schema: fw.Schema, *instances: Any, missing: tuple[str, ...] = ()) -> pd.DataFrame:
    bodies = BodyReader(schema, missing=missing)
    return bodies.table(bodies.cells(list(instances)))


def test_good_instances_become_rows_in_the_schemas_order_and_dtypes(schema: fw.Schema, wide: pd.DataFrame) -> None:
    frame = read(schema, dict(reversed(GOOD.items())), GOOD)
    assert frame.dtypes.to_dict() == wide[list(schema.columns)].dtypes.to_dict()
    assert frame.iloc[0].to_dict() == {**GOOD, "number": 1.0, "count": 2, "day": pd.Timestamp("2026-02-03")}
    assert frame.iloc[0].equals(frame.iloc[1])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("number", "1"), ("number", True), ("number", None), ("number", [1]), ("number", 1e31),
        ("count", 1.5), ("count", "2"), ("count", 2**60), ("count", False), ("whole", "2"), ("whole", {}),
        ("flag", 1), ("flag", "true"), ("flag", None),
        ("job", "c"), ("job", ""), ("job", 1), ("job", None), ("job", ["a"]), ("job", "A"),
        ("code", "1"), ("code", True), ("code", 3),
        ("day", "yesterday"), ("day", 5), ("day", "2026-02-30"), ("day", "2026-02-03T00:00:00Z"),
        ("day", "9999-01-01x"),
        ("own", 2), ("own", 0.5), ("own", True),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_with_its_place(schema: fw.Schema, column: str, value: Any) -> None:
    with pytest.raises(RefusedError) as caught:
        read(schema, GOOD, {**GOOD, column: value})
    assert (caught.value.status, caught.value.parts["where"]) == (422, f"instances[1].{column}")
    assert caught.value.parts["why"]


@pytest.mark.parametrize("levels", [{"own": 0, "rent": 0}, {"own": 1, "rent": 1}])
def test_exactly_one_level_of_a_one_hot_group_holds(schema: fw.Schema, levels: dict[str, int]) -> None:
    with pytest.raises(RefusedError, match="exactly one level"):
        read(schema, {**GOOD, **levels})


def test_missing_extra_and_no_columns_are_refused(schema: fw.Schema) -> None:
    without = {name: value for name, value in GOOD.items() if name != "job"}
    for instance, what in (
        (without, "columns are missing"),
        ({**GOOD, "x": 1}, "no column 'x'"),
        ([1], "not an object"),
    ):
        with pytest.raises(RefusedError, match=what) as caught:
            read(schema, instance)
        assert caught.value.status == 422


def test_null_is_taken_where_the_model_takes_it(schema: fw.Schema) -> None:
    empty = {**GOOD, "number": None, "count": None, "job": None, "flag": None}
    frame = read(schema, empty, missing=("number", "count", "job", "flag"))
    assert frame[["number", "count", "job", "flag"]].isna().all(axis=None)


def test_times_with_offsets_may_have_different_ones() -> None:
    schema = fw.Schema.infer(pd.DataFrame({"at": pd.to_datetime(["2026-01-01", "2026-01-02"]).tz_localize("UTC")}))
    frame = read(schema, {"at": "2026-01-01T02:00:00+02:00"}, {"at": "2026-01-01T00:00:00Z"})
    assert frame["at"].tolist() == [pd.Timestamp("2026-01-01", tz="UTC")] * 2


def test_where_any_level_is_allowed_a_new_one_reaches_the_model(wide: pd.DataFrame) -> None:
    schema = fw.Schema.infer(wide[["number"]].assign(text=["p", "q", "p"]))
    bodies = BodyReader(schema, any_level=True)
    assert bodies.cells([{"number": 1, "text": "new"}])[1] == ["new"]
    with pytest.raises(RefusedError, match="a single value"):
        bodies.cells([{"number": 1, "text": ["new"]}])


def test_the_json_schema_of_requests_says_what_is_read(schema: fw.Schema) -> None:
    bodies = BodyReader(schema, missing=("number",), **LIMITS)
    request = bodies.request_schema()
    assert "$ref" not in json.dumps(request)
    assert request["properties"]["instances"]["maxItems"] == 3
    assert request["properties"]["parameters"]["properties"]["alternatives"]["maximum"] == 5
    columns = bodies.instance_schema()["properties"]
    assert list(columns) == ["id", *GOOD]
    assert columns["number"]["anyOf"][1] == {"type": "null"}
    assert (columns["count"]["type"], columns["count"]["maximum"]) == ("integer", 2**53 - 1)
    assert (columns["job"]["enum"], columns["code"]["enum"]) == (["a", "b"], [1, 2])
    assert {"oneOf"} == set(bodies.instance_schema()["allOf"][0])


def test_made_up_cases_are_the_same_every_time_and_inside_what_was_seen(schema: fw.Schema, wide: pd.DataFrame) -> None:
    first, second = made_up(schema, wide), made_up(schema, wide)
    assert first.equals(second)
    assert first["number"].between(0.5, 2.25).all()
    assert (first["own"] + first["rent"] == 1).all()
    assert set(first["job"]) == {"a", "b"}


def test_the_columns_in_which_a_model_takes_missing_values_are_found(wide: pd.DataFrame) -> None:
    X = wide[["number", "count"]]

    def score(frame: pd.DataFrame) -> Any:
        if frame["count"].isna().any():
            raise ValueError("no")
        return frame["number"].fillna(0).to_numpy() + frame["count"].to_numpy()

    schema = fw.Schema.infer(X)
    assert takes_missing(fw.Decision(score), schema, X) == ("number",)
    assert takes_missing(fw.Decision(lambda frame: frame.fillna(0).sum(axis=1)), schema, X) == ("number", "count")
    assert takes_missing(fw.Decision(lambda frame: frame.sum(axis=1, skipna=False)), schema, X) == ()


def asked(*ids: Any) -> bytes:
    return json.dumps({"instances": [{"a": 1} if name is None else {"a": 1, "id": name} for name in ids]}).encode()


def test_cases_may_have_names() -> None:
    assert reader().read(asked(None, "APP-2")).ids == [None, "APP-2"]
    assert reader().instance_schema()["required"] == ["a"]


@pytest.mark.parametrize("name", [2, "x" * 201, ["APP-1"], True])
def test_names_are_short_texts(name: Any) -> None:
    with pytest.raises(RefusedError, match=r"does not fit") as error:
        reader().read(asked("APP-1", name))
    assert json.loads(error.value.body())["error"]["where"] == "instances[1].id"


def test_a_column_that_is_called_id_stays_a_column() -> None:
    bodies = BodyReader(fw.Schema.infer(pd.DataFrame({"id": [1, 2]})), **LIMITS)
    read = bodies.read(b'{"instances": [{"id": 7}]}')
    assert read.cells == [[7]]
    assert read.ids == [None]


def test_every_answer_says_whose_it_is() -> None:
    from fewest.apps.serving.answers import Answerer

    decision = fw.Decision(lambda rows: rows["a"].to_numpy() / 100)
    references = fw.references.supplied(decision, {"a": [20]}, X={"a": [0, 20, 100]})
    answerer = Answerer(fw.Explainer(decision, references))
    bodies = [asked("B", "A"), asked(None), asked("D", None)]
    replies = [json.loads(reply.body) for reply in answerer.answer(["explain"] * 3, bodies)]
    for name in ("predictions", "explanations"):
        assert [[one.get("id") for one in reply[name]] for reply in replies] == [["B", "A"], [None], ["D", None]]
    assert "id" not in replies[1]["explanations"][0]
