"""``fewest serve``: options, messages, exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from fewest.apps.cli._outlets import serve
from fewest.errors import FewestError

app = typer.Typer()
app.command()(serve)


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_the_options_reach_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr("fewest.apps.serving.serve", lambda models, settings: seen.update(m=models, s=settings) or 0)
    files = [tmp_path / "a.fewest", tmp_path / "b.fewest"]
    for file in files:
        file.touch()
    done = call(*map(str, files), "--port", "0", "--rate", "5", "--workers", "3", "--max-body", "99")
    assert done.exit_code == 0, done.output
    assert (seen["m"], seen["s"].rate, seen["s"].workers, seen["s"].max_body) == (files, 5.0, 3, 99)


@pytest.mark.parametrize(
    ("arguments", "why", "code"),
    [
        (["none.fewest"], "there is no file none.fewest", 4),
        (["none.fewest", "--host", "0.0.0.0"], "for this machine only", 2),
        (["none.fewest", "--memory", "0"], "memory is 0", 2),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], why: str, code: int) -> None:
    error = call(*arguments).exception
    assert isinstance(error, FewestError)
    assert why in error.message
    assert error.do
    assert error.exit_code == code


def test_a_model_file_is_not_taken_for_an_explainer_and_refused_with_the_way_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "credit.skops").touch()
    error = call(str(tmp_path / "credit.skops")).exception
    assert isinstance(error, FewestError)
    assert "credit.skops is not a .fewest file: the service needs a model together with its references" in error.message
    assert "fewest build TRAIN --model credit.skops" in str(error.do)


def test_declaring_the_command_imports_neither_the_searches_nor_the_server() -> None:
    script = (
        "import sys, fewest.apps.cli._outlets; "
        "print([m for m in ('fastapi', 'uvicorn', 'sklearn', 'numba', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_missing_server_library_is_named_with_its_install_line() -> None:
    script = (
        "import sys; sys.modules['fastapi'] = None\n"
        "from pathlib import Path; from fewest.apps.serving import ServiceSettings, serve\n"
        "from fewest.errors import MissingExtraError\n"
        "try: serve([Path('a.fewest')], ServiceSettings())\n"
        "except MissingExtraError as error: print(error.do)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == 'pip install "fewest[serve]"', done.stderr
