"""WCAG 2.2 AA as far as axe-core sees it, on every page and in every state: light, dark and on a phone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='pip install "fewest[explore]"')
pytest.importorskip("uvicorn", reason='pip install "fewest[explore]"')
pytest.importorskip("pyarrow", reason='pip install "fewest[runs]"')

from explorer_runs import Subject, add_states, fw_table, make_tree, served

from fewest.apps.explorer import Live, create_app

axe_module = pytest.importorskip("axe_playwright_python.base", reason="pip install axe-playwright-python")

MODES: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 375, "height": 740}, "is_mobile": True, "has_touch": True},
}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = f"async () => (await axe.run(document, {{runOnly: {json.dumps(RULES)}, resultTypes: ['violations']}})).violations"


@pytest.fixture(scope="module")
def place(
    subject: Subject, live_of: Callable[[Path], Live], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, str]]]:
    """A served run with everything on its pages, and the pages."""
    run = Path(shutil.copytree(subject.run, tmp_path_factory.mktemp("axe") / "run"))
    rows = add_states(run)
    make_tree(run)
    explained = fw_table(run).query("status == 'EXPLAINED' and sev == 2")["row"].tolist()
    with served(create_app(run, other=subject.other, live=live_of(run), protected=["months"])) as address:
        yield (
            address,
            {
                "start": "/",
                "population": "/population",
                "decision": f"/decision/{explained[0]}",
                "accepted": f"/decision/{rows['ALREADY_NEGATIVE']}",
                "impossible": f"/decision/{rows['UNREACHABLE']}",
                "not credible": f"/decision/{rows['NOT_CREDIBLE']}",
                "at least": f"/decision/{rows['BUDGET']}",
                "typed wrong": f"/decision/{explained[0]}?f0=lots&hold=age",
                "references": "/references",
                "compare": "/compare",
                "tree": "/tree",
                "problem": "/decision/999999",
            },
        )


def violations(page: Any) -> list[str]:
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.evaluate(axe_module.AXE_SCRIPT)
    return [f"{found['id']}: {found['nodes'][0]['html'][:160]}" for found in page.evaluate(RUN)]


PAGES = (
    "start", "population", "decision", "accepted", "impossible", "not credible", "at least", "typed wrong",
    "references", "compare", "tree", "problem",
)  # fmt: skip
ROTATED = [(name, list(MODES)[k % len(MODES)]) for k, name in enumerate(PAGES)]
OTHERS = [(name, mode) for name in PAGES for mode in MODES if (name, mode) not in ROTATED]


def check(chromium: Any, place: tuple[str, dict[str, str]], name: str, mode: str) -> None:
    address, pages = place
    context = chromium.new_context(**MODES[mode])
    page = context.new_page()
    page.goto(address)
    page.goto(address.partition("/?")[0] + pages[name])
    found = violations(page)
    context.close()
    assert found == []


@pytest.mark.parametrize(("name", "mode"), ROTATED)
def test_axe_finds_nothing_on_a_page(chromium: Any, place: tuple[str, dict[str, str]], name: str, mode: str) -> None:
    check(chromium, place, name, mode)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), OTHERS)
def test_axe_finds_nothing_in_the_other_modes(
    chromium: Any, place: tuple[str, dict[str, str]], name: str, mode: str
) -> None:
    check(chromium, place, name, mode)


def test_axe_finds_what_is_wrong(chromium: Any) -> None:
    """Negative control: a page with low contrast, a picture without text and a field without a label."""
    context = chromium.new_context()
    page = context.new_page()
    page.set_content("<html lang=en><title>x</title><main><h1>x</h1><p style='color:#ccc'>pale</p><img src=x><input>")
    found = {line.partition(":")[0] for line in violations(page)}
    context.close()
    assert {"color-contrast", "image-alt", "label"} <= found
