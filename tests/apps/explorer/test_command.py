"""``fewest explore``: what it prints, what it refuses, and that it serves until it is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette", reason='pip install "fewest[explore]"')
pytest.importorskip("uvicorn", reason='pip install "fewest[explore]"')
pytest.importorskip("pyarrow", reason='pip install "fewest[runs]"')

import typer
from explorer_runs import Subject, served
from explorer_serving import get, started
from typer.testing import CliRunner

from fewest.apps.cli._outlets import explore
from fewest.apps.explorer import Binding, announcer, create_app
from fewest.apps.explorer._server import is_loopback, listen
from fewest.apps.opener import private_redirect
from fewest.errors import DataError, UsageError


def app() -> typer.Typer:
    made = typer.Typer()
    made.command()(explore)
    return made


def test_it_prints_an_address_that_lets_in_once_and_stops_politely(subject: Subject) -> None:
    with started(str(subject.run)) as (process, address):
        first = get(address)
        cookie = (first.getheader("set-cookie") or "").partition(";")[0]
        assert first.status == 303
        assert get(address, "/", {"cookie": cookie}).status == 200
        assert get(address, "/").status == 401
        assert get(address).status == 401
        assert process.stdout is not None
        said, _, following = process.stdout.readline().strip().rpartition(" ")
        assert said == "A browser was let in. For another one:"
        assert get(following).status == 303
        assert get(address, "/", {"host": "evil.example"}).status == 400
        assert first.getheader("server") is None
    assert process.returncode in (0, 1, 130, -signal.SIGINT)


def test_without_being_asked_no_browser_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: pytest.fail("nobody asked"))
    announcer()("http://127.0.0.1:1/?token=first")


def test_the_private_file_leads_in_with_a_real_browser(chromium: Any, subject: Subject) -> None:
    with served(create_app(subject.run)) as address:
        file = private_redirect(address)
        page = chromium.new_page()
        page.goto(file.as_uri())
        page.wait_for_url(address.partition("?")[0])
        assert "Loans of the north" in page.content()
        page.close()
        file.unlink()


def test_the_help_is_quick_to_load() -> None:
    code = "import sys, fewest.apps.cli._outlets; print([m for m in ('uvicorn', 'starlette') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    shown = CliRunner().invoke(app(), ["--help"], terminal_width=200)
    assert "--allow-host" in shown.output


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app(), [str(tmp_path)])
    assert isinstance(answer.exception, DataError)


def test_live_needs_a_model(subject: Subject) -> None:
    answer = CliRunner().invoke(app(), [str(subject.run), "--live"])
    assert isinstance(answer.exception, UsageError)
    assert "none is named" in str(answer.exception)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "risk.example"])
def test_other_machines_are_let_in_only_by_name(subject: Subject, host: str) -> None:
    answer = CliRunner().invoke(app(), [str(subject.run), "--host", host])
    assert isinstance(answer.exception, UsageError)
    assert "--allow-host" in str(answer.exception)


def test_with_a_name_other_machines_may_ask_by_it(subject: Subject) -> None:
    with started(str(subject.run), "--host", "0.0.0.0", "--allow-host", "risk.example") as (_, address):
        assert address.startswith("http://risk.example:")
        here = address.replace("risk.example", "127.0.0.1")
        port = urlsplit(address).port
        assert get(here, "/", {"host": f"risk.example:{port}"}).status == 401
        assert get(here, "/", {"host": f"other.example:{port}"}).status == 400


def test_a_port_that_is_taken_is_named_and_the_usual_one_gives_way() -> None:
    taken = listen(Binding(port=0))
    port = taken.getsockname()[1]
    taken.listen()
    with pytest.raises(UsageError, match=f"127.0.0.1:{port} cannot be listened on"):
        listen(Binding(port=port)).close()
    taken.close()


@pytest.mark.parametrize(
    ("host", "own"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("10.0.0.1", False)]
)
def test_loopback_is_told_from_other_addresses(host: str, own: bool) -> None:
    assert is_loopback(host) is own


def test_a_missing_library_is_named_with_its_install_line(subject: Subject) -> None:
    code = f"""
import importlib.util
from pathlib import Path
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "starlette" else find(name, *rest)
from fewest.apps.cli._outlets import explore
explore(Path({str(subject.run)!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "fewest[explore]"' in done.stderr
