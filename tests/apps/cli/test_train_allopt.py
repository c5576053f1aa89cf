"""``fewest train allopt``: what it prints, writes and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fewest.apps.cli import main

pytest.importorskip("torch")
pytest.importorskip("skops")

SHORT = ["--warmup-epochs", "8", "--epochs", "3", "--device", "cpu"]
FIGURES = ["accuracy", "roc_auc", "positives", "mean_sev", "share_one", "unreachable", "l_inf", "log_likelihood"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({
        "debt": random.integers(0, 100, 300), "age": random.integers(18, 80, 300),
        "job": random.choice(["none", "clerk", "cook"], 300),
    })  # fmt: skip
    risk = frame["debt"] - frame["age"] + 20 * (frame["job"] == "none") + random.normal(0, 20, 300)
    frame["risk"] = np.where(risk > 10, "bad", "good")
    path = tmp_path_factory.mktemp("train") / "credit.csv"
    frame.to_csv(path, index=False)
    return path


def ask(table: Path, *more: str) -> int:
    return main(["train", "allopt", str(table), "--target", "risk", "--positive", "bad", *SHORT, *more])


def test_figures_before_and_after_are_printed(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(table) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].split() == ["before", "after", "change"]
    assert [line.split("  ")[0] for line in lines[1:5]] == ["accuracy", "AUC", "refused", "mean SEV"]
    assert lines[-2].endswith("%)")
    assert lines[-1] == "C1 1"
    assert "SEV" in printed.err


def test_json_and_files_say_the_same(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "run"
    assert ask(table, "--model", "mlp", "--c1", "3", "--out", str(folder), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    names = [Path(name).name for name in told["files"]]
    assert names == ["model.skops", "references.json", "report.json", "history.csv"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert json.loads((folder / "report.json").read_text()) == told
    assert list(told["figures"]) == FIGURES
    assert (told["model"], told["c1"], told["names"], told["test_rows"]) == ("mlp", 3.0, ["good", "bad"], 60)
    assert told["front"] is None
    assert len(pd.read_csv(folder / "history.csv")) == 11


def test_what_is_written_can_be_explained_with(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(table, "--model", "mlp", "--out", str(tmp_path / "run")) == 0
    capsys.readouterr()
    call = ["explain", str(table), "--model", str(tmp_path / "run" / "model.skops"), "--train", str(table),
            "--target", "risk", "--positive", "bad", "--references", str(tmp_path / "run" / "references.json"),
            "--json"]  # fmt: skip
    assert main(call) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert counts["EXPLAINED"] > 0
    assert counts["UNREACHABLE"] == 0


@pytest.mark.slow
def test_a_search_tells_its_stops_and_keeps_its_front(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(table, "--search", "--tolerance", "0.1", "--out", str(tmp_path / "run"), "--json") == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    front = pd.read_csv(tmp_path / "run" / "front.csv")
    assert front["c1"].tolist() == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    assert told["c1"] == front["c1"][front["chosen"]].item()
    assert [stop["c1"] for stop in told["front"]] == front["c1"].tolist()
    assert printed.err.count("accuracy") == 7


@pytest.mark.slow
def test_the_same_call_gives_the_same_report(table: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert ask(table, "--seed", "3", "--out", str(tmp_path / name)) == 0
    for file in ("references.json", "history.csv"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    first, second = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("a", "b"))
    assert first["figures"] == second["figures"]


def test_test_rows_have_no_part_in_the_training(table: Path, tmp_path: Path) -> None:
    """Nonsense in the test rows leaves the model as it is."""
    frame = pd.read_csv(table)
    from sklearn.model_selection import train_test_split

    _, test = train_test_split(frame.index, test_size=0.2, stratify=frame["risk"], random_state=0)
    frame.loc[test, "debt"] = 50
    frame.to_csv(tmp_path / "other.csv", index=False)
    assert ask(table, "--out", str(tmp_path / "a")) == ask(tmp_path / "other.csv", "--out", str(tmp_path / "b")) == 0
    first, second = (pd.read_csv(tmp_path / name / "history.csv") for name in ("a", "b"))
    pd.testing.assert_frame_equal(first, second)
    reports = [json.loads((tmp_path / name / "report.json").read_text())["figures"] for name in ("a", "b")]
    assert reports[0] != reports[1]


def test_labels_of_the_table_become_the_classes_of_the_model(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fewest.persistence.models import load_model

    frame = pd.read_csv(table)
    kinds = {"numbers": (frame["risk"] == "bad").astype(int), "words": frame["risk"].where(frame.index % 7 > 0, "odd")}
    wanted = {"numbers": [0, 1], "words": ["bad", "not bad"]}
    for name, labels in kinds.items():
        path, folder = tmp_path / f"{name}.csv", tmp_path / name
        frame.assign(risk=labels).to_csv(path, index=False)
        positive = "1" if name == "numbers" else "bad"
        call = ["train", "allopt", str(path), "--target", "risk", "--positive", positive, *SHORT, "--out", str(folder)]
        assert main(call) == 0, capsys.readouterr().err
        assert load_model(folder / "model.skops").classes_.tolist() == wanted[name]


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--positive", "ugly"], 2, "its classes are bad, good"),
        (["--c1", "-1"], 2, "c1 is -1"),
        (["--c2", "nan"], 2, "c2 is nan"),
        (["--search", "--c1", "2"], 2, "--search finds C1"),
        (["--tolerance", "0.1"], 2, "--tolerance is for --search"),
        (["--search", "--tolerance", "-1"], 2, "tolerance is -1"),
        (["--epochs", "-1"], 2, "epochs is -1"),
        (["--device", "abacus"], 2, '"abacus" cannot be used'),
        (["--model", "forest"], 2, "forest"),
        (["--references", "leaves"], 2, "leaves"),
        (["--test-size", "1.5"], 2, "--test-size"),
        (["--target", "riks"], 3, 'no column "riks"'),
    ],
)
def test_wrong_options_name_the_remedy(
    table: Path, more: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(ask(table, *more), capsys, said) == code


def ended(code: int, capsys: pytest.CaptureFixture[str], said: str) -> int:
    """The exit code of a call that complains in these words and has no result."""
    printed = capsys.readouterr()
    assert (said in printed.err, printed.out) == (True, "")
    return code


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda frame: frame.assign(risk="bad"), "1 classes (bad)"),
        (lambda frame: frame.assign(debt=frame["debt"].where(frame.index % 50 > 0)), "the value is missing"),
        (lambda frame: frame.groupby("risk").head(1), "cannot be split"),
    ],
    ids=["one class", "missing numbers", "too few rows"],
)
def test_bad_tables_end_with_3(
    table: Path, tmp_path: Path, change: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(pd.read_csv(table)).to_csv(tmp_path / "bad.csv", index=False)
    assert ended(ask(tmp_path / "bad.csv"), capsys, said) == 3


@pytest.mark.filterwarnings("default::fewest.errors.FewestWarning")
def test_a_model_that_decides_against_nobody_is_told_and_has_no_sev(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.read_csv(table)
    frame["risk"] = np.where(frame.index % 25 == 0, "bad", "good")  # rare and by chance
    frame.to_csv(tmp_path / "rare.csv", index=False)
    assert ask(tmp_path / "rare.csv", "--json") == 0
    printed = capsys.readouterr()
    assert "decides no row" in printed.err
    told = json.loads(printed.out)["figures"]
    assert told["mean_sev"]["after"] is None
    assert told["positives"]["after"] == 0


@pytest.mark.filterwarnings("default::fewest.errors.FewestWarning")
def test_references_that_are_decided_positive_are_named(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.read_csv(table)
    frame["risk"] = np.where(frame.index % 25 == 0, "good", "bad")  # nearly everybody is refused, the mean too
    frame.to_csv(tmp_path / "strict.csv", index=False)
    assert ask(tmp_path / "strict.csv", "--c2", "0", "--c1", "0") == 0
    assert "decided positive by the trained model: mean" in capsys.readouterr().err


def test_a_file_is_no_folder(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(ask(table, "--out", str(table)), capsys, "is a file") == 2


BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == BLOCK:
            raise ImportError(name)
BLOCK = sys.argv.pop(1)
sys.meta_path.insert(0, Blocker())
from fewest.apps.cli import main
code = main(sys.argv[1:])
print("torch" in sys.modules, "sklearn" in sys.modules, "numba" in sys.modules, file=sys.stderr)
sys.exit(code)
"""


