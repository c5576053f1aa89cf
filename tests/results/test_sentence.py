"""The sentence: what it says, that no number in it can be taken for another, and that every value in it can be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import parsed_back
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fewest as fw
from fewest.results.explanation import Change, Explanation, Proof, Status, proof_line, show
from fewest.results.explanations import Explanations
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import Cells
from fewest.tables.wording import cell, listed, show_name, show_score

CHANGES = (
    Change("duration_months", 48, 18),
    Change("checking_status", "0-200 DM", "no account"),
    Change("rate", 0.1, 2.5),
)


def answer(*changes: Change, **options: Any) -> Explanation:
    known: dict[str, Any] = {
        "row": 0, "label": 95, "status": Status.EXPLAINED, "sev": len(changes), "cost": float(len(changes)),
        "changes": changes, "score": 0.942, "score_after": 0.484, "margin": 0.016, "reference": "r3",
        "proof": Proof("additive", 20, float(len(changes)), True, True), "alternatives": (), "l_inf": 1.0,
        "outcome": "good", "positive": "bad", "shows_percent": True, "threshold": 0.5,
    }  # fmt: skip
    return Explanation(**{**known, **options})


def schema_of(*names: str) -> Schema:
    return Schema(tuple(Feature(name, "category", (name,)) for name in names))


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "If duration_months had been 18 instead of 48, "),
        (2, "If duration_months had been 18 instead of 48 and checking_status had been 'no account' instead of "
            "'0-200 DM', "),
        (3, "If duration_months had been 18 instead of 48, checking_status had been 'no account' instead of "
            "'0-200 DM' and rate had been 2.5 instead of 0.1, "),
    ],
)  # fmt: skip
def test_changes_are_joined_by_commas_and_a_last_and(count: int, said: str) -> None:
    tail = "the model would have predicted good (bad: 48 % instead of 94 %)."
    assert str(answer(*CHANGES[:count])) == said + tail


def test_a_score_stands_beside_the_class_it_is_the_score_of() -> None:
    """48 % beside "good" alone would be read as the chance of good, and it is that of bad."""
    said = str(answer(CHANGES[0]))
    assert "good (48 %)" not in said
    assert "(bad: 48 % instead of 94 %)" in said


@pytest.mark.parametrize(("score", "said"), [(0.4999, "49.99 %"), (0.5, "50 %"), (0.500001, "50 %"), (0.1, "10 %")])
def test_a_score_is_never_rounded_over_the_threshold(score: float, said: str) -> None:
    assert show_score(score, 0.5, percent=True) == said


def test_every_status_has_its_sentence() -> None:
    told = {
        Status.ALREADY_NEGATIVE: "The model did not predict bad here (94 %): there is nothing to explain.",
        Status.UNREACHABLE: "Not possible within the limit: at least 1 feature would have to change.",
        Status.BUDGET: "If duration_months had been 18 instead of 48, the model would have predicted good (bad: 48 % "
        "instead of 94 %). A smaller set may exist: the search was stopped.",
        Status.NOT_CREDIBLE: "No allowed change that leads to good is credible within the limit: the smallest one "
        "(duration_months had been 18 instead of 48) leads where accepted cases hardly ever are.",
    }
    for status, said in told.items():
        assert str(answer(CHANGES[0], status=status)) == said


def test_the_proof_line_says_what_was_checked_and_what_is_proved() -> None:
    said = proof_line(answer(CHANGES[0], alternatives=((CHANGES[0],), (CHANGES[1],)), all_listed=True, support=312))
    assert said == (
        "Re-checked on the model (bad: 94 %, then 48 %). Proved: no smaller set does it (additive, 20 nodes). "
        '2 sets of this size. Compared with "r3", typical of 312.'
    )
    assert "2 sets of this size listed." in proof_line(answer(alternatives=((CHANGES[0],), (CHANGES[1],))))


def test_labels_and_units_stand_in_the_sentence_and_the_card() -> None:
    decision = fw.Decision(lambda rows: 1.0 - rows["Seniority"].to_numpy() / 10, positive="bad")
    X = pd.DataFrame({"Seniority": [2, 9], "home": ["rent", "own"]})
    schema = Schema.infer(X).with_("Seniority", label="Years in current job", unit="years").with_("home", unit="years")
    for direction, said in (
        ("minus", "If Years in current job had been 9 years instead of 2 years, the model would"),
        ("plus", "Years in current job 2 years alone, put onto the typical case, would have led to bad"),
    ):
        refs = fw.references.supplied(decision, X.iloc[[1]], schema=schema)
        one = fw.Explainer(decision, refs, n_jobs=1, direction=direction).explain(X)[0]  # type: ignore[arg-type]
        assert str(one).startswith(said)
        assert "Years in current job (years)" in one._repr_html_()
        assert [change.feature for change in one.changes] == ["Seniority"]


@given(st.one_of(
    st.text(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.none(),
    st.floats(width=32, allow_nan=False).map(np.float32),
    st.datetimes().filter(lambda at: 1700 < at.year < 2200).map(pd.Timestamp),
))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_every_value_is_read_back_as_it_was(value: Any) -> None:
    said = str(answer(Change("a", value, value)))
    ((_, after, before),) = parsed_back.of_sentence(said, schema_of("a"))
    again = np.float32(after) if isinstance(value, np.float32) else after
    assert again == value
    assert type(after) is type(before)
    assert isinstance(value, str) == isinstance(after, str)
    assert "\n" not in said


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True), st.text())
@settings(max_examples=300, deadline=None)
def test_hostile_names_and_levels_are_told_apart(names: list[str], level: str) -> None:
    changes = tuple(Change(name, f"{level}' instead of 'x", f"{names[0]} had been 3 instead of 4") for name in names)
    read = parsed_back.of_sentence(str(answer(*changes)), schema_of(*names))
    assert read == [(change.feature, change.after, change.before) for change in changes]


def test_quotes_that_are_not_escaped_are_caught() -> None:
    """Negative control of the two above: with plain quotes, a level can say what it likes."""
    said = str(answer(Change("a", "x", "y"))).replace("'y'", "'y' instead of 'x' and a had been 'z'")
    assert parsed_back.of_sentence(said, schema_of("a")) != [("a", "y", "x")]
    with pytest.raises(ValueError, match="is not at"):
        parsed_back.of_sentence("If a had been 'it's' instead of 'x', the model would", schema_of("a"))


@pytest.mark.parametrize("level", ["48", "yes", "no", "missing", "'a'", "", " a", "(a)", "inf", "nan", "a\nb"])
def test_a_level_that_looks_like_something_else_is_quoted_in_tables(level: str) -> None:
    assert cell(level) == repr(level) == show(level)
    assert cell("no account") == "no account"


def test_names_are_quoted_only_where_they_could_be_mistaken() -> None:
    assert show_name("petal length (cm)") == "petal length (cm)"
    assert show_name("x had been y") == "'x had been y'"
    assert listed([]) == ""


def wide() -> tuple[fw.Decision, pd.DataFrame]:
    X = pd.DataFrame(
        {
            "small": np.array([0.1, 0.3, 0.2, 0.7], dtype=np.float32),
            "whole": [2**53 + 1, 5, 6, 7],
            "part": [0.5, 0.25, 1.5, 2.5],
            "none": [np.nan, 1.5, 2.5, np.nan],
            "day": [pd.Timestamp(day) for day in ("2026-01-01", "2026-01-02 03:04:05", "2026-01-03", "2026-01-04")],
            "own": [True, False, True, False],
            "home_a": [1, 0, 1, 0],
            "home_b": [0, 1, 0, 1],
        }
    )
    return fw.Decision(lambda rows: 1.0 - rows["own"].to_numpy(dtype=float), positive="bad"), X


def explained() -> Explanations:
    decision, X = wide()
    schema = Schema.infer(X, {"home": ["home_a", "home_b"]})
    refs = fw.references.supplied(decision, X.iloc[[0]], schema=schema)
    return fw.Explainer(decision, refs, structure="opaque").explain(X)


def test_facts_hold_every_feature_in_its_own_type() -> None:
    out = explained()
    facts = out[1].facts
    assert [fact.feature for fact in facts] == list(out.schema.names)
    assert [fact.case for fact in facts] == [
        0.3, 5, 0.25, 1.5, pd.Timestamp("2026-01-02 03:04:05"), False, "home_b",
    ]  # fmt: skip
    assert [fact.reference for fact in facts][:4] == [0.1, 2**53 + 1, 0.5, None]
    assert [(fact.feature, fact.after) for fact in facts if fact.changed] == [("own", True)]
    assert [fact.after for fact in facts if not fact.changed] == [fact.case for fact in facts if not fact.changed]


def test_a_pandas_row_would_have_lost_digits() -> None:
    """Negative control of the test above."""
    _, X = wide()
    schema = Schema.infer(X[["whole", "part"]])
    assert int(X[["whole", "part"]].iloc[0]["whole"]) != 2**53 + 1
    assert Cells.of(X).value(0, schema.features[0]) == 2**53 + 1


def test_facts_of_a_sev_plus_start_from_the_reference() -> None:
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    refs = fw.references.supplied(decision, {"debt": [20], "age": [50]})
    out = fw.Explainer(decision, refs, direction="plus").explain({"debt": [90], "age": [30]})
    assert [(fact.feature, fact.after, fact.changed) for fact in out[0].facts] == [
        ("debt", 90, True),
        ("age", 50, False),
    ]


def test_a_case_compared_with_none_of_several_references_has_no_facts() -> None:
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    refs = fw.references.supplied(decision, {"debt": [20, 30]})
    out = fw.Explainer(decision, refs).explain({"debt": [10, 90]})
    assert out[0].facts == ()
    assert len(out[1].facts) == 1


def test_answers_in_json_are_the_same_as_one_by_one() -> None:
    out = explained()
    assert [record["sentence"] for record in out.to_dict()["answers"]] == [str(one) for one in out]
    assert replace(out[1], facts=()) == next(out.brief([1]))
