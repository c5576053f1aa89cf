"""The audit: who references stand for, what cannot be, and what nobody should have to find out by reading numbers."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.errors import UsageError
from fewest.references import supplied
from fewest.references.audit import audit, impossible
from fewest.references.file import Saved
from fewest.reporting import audit_html

X = pd.DataFrame({"age": np.arange(20, 70), "job": pd.Series(["clerk", "none"] * 25, dtype="str")})
Y = (X["age"] < 30).to_numpy(dtype=int)
DECISION = fw.Decision(lambda frame: 1 - frame["age"].to_numpy(dtype=float) / 60, positive=1)
REFS = fw.references.single(DECISION, X, Y)
HOSTILE = '<script>alert("x")</script>'


def test_a_row_per_reference_and_feature_with_the_range_of_its_people() -> None:
    table = REFS.audit().table
    assert table["feature"].tolist() == ["age", "job"]
    low, high = np.quantile(X.loc[Y == 0, "age"], (0.1, 0.9))
    assert table.loc[0, ["value", "low", "high"]].tolist() == [50, low, high]  # the mean is 49.5
    assert table["nearest"].isna().all()
    assert table["possible"].all()


def test_a_reference_says_how_many_it_stands_for_and_what_the_model_says() -> None:
    row = REFS.audit().references.iloc[0]
    assert (row["name"], row["people"], row["accepted"], row["signature"]) == ("mean", 40, True, "not signed")
    assert row["score"] == pytest.approx(REFS.score[0])
    assert np.isnan(row["density_quantile"])
    assert REFS.audit().flags() == []


def test_training_rows_give_the_nearest_real_case_and_are_not_kept() -> None:
    far = supplied(DECISION, {"age": [45, 67], "job": ["none", "clerk"]}, X=X)
    table = far.audit(X, Y).table
    nearest = table[table["feature"] == "age"]["nearest"].tolist()
    accepted = X[Y == 0]
    assert nearest[0] == 45
    assert accepted[(accepted["age"] == nearest[1])]["job"].tolist() == ["clerk"]
    assert table.loc[0, "low"] <= 45 <= table.loc[0, "high"]
    assert far.audit().table["nearest"].isna().all()
    assert far.audit(X, Y).references["people"].sum() == len(accepted)
    with pytest.raises(UsageError, match="both"):
        far.audit(X)


def test_a_flexible_twin_stands_for_the_same_people() -> None:
    found = REFS.flexible(0.1).audit(X, Y)
    assert found.references["people"].tolist() == [40, 40]
    assert found.references["flexible_of"].tolist() == ["", "mean"]
    assert "age (moved)" in audit_html(found)


def test_the_density_is_ranked_among_the_accepted_cases() -> None:
    density = fw.credibility.supplied(DECISION, X, Y, lambda rows: -abs(rows["age"] - 50.0))
    rows = supplied(DECISION, {"age": [50, 69], "job": ["none", "none"]}, X=X).audit(credibility=density).references
    assert rows["log_density"].tolist() == [0.0, -19.0]
    share = (abs(X.loc[Y == 0, "age"] - 50) >= 19).mean()
    assert rows["density_quantile"].tolist() == [1.0, share]


@pytest.mark.parametrize(
    ("feature", "value", "said"),
    [
        (fw.Feature("a", "integer", ("a",), minimum=0, maximum=9), 1.4, "not a whole number: use 1"),
        (fw.Feature("a", "integer", ("a",), minimum=0, maximum=9), 12, "outside what was seen, 0 to 9"),
        (fw.Feature("a", "number", ("a",), minimum=0, maximum=9), "many", "not a number"),
        (fw.Feature("a", "number", ("a",)), float("inf"), "not a finite number"),
        (fw.Feature("a", "category", ("a",), levels=("x", "y")), "z", "a level that was never seen"),
        (fw.Feature("a", "boolean", ("a",)), "maybe", "neither yes nor no"),
        (fw.Feature("a", "integer", ("a",), minimum=0, maximum=9), 3, ""),
        (fw.Feature("a", "number", ("a",)), None, ""),
        (fw.Feature("a", "category", ("a",), levels=("x", "y")), "x", ""),
        (fw.Feature("a", "boolean", ("a",)), True, ""),
    ],
)
def test_what_nobody_can_have_is_said(feature: fw.Feature, value: Any, said: str) -> None:
    assert impossible(feature, {"a": value}) == said


def test_one_hot_groups_have_one_level_and_columns_are_there() -> None:
    job = fw.Feature("job", "indicators", ("clerk", "none"))
    assert impossible(job, {"clerk": 1, "none": 0}) == ""
    assert "exactly one" in impossible(job, {"clerk": 1, "none": 1})
    assert impossible(job, {"clerk": 1}) == "there is no value for none"


def spoiled(**values: Any) -> Saved:
    saved = REFS.sign_off("Credit Risk").saved()
    return replace(saved, values=({**saved.values[0], **values},))


def test_what_is_odd_is_listed() -> None:
    found = audit(replace(spoiled(age=41.5), support=(4,), score=(0.7,)))
    assert found.flags() == [
        "mean: it stands for 4 people, fewer than 10",
        "mean: the model refuses it (0.7 >= 0.5)",
        "mean: its signature no longer holds: age changed",
        "mean: age: not a whole number: use 42",
    ]
    assert not found.references["signed"].any()


def test_a_possible_but_unusual_value_has_a_note_and_is_no_flag() -> None:
    found = supplied(DECISION, {"age": [69], "job": ["none"]}, X=X).audit(X, Y)
    assert found.table.loc[0, ["possible", "note"]].tolist() == [True, "outside the middle 80 % of its people"]
    assert found.flags() == []


def test_a_file_of_format_1_is_audited_with_what_it_has() -> None:
    found = audit(Saved(("r",), ({"age": 40, "job": "clerk"},), (-1,), (np.nan,)))
    assert found.references.loc[0, "accepted"] is None
    assert found.flags() == []
    assert "people not known; score not known" in audit_html(found)


class Page(HTMLParser):
    """Collects tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.outside += [value for name, value in attrs if name in ("src", "href") and value]


def test_the_page_stands_alone_and_is_fit_to_print() -> None:
    text = audit_html(REFS.sign_off("Credit Risk").audit(X, Y))
    page = Page(text)
    assert "script" not in page.tags
    assert page.outside == []
    assert "default-src 'none'" in text
    assert "@media print" in text
    assert "1 reference, 1 of them signed; no warnings." in text
    assert "nearest real case" in text
    assert "nearest real case" not in audit_html(REFS.audit())


def test_nothing_in_a_page_can_steer_the_browser() -> None:
    table = X.assign(job=pd.Series([HOSTILE, "none"] * 25, dtype="str")).rename(columns={"job": HOSTILE + "job"})
    hostile = supplied(DECISION, table.iloc[[40]], X=table, names=[HOSTILE + "name"]).sign_off(HOSTILE, HOSTILE)
    text = audit_html(hostile.audit(table, Y), title=HOSTILE)
    assert "script" not in Page(text).tags
    assert "<script" not in text


def test_a_signature_that_no_longer_holds_is_marked() -> None:
    text = audit_html(audit(spoiled(age=51)))
    assert "but that no longer holds: age changed" in text
    assert 'class="warn"' in text
