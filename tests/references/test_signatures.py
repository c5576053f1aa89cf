"""Signatures hold for the values that were signed, and for no others; files of every format stay readable."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.errors import DataError, UsageError
from fewest.references import References, load, supplied
from fewest.references.file import Saved, read_saved
from fewest.references.signatures import fingerprint

X = pd.DataFrame(
    {
        "age": [20, 30, 40, 60],
        "income": [10.0, 20.5, 30.0, 22.0],
        "job": pd.Series(["clerk", "none", "clerk", "none"], dtype="str"),
        "owner": [True, False, True, False],
    }
)
DECISION = fw.Decision(lambda frame: (60 - frame["age"].to_numpy(dtype=float)) / 100, positive=1)
OLD = Path(__file__).parent / "data" / "references-format-1.json"


def noon() -> datetime:
    return datetime(2026, 11, 12, 13, 0, tzinfo=timezone(timedelta(hours=1)))


def refs() -> References:
    return supplied(DECISION, X.iloc[2:], X=X, names=["p", "q"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "refs.json"
    refs().sign_off("Credit Risk", "looked at on paper", clock=noon).save(file)
    return file


def edit(path: Path, change: Any) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_a_signature_says_who_when_and_what() -> None:
    signed = refs().sign_off("Credit Risk", "fine", which="q", clock=noon)
    assert signed.signatures[0] is None
    signature = signed.signatures[1]
    assert signature is not None
    assert (signature.by, signature.at, signature.note) == ("Credit Risk", "2026-11-12T12:00:00Z", "fine")
    assert signature.values == {"age": 60, "income": 22, "job": "none", "owner": False}
    assert [signed.is_signed(k) for k in (0, 1, "p", "q")] == [False, True, False, True]
    assert not refs().is_signed(0)


def test_the_clock_is_utc_and_now() -> None:
    signature = refs().sign_off("me").signatures[0]
    assert signature is not None
    at = datetime.strptime(signature.at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - at).total_seconds()) < 60


def test_a_later_signature_replaces_the_earlier_and_leaves_the_others() -> None:
    signed = refs().sign_off("A").sign_off("B", which=["p"])
    assert [signature.by for signature in signed.signatures if signature] == ["B", "A"]


def test_signatures_come_back_from_a_file(path: Path) -> None:
    again = load(path, DECISION)
    assert again.signatures == refs().sign_off("Credit Risk", "looked at on paper", clock=noon).signatures
    assert again.is_signed("p")
    assert again.frame.equals(refs().frame)
    assert again.schema.features == refs().schema.features
    assert load(path, DECISION, X=X).is_signed("p")
    assert supplied(DECISION, path, X=X).is_signed("q")


@pytest.mark.parametrize(("column", "value"), [("age", 41), ("income", 30.1), ("job", "none"), ("owner", False)])
def test_a_changed_value_voids_the_signature_and_is_named(path: Path, column: str, value: Any) -> None:
    edit(path, lambda content: content["references"][0]["values"].update({column: value}))
    with pytest.warns(fw.FewestWarning, match=f'reference "p" no longer holds: {column} changed'):
        again = load(path, DECISION)
    assert not again.is_signed("p")
    assert again.signatures[0] is None
    assert again.is_signed("q")
    assert read_saved(path).broken(0) == (column,)
    assert np.isnan(read_saved(path).score[0])  # the score beside the changed value was another value's


def test_a_value_that_typing_would_undo_voids_it_too(path: Path) -> None:
    """40.4 years would be shown as 40, what was signed; somebody has written in the file all the same."""
    edit(path, lambda content: content["references"][0]["values"].update(age=40.4))
    with pytest.warns(fw.FewestWarning, match="age changed"):
        assert not load(path, DECISION).is_signed("p")


def test_a_changed_name_feature_or_fingerprint_voids_it(path: Path) -> None:
    whole = path.read_text()
    for change in (
        lambda content: content["references"][0].update(name="pp"),
        lambda content: content["schema"]["features"][0].update(unit="months"),
        lambda content: content["references"][0]["signature"].update(fingerprint="0" * 64),
    ):
        path.write_text(whole)
        edit(path, change)
        with pytest.warns(fw.FewestWarning, match="its name, or what its features are"):
            load(path, DECISION)


def test_writing_35_as_35_point_0_changes_nothing(path: Path) -> None:
    edit(path, lambda content: content["references"][0]["values"].update(age=40.0))
    assert load(path, DECISION).is_signed("p")


def test_a_value_changed_in_memory_voids_it_too() -> None:
    signed = refs().sign_off("A")
    other = replace(signed, frame=signed.frame.assign(age=[41, 60]))
    assert [other.is_signed(k) for k in (0, 1)] == [False, True]


def fingerprints_tell_apart(mark: Any) -> bool:
    schema, values = fw.Schema.infer(X), {"age": 1, "income": 2.0, "job": "a", "owner": True}
    marks = {mark("r", values, schema), mark("r", {**values, "income": 2.5}, schema), mark("s", values, schema)}
    return len(marks) == 3


def test_a_fingerprint_that_rounds_or_forgets_the_name_is_caught() -> None:
    assert fingerprints_tell_apart(fingerprint)
    assert not fingerprints_tell_apart(lambda name, values, schema: fingerprint("r", values, schema))
    assert not fingerprints_tell_apart(
        lambda name, values, schema: fingerprint(name, {**values, "income": int(values["income"])}, schema)
    )


@pytest.mark.parametrize(("by", "which", "said"), [("", None, "nobody"), ("  ", None, "nobody"), ("A", "z", '"z"')])
def test_nobody_and_nothing_cannot_be_signed(by: str, which: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        refs().sign_off(by, which=which)


def test_flexible_twins_are_saved_with_what_they_are_twins_of_and_are_signed_for_themselves(tmp_path: Path) -> None:
    table, y = pd.concat([X] * 5, ignore_index=True), np.zeros(20)
    decision = fw.Decision(lambda frame: frame["age"].to_numpy(dtype=float) / 200, positive=1)
    flexible = fw.references.single(decision, table, y).sign_off("A").flexible(0.2)
    assert [flexible.is_signed(k) for k in (0, 1)] == [True, False]
    flexible.save(tmp_path / "refs.json")
    edit(tmp_path / "refs.json", lambda content: content["references"].reverse())
    again = load(tmp_path / "refs.json", decision)
    assert (again.names, again.flexible_of) == (("mean", "mean (flexible)"), (-1, 0))
    assert again.frame.equals(flexible.frame)
    assert again.flexible(0.3).frame.equals(flexible.flexible(0.3).frame)  # the quantiles are in the file


def test_files_of_format_1_stay_readable() -> None:
    old = load(OLD, DECISION, X=X, on_positive="allow")
    assert old.names == ("young", "old")
    assert old.support.tolist() == [31, -1]
    assert old.assignment == "sparsest"
    assert old.frame.to_dict("records")[0] == {"age": 24, "income": 18.5, "job": "clerk", "owner": False}
    assert old.signatures in ((), (None, None))
    assert not old.is_signed(0)
    assert len(load(OLD, DECISION, on_positive="allow")) == 2
    with pytest.raises(UsageError, match="format 1"):
        read_saved(OLD).sign("A")


def test_a_file_of_format_1_can_be_saved_and_signed_as_format_2(tmp_path: Path) -> None:
    load(OLD, DECISION, X=X, on_positive="allow").save(tmp_path / "new.json")
    read_saved(tmp_path / "new.json").sign("A").write(tmp_path / "new.json")
    new = load(tmp_path / "new.json", DECISION, on_positive="allow")
    assert new.is_signed("old")
    assert new.provenance["made"]["kind"] == "supplied"
    assert json.loads((tmp_path / "new.json").read_text())["format"] == 2


def test_no_training_row_is_in_a_file(tmp_path: Path) -> None:
    table = pd.DataFrame({"code": np.arange(1000, 1100), "age": np.arange(100) % 50 + 20})
    decision = fw.Decision(lambda frame: frame["age"].to_numpy(dtype=float) / 200, positive=1)
    fw.references.single(decision, table, np.zeros(100)).save(tmp_path / "refs.json")
    content = json.loads((tmp_path / "refs.json").read_text())
    assert set(content) == {"format", "assignment", "provenance", "references", "decision", "schema", "quantiles"}
    assert set(content["references"][0]) == {"name", "support", "score", "scored", "values", "ranges"}
    few = fw.references.single(decision, table.iloc[:9], np.zeros(9))
    assert few.spread.ranges == ({},)  # the range of nine people is all but a list of them


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(format=3),
        lambda content: content.pop("references"),
        lambda content: content["schema"].pop("features"),
        lambda content: content["schema"]["features"][0].pop("columns"),
        lambda content: content["schema"]["dtypes"].update(age="no such type"),
        lambda content: content["references"][0].pop("values"),
        lambda content: content["references"][0].update(signature={"by": "A"}),
        lambda content: content["references"][0].update(twin_of="nobody"),
        lambda content: content.update(quantiles={"age": ["a"]}),
        lambda content: content["references"][0]["values"].pop("age"),
        lambda content: content["references"][0]["values"].update(job="astronaut"),
        lambda content: content["references"][0]["values"].update(age="old"),
    ],
)
def test_damaged_files_are_refused(path: Path, change: Any) -> None:
    edit(path, change)
    with pytest.raises(DataError):
        load(path, DECISION)


def test_categories_dates_and_nullable_numbers_survive_a_file(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "grade": pd.Categorical(["b", "a", "b"], categories=["b", "a"], ordered=True),
            "since": pd.to_datetime(["2020-01-01", "2021-06-01", "2022-01-01"]),
            "count": pd.array([1, 2, None], dtype="Int64"),
        }
    )
    decision = fw.Decision(lambda frame: np.zeros(len(frame)), positive=1)
    made = supplied(decision, table, X=table).sign_off("A")
    made.save(tmp_path / "refs.json")
    again = load(tmp_path / "refs.json", decision)
    pd.testing.assert_frame_equal(again.frame, made.frame)
    assert all(again.is_signed(k) for k in range(3))


def test_a_saved_object_without_signatures_has_none_broken() -> None:
    assert Saved(("r",), ({"a": 1},), (-1,), (0.1,)).broken(0) == ()