def blocked(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-c", BLOCKED, module, *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("torch", 'pip install "fewest[train]"'),
        pytest.param("skops", "pip install skops", marks=pytest.mark.slow),
    ],
)
def test_without_an_extra_the_install_line_is_given(table: Path, tmp_path: Path, module: str, said: str) -> None:
    done = blocked(module, "train", "allopt", str(table), "--target", "risk", "--out", str(tmp_path / "run"), *SHORT)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["train", "allopt", "--help"]])
def test_help_is_printed_without_anything_heavy(arguments: list[str]) -> None:
    done = blocked("nothing", *arguments)
    assert done.returncode == 0
    assert "Usage" in done.stdout
    assert done.stderr.split() == ["False", "False", "False"]


def test_missing_values_are_filled_in_where_that_is_asked_for(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    holes = pd.read_csv(table)
    holes.loc[::7, "age"] = np.nan
    holes.to_csv(tmp_path / "holes.csv", index=False)
    assert ask(tmp_path / "holes.csv") == 3
    assert "--encoder fill" in capsys.readouterr().err
    out = tmp_path / "run"
    assert ask(tmp_path / "holes.csv", "--encoder", "fill", "--out", str(out)) == 0
    explain = ["explain", str(tmp_path / "holes.csv"), "--model", str(out / "model.skops")]
    assert main([*explain, "--references", str(out / "references.json")]) == 0
