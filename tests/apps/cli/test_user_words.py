"""Outcomes, features and cases are called what the user calls them."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fewest as fw
from fewest.apps.cli import main

FEATURES = "name,label,unit,protected\ndebt,Money owed,EUR,\nage,,years,yes\n"


def error(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


@pytest.fixture
def data(files: Any, tmp_path: Path) -> Path:
    cases = pd.read_csv(files.data)
    cases.insert(0, "application", [f"{row:05d}" for row in range(len(cases))])
    cases.to_csv(tmp_path / "cases.csv", index=False)
    (tmp_path / "features.csv").write_text(FEATURES)
    return tmp_path


def call(files: Any, data: Path, *more: str) -> int:
    rest = files.arguments[2:]
    return main(["explain", str(data / "cases.csv"), *rest, "--positive", "bad", *more])


def test_the_words_of_the_user_are_in_the_answers(files: Any, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--names", "bad=refused", "--names", "good=approved", "--schema", str(data / "features.csv")]
    assert call(files, data, *words, "--id", "application", "--json") == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert answers[3]["label"] == "00003"
    said = next(one["sentence"] for one in answers if one["status"] == "EXPLAINED" and "Money" in one["sentence"])
    assert "Money owed had been " in said
    assert " EUR instead of " in said
    assert "would have predicted approved (refused: " in said
    out = data / "out.csv"
    assert call(files, data, "--id", "application", "--out", str(out)) == 0
    assert pd.read_csv(out, dtype=str)["case"].tolist()[:2] == ["00000", "00001"]


def test_an_explainer_from_a_file_takes_the_words_too(
    files: Any, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = pd.read_csv(files.train)
    decision = fw.Decision(files.model, positive="bad")
    explainer = fw.Explainer(decision, fw.references.single(decision, X.drop(columns="risk"), X["risk"]))
    explainer.save(data / "credit.fewest")
    words = ["--names", "bad=refused", "--schema", str(data / "features.csv"), "--id", "application", "--json"]
    assert main(["explain", str(data / "cases.csv"), "--model", str(data / "credit.fewest"), *words]) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert any("Money owed" in one["sentence"] and "(refused: " in one["sentence"] for one in answers)


def test_a_run_folder_names_cases_and_leaves_bad_rows_out(
    files: Any, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = pd.read_csv(data / "cases.csv", dtype=str)
    cases.loc[1, "debt"] = "much"
    cases.to_csv(data / "cases.csv", index=False)
    assert call(files, data, "--id", "application", "--unseen", "skip", "--out", str(data / "run")) == 0
    said = capsys.readouterr()
    assert "1 rows are left out" in said.err
    assert pd.read_csv(data / "run" / "rejected.csv", dtype=str)["case"].tolist() == ["00001"]
    assert main(["letter", str(data / "run"), "--case", "00001"]) == 2
    assert 'no case is called "00001"' in error(capsys)
    assert main(["letter", str(data / "run"), "--case", "00002", "--row", "1"]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--names", "refused"], "is not CLASS=WORD"),
        (["--names", "ugly=refused"], '--names ugly: the model has no class "ugly"'),
        (["--id", "number"], 'the table has no column "number"'),
        (["--id", "code"], "stands there more than once"),
        (["--id", "number", "--out", "run"], 'no column "number" to name cases by'),
    ],
)
def test_words_that_name_nothing_are_refused(
    files: Any, data: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(files, data, *options) != 0
    assert message in error(capsys)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("feature,label\ndebt,Debt\n", 'no column "name"'),
        ("name,colour\ndebt,red\n", '"colour" is not known'),
        ("name,protected\ndebt,perhaps\n", "protected is 'perhaps'"),
        ("name,label\nincome,Income\n", "income"),
    ],
)
def test_a_file_of_words_that_does_not_fit_is_refused(
    files: Any, data: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "features.csv").write_text(text)
    assert call(files, data, "--schema", str(data / "features.csv")) != 0
    assert message in error(capsys)


def test_build_writes_a_file_that_explain_reads(files: Any, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = data / "credit.fewest"
    how = ["--model", str(files.skops), "--target", "risk", "--positive", "bad", "--names", "bad=refused"]
    assert main(["build", str(files.train), *how, "--immutable", "age", "--out", str(out)]) == 0
    assert "Written: " in capsys.readouterr().out
    assert list(fw.load(out).constraints) == [fw.Immutable("age")]
    assert main(["explain", str(data / "cases.csv"), "--model", str(out), "--json"]) == 0
    saved = json.loads(capsys.readouterr().out)["answers"]
    assert call(files, data, "--names", "bad=refused", "--immutable", "age", "--json") == 0
    assert saved == json.loads(capsys.readouterr().out)["answers"]
    assert main(["build", str(files.train), *how, "--out", str(data / "credit.json")]) == 2
    assert "an explainer is a .fewest file" in capsys.readouterr().err
