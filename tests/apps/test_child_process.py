"""What happens to a command's child process ends there: the parent says how, with exit code 4."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

# `fewest explain` with something else in place of its work; what that does is the rest of the script.
SCRIPT = """
import ctypes, os, socket, sys, time
from pathlib import Path
from fewest.apps import child_process
from fewest.apps.cli import _main
def work(**_):
    {work}
    return 0
_main.app = work
sys.argv = ["fewest", {before}"explain", "cases.csv"]
sys.exit(_main.main())
"""

LIMITED = "child_process.LOADING = 0.1\n    with child_process.loading():"


def start(work: str, folder: Path, *before: str) -> subprocess.Popen[str]:
    code = SCRIPT.format(work=work, before="".join(f"{word!r}, " for word in before))
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(work: str, folder: Path, *before: str) -> tuple[int, str, str]:
    process = start(work, folder, *before)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_a_command_does_its_work_in_a_child(tmp_path: Path) -> None:
    code, out, err = ended("print(os.getppid()); return 5", tmp_path)
    assert (code, err) == (5, "")
    assert int(out) != os.getpid()
    assert ended("print(os.getppid())", tmp_path, "--in-process")[1] == f"{os.getpid()}\n"


@pytest.mark.parametrize(
    ("work", "why"),
    [
        ("ctypes.string_at(0)", "it crashed (SIGSEGV)"),
        ("os.abort()", "it crashed (SIGABRT)"),
        ("os.kill(os.getpid(), 9)", "most likely for lack of memory"),
        ("bytearray(10**15)", "it takes more memory than it may"),
        (
            "child_process.LOADING = 0.1\n    with child_process.loading():\n        while True: pass",
            "more processor time",
        ),
    ],
)
def test_what_ends_the_child_is_exit_code_4_with_the_reason(work: str, why: str, tmp_path: Path) -> None:
    code, out, err = ended(work, tmp_path)
    assert (code, out) == (4, "")
    assert why in err
    assert "\n  Try: " in err


def test_without_a_child_a_crash_is_a_crash(tmp_path: Path) -> None:
    """The control: the same work, in the process itself."""
    assert ended("ctypes.string_at(0)", tmp_path, "--in-process")[0] == -signal.SIGSEGV


def test_after_the_model_is_loaded_there_is_no_limit_on_work(tmp_path: Path) -> None:
    work = f"{LIMITED} pass\n    sum(range(10**8))"
    assert ended(work, tmp_path)[0] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no such limits")
@pytest.mark.parametrize(
    "work",
    [
        "Path('{outside}/new').write_text('x')",
        "os.truncate('{outside}/theirs', 0)",
        "os.remove('{outside}/theirs')",
        "os.symlink('theirs', '{outside}/link')",
        "os.kill(os.getppid(), 9)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "socket.create_connection(('127.0.0.1', 9))",
    ],
)
def test_it_writes_and_calls_nowhere_else(
    work: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "theirs").write_text("kept")
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # temporary files may be written, and these are in the same place
    code, _, err = ended(work.format(outside=outside), tmp_path)
    assert code == 1
    assert "PermissionError" in err
    assert [file.name for file in outside.iterdir()] == ["theirs"]
    assert (outside / "theirs").read_text() == "kept"


def test_it_writes_where_the_command_says(tmp_path: Path) -> None:
    assert ended("Path('answers.json').write_text('x'); Path(os.devnull).write_text('x')", tmp_path)[0] == 0
    assert (tmp_path / "answers.json").read_text() == "x"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_signals_are_passed_on(number: signal.Signals, code: int, tmp_path: Path) -> None:
    process = start("print('at work', flush=True); time.sleep(60)", tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == code


def test_a_signal_that_comes_before_the_parent_is_ready_is_passed_on_too(tmp_path: Path) -> None:
    slow = "child_process._pass_signals_on = lambda child, ready=child_process._pass_signals_on: "
    slow += "(time.sleep(1), ready(child))"
    work = "print('at work', flush=True); time.sleep(60)"
    script = SCRIPT.format(work=work, before="").replace("_main.app = work", f"_main.app = work\n{slow}")
    process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell children")
def test_a_parent_that_is_killed_takes_the_child_with_it(tmp_path: Path) -> None:
    process = start("print(os.getpid(), flush=True); time.sleep(60)", tmp_path)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=30)
    for _ in range(100):
        if not Path(f"/proc/{child}").exists() or "State:\tZ" in Path(f"/proc/{child}/status").read_text():
            return
        time.sleep(0.1)
    pytest.fail("the child goes on")
