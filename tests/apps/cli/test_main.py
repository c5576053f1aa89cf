import signal
import subprocess
import sys
import types

import pytest

from fewest.apps.cli import _demo, _doctor, main
from fewest.errors import (
    DataError,
    FewestError,
    MissingExtraError,
    ModelError,
    TimeLimitError,
    UndefinedError,
    UnprovedError,
    UsageError,
    VerificationError,
)  # fmt: skip

ERRORS = [
    (FewestError, 1), (UsageError, 2), (MissingExtraError, 2), (DataError, 3), (ModelError, 4), (UndefinedError, 5),
    (VerificationError, 6), (TimeLimitError, 7), (UnprovedError, 8),
]  # fmt: skip


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from fewest.apps.cli import main; sys.exit(main())", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_installed_command_prints_its_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fewest 0.1.0\n", "")


def test_help_does_not_load_the_heavy_libraries() -> None:
    code = (
        "import sys; from fewest.apps.cli import main; main(['--help']);"
        "sys.exit(any(name in sys.modules for name in ('sklearn', 'torch', 'numba', 'jinja2')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120, check=False).returncode == 0


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["explain", "--help"], ["demo", "-h"], ["bench", "-h"]])
def test_help_is_printed_and_ends_well(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "Usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["bogus"], ["explain"], ["demo", "--model", "oracle"], ["doctor", "--nonsense"], ["explain", "x.csv"]]
)
def test_wrong_usage_ends_with_2_and_says_what_to_do(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("fewest: error: ")
    assert "\n  Try: fewest" in printed.err


@pytest.mark.parametrize(("error", "code"), ERRORS)
def test_each_kind_of_error_has_its_exit_code(
    error: type[FewestError], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> int:
        raise error("it went\x1b[31m wrong", do="mend it")

    monkeypatch.setattr(_doctor, "run", fail)
    assert main(["doctor"]) == code
    assert capsys.readouterr().err == "fewest: error: it went?[31m wrong\n  Try: mend it\n"


def test_an_unexpected_error_ends_with_1_and_a_short_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> int:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(_doctor, "run", fail)
    assert main(["doctor"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("fewest: internal error: ZeroDivisionError: a bug\n")
    assert "test_main.py" in printed.err
    assert len(printed.err.splitlines()) < 20


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(_demo, "run", interrupt)
    assert main(["demo"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_real_signal_ends_the_process_with_130() -> None:
    code = (
        "import sys, time; from fewest.apps.cli import main, _doctor\n"
        "def wait(*_): print('ready', flush=True); time.sleep(60)\n"
        "_doctor.run = wait; sys.exit(main(['doctor']))"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (130, "fewest: error: interrupted\n")


def test_bench_hands_its_options_on_and_returns_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}
    module = types.ModuleType("fewest.experiments.benchmarking")

    def bench_main(json: bool, quick: bool, only: list[str]) -> int:
        seen.update(json=json, quick=quick, only=only)
        return 3

    module.main = bench_main  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fewest.experiments.benchmarking", module)
    assert main(["bench", "--json", "--quick", "--only", "a", "--only", "b"]) == 3
    assert seen == {"json": True, "quick": True, "only": ["a", "b"]}


def test_a_closed_pipe_is_not_a_crash() -> None:
    code = "import sys; from fewest.apps.cli import main; sys.exit(main(['doctor', '--json']))"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    errors = child.stderr.read()
    child.stderr.close()
    child.wait(timeout=120)
    assert "Traceback" not in errors
    assert "internal error" not in errors
