"""Copy what `fewest paper all --data-dir DATA --jobs 2 --out DIR` made into docs/benchmarks/paper.

python benchmarks/paper_pages.py DIR ["what else is to be said of the run"]

The contents list every page with the datasets and splits it has. Pages that DIR does not have stay, and are marked as
earlier ones. Left behind are units, JSON and PNG (the same in other forms), what is quick, and cases of datasets whose
terms do not let single rows be passed on.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from fewest import datasets
from fewest.experiments import paper
from fewest.experiments.paper import figures
from fewest.experiments.paper.everything import CONTENTS, TITLE

FOLDER = Path(__file__).parent.parent / "docs" / "benchmarks" / "paper"
OPEN_TERMS = ("CC BY 4.0", "ODbL 1.0")
HOW = """
`fewest paper all --data-dir DATA --jobs 2 --out DIR`, copied by `benchmarks/paper_pages.py`. Every page says its
settings; here are its datasets and, in brackets, splits. The paper has ten; of Diabetes there are three (of
SEV-cluster ten), and in tables of training and of counterfactuals three of small datasets and one of large ones;
`--splits 10` gives all. Ten splits of our lines of All-Opt are in [training](../training.md), of SEV-cluster [line by
line](sevc-procedures.md), from units of their own (`docs/benchmarks/units`). Cases of COMPAS, FICO and Headline are
made too, and not copied: their terms do not let rows be passed on.
"""


def main(run: Path, note: str = "") -> None:
    """Copy, and write the contents."""
    (FOLDER / "figures").mkdir(parents=True, exist_ok=True)
    for picture in run.glob("figures/*.svg"):
        numbers = picture.with_suffix(".csv")
        if picture.stem in figures.names() and _may_show_values(numbers):
            shutil.copy(picture, FOLDER / "figures")
            shutil.copy(numbers, FOLDER / "figures")
    for page in run.glob("*.md"):
        if page.stem in paper.names() or (page.stem.startswith("examples-") and _may_be_shown(page)):
            shutil.copy(page, FOLDER)
    (FOLDER / CONTENTS).write_text("\n\n".join(contents(run, note)) + "\n", encoding="utf-8")


def contents(run: Path, note: str) -> Iterator[str]:
    """The parts of the contents."""
    yield f"# {TITLE}"
    yield HOW.strip()
    yield from (line for line in (run / CONTENTS).read_text(encoding="utf-8").splitlines() if line.startswith("Made "))
    yield from [note] if note else []
    yield "## Tables and cases"
    pages = [page for name in (*paper.names(), "examples") for page in sorted(FOLDER.glob(f"{name}[-.]*md"))]
    yield "\n".join(["| page | datasets |", "|---|---|", *(_line(page, run) for page in pages)])
    for name in figures.names():
        figure, stem = figures.find(name), f"figures/{name}"
        earlier = "" if (run / f"{stem}.svg").is_file() else " *Of an earlier run.*"
        yield f"## {figure.title}\n\n![{figure.title}]({stem}.svg)"
        yield f"{figure.caption} The numbers as [CSV]({stem}.csv).{earlier}"


def _line(page: Path, run: Path) -> str:
    """A page by its title, and the splits of each of its datasets."""
    text = page.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text if line.startswith("|")]
    counts: dict[str, set[str]] = {}
    for row in rows[2:] if rows and "splits" in rows[0] else ():
        counts.setdefault(row[0], set()).add(row[rows[0].index("splits")])
    said = ", ".join(f"{name} ({' and '.join(sorted(splits, key=int))})" for name, splits in counts.items())
    earlier = "" if (run / page.name).is_file() or page.stem not in paper.names() else "; of an earlier run"
    return f"| [{text[0].removeprefix('# ')}]({page.name}) | {said or page.stem.removeprefix('examples-')}{earlier} |"


def _may_show_values(numbers: Path) -> bool:
    """Whether the numbers of a figure hold no value of a case, or of datasets alone whose rows may be passed on."""
    table = pd.read_csv(numbers)
    found = table["dataset"].unique() if "value" in table else ()
    return all(datasets.book(name).licence.startswith(OPEN_TERMS) for name in found)


def _may_be_shown(page: Path) -> bool:
    """Whether the terms of a dataset let rows of it be passed on."""
    return any(f"Terms of these rows: {terms}" in page.read_text(encoding="utf-8") for terms in OPEN_TERMS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
