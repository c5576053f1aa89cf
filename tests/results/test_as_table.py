"""Explanations are looked up and written like a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.errors import DataError, UsageError


@pytest.fixture(scope="module")
def out() -> fw.Explanations:
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    references = fw.references.supplied(decision, {"debt": [20], "age": [50]})
    cases = pd.DataFrame({"debt": [90, 10, 60, 70], "age": [30, 40, 50, 60]}, index=["A", "B", "C", "C"])
    return fw.Explainer(decision, references).explain(cases, alternatives=2)


def labels(answers: fw.Explanations) -> list[str]:
    return [str(answer.label) for answer in answers]


def test_one_case_is_found_by_place_or_by_label(out: fw.Explanations) -> None:
    assert out[0].label == out[np.int64(0)].label == out.loc["A"].label == "A"
    assert out[-1].changes[0].before == 70
    assert labels(out.loc["C"]) == ["C", "C"]
    assert str(out.loc["A"]) == str(out[0])


def test_several_cases_are_explanations_again(out: fw.Explanations) -> None:
    assert labels(out[1:3]) == labels(out[[1, 2]]) == labels(out[np.array([False, True, True, False])]) == ["B", "C"]
    assert labels(out[out.to_frame()["sev"] == 1]) == labels(out.explained) == ["A", "C", "C"]
    assert labels(out.loc[["B", "A"]]) == ["B", "A"]
    assert labels(out[[-1, 0]]) == ["C", "A"]
    assert len(out[[]]) == len(out[:0]) == 0
    part = out[2:]
    assert [str(answer) for answer in part] == [str(out[2]), str(out[3])]
    assert part.counts()["EXPLAINED"] == 2
    assert [len(answer.alternatives) for answer in part] == [1, 1]
    assert part.turned()["debt"].tolist() == [20, 20]
    for answer in part:  # as good as one that was looked up
        assert answer.steps is not None
        assert answer.steps() == [("debt", answer.score, answer.score_after)]


def test_what_is_not_there_is_named(out: fw.Explanations) -> None:
    with pytest.raises(DataError, match="no case is called 'Z'"):
        out.loc["Z"]
    with pytest.raises(UsageError, match="looked up by 'A'"):
        out["A"]  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="a mask of 2 for 4 cases"):
        out[np.array([True, False])]
    for wrong in (4, [0, 4], [-5]):
        with pytest.raises(IndexError, match="of 4"):
            out[wrong]  # type: ignore[call-overload]


def test_sentences_stand_in_the_table_and_in_the_file(out: fw.Explanations, tmp_path: Path) -> None:
    assert out.sentences.tolist() == [str(answer) for answer in out]
    assert "sentence" not in out.to_frame()
    assert out.to_frame(sentences=True)["sentence"].tolist() == out.sentences.tolist()
    text = out.to_csv(tmp_path / "answers.csv")
    assert (tmp_path / "answers.csv").read_text() == text
    table = pd.read_csv(tmp_path / "answers.csv")
    assert table["case"].tolist() == ["A", "B", "C", "C"]
    assert table["sentence"].tolist() == out.sentences.tolist()


def test_parts_of_the_answers_keep_the_rows_of_the_table() -> None:
    random = np.random.default_rng(0)
    X = pd.DataFrame({"debt": random.integers(0, 100, 40)})
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    out = fw.Explainer(decision, fw.references.supplied(decision, {"debt": [20]})).explain(X)
    refused = np.flatnonzero(X["debt"] >= 50)
    assert [answer.row for answer in out.explained] == refused.tolist() != list(range(len(refused)))
    assert [answer.row for answer in out.explained[::3]] == refused[::3].tolist()
    assert [one["row"] for one in out.explained.to_dict()["answers"]] == refused.tolist()
    for place, answer in enumerate(out.explained):
        assert out.explained[place] == out[answer.row] == answer
        assert answer.changes[0].before == X["debt"][answer.row]
    fw.checks.check_turns(out.explained[5:])
