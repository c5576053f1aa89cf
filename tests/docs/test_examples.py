"""The code in the README and in the guide runs, and prints what the pages say."""

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FLAGS = doctest.NORMALIZE_WHITESPACE


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.S | re.M)


def check(source: str, name: str) -> doctest.TestResults:
    test = doctest.DocTestParser().get_doctest(source, {}, name, name, 0)
    out = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=out.write)
    assert runner.failures == 0, out.getvalue()
    return runner.summarize(verbose=False)


def test_the_readme_example_prints_its_sentence() -> None:
    (code,) = blocks(ROOT / "README.md", "python")
    said = blocks(ROOT / "README.md", "text")[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert printed.getvalue().split() == said.split()


def test_the_readme_example_has_eight_lines_and_two_commands_come_first() -> None:
    (code,) = blocks(ROOT / "README.md", "python")
    assert len([line for line in code.splitlines() if line.strip()]) == 8
    assert re.findall(r"^make \w+", blocks(ROOT / "README.md", "sh")[0], flags=re.M) == ["make demo", "make test"]


@pytest.mark.parametrize(("page", "least"), [("guide.md", 50), ("methods/training.md", 30)])
def test_every_block_of_a_page_runs_and_prints_what_it_shows(page: str, least: int) -> None:
    if "training" in page:
        pytest.importorskip("torch")
    session = "\n".join(blocks(ROOT / "docs" / page, "pycon"))
    assert check(session, page).attempted > least


def test_a_wrong_output_in_a_page_is_noticed() -> None:
    """Negative control of the test above."""
    with pytest.raises(AssertionError, match="Expected"):
        check(">>> 1 + 1\n3\n", "wrong")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "guide.md"], ids=lambda page: page.name)
def test_named_public_names_exist(page: Path) -> None:
    import fewest

    for name in re.findall(r"\bfw\.([A-Za-z_]+)", page.read_text()):
        assert hasattr(fewest, name), name
