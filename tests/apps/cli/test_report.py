"""``fewest report``: from a run folder to one page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import typer
from payloads import escapes
from typer.testing import CliRunner

import fewest as fw
from fewest.apps.cli._outlets import report
from fewest.errors import DataError, UsageError
from fewest.runs import explain_files

app = typer.Typer()
app.command()(report)


@app.callback()
def _several() -> None:
    """Keeps the command's name, as in the real command line."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    cases = pd.DataFrame({"debt": range(0, 100, 2), "home": ["own", "rent"] * 25})
    cases.to_csv(folder / "cases.csv", index=False)
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, positive="refused")
    refs = fw.references.supplied(decision, {"debt": [20], "home": ["own"]}, X=cases)
    return explain_files(fw.Explainer(decision, refs), folder / "cases.csv", folder / "run", n_jobs=1).path


def ask(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["report", *map(str, arguments)], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_the_page_is_written_and_the_summary_printed(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    printed = ask(run, "-o", out, "--title", "A <b>title</b>")
    assert "25 of 50 cases were refused; for 100 % one feature changes the outcome." in printed
    assert 'Warning: "debt" is in 100 % of the explanations' in printed
    assert f"Written: {out}" in printed
    page = out.read_text()
    assert escapes(page) == []
    assert "<title>A &lt;b&gt;title&lt;/b&gt;</title>" in page


def test_machines_are_told_the_same(run: Path, tmp_path: Path) -> None:
    told = json.loads(ask(run, "-o", tmp_path / "page.html", "--json"))
    assert told["report"] == str(tmp_path / "page.html")
    assert len(told["warnings"]) == 2


def test_the_seed_changes_the_examples_and_nothing_else(run: Path, tmp_path: Path) -> None:
    pages = []
    for seed in (0, 0, 1):
        ask(run, "-o", tmp_path / "page.html", "--random-state", seed)
        pages.append((tmp_path / "page.html").read_text())
    assert pages[0] == pages[1]
    assert pages[0] != pages[2]


def test_places_and_folders_that_cannot_be_are_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="HTML page"):
        ask(run, "-o", tmp_path / "page.pdf")
    with pytest.raises(UsageError, match="a file cannot be written here"):
        ask(run, "-o", tmp_path / "nowhere" / "page.html")
    with pytest.raises(DataError, match="not a run folder"):
        ask(tmp_path, "-o", tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_help_needs_no_heavy_library() -> None:
    code = (
        "import sys; import fewest.apps.cli._outlets; "
        "print([name for name in ('numba', 'sklearn', 'jinja2', 'pyarrow.parquet') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
