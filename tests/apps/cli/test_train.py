import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from fewest.apps.cli import main
from fewest.apps.cli._train_work import read_labels
from fewest.errors import DataError, UsageError
from fewest.models.trees.file import load_tree

pytest.importorskip("praxis")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({
        "debt": random.integers(0, 100, 400),
        "job": random.choice(["none", "clerk", "cook"], 400),
        "age": random.integers(18, 80, 400),
    })  # fmt: skip
    risk = (frame["debt"] > 50) & (frame["job"] != "cook")
    frame["risk"] = np.where(risk ^ (random.random(400) < 0.05), "bad", "good")
    path = tmp_path_factory.mktemp("train") / "credit.csv"
    frame.to_csv(path, index=False)
    return path


def ask(table: Path, *more: str) -> int:
    return main(["train", "topt", str(table), "--target", "risk", "--positive", "bad", *more])


def test_figures_and_the_tree_are_printed(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(table) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    heads = ["train accuracy", "test accuracy", "mean SEV-T", "chosen from"]
    assert [line.split("  ")[0] for line in lines[:4]] == heads
    assert float(lines[1].split()[-1]) > 0.9
    assert lines[2].split()[2] == "1.00"
    assert "test rows decided bad" in lines[2]
    assert lines[5].endswith("?")
    assert any("good (" in line for line in lines)
    assert "trees" in printed.err


def test_json_and_files_say_the_same_as_the_tree(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "run"
    assert ask(table, "--out", str(folder), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [Path(name).name for name in told["files"]] == ["tree.json", "tree.svg", "front.csv"]
    assert json.loads((folder / "tree.json").read_text()) == told["model"]
    assert told["model"]["names"] == ["good", "bad"]
    assert told["sev_t"] == 1.0
    assert told["leaf_range"][0] <= told["leaves"] <= told["leaf_range"][1]
    ElementTree.parse(folder / "tree.svg")
    front = pd.read_csv(folder / "front.csv")
    assert front["trees"].sum() == told["trees"]
    assert front["chosen"].sum() == 1
    frame = pd.read_csv(table)
    decided = load_tree(folder / "tree.json").decide(frame.drop(columns="risk"))
    accuracy = (decided == (frame["risk"] == "bad")).mean()
    assert accuracy == pytest.approx(0.8 * told["train_accuracy"] + 0.2 * told["test_accuracy"])


def test_the_tree_that_was_written_can_be_explained(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(table, "--out", str(tmp_path / "run")) == 0
    assert "tree.json is a model for `fewest explain --model`" in capsys.readouterr().out
    call = ["explain", str(table), "--model", str(tmp_path / "run" / "tree.json"), "--train", str(table)]
    assert main([*call, "--target", "risk", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["decision"] == {"positive": "bad", "outcome": "good", "threshold": 0.5, "score": "proba"}
    decided = load_tree(tmp_path / "run" / "tree.json").decide(pd.read_csv(table).drop(columns="risk"))
    assert len(told["answers"]) - told["counts"]["ALREADY_NEGATIVE"] == decided.sum() > 0
    assert {answer["strategy"] for answer in told["answers"] if answer["sev"]} == {"ensemble"}


def test_the_same_call_gives_the_same_bytes(table: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert ask(table, "--out", str(tmp_path / name)) == 0
    for file in ("tree.json", "tree.svg", "front.csv"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_parquet_is_read_like_csv(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    pd.read_csv(table).to_parquet(tmp_path / "credit.parquet")
    assert ask(table, "--json") == ask(tmp_path / "credit.parquet", "--json") == 0
    first, second = capsys.readouterr().out.split("\n}\n{")
    assert json.loads(first + "}")["objective"] == json.loads("{" + second)["objective"]


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--positive", "ugly"], 2, "its classes are bad, good"),
        (["--regularization", "0"], 2, "regularization"),
        (["--bound", "-1"], 2, "bound"),
        (["--depth", "0"], 2, "depth"),
        (["--test-size", "1.5"], 2, "--test-size"),
        (["--target", "riks"], 3, 'no column "riks"'),
        (["--target", "age", "--positive", "200"], 2, "no such class"),
        (["--nonsense"], 2, "--nonsense"),
    ],
)
def test_wrong_options_name_the_remedy(
    table: Path, more: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(table, *more) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("debt,risk\n1,bad\n2,\n", "row 1"),
        ("debt,risk\n1,bad\n2,bad\n", "1 classes (bad)"),
        ("debt,risk\n1,bad\n2,good\n", "cannot be split"),
        ("", "cannot be read as a table"),
    ],
)
def test_bad_tables_end_with_3(tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert ask(path) == 3
    assert said in capsys.readouterr().err


def test_missing_files_and_arguments_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(tmp_path / "absent.csv") == 3
    assert "there is no file" in capsys.readouterr().err
    assert main(["train", "topt"]) == 2
    assert "Try: fewest train topt --help" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["train", "topt", "x.csv", "--target", "y", "--out", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["train"], ["train", "--help"], ["train", "topt", "-h"]])
def test_help_is_printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "Usage" in capsys.readouterr().out


def test_labels_are_read_by_what_they_mean() -> None:
    assert read_labels(pd.Series([0, 1, 1]), None)[0].tolist() == [0, 1, 1]
    assert read_labels(pd.Series([0, 1, 1]), "0.0")[1] == ("1", "0")
    assert read_labels(pd.Series(["a", "b", "c"]), "b")[1] == ("not b", "b")
    assert read_labels(pd.Series([True, False]), None)[1] == ("False", "True")
    with pytest.raises(DataError, match="--positive"):
        read_labels(pd.Series(["a", "b", "c"], name="y"), None)
    with pytest.raises(UsageError, match="its classes are 0, 1"):
        read_labels(pd.Series([0, 1], name="y"), "2")
