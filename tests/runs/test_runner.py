"""Same bytes for any chunk size, any number of jobs, and however often the run is stopped."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.errors import DataError, ModelError, TimeLimitError, UsageError
from fewest.runs import Run, explain_files
from fewest.runs.cases import Cases
from fewest.runs.run import JOURNAL, MANIFEST
from fewest.runs.storage import LOCK, locked

PARTS = {"part_rows": 100}


class Refuses:
    """A model that fails, or loses its numbers, at certain rows; a class, so that it can be sent to a process."""

    def __init__(self, at: int, how: str) -> None:
        self.at, self.how = at, how

    def __call__(self, rows: pd.DataFrame) -> Any:
        if (rows["debt"] == self.at).any():
            if self.how == "raises":
                raise RuntimeError("no such customer")
            return np.full(len(rows), np.nan)
        return rows["debt"].to_numpy() / 1000


def start(subject: Any, folder: Path, **more: Any) -> Run:
    return explain_files(subject.explainer, subject.parquet, folder, **{"n_jobs": 1, **PARTS, **more})


@pytest.fixture(scope="module")
def whole(subject: Any, fingerprint: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The run that nobody disturbed."""
    return dict(fingerprint(start(subject, tmp_path_factory.mktemp("whole") / "run").path))


@pytest.mark.parametrize(
    "more",
    [{"chunk_rows": 7}, {"chunk_rows": 100_000}, {"n_jobs": 2, "chunk_rows": 33},
     pytest.param({"n_jobs": 2}, marks=pytest.mark.slow)],
)  # fmt: skip
def test_chunks_and_jobs_leave_no_trace(subject: Any, whole: Any, fingerprint: Any, more: Any, tmp_path: Path) -> None:
    assert fingerprint(start(subject, tmp_path / "run", **more).path) == whole


def test_a_closed_box_leaves_no_trace_of_chunks_either(subject: Any, fingerprint: Any, tmp_path: Path) -> None:
    closed = subject.explainer.with_(structure="opaque")
    runs = [
        fingerprint(explain_files(closed, subject.csv, tmp_path / str(rows), n_jobs=1, chunk_rows=rows, **PARTS).path)
        for rows in (37, 100)
    ]
    assert runs[0] == runs[1]


def test_other_rows_leave_a_trace(subject: Any, whole: Any, fingerprint: Any, tmp_path: Path) -> None:
    """Negative control: the comparison of folders sees one changed cell."""
    cases = subject.cases.copy()
    cases.loc[650, "debt"] += 1
    cases.to_parquet(tmp_path / "cases.parquet", row_group_size=150)
    run = explain_files(subject.explainer, tmp_path / "cases.parquet", tmp_path / "run", n_jobs=1, **PARTS)
    now = fingerprint(run.path)
    last = [f"part-00006.{ending}" for ending in ("cases.parquet", "certificates.parquet", "parquet")]
    assert [name for name in whole if now[name] != whole[name]] == ["manifest.json", *last]


