"""Words that readers stumbled over do not come back, neither in the source nor in the pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".pyi", ".j2", ".html", ".css", ".js", ".txt", ".toml", ".json"}

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
# What users read says it in these words; the search and the paper's tables speak of vertices and of the paper.
FOR_USERS = {
    r'decide[sd]? against(?!")': "refuses, refused",
    r"turn(?:s|ed)? (?:the|a|an|its|their) (?:model's )?(?:decision|outcome|model)": "changes the outcome",
    r"would have turned": "would have changed",
    r"would have done\b": "would have been enough",
    r"weightiest": "most important",
    r"same as a table": "Show as table",
    r"nothing to look at": "no warnings",
    r"goes on holding": "stays valid",
}
ELSEWHERE = ("src/fewest/engine", "src/fewest/experiments/paper", "docs/benchmarks")


def places(text: str, words: dict[str, str] = WORDS) -> list[tuple[int, str]]:
    """Lines that hold one of the words, with what was found and what to write."""
    patterns = {word: re.compile(rf"(?<![a-z])(?:{word})", re.IGNORECASE) for word in words}
    lines = enumerate(text.splitlines(), 1)
    found = [(n, word, hit) for n, line in lines for word, seen in patterns.items() for hit in seen.findall(line)]
    return [(n, f'"{hit.strip()}": write {words[word]}') for n, word, hit in found]


def words_for(path: Path) -> dict[str, str]:
    """The words that a file is held to."""
    return WORDS if path.relative_to(ROOT).as_posix().startswith(ELSEWHERE) else WORDS | FOR_USERS


def sources() -> list[Path]:
    return [path for path in sorted((ROOT / "src" / "fewest").rglob("*")) if path.suffix in SUFFIXES and path.is_file()]


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages()])
def test_pages_are_written_in_plain_words(page: Path) -> None:
    assert places(page.read_text("utf-8"), words_for(page)) == []


def test_the_source_is_written_in_plain_words() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in sources()
        for line, what in places(path.read_text("utf-8"), words_for(path))
    }
    assert sorted(found) == []


@pytest.mark.parametrize(
    "text",
    [
        "the answer hangs on it",
        "at most so many rows",
        "it is no number",
        "32 signs",
        "what is said of it",
        "Nought.",
        "rows decided against",
        "no set turns the decision",
        "it turns the model's decision",
        "what would have turned it",
    ],
)
def test_a_word_that_came_back_is_caught(text: str) -> None:
    """Negative control of the tests above."""
    assert len(places(text, WORDS | FOR_USERS)) == 1


@pytest.mark.parametrize(
    "text", ["there is no file", "it is no longer read", "who signs says so", "no worse, is no further"]
)
def test_plain_words_pass(text: str) -> None:
    assert places(text) == []
