import csv
import io
import json
import sys
from pathlib import Path

import pandas as pd
import pytest

import fewest as fw
from fewest.apps.cli._explain import read_weights
from fewest.apps.cli._files import write_result
from fewest.apps.cli._text import clean, in_options, progress
from fewest.results.explanations import FRAME_COLUMNS
from fewest.runs.views import defused
from fewest.tables import files


def test_a_file_appears_whole_with_the_usual_rights(tmp_path: Path) -> None:
    files.write_text(tmp_path / "a.txt", "über\n")
    (tmp_path / "b.txt").write_text("")
    assert (tmp_path / "a.txt").read_bytes() == "über\n".encode()
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "b.txt").stat().st_mode


def test_when_writing_fails_the_old_file_stays_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        files.write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_is_moved_into_place_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    seen = []
    real = files.os.replace

    def watch(source: Path, goal: Path) -> None:
        seen.append((goal.read_text(), Path(source).read_text()))
        real(source, goal)

    monkeypatch.setattr(files.os, "replace", watch)
    files.write_text(path, "new")
    assert seen == [("old", "new")]
    assert path.read_text() == "new"


def test_progress_away_from_a_terminal_is_a_line_per_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("explaining") as advance:
        for done in range(1, 1001):
            advance(done, 1000)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 10
    assert printed.err.splitlines()[-1] == "explaining  1,000/1,000  100 %"


def test_progress_on_a_terminal_is_a_bar_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress("explaining") as advance:
        advance(5, 10)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "\x1b[3" not in printed.err


def test_control_characters_never_reach_the_terminal() -> None:
    assert clean("a\x07b\x1b]0;c\r\n") == "a?b?]0;c?\n"


def test_no_cell_of_a_result_as_csv_begins_a_formula(tmp_path: Path) -> None:
    decision = fw.Decision(lambda rows: rows["=debt"].to_numpy() / 100, positive="bad")
    refs = fw.references.supplied(decision, {"=debt": [20], "home": ["@own"]}, names=["=cmd|' /C calc'!A0"])
    cases = pd.DataFrame({"=debt": [90, 80, 10], "home": ["@own"] * 3}, index=["=1+1", "-3", "\tx"])
    out = fw.Explainer(decision, refs, n_jobs=1).explain(cases)
    write_result(out, tmp_path / "out.csv", "", "")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_bytes().decode(), newline="")))
    assert not [cell for row in rows for cell in row.values() if cell != defused(cell)]
    assert [row["case"] for row in rows] == ["'=1+1", "-3", "'\tx"]
    assert rows[0]["reference"] == "'=cmd|' /C calc'!A0"
    assert json.loads(rows[0]["features"]) == ["=debt"]
    assert (json.loads(rows[0]["from"]), json.loads(rows[0]["to"])) == ([90], [20])
    assert float(rows[0]["margin"]) == out[0].margin
    assert tuple(rows[0]) == ("case", *FRAME_COLUMNS, "sentence")


def test_a_remedy_is_given_in_the_options_of_the_command_line() -> None:
    assert in_options('centre="median" or centre="medoid", or clusters') == (
        "--centre median or --centre medoid, or clusters"
    )
    assert (
        in_options("check the labels, `positive=` and the threshold")
        == "check the labels, --positive and the threshold"
    )
    assert in_options("widen the band with width=") == "widen the band with --width"


def test_a_status_is_printed_in_plain_words() -> None:
    words = ("EXPLAINED", "ALREADY_NEGATIVE", "UNREACHABLE", "BUDGET", "NOT_CREDIBLE")
    shown = [fw.Status(word).words for word in words]
    assert shown == ["explained", "accepted", "not possible", "stopped early", "not credible"]


def test_the_last_equals_sign_divides_a_weight() -> None:
    assert read_weights(("age=3", "a=b=0.5")) == {"age": 3.0, "a=b": 0.5}
