"""The three ways in: a notebook, the command line, research. Each runs without a work-around."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from pages import run_page

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_a_notebook_and_then_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for library in ("skops", "pyarrow"):
        pytest.importorskip(library, reason='pip install "fewest[models,runs]"')
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "in_a_notebook.py"))
    said = capsys.readouterr().out
    assert "would have predicted approved (refused: " in said
    assert "cases explained in both have other reasons" in said
    run_page(f"```sh\n{(EXAMPLES / 'on_the_command_line.sh').read_text()}```\n", "on_the_command_line.sh")
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "letters" / "APP-00011.txt").read_text().startswith("A Bank\n\n2026-11-12\n")


def test_research_on_a_class_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "for_research.py"))
    assert "answers are what brute force finds" in capsys.readouterr().out
