"""What may change and what is believable can be said on the command line, and holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fewest.apps.cli import main


def asked(files: Any, capsys: pytest.CaptureFixture[str], *more: str) -> list[dict[str, Any]]:
    assert main([*files.arguments, "--positive", "bad", "--json", *more]) == 0
    records: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["answers"]
    return records


def moves(records: list[dict[str, Any]], feature: str) -> list[tuple[Any, Any]]:
    changes = [change for record in records for change in record["changes"] if change["feature"] == feature]
    return [(change["from"], change["to"]) for change in changes]


def test_without_rules_features_go_both_ways(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Negative control of the tests below."""
    records = asked(files, capsys)
    assert any(end < start for start, end in moves(records, "debt"))
    assert moves(records, "code")


def test_only_and_directions_of_a_file_hold(files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_option = asked(files, capsys, "--only", "debt=up")
    assert all(end > start for start, end in moves(by_option, "debt"))
    features = tmp_path / "features.csv"
    features.write_text("name,label,direction\ndebt,Debt,up\nage,,\n")
    by_file = asked(files, capsys, "--schema", str(features))
    assert [record["changes"] for record in by_file] == [record["changes"] for record in by_option]


def test_ranges_and_levels_hold(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert not moves(asked(files, capsys, "--range", "debt=90:"), "debt")
    levels = [end for _, end in moves(asked(files, capsys, "--range", "debt=90:", "--one-of", "code=A07,C42"), "code")]
    assert set(levels) <= {"A07", "C42"}


def test_credibility_is_set_and_kept_in_a_file(files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = asked(files, capsys, "--credibility", "mixture:0.2")
    assert any(record["log_density"] is not None for record in records)
    saved = tmp_path / "credit.fewest"
    build = ["build", str(files.train), "--model", str(files.skops), "--target", "risk", "--positive", "bad"]
    assert main([*build, "--credibility", "mixture:0.2", "--only", "age=up", "--out", str(saved)]) == 0
    capsys.readouterr()
    assert main(["explain", str(files.data), "--model", str(saved), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)["answers"]
    assert any(record["log_density"] is not None for record in again)
    assert all(end > start for start, end in moves(again, "age"))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--only", "debt"], "this does not name a column and a rule"),
        (["--only", "debt=sideways"], "sideways"),
        (["--only", "dept=up"], 'there is no feature "dept"'),
        (["--range", "debt=5"], "this is not LOW:HIGH"),
        (["--range", "debt=9:1"], "is empty"),
        (["--one-of", "code=A07,Z"], "has no level 'Z'"),
        (["--credibility", "hope"], "hope"),
        (["--credibility", "mixture:much"], "much is not a share"),
    ],
)
def test_rules_that_do_not_fit_are_named(
    files: Any, options: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*files.arguments, "--positive", "bad", *options]) == 2
    assert what in capsys.readouterr().err
