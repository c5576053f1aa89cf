import json
import subprocess
import sys
from pathlib import Path

import pytest

from fewest.apps.cli import _command_groups
from fewest.errors import DataError

SHARED = Path(__file__).parents[4] / "shared" / "data"


def ask(*arguments: str) -> object:
    return _command_groups.datasets(args=["list", *arguments], prog_name="fewest datasets", standalone_mode=False)


def test_each_dataset_has_its_sizes_its_terms_and_where_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    assert ask() == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert len(heads) == 8
    assert " ".join(heads[0].split()) == "german found 1,000 rows 20 features 300 positives CC BY 4.0"
    assert lines[1] == "  inside the package"
    assert " ".join(heads[1].split()) == "adult - 32,561 rows 14 features 7,841 positives CC BY 4.0"
    assert lines[lines.index(heads[1]) + 1].startswith("  get it: adult.data of UCI's Adult")
    assert sum(line.startswith("  get it: ") for line in lines) == 8
    assert "? positives" in next(line for line in heads if line.startswith("mimic "))


def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fico.txt").write_text("RiskPerformance,\x1b[31m\nBad\n")
    assert ask("--data-dir", str(tmp_path)) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("fico"))
    assert lines[head].split()[1] == "-"
    assert lines[head + 1].endswith("fico.txt, line 2: 1 fields where there should be 2")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a folder"):
        ask("--data-dir", str(tmp_path / "elsewhere"))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the data folder ../shared/data is not here")
def test_the_same_is_said_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("--data-dir", str(SHARED), "--json") == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert {name for name, one in listed.items() if one["found"]} == set(listed) - {"mimic"}
    assert set(listed["adult"]) == {
        "name", "found", "where", "problem", "rows", "features", "positives", "licence", "get",
    }  # fmt: skip
    assert listed["diabetes"]["rows"] == 101_766


def test_the_options_are_declared_without_loading_anything_heavy() -> None:
    script = (
        "import sys, fewest.apps.cli._command_groups as _; print([m for m in ('pandas', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "numba" not in done.stdout
    assert "sklearn" not in done.stdout
