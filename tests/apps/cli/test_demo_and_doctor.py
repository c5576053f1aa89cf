import json
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
import pytest
from payloads import escapes
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from slow_cases import mostly_slow

from fewest.apps.cli import _doctor, main
from fewest.runs import Run


@pytest.mark.parametrize("model", mostly_slow(("logistic", "boosted", "mlp"), ("logistic",)))
def test_demo_leaves_a_run_folder_with_a_report_and_prints_figures_a_sentence_and_what_is_next(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "run"
    assert main(["demo", "--out", str(folder), "--model", model]) == 0
    printed = capsys.readouterr()
    assert {file.name for file in folder.iterdir()} >= {
        "report.html", "explanations.csv", "cases.csv", "manifest.json", "references.json"}  # fmt: skip
    assert "refused" in printed.out
    assert "the model would have predicted good (bad: " in printed.out
    assert f"Open {folder / 'report.html'}" in printed.out
    assert "1,000/1,000" in printed.err
    for command in (f" explore {folder}", f" report {folder}", f" verify {folder}"):
        assert command in printed.out
    run = Run.open(folder)
    assert run.counts["EXPLAINED"] > 100
    assert run.counts["BUDGET"] == 0
    assert len((folder / "explanations.csv").read_text().splitlines()) == 1001
    page = (folder / "report.html").read_text()
    assert escapes(page) == []
    assert "Who does the model refuse" in page
    sentence = next(line for line in printed.out.splitlines() if line.startswith("Case "))
    assert sentence.split(": ", 1)[1] == str(run.explanation(int(sentence.split(":")[0].removeprefix("Case "))))


def test_demo_goes_to_its_default_folder_and_can_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(["demo", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert (tmp_path / "demo-run" / "report.html").is_file()
    assert first["sentence"] == second["sentence"]
    assert first["summary"] == second["summary"]


def test_demo_can_be_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("skops")
    folder = tmp_path / "run"
    assert main(["demo", "--out", str(folder), "--json"]) == 0
    command = next(line for line in json.loads(capsys.readouterr().out)["next"] if "verify" in line)
    assert main(command.split()[1:]) == 8  # its title and the labels of its features are words of its own
    printed = capsys.readouterr().out
    assert "Nothing is wrong" in printed
    assert "(100 %" in printed


def test_demo_takes_the_place_of_another_demo_and_of_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.json").write_text('{"kind": "fewest run", "format": 2, "about": {"title": "mine"}}')
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "a run of something else" in capsys.readouterr().err
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "journal.jsonl").write_text('{"about": {"title": "mine"}}\n')
    assert main(["demo", "--out", str(tmp_path)]) == 2
    (tmp_path / "journal.jsonl").unlink()
    (tmp_path / "thesis.tex").write_text("x")
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_demo_refuses_a_file_as_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file")]) == 2


def test_doctor_is_content_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    for word in ("python", "numpy", "compiled kernels", "threads", "self-test", "all answers right"):
        assert word in printed


def test_doctor_tells_machines_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert {check["name"] for check in report["checks"]} >= {"fewest", "self-test", "data"}


def test_doctor_fails_when_an_answer_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_doctor, "_mistakes", lambda: 2)
    assert main(["doctor"]) == 1
    assert "FAIL  self-test" in capsys.readouterr().out


def test_the_self_test_counts_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: an explainer that adds a feature is caught."""
    from fewest.results.answers import Answers

    real = Answers.put

    def spoiled(self: Answers, rows: object, found: Answers) -> None:
        found.moved[found.moved.any(axis=1)] = True
        real(self, rows, found)  # type: ignore[arg-type]

    monkeypatch.setattr(Answers, "put", spoiled)
    assert _doctor._mistakes() > 0


def test_doctor_survives_a_broken_search_and_a_wrong_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(_doctor, "_mistakes", fail)
    monkeypatch.setenv("FEWEST_DATA", str(tmp_path))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert main(["doctor", "--json"]) == 1
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["self-test"]["detail"] == "RuntimeError: no kernel"
    assert checks["data"]["ok"] is False
    assert checks["compiled kernels"]["ok"] is False


def test_doctor_says_how_a_model_is_searched_and_what_would_let_it_be_read(
    files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = ["--train", str(files.train), "--target", "risk"]
    assert main(["--in-process", "doctor", str(files.skops), *train, "--positive", "bad"]) == 0
    printed = capsys.readouterr().out
    assert "additive" in printed
    assert "100% of" in printed
    assert "not read" not in printed
    curved = make_pipeline(files.model[0], QuadraticDiscriminantAnalysis(reg_param=0.1)).fit(*table_of(files))
    joblib.dump(curved, tmp_path / "curved.joblib")
    asked = ["--in-process", "doctor", str(tmp_path / "curved.joblib"), *train, "--allow-pickle", "--json"]
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["search"] == "levelwise"
    assert "QuadraticDiscriminantAnalysis" in found["why_not_read"]
    assert found["what_to_change"].startswith("a linear model")
    assert main(["--in-process", "doctor", str(files.skops)]) != 0
    assert "--train" in capsys.readouterr().err


def table_of(files: Any) -> tuple[pd.DataFrame, pd.Series]:
    table = pd.read_csv(files.train)
    return table.drop(columns="risk"), table["risk"]
