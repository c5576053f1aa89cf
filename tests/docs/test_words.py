"""Words that readers stumbled over do not come back, neither in the source nor in the pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".pyi", ".html", ".css", ".js", ".txt", ".toml", ".json"}

WORDS = {
    r"nought": "zero",
    r"(?:hangs?|hung|hanging) on": "depends on",
    r"told": "said, named, distinguished",
    r"said of": "about",
    r"whom": "who",
    r"gone on with": "resumed",
    r"so (?:many|much)": "up to N, this many",
    r"(?<!there )(?:is|are) no (?!more|less|longer|further|denser|smaller|larger|better|worse)": "is not a",
    r"(?:\d+|control|first|last|odd|such|unusual) signs|signs (?:long|of (?:a|the) (?:name|text|file))": "characters",
    r"downwards": "descending",
    r"should not be overlooked": "warnings",
}
PATTERNS = {word: re.compile(rf"(?<![a-z])(?:{word})", re.IGNORECASE) for word in WORDS}


def places(text: str) -> list[tuple[int, str]]:
    """Lines that hold one of the words, with what was found and what to write."""
    lines = enumerate(text.splitlines(), 1)
    found = [(n, word, hit) for n, line in lines for word, seen in PATTERNS.items() for hit in seen.findall(line)]
    return [(n, f'"{hit.strip()}": write {WORDS[word]}') for n, word, hit in found]


def sources() -> list[Path]:
    return [path for path in sorted((ROOT / "src" / "fewest").rglob("*")) if path.suffix in SUFFIXES and path.is_file()]


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages()])
def test_pages_are_written_in_plain_words(page: Path) -> None:
    assert places(page.read_text("utf-8")) == []


def test_the_source_is_written_in_plain_words() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in sources()
        for line, what in places(path.read_text("utf-8"))
    }
    assert sorted(found) == []


@pytest.mark.parametrize(
    "text",
    ["the answer hangs on it", "at most so many rows", "it is no number", "32 signs", "what is said of it", "Nought."],
)
def test_a_word_that_came_back_is_caught(text: str) -> None:
    """Negative control of the tests above."""
    assert len(places(text)) == 1


@pytest.mark.parametrize(
    "text", ["there is no file", "it is no longer read", "who signs says so", "no worse, is no further"]
)
def test_plain_words_pass(text: str) -> None:
    assert places(text) == []
