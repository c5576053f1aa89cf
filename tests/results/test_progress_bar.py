"""A bar is shown where somebody looks and the work is long, and taken away again."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import fewest as fw
from fewest.errors import UsageError
from fewest.results import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(progress: Any, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    """What explaining two parts of one case each writes on stderr."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("fewest.engine.goals.CHUNK_CELLS", 1)
    monkeypatch.setattr("fewest.engine.goals.MAX_CHUNK", 1)
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    explainer = fw.Explainer(decision, fw.references.supplied(decision, {"debt": [20]}))
    explainer.explain({"debt": [90, 80]}, progress=progress)
    return stream.getvalue()


def test_a_terminal_has_a_bar_for_long_work_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(None, monkeypatch, Terminal()) == ""
    monkeypatch.setattr(progress_bar, "SECONDS", 0.0)
    half, whole = "━" * 12 + " " * 12, "━" * 24
    bars = f"\r\x1b[K{half} 1 of 2 cases\r\x1b[K{whole} 2 of 2 cases\r\x1b[K"
    assert shown(None, monkeypatch, Terminal()) == bars
    assert shown(True, monkeypatch, Terminal()) == bars
    assert shown(False, monkeypatch, Terminal()) == ""
    assert shown(None, monkeypatch, io.StringIO()) == ""


def test_a_notebook_has_one_in_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str]] = []

    class DisplayHandle:
        def display(self, html: str) -> None:
            calls.append(("display", html))

        def update(self, html: str) -> None:
            calls.append(("update", html))

    here = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", here)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(DisplayHandle=DisplayHandle, HTML=str))
    assert shown(True, monkeypatch, Terminal()) == ""
    assert calls == [
        ("display", '<progress value="0.500" max="1"></progress> 1 of 2 cases'),
        ("update", '<progress value="1.000" max="1"></progress> 2 of 2 cases'),
        ("update", ""),
    ]


def test_a_bar_is_taken_away_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)

    def work() -> None:
        with progress_bar.watched(True) as step:
            step(1, 2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_function_is_called_and_anything_else_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    shown(lambda *counts: calls.append(counts), monkeypatch, Terminal())
    assert calls == [(1, 2), (2, 2)]
    with pytest.raises(UsageError, match="progress is 'yes'"):
        shown("yes", monkeypatch, Terminal())
