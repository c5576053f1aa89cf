from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from asgi_asking import Browser
    from explorer_runs import Subject

    from fewest.apps.explorer import Live


@pytest.fixture(scope="session")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    from explorer_runs import make_subject

    return make_subject(tmp_path_factory.mktemp("explorer"))


@pytest.fixture(scope="session")
def states(subject: Subject) -> tuple[Path, dict[str, int]]:
    """A run with a case of every state, and their rows."""
    from explorer_runs import add_states

    folder = subject.run.parent / "states"
    shutil.copytree(subject.run, folder)
    return folder, add_states(folder)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from explorer_runs import make_hostile

    return make_hostile(tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def own_run(subject: Subject, tmp_path: Path) -> Path:
    """A copy of the run that a test may write to."""
    return Path(shutil.copytree(subject.run, tmp_path / "run"))


@pytest.fixture(scope="session")
def live_of(subject: Subject) -> Callable[[Path], Live]:
    from fewest.apps.explorer import Live
    from fewest.runs import Run

    def make(run: Path) -> Live:
        return Live.open(subject.decision, run, Run.open(run).manifest["settings"], "model.skops")

    return make


@pytest.fixture(scope="session")
def ask() -> Callable[..., Browser]:
    """A browser of a few lines that is let in already."""
    from asgi_asking import Browser
    from explorer_runs import HOST, PORT, TOKEN

    from fewest.apps.explorer import Guard, create_app, known_hosts

    def make(run: Path, **choices: Any) -> Browser:
        made = Browser(Guard(create_app(run, **choices), known_hosts(PORT), TOKEN), HOST)
        made.get(f"/?token={TOKEN}")
        return made

    return make


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A real browser without a window; one for all tests of a module."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no chromium: apt install chromium")
    with sync_api.sync_playwright() as started:
        made = started.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()
