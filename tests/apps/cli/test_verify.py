"""`fewest verify`: 0 for a folder as it was written, 6 and a list for any other, 8 while something is unproved."""

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
from fewest.runs.run_files import sealed

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
    printed = capsys.readouterr().out
    assert "120 answers checked" in printed
    assert "(100 %; 0 drawn, random state " in printed
    assert "- class: bad (else good)\n- threshold: 0.5 (proba)" in printed
    assert "- references: 1, single, assigned by features: mean" in printed
    assert check(files, written, "--json", "--seed", "3") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["complete"], report["share_proved"], report["random_state"]) == (True, True, 1.0, 3)


def test_what_is_left_unproved_ends_with_8_and_the_share(
    files: Any, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(written, tmp_path / "run")
    manifest = json.loads((written / "manifest.json").read_text())
    manifest["about"]["title"] = "Approved by the regulator"
    manifest.pop("seal")
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(sealed(manifest)))
    assert check(files, tmp_path / "run") == 8
    printed = capsys.readouterr()
    assert "Left unproved:\n- the title: the run says 'Approved by the regulator'\nNothing is wrong." in printed.out
    assert "not all of it is proved again" in printed.err
    assert "--references FILE" in printed.err


def test_every_run_draws_with_another_seed(files: Any, written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = set()
    for _ in range(3):
        assert check(files, written, "--json") == 0
        seeds.add(json.loads(capsys.readouterr().out)["random_state"])
    assert len(seeds) == 3


def test_what_the_caller_states_is_compared(
    files: Any, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    references = ["--references", str(written / "references.json")]
    assert check(files, written, "--threshold", "0.5", "--positive", "bad", *references) == 0
    assert check(files, written, "--threshold", "0.4") == 6
    assert "the threshold is 0.4, the run's is 0.5" in capsys.readouterr().out
    assert check(files, written, "--positive", "good") == 6
    assert "the class is 'good', the run's is 'bad'" in capsys.readouterr().out
    content = json.loads((written / "references.json").read_text())
    content["references"][0]["values"]["debt"] += 1
    (tmp_path / "other.json").write_text(json.dumps(content))
    assert check(files, written, "--references", str(tmp_path / "other.json")) == 6
    assert "reference mean is not the one that is stated" in capsys.readouterr().out
    pd.DataFrame([content["references"][0]["values"]] * 2).to_csv(tmp_path / "two.csv", index=False)
    assert check(files, written, "--references", str(tmp_path / "two.csv")) == 6
    assert "the run has 1 references, 2 are stated" in capsys.readouterr().out
    assert check(files, written, "--positive", "ugly") == 2


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


def test_the_findings_against_another_model_fit_a_screen_and_name_each_kind_once(
    files: Any, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = pd.read_csv(files.train).drop(columns="risk"), pd.read_csv(files.train)["risk"]
    other = clone(files.model).set_params(logisticregression__C=0.01).fit(X, y[::-1])
    joblib.dump(other, tmp_path / "other.joblib")
    call = ["verify", str(written), "--data", str(files.data), "--model", str(tmp_path / "other.joblib")]
    assert main([*call, "--allow-pickle", "--json", "--random-state", "1"]) == 6
    found = json.loads(capsys.readouterr().out)
    kinds = [finding["what"] for finding in found["findings"]]
    assert len(kinds) == len(set(kinds)) == len(found["problems"])
    scores = next(one for one in found["findings"] if "row {}: the model's score of it" in one["what"])
    assert (scores["count"], len(scores["first"])) == (120, 5)
    assert main([*call, "--allow-pickle", "--random-state", "1"]) == 6
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    wrong = lines[lines.index("Wrong:") + 1 :]
    assert wrong[:10] == [f"- {problem}" for problem in found["problems"][:10]]
    assert len(wrong) <= 11
    assert "check that --data and --model are those of the run" in printed.err


def test_a_floor_is_proved_again_with_the_explainer_and_an_older_format_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    here = Path(__file__).parents[2] / "persistence" / "written_before"
    call = ["verify", str(here / "credible.run"), "--data", str(here / "cases.csv")]
    assert main([*call, "--model", str(here / "credible.fewest")]) == 8
    printed = capsys.readouterr().out
    assert "29 of 29 claims" in printed
    assert "Left unproved:\n- the format: the run says 2\nNothing is wrong." in printed
