"""Copy what `fewest paper all | table | figure --data-dir DATA --out DIR` made into docs/benchmarks/paper.

python benchmarks/paper_pages.py DIR

Pages and pictures that DIR does not have stay as they are; the contents list all that are there, with the datasets and
splits of each. Left behind are units, JSON and PNG (the same in other forms), what is quick, and cases of datasets
whose terms do not let single rows be passed on.
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pandas as pd

from fewest import datasets
from fewest.experiments import paper
from fewest.experiments.paper import figures
from fewest.experiments.paper.everything import PACKAGES
from fewest.persistence.versions import versions

FOLDER = Path(__file__).parent.parent / "docs" / "benchmarks" / "paper"
OPEN_TERMS = ("CC BY 4.0", "ODbL 1.0")
UNITS = FOLDER.parent / "units"
BOTH = ("closeness", "credibility", "flexibility", "counterfactual_scatter", "allopt_bars")
REDRAWN, OURS = ("closeness", "credibility"), "ours (default)"
FROM_PAGES = (
    " *Drawn from the means on the pages: flexible clusters by the paper's procedure are not on them yet, and Diabetes "
    "has 3 splits of SEV1 and of flexible clusters, 10 of clusters.*"
)
OLDER = " *This picture was drawn before there were both procedures: it shows ours (default) alone.*"
HOW = """
Written by `benchmarks/paper_pages.py` from what `fewest paper all --data-dir DATA --out DIR` makes, or `fewest paper
table NAME` and `figure NAME` one by one; units were measured in several sittings and kept (`docs/benchmarks/units` has
those of SEV-cluster, of German's trees and of the training tables, with where they were measured). Every page says its
settings; here are its datasets and, in brackets, splits. Where a line of clusters has no procedure's name it is ours
(default), measured before there were both. Cases of COMPAS, FICO and Headline are made too, and not copied: their terms
do not let rows be passed on.
"""


def main(made: str) -> None:
    """Copy, and write the contents."""
    (FOLDER / "figures").mkdir(parents=True, exist_ok=True)
    wanted = {*paper.names(), *figures.names()}
    for picture in Path(made, "figures").glob("*.svg"):
        numbers = picture.with_suffix(".csv")
        if picture.stem in wanted and _may_show_values(numbers):
            shutil.copy(picture, FOLDER / "figures")
            shutil.copy(numbers, FOLDER / "figures")
    for page in Path(made).glob("*.md"):
        if page.stem in wanted:
            shutil.copy(page, _place(page))
        elif page.stem.startswith("examples-") and may_be_shown(page):
            shutil.copy(page, FOLDER)
    if not Path(made, "figures", "closeness.svg").is_file():
        redraw()
    (FOLDER / "index.md").write_text("\n\n".join(contents()) + "\n", encoding="utf-8")


def redraw() -> None:
    """Draw what shows SEV1 and clusters from the means on their pages, where these were written one by one."""
    records = {name: list(_records(name)) for name in ("sev1", "sevc", "sevcf")}
    shown = list(dict.fromkeys(record.dataset for record in records["sevc"]))
    for name in REDRAWN:
        drawing = figures.draw(figures.find(name), shown, records)
        _, png, _ = figures.save(drawing, FOLDER / "figures", name)
        png.unlink()


def _records(name: str) -> Iterator[paper.Record]:
    """The means on a page, as records of one split."""
    table = paper.find(name)
    methods = {table.shown(method): method for method in table.lines()}
    heads = {column.heading: column.figure for column in reversed(table.columns)}
    (head, _, *rows) = _rows(FOLDER / f"{name}.md")
    for row in rows:
        cells = {
            heads[of]: text.split(" ± ")[0].replace(",", "") for of, text in zip(head, row, strict=True) if of in heads
        }
        means = {figure: float(text) for figure, text in cells.items() if text not in ("-", "")}
        yield paper.Record(row[0], methods.get(row[1], row[1]), means)


def contents() -> Iterator[str]:
    """The parts of the contents."""
    yield "# Improving Decision Sparsity: measured again"
    yield HOW.strip()
    packages = ", ".join(f"{name} {version}" for name, version in versions(PACKAGES).items())
    yield f"Last written {date.today():%Y-%m-%d} with Python {platform.python_version()}, {packages}."
    yield _what_takes_longest()
    yield "## Tables and cases"
    pages = [page for name in (*paper.names(), "examples") for page in _pages_of(name)]
    lines = [_line(page) for page in pages]
    yield "\n".join(["| page | datasets |", "|---|---|", *lines])
    for name in figures.names():
        if (FOLDER / "figures" / f"{name}.svg").is_file():
            figure, stem = figures.find(name), f"figures/{name}"
            yield f"## {figure.title}\n\n![{figure.title}]({stem}.svg)"
            yield f"{figure.caption} The numbers as [CSV]({stem}.csv).{_said_of(name)}"


def _what_takes_longest() -> str:
    """Minutes that the kept units of the training tables took to train."""
    minutes = {}
    for name in ("alloptc", "allopt1", "expo"):
        units = map(json.loads, (UNITS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
        minutes[name] = sum(record["figures"]["seconds"] for unit in units for record in unit["records"]) / 60
    said = ", ".join(f"{name} {spent:.0f}" for name, spent in minutes.items())
    return (
        f"Training takes longest: of the kept units, in minutes of one core, {said}. That alone is "
        f"{sum(minutes.values()) / 120:.1f} hours on two cores (`--jobs 2`), which leaves little of three hours for "
        "everything else: a run of all tables takes longer, and its page says what each took. With `--splits 3` "
        "training takes a third."
    )


def _said_of(name: str) -> str:
    """What is not in a picture yet."""
    table = pd.read_csv(FOLDER / "figures" / f"{name}.csv")
    if (
        name in BOTH
        and "procedure" not in table
        and not table.get("method", pd.Series(dtype=str)).str.contains("procedure").any()
    ):
        return OLDER
    redrawn = name in REDRAWN and not table.loc[table["procedure"] != OURS, "variant"].str.contains("F").any()
    return FROM_PAGES if redrawn else ""


def _pages_of(name: str) -> list[Path]:
    """The page of a table, and those beside it: of single datasets, or of single cases."""
    return [page for page in (FOLDER / f"{name}.md", *sorted(FOLDER.glob(f"{name}-*.md"))) if page.is_file()]


def _place(page: Path) -> Path:
    """Where a table goes: beside the page that is there, under the names of its datasets, if that one has more."""
    there = FOLDER / page.name
    own, known = set(_splits(page)), set(_splits(there)) if there.is_file() else set()
    return FOLDER / f"{page.stem}-{'-'.join(sorted(own))}.md" if own < known else there


def _rows(page: Path) -> list[list[str]]:
    """The first table of a page: its heading, the rule below it, and its lines."""
    text = page.read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text if line.startswith("|")]


def _splits(page: Path) -> dict[str, set[str]]:
    """The splits of each dataset that a page has."""
    rows, counts = _rows(page), dict[str, set[str]]()
    if rows and "splits" in rows[0]:
        for row in rows[2:]:
            counts.setdefault(row[0], set()).add(row[rows[0].index("splits")])
    return counts


def _line(page: Path) -> str:
    """A page by its title, and the splits of each of its datasets."""
    text, counts = page.read_text(encoding="utf-8").splitlines(), _splits(page)
    said = ", ".join(f"{name} ({' and '.join(sorted(splits, key=int))})" for name, splits in counts.items())
    return f"| [{text[0].removeprefix('# ')}]({page.name}) | {said or page.stem.removeprefix('examples-')} |"


def _may_show_values(numbers: Path) -> bool:
    """Whether the numbers of a figure hold no value of a case, or of datasets alone whose rows may be passed on."""
    table = pd.read_csv(numbers)
    found = table["dataset"].unique() if "value" in table else ()
    return all(datasets.book(name).licence.startswith(OPEN_TERMS) for name in found)


def may_be_shown(page: Path) -> bool:
    """Whether the terms of a dataset let rows of it be passed on."""
    return any(f"Terms of these rows: {terms}" in page.read_text(encoding="utf-8") for terms in OPEN_TERMS)


if __name__ == "__main__":
    main(sys.argv[1])
