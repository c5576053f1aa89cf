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

# Places in the source that are known to have one: nothing may be added.
LEFT: set[str] = {
    "fewest/apps/cli/_datasets.py",
    "fewest/apps/cli/_demo.py",
    "fewest/apps/cli/_files.py",
    "fewest/apps/cli/_references_work.py",
    "fewest/apps/cli/_report.py",
    "fewest/apps/cli/_train_allopt.py",
    "fewest/checks.py",
    "fewest/credibility/points.py",
    "fewest/engine/model_reading.py",
    "fewest/engine/points.py",
    "fewest/engine/search/_blocks.py",
    "fewest/engine/search/_gaussians.py",
    "fewest/engine/search/_subsets.py",
    "fewest/engine/search/additive.py",
    "fewest/engine/search/credible.py",
    "fewest/engine/search/ensemble.py",
    "fewest/engine/search/network.py",
    "fewest/engine/structure/question.py",
    "fewest/experiments/paper/counterfactuals.py",
    "fewest/experiments/paper/runner.py",
    "fewest/models/rashomon/_praxis.py",
    "fewest/references/base.py",
    "fewest/references/clustering/space.py",
    "fewest/references/own_points.py",
    "fewest/references/signatures.py",
    "fewest/reporting/_tree_layout.py",
    "fewest/results/notebook.py",
    "fewest/runs/batches.py",
    "fewest/runs/run_files.py",
    "fewest/runs/spark.py",
    "fewest/runs/verification/claims.py",
    "fewest/runs/verification/leaf_entry.py",
    "fewest/runs/verification/minimality.py",
    "fewest/runs/verification/model_scores.py",
    "fewest/runs/verification/verifier.py",
    "fewest/tables/one_hot.py",
}


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
        f"{name}:{line}: {what}"
        for path in sources()
        if (name := str(path.relative_to(ROOT / "src"))) not in LEFT
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
