"""What a screen shows: nothing is cut off without a cue, on a desk and on a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='pip install "fewest[explore]"')
pytest.importorskip("uvicorn", reason='pip install "fewest[explore]"')
pytest.importorskip("pyarrow", reason='pip install "fewest[runs]"')

import pandas as pd
from explorer_runs import Subject, people, served

import fewest as fw
from fewest.apps.explorer import create_app
from fewest.models.trees import Leaf, Split, Tree
from fewest.models.trees.file import save_tree
from fewest.reporting import html
from fewest.runs import Run, explain_files
from fewest.runs.views import open_run, report

CUT = """() => [...document.querySelectorAll(".wide, .fw-wide")]
  .filter(region => region.scrollWidth > region.clientWidth)
  .map(region => [region.getAttribute("aria-label"), getComputedStyle(region).backgroundImage !== "none"])"""
TESTS = (("rate", 3.05), ("age", 40.5), ("amount", 9000.0), ("months", 30.5))


def grown(depth: int, number: int = 0) -> Split | Leaf:
    if depth == 0:
        return Leaf(number % 2 == 1, 0.2 + 0.5 * (number % 2), 40, 12)
    return Split(*TESTS[depth - 1], grown(depth - 1, 2 * number), grown(depth - 1, 2 * number + 1))


@pytest.fixture(scope="module")
def address(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    run = Path(shutil.copytree(subject.run, tmp_path_factory.mktemp("layout") / "run"))
    save_tree(Tree.build(Run.open(run).schema, grown(4)), run / "tree.json", ("good", "bad"))
    with served(create_app(run, other=subject.other)) as whole:
        yield whole


def cut(chromium: Any, address: str, path: str, width: int) -> list[list[Any]]:
    """Regions of a page that hold more than they show, and whether each has a cue."""
    context = chromium.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(address)
    page.goto(address.partition("/?")[0] + path)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    found = page.evaluate(CUT)
    context.close()
    return list(found)


BROKEN = """() => {
  const out = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    if (walker.currentNode.parentElement.closest("code")) continue;  // fingerprints
    for (const word of walker.currentNode.data.matchAll(/[a-z]{3,12}/g)) {
      const range = document.createRange();
      range.setStart(walker.currentNode, word.index);
      range.setEnd(walker.currentNode, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(box => box.top)).size > 1) out.push(word[0]);
    }
  }
  return out;
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_no_word_of_a_report_is_broken(chromium: Any, subject: Subject, tmp_path: Path, width: int) -> None:
    """With seven references the table is wider than the page: it scrolls, and says that one is not shown."""
    X, _ = people(400, 1)
    accepted = subject.explainer.references.frame.iloc[[0] * 7].reset_index(drop=True)
    names = [f"a typical case of number {number}" for number in range(7)]
    refs = fw.references.supplied(subject.decision, accepted.assign(age=range(40, 47)), X=X, names=names)
    explainer, cases = fw.Explainer(subject.decision, refs, n_jobs=1), subject.run.parent / "cases.csv"
    run = explain_files(explainer, cases, tmp_path / "run", n_jobs=1)
    for text in (report(open_run(run.path)), html(explainer.explain(pd.read_csv(cases)))):
        page = chromium.new_page(viewport={"width": width, "height": 900})  # the policy of a page stays with it
        page.set_content(text)
        assert page.evaluate(BROKEN) == []
        assert all(cue for _, cue in page.evaluate(CUT))
        assert "1 more reference is not shown." in text
        page.close()


@pytest.mark.parametrize("path", ["/compare", "/tree", "/references"])
def test_on_a_desk_nothing_is_cut_off(chromium: Any, address: str, path: str) -> None:
    assert cut(chromium, address, path, 1280) == []


def test_on_a_phone_the_references_fit_and_what_is_cut_off_has_a_cue(chromium: Any, address: str) -> None:
    assert cut(chromium, address, "/references", 390) == []
    for path in ("/compare", "/tree", "/population"):
        assert all(cue for _, cue in cut(chromium, address, path, 390))
    assert ["The tree, drawn", True] in cut(chromium, address, "/tree", 390)