def test_files_of_all_kinds_hold_the_same_answers(subject: Any, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    subject.cases.iloc[:333].to_csv(many / "a.csv", index=False)
    subject.cases.iloc[333:334].to_csv(many / "b.csv.gz", index=False)
    subject.cases.iloc[334:].to_parquet(many / "c.parquet")
    (many / "_SUCCESS").write_text("")
    (many / "notes.txt").write_text("not a table")
    expected = start(subject, tmp_path / "one").table()
    for k, data in enumerate([subject.csv, many, [many / "a.csv", many / "b.csv.gz", many / "c.parquet"]]):
        run = explain_files(subject.explainer, data, tmp_path / f"run{k}", n_jobs=1, **PARTS)
        pd.testing.assert_frame_equal(run.table(), expected)


class StopError(Exception):
    """Thrown in the middle of a run."""


def test_a_run_that_was_stopped_goes_on_and_ends_in_the_same_bytes(
    subject: Any, whole: Any, fingerprint: Any, tmp_path: Path
) -> None:
    def stop(*_: Any) -> None:
        raise StopError

    for done in range(1, 4):
        with pytest.raises(StopError):
            start(subject, tmp_path / "run", progress=stop)
        assert len((tmp_path / "run" / JOURNAL).read_text().splitlines()) == 1 + done
    with (tmp_path / "run" / JOURNAL).open("ab") as journal:
        journal.write(b'rubbish\n{"part": 5, "fir')  # a line that was torn by the kill
    (tmp_path / "run" / ".part-00005.parquet.123.part").write_bytes(b"half")
    (tmp_path / "run" / "part-00001.parquet").write_bytes(b"rotten")
    seen: list[int] = []
    start(subject, tmp_path / "run", progress=lambda done, total, counts: seen.append(done))
    assert seen == [300, 400, 500, 600, 700]
    assert fingerprint(tmp_path / "run") == whole
    before = (tmp_path / "run" / MANIFEST).stat().st_mtime_ns
    start(subject, tmp_path / "run", progress=stop)
    assert (tmp_path / "run" / MANIFEST).stat().st_mtime_ns == before


def test_what_changed_since_is_named_and_refused(subject: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(TimeLimitError):
        start(subject, folder, time_limit=0)
    kept = sorted(file.name for file in folder.iterdir())
    assert kept == [JOURNAL, "references.json"]
    cases = tmp_path / "cases.parquet"
    subject.cases.assign(debt=1).to_parquet(cases)
    other = fw.Decision(subject.decision.model, positive="bad", threshold=0.6)
    refs = subject.explainer.references
    changed = {
        "the data": lambda: explain_files(subject.explainer, cases, folder, n_jobs=1, **PARTS),
        "part_rows": lambda: start(subject, folder, part_rows=99),
        "alternatives": lambda: start(subject, folder, alternatives=2),
        "weights": lambda: explain_files(subject.explainer.with_(weights={"age": 2}), subject.parquet, folder, **PARTS),
        "constraints": lambda: explain_files(
            subject.explainer.with_(constraints=fw.Constraints(fw.Immutable("age"))), subject.parquet, folder, **PARTS
        ),
        "threshold": lambda: explain_files(subject.explainer.with_(decision=other), subject.parquet, folder, **PARTS),
        "the references": lambda: explain_files(
            subject.explainer.with_(references=refs.sign_off("Risk")), subject.parquet, folder, **PARTS
        ),
    }
    for what, again in changed.items():
        with pytest.raises(UsageError, match=what):
            again()
    assert sorted(file.name for file in folder.iterdir()) == kept
    start(subject, folder)
    with pytest.raises(UsageError, match="the data"):
        changed["the data"]()


def test_a_changed_model_is_refused_by_its_scores_or_by_its_file(subject: Any, tmp_path: Path) -> None:
    decision = subject.decision
    twin = fw.Decision(lambda rows: decision.score(rows) * 1.0001, threshold=0.5)
    with pytest.raises(TimeLimitError):
        start(subject, tmp_path / "run", time_limit=0)
    with pytest.raises(UsageError, match="changed since: the model"):
        explain_files(subject.explainer.with_(decision=twin), subject.parquet, tmp_path / "run", n_jobs=1, **PARTS)
    file = tmp_path / "model.bin"
    file.write_bytes(b"one")
    with pytest.raises(TimeLimitError):
        start(subject, tmp_path / "run2", time_limit=0, model_file=file)
    file.write_bytes(b"two")
    with pytest.raises(UsageError, match="changed since: the model"):
        start(subject, tmp_path / "run2", model_file=file)


def test_a_time_limit_keeps_what_was_done(subject: Any, whole: Any, fingerprint: Any, tmp_path: Path) -> None:
    clock = time.monotonic

    def slow(*_: Any) -> None:
        time.monotonic = lambda: clock() + 1000

    try:
        with pytest.raises(TimeLimitError, match="time limit"):
            start(subject, tmp_path / "run", time_limit=500, progress=slow)
    finally:
        time.monotonic = clock
    assert (tmp_path / "run" / "part-00000.parquet").exists()
    assert not (tmp_path / "run" / "part-00001.parquet").exists()
    assert fingerprint(start(subject, tmp_path / "run", time_limit=1000).path) == whole


def test_two_processes_do_not_share_a_folder_and_a_dead_ones_lock_is_free(subject: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c",
         "import sys; from pathlib import Path; from fewest.runs.storage import locked\n"
         "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match=rf"another process \({holder.pid}\)"):
            start(subject, folder)
    finally:
        holder.kill()
        holder.communicate()
    assert (folder / LOCK).exists()
    assert start(subject, folder).rows == 700
    assert not (folder / LOCK).exists()
    with locked(folder), pytest.raises(UsageError, match="another process"), locked(folder):
        pass


def test_a_full_disk_is_named_and_nothing_is_lost(
    subject: Any, whole: Any, fingerprint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = os.write, [60_000]

    def quota(number: int, data: Any) -> int:
        if len(data) > left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= len(data)
        return write(number, data[: max(1, len(data) // 2)])  # and never all at once

    monkeypatch.setattr(os, "write", quota)
    with pytest.raises(DataError, match="disk is full"):
        start(subject, tmp_path / "run")
    monkeypatch.undo()
    assert not list((tmp_path / "run").glob(".*"))
    assert (tmp_path / "run" / "part-00000.parquet").exists()
    assert fingerprint(start(subject, tmp_path / "run").path) == whole


def test_folders_that_cannot_be_written_are_named(
    subject: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        start(subject, tmp_path / "file")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match=r"thesis\.tex"):
        start(subject, tmp_path / "mine")

    def refused(*_: Any, **__: Any) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(UsageError, match="no permission"):
        start(subject, tmp_path / "closed")


@pytest.mark.parametrize(
    ("how", "said", "jobs"),
    [("raises", "no such customer", 1), ("nan", "is NaN", 1), ("nan", "is NaN", 2),
     pytest.param("raises", "no such customer", 2, marks=pytest.mark.slow)],
)  # fmt: skip
def test_a_model_that_fails_in_the_middle_keeps_what_was_done(how: str, said: str, jobs: int, tmp_path: Path) -> None:
    cases = tmp_path / "cases.csv"
    pd.DataFrame({"debt": range(1000)}).to_csv(cases, index=False)
    model = Refuses(905, how)
    decision = fw.Decision(model)
    explainer = fw.Explainer(decision, fw.references.supplied(decision, {"debt": [10]}))
    with pytest.raises((ModelError, UsageError), match=f"{said}|cannot be sent|worker process"):
        explain_files(explainer, cases, tmp_path / "run", n_jobs=jobs, part_rows=100)
    if jobs == 1:
        journal = (tmp_path / "run" / JOURNAL).read_text().splitlines()
        assert [json.loads(line)["part"] for line in journal[1:]] == list(range(9))


@pytest.mark.slow
def test_an_error_in_a_worker_is_the_error_of_the_run(subject: Any, tmp_path: Path) -> None:
    cases = subject.cases.copy()
    cases.loc[555, "code"] = "Z99"
    cases.to_csv(tmp_path / "cases.csv", index=False)
    with pytest.raises(DataError, match=r"rows 500 to 599 of the data: .*Z99") as caught:
        explain_files(subject.explainer, tmp_path / "cases.csv", tmp_path / "run", n_jobs=2, **PARTS)
    assert caught.value.do is not None
    assert not list((tmp_path / "run").glob(".*"))
    # Which parts were done by then depends on which worker was ready first.
    assert list((tmp_path / "run").glob("part-*.parquet"))


def test_a_journal_that_cannot_be_read_is_named(subject: Any, tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text("rubbish")
    with pytest.raises(DataError, match="is damaged"):
        start(subject, tmp_path)


def test_counts_of_nothing_are_refused(subject: Any, tmp_path: Path) -> None:
    for name in ("n_jobs", "chunk_rows", "part_rows"):
        with pytest.raises(UsageError, match=name):
            start(subject, tmp_path / "run", **{name: 0})


def test_parts_are_cut_at_the_same_rows_whatever_is_wanted(subject: Any) -> None:
    cases = Cases((subject.parquet, subject.csv), subject.explainer.schema, part_rows=130)
    every = {part.number: cases.typed(part) for part in cases.parts()}
    assert pd.concat(every.values()).index.tolist() == list(range(1400))
    for number in (0, 4, 5, 10):
        (part,) = cases.parts(lambda k, number=number: k == number)
        pd.testing.assert_frame_equal(cases.typed(part), every[number])
