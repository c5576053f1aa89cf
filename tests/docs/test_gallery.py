"""The gallery and the notebooks: every picture class is shown, what they name is there. `make docs` runs them all."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

import pytest

from fewest.reporting import plots

ROOT = Path(__file__).parents[2]
GALLERY = sorted((ROOT / "examples" / "gallery").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.py"))
SHORTHAND = {r"(?:\]|near)\.plot\(\)": "ScoreLineDisplay", r"out\.plot\(\)": "overview"}

sys.path.insert(0, str(ROOT / "scripts"))
from check_links import broken  # noqa: E402


def drawn(text: str) -> set[str]:
    """Picture classes that an example names, or calls by their short form."""
    return set(re.findall(r"\bplots\.(\w+)", text)) | {
        name for call, name in SHORTHAND.items() if re.search(call, text)
    }


def test_every_picture_class_is_in_the_gallery() -> None:
    shown = {name for path in GALLERY for name in drawn(path.read_text("utf-8"))}
    assert set(plots.__all__) - shown == set()
    assert len(GALLERY) >= 12
    assert [path.stem for path in NOTEBOOKS] == ["clinician", "lender", "researcher"]


@pytest.mark.parametrize("path", [*GALLERY, *NOTEBOOKS], ids=lambda path: path.stem)
def test_an_example_has_a_title_a_picture_and_no_names_that_are_not_there(path: Path) -> None:
    text = path.read_text("utf-8")
    title, line = (ast.get_docstring(ast.parse(text)) or "").splitlines()[:2]
    assert set(line) == {"="}
    assert len(line) >= len(title)
    assert not re.search(r"^# \S.* -{5,}$", text, re.MULTILINE), "a heading and its line are two lines"
    assert drawn(text)
    assert drawn(text) <= set(plots.__all__)


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_runs(path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    runpy.run_path(str(path))
    pyplot = pytest.importorskip("matplotlib.pyplot")
    assert len(pyplot.get_fignums()) == 1
    pyplot.close("all")


def test_a_link_that_leads_nowhere_is_caught(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#there">b</a> <a href="#no">no</a> <a href="https://x.y/z">z</a>')
    (tmp_path / "b.html").write_text('<p id="there"><img src="c.png"></p>')
    assert broken(tmp_path) == (["a.html: #no", "b.html: c.png"], 3)
