"""`fewest verify`: 0 for a folder as it was written, 6 and a list for any other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
import pytest
from sklearn.base import clone

from fewest.apps.cli import main

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def written(files: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verify") / "run"
    assert main([*files.arguments, "--positive", "bad", "--out", str(folder), "--jobs", "1", "--part-rows", "50"]) == 0
    return folder


def check(files: Any, folder: Path, *more: str) -> int:
    return main(["verify", str(folder), "--data", str(files.data), "--model", str(files.skops), *more])


def test_a_folder_as_it_was_written_holds(files: Any, written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(files, written) == 0
    assert "120 answers checked" in capsys.readouterr().out
    assert check(files, written, "--json", "--cheap", "0", "--sample", "5", "--seed", "3") == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_a_flipped_bit_ends_with_6_and_is_listed(
    files: Any, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(written, tmp_path / "run")
    part = tmp_path / "run" / "part-00001.parquet"
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data)
    assert check(files, tmp_path / "run") == 6
    printed = capsys.readouterr()
    assert "- part-00001.parquet was changed after it was written" in printed.out
    assert "does not hold" in printed.err
    (tmp_path / "run" / "manifest.json").write_text("{")
    assert check(files, tmp_path / "run", "--json") == 6
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_a_model_without_the_class_of_the_run_ends_with_2(
    files: Any, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = pd.read_csv(files.data)
    other = clone(files.model).fit(X, X["debt"].gt(50).map({True: "yes", False: "no"}))
    joblib.dump(other, tmp_path / "other.joblib")
    call = ["verify", str(written), "--data", str(files.data), "--model", str(tmp_path / "other.joblib")]
    assert main([*call, "--allow-pickle"]) == 2
    assert "cannot be read" not in capsys.readouterr().err


def test_other_data_end_with_6(files: Any, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = pd.read_csv(files.data)
    X.loc[7, "debt"] += 1
    X.to_csv(tmp_path / "other.csv", index=False)
    call = ["verify", str(written), "--data", str(tmp_path / "other.csv"), "--model", str(files.skops)]
    assert main(call) == 6
    assert "row 7: the data have another row" in capsys.readouterr().out


def test_another_model_ends_with_6(files: Any, written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["verify", str(written), "--data", str(files.data), "--model", str(files.joblib)]
    assert main([*call, "--allow-pickle"]) == 6
    assert "the model has changed" in capsys.readouterr().out
    assert main(call) == 4


def test_what_is_no_run_folder_ends_with_3(files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(files, tmp_path) == 3
    assert "not a run folder" in capsys.readouterr().err
    (tmp_path / "journal.jsonl").write_text("{}\n")
    assert check(files, tmp_path) == 3
    assert "has not ended" in capsys.readouterr().err


def test_the_findings_against_another_model_fit_a_screen_and_name_no_row_twice(
    files: Any, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = pd.read_csv(files.train).drop(columns="risk"), pd.read_csv(files.train)["risk"]
    other = clone(files.model).set_params(logisticregression__C=0.01).fit(X, y[::-1])
    joblib.dump(other, tmp_path / "other.joblib")
    call = ["verify", str(written), "--data", str(files.data), "--model", str(tmp_path / "other.joblib")]
    assert main([*call, "--allow-pickle", "--json"]) == 6
    found = json.loads(capsys.readouterr().out)
    smaller = [problem for problem in found["problems"] if "a smaller set turns the model" in problem]
    assert len(smaller) == len({problem.split(":")[0] for problem in smaller})
    assert len(found["problems"]) > 11
    assert main([*call, "--allow-pickle"]) == 6
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[1:11] == [f"- {problem}" for problem in found["problems"][:10]]
    assert lines[11:] == [f"... and {len(found['problems']) - 10 + found['more']:,} more"]
    assert "check that --data and --model are those of the run" in printed.err
