"""Two runs side by side against a plain count of the same."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='pip install "fewest[explore]"')
pytest.importorskip("uvicorn", reason='pip install "fewest[explore]"')
pytest.importorskip("pyarrow", reason='pip install "fewest[runs]"')

import pandas as pd
from explorer_runs import Subject, people

from fewest.runs import Run, compare, explain_files


def plain(run: Run) -> pd.DataFrame:
    return run.table().set_index("row")


def test_the_decisions_that_changed_are_exactly_those(subject: Subject) -> None:
    first, second = Run.open(subject.run), Run.open(subject.other)
    ours, theirs = (plain(run)["status"] != "ALREADY_NEGATIVE" for run in (first, second))
    found = compare(first, second)
    assert {case.row for case in found.turned} == set(ours.index[ours != theirs])
    assert {case.row for case in found.turned if case.refused_now} == set(ours.index[theirs & ~ours])
    assert (found.refused, found.accepted) == (int((theirs & ~ours).sum()), int((ours & ~theirs).sum()))


def test_every_case_is_in_the_table_of_moves_once(subject: Subject) -> None:
    found = compare(Run.open(subject.run), Run.open(subject.other))
    assert sum(map(sum, found.moves)) == found.matched == 120
    sev = plain(Run.open(subject.run))["sev"]
    assert sum(found.moves[found.sizes.index("1")]) == int((sev == 1).sum())


def test_a_run_compared_with_itself_changes_nothing(subject: Subject) -> None:
    run = Run.open(subject.run)
    found = compare(run, run)
    assert found.turned == ()
    assert "have the same outcome" in found.sentence
    assert all(count == 0 for a, row in enumerate(found.moves) for b, count in enumerate(row) if a != b)


def test_runs_of_other_files_are_matched_by_what_is_in_the_cases(subject: Subject, tmp_path: Path) -> None:
    """The same people in another order, one of them twice: the twins are left out, all others are found."""
    cases = pd.read_csv(subject.run.parent / "cases.csv")
    turned = pd.concat([cases[::-1], cases[5:6]])
    turned.to_csv(tmp_path / "turned.csv", index=False)
    explain_files(subject.explainer, tmp_path / "turned.csv", tmp_path / "run", n_jobs=1)
    found = compare(Run.open(subject.run), Run.open(tmp_path / "run"))
    assert found.matched == 119
    assert found.turned == ()
    assert found.only == (1, 2)


def test_runs_without_a_case_in_common_say_so(subject: Subject, tmp_path: Path) -> None:
    people(20, 99)[0].to_csv(tmp_path / "cases.csv", index=False)
    explain_files(subject.explainer, tmp_path / "cases.csv", tmp_path / "run", n_jobs=1)
    found = compare(Run.open(subject.run), Run.open(tmp_path / "run"))
    assert found.matched == 0
    assert "no case in common" in found.sentence


def test_two_runs_of_the_same_title_are_told_apart_by_their_folders(ask: Any, subject: Subject, tmp_path: Path) -> None:
    for place in ("may/run", "june/run"):
        shutil.copytree(subject.run, tmp_path / place)
    page = ask(tmp_path / "may/run", other=tmp_path / "june/run").get("/compare").text
    assert "First run: <strong>may/run</strong> (Loans of the north)." in page
    assert "Second run: <strong>june/run</strong> (Loans of the north)." in page
    headings = re.findall(r'<th scope="col">([^<]*)</th>', page.partition('aria-label="Figures"')[2])[:3]
    assert headings == ["figure", "may/run", "june/run"]


def test_a_changed_decision_is_noticed(subject: Subject, tmp_path: Path) -> None:
    """Negative control: one case written over, and it is the one that is listed."""
    from explorer_runs import doctor

    copy = Path(shutil.copytree(subject.run, tmp_path / "run"))
    row = int(plain(Run.open(copy)).query("status == 'EXPLAINED'").index[0])
    doctor(copy, {row: {"status": "ALREADY_NEGATIVE", "sev": None}})
    found = compare(Run.open(subject.run), Run.open(copy))
    assert [(case.row, case.refused_now) for case in found.turned] == [(row, False)]
