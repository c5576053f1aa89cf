"""A browser is opened with a private file, by a process without limits, and nobody sees the token."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fewest.apps.opener import BrowserOpener

FIRST, NEXT = (f"http://127.0.0.1:1/?token={word}" for word in ("first", "next"))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    monkeypatch.setattr(webbrowser, "open", made.append)
    return made


def test_the_browser_gets_a_private_file_that_goes_when_it_was_used(opened: list[str]) -> None:
    opens = BrowserOpener()
    opens(FIRST)
    (shown,) = opened
    file = Path(urlsplit(shown).path)
    assert "first" not in shown
    assert FIRST in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    opens(NEXT)
    assert not file.exists()
    assert len(opened) == 1


@pytest.mark.parametrize(
    "address", ["", "file:///etc/passwd", "http://a/", "http://u@a/?token=x", f'{FIRST}"><script>']
)
def test_nothing_else_is_opened(opened: list[str], address: str) -> None:
    opens = BrowserOpener()
    opens(address)
    opens(FIRST)
    assert opened == []


# A command whose work asks for an address to be opened; the browser is a program that notes its arguments and limits.
SCRIPT = """
import sys
from fewest.apps.cli import _main
from fewest.apps.opener import opener
def work(**_):
    opener()("http://127.0.0.1:1/?token=first")
    import time
    time.sleep(2)
    return 0
_main.app = work
sys.argv = ["fewest", "explore", "run", "--open"]
sys.exit(_main.main())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_command_under_limits_lets_its_parent_open_it(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    lines = ["#!/bin/sh", f"cd {tmp_path}", "ulimit -v > new", 'echo "$@" >> new', 'cat "${1#file://}" >> new']
    browser.write_text("\n".join([*lines, "mv new seen", ""]))
    browser.chmod(0o700)
    environment = {**os.environ, "BROWSER": f"{browser} %s", "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for _ in range(50):
        if (tmp_path / "seen").exists():
            break
        time.sleep(0.1)
    limit, shown, *page = (tmp_path / "seen").read_text().splitlines()
    assert limit == "unlimited"
    assert shown.startswith("file://")
    assert "first" not in shown
    assert FIRST in "".join(page)
    assert not list(tmp_path.glob("fewest-*.html")), "it is gone with the command"
