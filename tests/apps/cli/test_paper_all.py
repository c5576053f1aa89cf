"""``fewest paper figure`` and ``fewest paper all``: files, exit codes, and runs that are killed and go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fewest.apps.cli import main
from fewest.errors import DataError
from fewest.experiments import paper
from fewest.experiments.paper import Record, everything, figures
from fewest.experiments.paper.points import PointsTable

pytest.importorskip("matplotlib")
GERMAN = ["--data", "german", "--quick"]


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The points tables at no cost, and what needs nothing but them; splits asked for are listed."""
    asked: list[int] = []

    def cells(self: Any, dataset: str, split: int, tell: Any) -> list[Record]:
        asked.append(split)
        ways = ("", " clusters", " clusters 0.05", " clusters 0.10", " clusters 0.20")
        numbers = {"sev": 1.5 + split, "l_inf": 0.5, "sane_log_likelihood": -9.0}
        return [Record(dataset, f"{kind}{way}", numbers) for kind in ("L1LR", "L2LR") for way in ways]

    monkeypatch.setattr(PointsTable, "cells", cells)
    monkeypatch.setattr(paper, "names", lambda: ("sev1", "sevc", "sevcf"))
    monkeypatch.setattr(figures, "names", lambda: ("closeness", "flexibility"))
    monkeypatch.setattr(everything, "EXAMPLES", "fewest.experiments.paper.no_such_module")
    return asked


def test_a_figure_is_written_and_its_numbers_are_printed(
    instant: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", "figure", "closeness", *GERMAN, "--splits", "2", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Sparsity and closeness\n")
    assert "closeness-quick.svg" in printed.err
    assert instant == [0, 1]
    assert {path.name for path in tmp_path.iterdir()} == {"points-quick.jsonl", "figures"}
    kinds = {path.suffix for path in (tmp_path / "figures").iterdir()}
    assert kinds == {".svg", ".png", ".csv"}
    assert main(["paper", "figure", "flexibility", *GERMAN, "--splits", "2", "--out", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["numbers"][0] == {
        "dataset": "german", "procedure": "ours (default)", "label": "L1LR", "flexibility": 0.0, "sev": 2.0,
        "log_likelihood": -9.0,
    }  # fmt: skip
    assert instant == [0, 1], "the records of the first figure serve the second"


def test_all_writes_a_page_with_everything(
    instant: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", "all", *GERMAN, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path / 'index.html'}\n"
    assert "table sev1 (1 of 5)" in printed.err
    assert "figure flexibility (5 of 5)" in printed.err
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "3 tables and 2 figures." in page
    for name in ("figures/closeness-quick.svg", "figures/closeness-quick.csv", "sevcf-quick.json", "sev1-quick.md"):
        assert f'"{name}"' in page
        assert (tmp_path / name).is_file()
    assert instant == [0], "three tables share one unit"


def test_a_failure_is_told_and_sets_the_exit_code_after_the_rest(
    instant: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    working = PointsTable.cells

    def broken(self: Any, dataset: str, split: int, tell: Any) -> list[Record]:
        if split == 0:
            raise DataError("no rows", do="add some")
        return working(self, dataset, split, tell)

    monkeypatch.setattr(PointsTable, "cells", broken)
    call = ["paper", "all", *GERMAN, "--splits", "2", "--out", str(tmp_path)]
    assert main(call) == 3
    assert "failed: table sev1, german, split 0: DataError: no rows" in capsys.readouterr().err
    assert "What failed" in (tmp_path / "index.html").read_text()
    assert (tmp_path / "figures" / "closeness-quick.svg").is_file()
    monkeypatch.setattr(PointsTable, "cells", working)
    assert main(call) == 0
    assert "What failed" not in (tmp_path / "index.html").read_text()


def test_an_interrupt_says_where_the_finished_part_is(
    instant: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(figures, "draw", stop)
    for command in (["all"], ["figure", "closeness"]):
        assert main(["paper", *command, *GERMAN, "--out", str(tmp_path)]) == 130
        printed = capsys.readouterr()
        assert "the same command goes on from there" in printed.err
        assert printed.out == ""
    assert (tmp_path / "index.html").is_file(), "the page shows what was finished before"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["figure", "atlas"], 2, "choose from closeness"),
        (["figure"], 2, "Missing argument"),
        (["figure", "closeness", "--data", "atlantis"], 2, "choose from adult"),
        (["figure", "closeness", "--data", "fico", "--data-dir", "no/such/folder"], 3, "--data-dir"),
        (["all", "--data", "atlantis"], 2, "choose from adult"),
        (["all", "--data", " , "], 2, "names no dataset"),
        (["all", "--data", "fico", "--data-dir", "no/such/folder"], 3, "--data-dir"),
        (["all", "--jobs", "0"], 2, "--jobs"),
    ],
)
def test_wrong_options_name_the_remedy(
    arguments: list[str], code: int, said: str, tmp_path: Path, instant: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--out", str(tmp_path / "run")] if arguments != ["figure"] else []
    assert main(["paper", *arguments, *more]) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""
    assert instant == []


KILLED = """
import os, signal, sys
from fewest.experiments import paper
from fewest.apps.cli import main
from fewest.experiments.paper import Record, everything, figures
from fewest.experiments.paper.points import PointsTable
def cells(self, dataset, split, tell):
    if split == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    tell(f"measuring {split}")
    return [Record(dataset, "L2LR", {"sev": 1.5 + split, "l_inf": 0.5})]
PointsTable.cells = cells
paper.names = lambda: ("sev1",)
figures.names = lambda: ("closeness",)
everything.EXAMPLES = "fewest.experiments.paper.no_such_module"
sys.exit(main(["paper", "all", "--quick", "--data", "german", "--splits", "3", "--out", sys.argv[1]]))
"""


@pytest.mark.slow
def test_a_run_killed_outright_goes_on_where_it_was(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(KILLED)

    def start(folder: str, kill_at: int) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, str(script), str(tmp_path / folder), str(kill_at)]
        return subprocess.run(
            call, capture_output=True, text=True, check=False, env={**os.environ, "MPLBACKEND": "agg"}
        )

    assert start("killed", 2).returncode == -signal.SIGKILL
    resumed = start("killed", -1)
    assert resumed.returncode == 0, resumed.stderr
    assert "2 of 3 units are finished already" in resumed.stderr
    assert "measuring 0" not in resumed.stderr
    assert "measuring 2" in resumed.stderr
    start("whole", -1)
    for path in sorted((tmp_path / "whole").rglob("*.*")):
        assert path.read_bytes() == (tmp_path / "killed" / path.relative_to(tmp_path / "whole")).read_bytes(), path


@pytest.mark.slow
def test_everything_runs_from_the_embedded_data_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["paper", "all", *GERMAN]) == 0, capsys.readouterr().err
    page = Path("paper-run", "index.html").read_text(encoding="utf-8")
    assert "What failed" not in page
    made = [*map(paper.find, paper.names()), *map(figures.find, figures.names())]
    for name in [one.name for one in made if "german" in one.datasets]:
        assert f'-{name}"' in page, name
