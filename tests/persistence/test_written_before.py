"""Files that an earlier version wrote open, and give the answers they gave then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fewest as fw
from fewest.reporting import reasons
from fewest.runs import Run, verify

pytest.importorskip("skops")
pytest.importorskip("pyarrow")

HERE = Path(__file__).parent / "written_before"
ANSWERS = json.loads((HERE / "answers.json").read_text())["answers"]
CASES = pd.read_csv(HERE / "cases.csv")


def as_listed(answers: Any) -> list[list[Any]]:
    return [
        [answer.status.value, answer.sev, [[c.feature, c.before, c.after] for c in answer.changes]]
        for answer in answers
    ]


@pytest.mark.parametrize("name", ANSWERS)
def test_an_explainer_opens_and_answers_as_it_did(name: str) -> None:
    assert as_listed(fw.load(HERE / f"{name}.fewest").explain(CASES)) == ANSWERS[name]


@pytest.mark.parametrize("name", ANSWERS)
def test_references_open_with_the_values_they_had(name: str) -> None:
    decision = fw.load(HERE / f"{name}.fewest").decision
    refs = fw.references.load(HERE / f"{name}.references.json", decision)
    assert refs.frame.equals(fw.load(HERE / f"{name}.fewest").references.frame)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_run_folder_opens_with_the_answers_it_holds_and_is_verified(name: str, tmp_path: Path) -> None:
    shutil.copytree(HERE / f"{name}.run", tmp_path / "run")
    run = Run.open(tmp_path / "run")
    assert as_listed(run.explanation(row) for row in range(run.rows)) == ANSWERS[name]
    assert verify(run.path, HERE / "cases.csv", fw.load(HERE / f"{name}.fewest").decision).ok


def test_a_run_that_did_not_keep_whether_all_sets_are_listed_claims_nothing() -> None:
    run = Run.open(HERE / "linear.run")
    answer = next(run.explanation(row) for row in range(run.rows) if run.explanation(row).changes)
    assert answer.alternatives
    assert not answer.all_listed
    with pytest.raises(fw.FewestError, match="perhaps not all"):
        reasons(answer)
