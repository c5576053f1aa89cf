import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from slow_cases import mostly_slow

from fewest.apps.cli import main
from fewest.experiments.paper.trees import TreesTable

QUICK = ["paper", "table", "trees", "--quick", "--data", "german", "--splits", "2"]


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Records that cost nothing; what was asked for is listed."""
    from fewest.experiments.paper import Record

    asked: list[tuple[str, int]] = []

    def cells(self: Any, dataset: str, split: int, tell: Any) -> list[Record]:
        asked.append((dataset, split))
        if (dataset, split) == ("german", 3):
            raise KeyboardInterrupt
        return [Record(dataset, method, {"sev_t": 1.0 + split, "test_accuracy": 0.7}) for method in self.methods]

    monkeypatch.setattr(TreesTable, "cells", cells)
    return asked


def test_the_tables_and_figures_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "list"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert f"trees {TreesTable.title}" in lines
    assert "closeness Sparsity and closeness" in lines
    assert main(["paper", "list", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert "german" in listed["trees"]["datasets"]
    assert (listed["trees"]["kind"], listed["closeness"]["kind"]) == ("table", "figure")


@pytest.mark.parametrize("arguments", [["paper"], ["paper", "-h"], ["paper", "table", "--help"]])
def test_help_is_printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "Usage" in capsys.readouterr().out


@pytest.mark.slow
def test_a_quick_table_is_printed_with_the_papers_figures(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gosdt")
    pytest.importorskip("praxis")
    assert main([*QUICK[:-1], "1"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == TreesTable.title
    shown = [line.split()[1].strip(",") for line in lines if line.startswith("german")]
    assert shown == ["CART", "C4.5", "GOSDT", "TOpt", "TOpt"]
    assert "trees  1/1  german, split 0: " in printed.err
    assert "german, split 0: TOpt" in printed.err


def test_results_are_written_and_a_second_run_reads_them(
    instant: list[tuple[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = [*QUICK, "--out", str(tmp_path), "--json"]
    assert main(call) == 0
    first = json.loads(capsys.readouterr().out)
    assert instant == [("german", 0), ("german", 1)]
    assert first["lines"][0]["figures"]["sev_t"] == {
        "mean": 1.5, "sd": pytest.approx(0.7071, abs=1e-4), "count": 2, "paper": {"mean": 1.0, "sd": 0.0},
        "difference": 0.5,
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"trees-quick.json", "trees-quick.md", "trees-quick.jsonl"}
    assert json.loads((tmp_path / "trees-quick.json").read_text()) == first
    assert "| german | CART | 2 |" in (tmp_path / "trees-quick.md").read_text()
    assert main(call) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == first
    assert "2 of 2 units are finished already" in printed.err
    assert len(instant) == 2


def test_an_interrupt_ends_with_130_and_keeps_what_is_finished(
    instant: list[tuple[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*QUICK[:-1], "5", "--out", str(tmp_path)]) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "the same command goes on from there" in printed.err
    assert len((tmp_path / "trees-quick.jsonl").read_text().splitlines()) == 3
    assert not (tmp_path / "trees-quick.md").exists()


def test_the_usual_number_of_splits_is_ten_or_two_when_quick(instant: list[tuple[str, int]]) -> None:
    assert main(["paper", "table", "trees", "--data", "german", "--quick"]) == 0
    assert len(instant) == 2
    assert main(["paper", "table", "trees", "--data", "german"]) == 130  # the fourth of ten is interrupted
    assert len(instant) == 2 + 4


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["paper", "table", "atlas"], 2, "Try: choose from "),
        (["paper", "table"], 2, "Missing argument"),
        (["paper", "bogus"], 2, "bogus"),
        ([*QUICK, "--data", "atlantis"], 2, "choose from adult, compas"),
        ([*QUICK, "--data", ","], 2, "names no dataset"),
        ([*QUICK, "--splits", "0"], 2, "--splits"),
        ([*QUICK, "--jobs", "0"], 2, "--jobs"),
        ([*QUICK, "--data", "compas", "--data-dir", "no/such/folder"], 3, "--data-dir"),
    ],
)
def test_wrong_options_name_the_remedy(
    more: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(more) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main([*QUICK, "--out", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_data_that_are_not_here_end_with_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["paper", "table", "trees", "--quick"]) == 3
    assert "set FEWEST_DATA or pass --data-dir" in capsys.readouterr().err


WAITING = """
import sys, time
from fewest.apps.cli import main
from fewest.experiments.paper.trees import TreesTable
class Waiting(TreesTable):
    def cells(self, dataset, split, tell):
        print("ready", file=sys.stderr, flush=True)
        time.sleep(60)
if __name__ == "__main__":
    import fewest.experiments.paper.trees
    fewest.experiments.paper.trees.TreesTable = Waiting
    sys.exit(main(["paper", "table", "trees", "--data", "german", "--jobs", {jobs!r}]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", mostly_slow(("1", "2"), ("1",)))
def test_a_real_signal_ends_the_run_and_its_processes(jobs: str, tmp_path: Path) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(WAITING.format(jobs=jobs))
    child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    while "ready" not in child.stderr.readline():
        pass
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=50)
    assert child.returncode == 130
    assert output == ""
    assert "fewest: error: interrupted" in errors
    assert "Traceback" not in errors
