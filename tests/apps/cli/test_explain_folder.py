"""`fewest explain --out FOLDER`: exit codes, progress, resuming, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fewest.apps.cli import main
from fewest.runs import Run

pytest.importorskip("pyarrow")
RUN = "import sys; from fewest.apps.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def references(files: Any) -> Path:
    """A references file that knows its schema."""
    path: Path = files.folder / "folder-references.json"
    call = ["references", "build", str(files.train), "--model", str(files.skops), "--target", "risk"]
    assert main([*call, "--positive", "bad", "--out", str(path)]) == 0
    return path


@pytest.fixture
def call(files: Any, references: Path, tmp_path: Path) -> list[str]:
    """The shortest call that makes a run folder."""
    model = ["--model", str(files.skops), "--references", str(references)]
    return ["explain", str(files.data), *model, "--out", str(tmp_path / "run"), "--jobs", "1"]


def test_a_run_folder_is_made_without_the_training_table(
    call: list[str], files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(call) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("cases                        120\n")
    assert "mean SEV" in printed.out
    assert "explaining  120  explained " in printed.err
    run = Run.open(tmp_path / "run")
    assert run.counts["EXPLAINED"] == (files.model.predict(pd.read_csv(files.data)) == "bad").sum()
    assert run.manifest["settings"]["positive"] == "bad"


def test_protected_columns_are_marked_and_cases_can_be_left_out(call: list[str], tmp_path: Path) -> None:
    assert main([*call, "--protected", "age", "--no-cases"]) == 0
    run = Run.open(tmp_path / "run")
    assert [feature.name for feature in run.schema.features if feature.protected] == ["age"]
    assert not run.keeps_cases
    assert main([*call, "--protected", "aged"]) == 2


def test_the_folder_holds_the_answers_of_the_command_without_one(
    call: list[str], references: Path, files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(call) == 0
    capsys.readouterr()
    assert main([*files.arguments, "--positive", "bad", "--references", str(references), "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    table = Run.open(tmp_path / "run").table()
    for answer, row in zip(answers, table.to_dict("records"), strict=True):
        assert [change["feature"] for change in answer["changes"]] == row["features"]
        assert [change["to"] for change in answer["changes"]] == row["to"]
        assert answer["score"] == row["score"]


def test_json_gives_the_figures_and_a_second_call_changes_nothing(
    call: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*call, "--json", "--part-rows", "50"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["rows"], first["parts"]) == (120, 3)
    before = {file: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    assert main([*call, "--json", "--part-rows", "50", "--chunk-rows", "7"]) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert {file: file.read_bytes() for file in (tmp_path / "run").iterdir()} == before


def test_several_files_and_folders_go_into_one_run(
    call: list[str], files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = tmp_path / "many"
    many.mkdir()
    X = pd.read_csv(files.data)
    X.iloc[:50].to_parquet(many / "1.parquet")
    X.iloc[50:].to_csv(many / "2.csv", index=False)
    assert main([call[0], str(many), str(files.data), *call[2:]]) == 0
    assert Run.open(tmp_path / "run").rows == 240
    assert main(["explain", str(many), *files.arguments[2:]]) == 2
    assert "several tables" in capsys.readouterr().err
    assert main([*files.arguments, "--jobs", "2"]) == 2
    assert "--out FOLDER" in capsys.readouterr().err


def test_training_table_and_csv_references_work_too(files: Any, tmp_path: Path) -> None:
    pd.DataFrame([{"debt": 5, "age": 60, "code": "B10"}]).to_csv(tmp_path / "refs.csv", index=False)
    call = [*files.arguments, "--positive", "bad", "--out", str(tmp_path / "run")]
    assert main([*call, "--references", str(tmp_path / "refs.csv")]) == 0
    assert main([*call[:-1], str(tmp_path / "run2"), "--centre", "median"]) == 0
    assert {Run.open(tmp_path / name).rows for name in ("run", "run2")} == {120}


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"--references": None}, 2, "--train is missing"),
        ({"--references": "absent.json"}, 3, "no file absent.json"),
        ({"--references": "refs.csv"}, 2, "does not say what the features are"),
        ({"--model": "absent.skops"}, 4, "there is no model file"),
        ({"--threshold": "nan"}, 2, "finite"),
        ({"--jobs": "0"}, 2, "--jobs"),
        ({"--time-limit": "0"}, 7, "time limit"),
        ({"--positive": "ugly"}, 2, "its classes are bad, good"),
    ],
)
def test_wrong_options_end_with_their_code(
    call: list[str], change: dict[str, str | None], code: int, said: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "refs.csv").write_text("debt,age,code\n1,60,B10\n")
    for option, value in change.items():
        value = str(tmp_path / value) if value == "refs.csv" else value
        if option in call:
            at = call.index(option)
            call[at : at + 2] = [] if value is None else [option, value]
        elif value is not None:
            call += [option, value]
    assert main(call) == code
    assert said in capsys.readouterr().err


def test_bad_rows_in_the_middle_end_with_3_and_keep_what_was_done(
    call: list[str], files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(files.data.read_text() + "1,2,Z99\n")
    call = [call[0], str(bad), *call[2:], "--part-rows", "50"]
    assert main(call) == 3
    said = capsys.readouterr().err
    assert "rows 100 to 120 of the data" in said
    assert "Z99" in said
    assert len(list((tmp_path / "run").glob("part-*.cases.parquet"))) == 2
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_strict_ends_with_5_after_the_folder_is_complete(
    call: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*call, "--immutable", "debt", "--immutable", "age", "--strict"]) == 5
    assert "have no answer with this reference" in capsys.readouterr().err
    assert Run.open(tmp_path / "run").counts["UNREACHABLE"] > 0


def test_a_demo_has_no_run_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--demo", "german", "--out", str(tmp_path / "run")]) == 2
    assert "--demo" in capsys.readouterr().err


@pytest.mark.slow
def test_sigterm_and_sigkill_are_survived(call: list[str], files: Any, tmp_path: Path) -> None:
    """Real processes: asked to stop, killed, and left alone in the end; as good as never disturbed."""
    big = tmp_path / "big.csv"
    pd.concat([pd.read_csv(files.data)] * 100).to_csv(big, index=False)
    call = [call[0], str(big), *call[2:-2], "--part-rows", "400", "--jobs", "2"]
    out = tmp_path / "run"

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", RUN, *call], stderr=subprocess.PIPE, text=True)

    for number in (signal.SIGTERM, signal.SIGKILL):
        process = start()
        before = len(list(out.glob("part-*.parquet"))) if out.exists() else 0
        while process.poll() is None and (not out.exists() or len(list(out.glob("part-*.parquet"))) <= before):
            time.sleep(0.01)
        os.kill(process.pid, number)
        _, said = process.communicate()
        if number == signal.SIGTERM:
            assert process.returncode == 130, said
            assert "interrupted" in said
            assert not list(out.glob(".*"))
        else:
            assert process.returncode == -signal.SIGKILL
        assert not (out / "manifest.json").exists()
    process = start()
    _, said = process.communicate()
    assert process.returncode == 0, said
    whole = tmp_path / "whole"
    call[call.index("--out") + 1] = str(whole)
    assert main([*call[:-1], "1"]) == 0
    assert {file.name: file.read_bytes() for file in out.iterdir()} == {
        file.name: file.read_bytes() for file in whole.iterdir()
    }


@pytest.mark.parametrize("name", ["v1.2", "2026.Q1", "credit.final", "made.json"])
def test_a_dot_in_the_name_of_a_run_folder_does_not_make_it_a_file(name: str, call: list[str], tmp_path: Path) -> None:
    if name.endswith(".json"):
        (tmp_path / name).mkdir()  # what is there says more than its name
    call[call.index("--out") + 1] = str(tmp_path / name)
    assert main(call) == 0
    assert Run.open(tmp_path / name).rows == 120


@pytest.mark.parametrize(("name", "said"), [("out.xlsx", ".json, .csv or .html"), ("v1.2", "the kind of file")])
def test_a_name_that_is_that_of_a_file_is_not_made_a_folder(
    name: str, said: str, files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "v1.2":
        (tmp_path / name).write_text("a file of somebody")
    assert main([*files.arguments, "--positive", "bad", "--out", str(tmp_path / name)]) == 2
    assert said in capsys.readouterr().err
