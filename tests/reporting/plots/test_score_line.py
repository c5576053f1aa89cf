"""The picture of one case says what the answer says, step by step, and the model agrees with every step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.errors import UsageError

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def out() -> fw.Explanations:
    decision = fw.Decision(lambda rows: (rows["debt"] + rows["rate"]).to_numpy() / 100, names={0: "yes", 1: "no"})
    references = fw.references.supplied(decision, {"debt": [20], "rate": [5], "age": [50]})
    cases = pd.DataFrame({"debt": [90, 10, 40], "rate": [40, 10, 70], "age": [30, 40, 50]}, index=["A", "B", "C"])
    return fw.Explainer(decision, references).explain(cases)


@pytest.mark.parametrize("label", ["A", "C"])
def test_the_steps_lead_from_the_score_of_the_case_to_that_of_the_answer(out: fw.Explanations, label: str) -> None:
    answer = out.loc[label]
    assert answer.steps is not None
    steps = answer.steps()
    assert {name for name, _, _ in steps} == {change.feature for change in answer.changes}
    assert steps[0][1] == answer.score
    assert steps[-1][2] == answer.score_after
    assert [after for _, _, after in steps[:-1]] == [before for _, before, _ in steps[1:]]
    row = out.frame.loc[[label]].copy()
    for name, _, after in steps:
        row[name] = next(change.after for change in answer.changes if change.feature == name)
        assert np.isclose(out.references.decision.score(row)[0], after)


def test_the_case_is_drawn_with_its_facts_and_the_cut_off(out: fw.Explanations) -> None:
    display = out[0].plot()
    labels = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert labels == display.table["fact"].tolist() == ["debt 90 → 20", "rate 40 → 5"]
    assert display.ax_.get_title() == "A: no, then yes"
    assert any(line.get_xdata()[0] == 0.5 for line in display.ax_.lines)
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts[0].startswith("before ")
    assert texts[1].startswith("after ")


def test_sev_plus_is_drawn_from_the_reference_up() -> None:
    decision = fw.Decision(lambda rows: (rows["debt"] + rows["rate"]).to_numpy() / 100)
    references = fw.references.supplied(decision, {"debt": [20], "rate": [5]})
    answer = fw.Explainer(decision, references, direction="plus").explain({"debt": [40], "rate": [35]})[0]
    assert answer.steps is not None
    assert answer.steps()[0][1] == 0.25
    assert answer.steps()[-1][2] == answer.score_after


def test_a_case_without_changes_is_not_drawn(out: fw.Explanations) -> None:
    with pytest.raises(UsageError, match="nothing changes in this case: accepted"):
        out[1].plot()
    with pytest.raises(UsageError, match="not at hand"):
        replace(out[0], steps=None).plot()  # as a run folder gives it
    assert next(iter(out)).plot().table.equals(out[0].plot().table)


def test_all_cases_are_drawn_at_a_glance(out: fw.Explanations) -> None:
    titles = [axes.get_title() for axes in out.plot().axes]
    assert titles == ["How many features must change", "Which features change"]
