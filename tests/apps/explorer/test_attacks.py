"""A run whose every name attacks, looked at with a real browser: nothing runs, nothing is loaded from elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason='pip install "fewest[explore]"')
pytest.importorskip("uvicorn", reason='pip install "fewest[explore]"')
pytest.importorskip("pyarrow", reason='pip install "fewest[runs]"')

from explorer_runs import PAYLOADS, problems_of, served
from jinja2 import Environment
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from fewest.apps.explorer import create_app
from fewest.runs import Run

SENTINEL = "() => window.__hit"
# What a visitor may do to a page without meaning to: open what is folded, point at things, give them the focus.
STIR = """() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  for (const one of document.querySelectorAll("main *")) {
    for (const kind of ["mouseover", "mouseenter", "focus", "toggle", "animationstart"]) {
      one.dispatchEvent(new Event(kind));
    }
  }
}"""


@pytest.fixture(scope="module")
def hostile_copy(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(hostile, tmp_path_factory.mktemp("copy") / "run"))


@pytest.fixture(scope="module")
def address(hostile_copy: Path) -> Iterator[str]:
    with served(create_app(hostile_copy, other=hostile_copy)) as made:
        yield made


class Watched:
    """A page with everything noted that should not happen."""

    def __init__(self, chromium: Any, address: str) -> None:
        self.context = chromium.new_context(viewport={"width": 900, "height": 800})
        self.page = self.context.new_page()
        self.home = address.partition("/?")[0]
        self.foreign: list[str] = []
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("dialog", lambda dialog: self.foreign.append(f"dialog {dialog.message}"))
        self.page.goto(address)

    def _asked(self, url: str) -> None:
        if not url.startswith(self.home + "/"):
            self.foreign.append(url)

    def stirred(self, path: str) -> tuple[Any, list[str]]:
        """What ran on a page once it was stirred, and what it asked of others."""
        self.page.goto(self.home + path)
        self.page.evaluate(STIR)
        return self.page.evaluate(SENTINEL), self.foreign


def surfaces(run: Path) -> list[str]:
    """Every page, with every feature, level, reference and case on at least one of them, and payloads in addresses."""
    schema = Run.open(run).schema
    slices = [f"/population?by={quote(feature.name)}" for feature in schema.features[::6]]
    filters = [f"/population?feature={quote(feature.name)}" for feature in schema.features[::6]]
    cases = [f"/decision/{row}" for row in range(0, 60, 7)]
    asked = [f"/find?q={quote(payload)}" for payload in PAYLOADS[:3]] + [f"/population?by={quote(PAYLOADS[1])}"]
    said = [f"/references?said={quote(PAYLOADS[0])}", f"/tree?row={quote(PAYLOADS[0])}"]
    return ["/", "/population?status=", "/references", "/compare", "/tree", *slices, *filters, *cases, *asked, *said]


def test_no_payload_runs_on_any_surface(chromium: Any, address: str, hostile_copy: Path) -> None:
    watched = Watched(chromium, address)
    for path in surfaces(hostile_copy):
        assert watched.stirred(path) == (None, []), path
    watched.context.close()


def test_payloads_that_are_written_do_not_run_when_they_are_read(chromium: Any, address: str) -> None:
    watched = Watched(chromium, address)
    page = watched.page
    page.goto(watched.home + "/references")
    page.get_by_label("Name or team").fill(PAYLOADS[1])
    page.get_by_label("Note").fill(PAYLOADS[0])
    with page.expect_navigation():
        page.locator("#sign button").click()
    assert PAYLOADS[1][:20] in page.locator("main").inner_text()
    page.get_by_text("Change values of").click()
    page.locator("#edit").get_by_label("size").fill(PAYLOADS[1])
    with page.expect_navigation():
        page.get_by_role("button", name="Save as version").click()
    assert page.locator("#edit").get_by_label("size").input_value() == PAYLOADS[1]
    page.evaluate(STIR)
    assert (page.evaluate(SENTINEL), watched.foreign) == (None, [])
    watched.context.close()


def careless_app(payload: str) -> Starlette:
    """A page that does not escape."""
    template = Environment(autoescape=True).from_string("<!doctype html><main>{{ name|safe }}</main>")

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(template.render(name=payload))

    return Starlette(routes=[Route("/{rest:path}", page)])


@pytest.mark.parametrize("payload", PAYLOADS[:3])
def test_a_template_marked_safe_is_caught(chromium: Any, payload: str) -> None:
    """Negative control: the same watching finds the hit on a page that neither escapes nor has a policy."""
    with served(careless_app(payload), guarded=False) as address:
        watched = Watched(chromium, address)
        watched.page.wait_for_function("window.__hit === 1", timeout=5000)
        watched.context.close()


@pytest.mark.parametrize("payload", PAYLOADS[:3])
def test_the_policy_holds_where_a_template_does_not(chromium: Any, payload: str) -> None:
    """Two walls: the payload is an element of the page, and still does not run."""
    with served(careless_app(payload)) as address:
        watched = Watched(chromium, address)
        hit, _ = watched.stirred("/x")
        assert hit is None
        assert problems_of(watched.page.content())
        watched.context.close()


def test_a_page_that_loads_from_elsewhere_is_caught(chromium: Any) -> None:
    """Negative control of the list of foreign requests."""

    with served(careless_app('<img src="http://127.0.0.1:9/x.png">'), guarded=False) as address:
        watched = Watched(chromium, address)
        assert watched.foreign == ["http://127.0.0.1:9/x.png"]
        watched.context.close()
