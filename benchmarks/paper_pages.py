"""Copy what `fewest paper all --data-dir DATA --out DIR` made into docs/benchmarks/paper.

python benchmarks/paper_pages.py DIR

Left behind are units, JSON and PNG (the same in other forms), and cases of datasets whose terms do not let single rows
be passed on.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "benchmarks" / "paper"
OPEN_TERMS = ("CC BY 4.0", "ODbL 1.0")
PNG = re.compile(r"Also as \[PNG\]\([^)]*\) and, the numbers, as \[CSV\]")
HOW = """
Written by `fewest paper all --data-dir DATA --out DIR` and copied by `benchmarks/paper_pages.py`. Its units were
measured in several sittings and kept (`docs/benchmarks/units` has those of the training tables, with where they were
measured). Cases of COMPAS, FICO and Headline are made too, and not copied: their terms do not let rows be passed on.
"""


def main(made: str) -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "figures").mkdir(parents=True)
    for ending in ("svg", "csv"):
        for picture in Path(made, "figures").glob(f"*.{ending}"):
            shutil.copy(picture, FOLDER / "figures")
    kept_back = [page.name for page in Path(made).glob("examples-*.md") if not may_be_shown(page)]
    for page in Path(made).glob("*.md"):
        if page.name not in (*kept_back, "index.md"):
            shutil.copy(page, FOLDER)
    lines = Path(made, "index.md").read_text(encoding="utf-8").splitlines()
    contents = [PNG.sub("The numbers as [CSV]", line) for line in lines if not any(f"({x})" in line for x in kept_back)]
    first_heading = next(k for k, line in enumerate(contents) if line.startswith("## "))
    contents.insert(first_heading, HOW.strip() + "\n")
    (FOLDER / "index.md").write_text("\n".join(contents) + "\n", encoding="utf-8")


def may_be_shown(page: Path) -> bool:
    """Whether the terms of a dataset let rows of it be passed on."""
    return any(f"Terms of these rows: {terms}" in page.read_text(encoding="utf-8") for terms in OPEN_TERMS)


if __name__ == "__main__":
    main(sys.argv[1])
