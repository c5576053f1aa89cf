"""A run folder that somebody else prepared: links lead nowhere, odd lines and damaged parts are named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fewest.errors import DataError, TimeLimitError
from fewest.runs import Run, explain_files
from fewest.runs.storage import LOCK, locked


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_that_is_a_link_leaves_what_it_leads_to_alone(link: Any, subject: Any, tmp_path: Path) -> None:
    theirs, folder = tmp_path / "theirs.txt", tmp_path / "run"
    theirs.write_text("kept")
    folder.mkdir()
    link(theirs, folder / LOCK)
    with pytest.raises(DataError, match=r"holds a link \(\.lock\)"):
        explain_files(subject.explainer, subject.parquet, folder, n_jobs=1)
    with pytest.raises(DataError, match="holds a link"), locked(folder):
        pass
    assert theirs.read_text() == "kept"


@pytest.mark.parametrize("name", ["manifest.json", "part-00000.parquet", "references.json"])
def test_no_link_in_a_run_folder_is_followed(name: str, subject: Any, tmp_path: Path) -> None:
    folder = explain_files(subject.explainer, subject.parquet, tmp_path / "run", n_jobs=1).path
    assert Run.open(folder).rows == 700
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(DataError, match="holds a link"):
        Run.open(folder)


@pytest.mark.parametrize(
    "line",
    [
        b'{"part": 999}', b'{"part": 0, "table": {"name": "../x", "bytes": 1, "sha256": ""}}',
        b'{"part": "x", "table": 1}', b'{"part": 0, "table": {}, "counts": 7}',
    ],
)  # fmt: skip
def test_an_odd_line_of_the_journal_is_an_error_that_names_it(line: bytes, subject: Any, tmp_path: Path) -> None:
    with pytest.raises(TimeLimitError):
        explain_files(subject.explainer, subject.parquet, tmp_path / "run", n_jobs=1, time_limit=0)
    with (tmp_path / "run" / "journal.jsonl").open("ab") as journal:
        journal.write(line + b"\n")
    with pytest.raises(DataError, match="a line of it is not what was written"):
        explain_files(subject.explainer, subject.parquet, tmp_path / "run", n_jobs=1)


def test_a_run_that_has_ended_and_was_damaged_since_says_so(subject: Any, tmp_path: Path) -> None:
    folder = explain_files(subject.explainer, subject.parquet, tmp_path / "run", n_jobs=1, part_rows=300).path
    assert explain_files(subject.explainer, subject.parquet, folder, n_jobs=1, part_rows=300).rows == 700
    part = folder / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:-1] + b"!")
    with pytest.raises(DataError, match="its part 1 is not what was written"):
        explain_files(subject.explainer, subject.parquet, folder, n_jobs=1, part_rows=300)
