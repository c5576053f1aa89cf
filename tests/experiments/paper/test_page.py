"""The page of a run: complete, escaped, without script, and honest about what is not there."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pytest

from fewest.errors import DataError
from fewest.experiments.paper import Record, Table, figures, find, summarise
from fewest.experiments.paper.everything import DrawnFigure, Measured, Plan, Results, ShownPage, index_html, write_page
from fewest.experiments.paper.figures import Drawing, blank
from fewest.experiments.paper.trees import TreesTable

pytest.importorskip("matplotlib")
EVIL = "<script>alert('x')</script>"


class Reader(HTMLParser):
    """Collects tags, links and text; complains about tags that do not match."""

    void: ClassVar[set[str]] = {"meta", "img", "br"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def measured(method: str = "CART", table: Table | None = None) -> Measured:
    table = table or find("trees")
    found = [Record("german", method, {"sev_t": sev, "test_accuracy": 0.7}) for sev in (1.0, 1.2)]
    return Measured(table, summarise(table, found))


def drawn(rows: int = 2) -> DrawnFigure:
    numbers = pd.DataFrame({"dataset": "german", "sev": [1.23456, float("nan"), *range(rows)][:rows]})
    return DrawnFigure(figures.find("closeness"), Drawing(blank(1)[0], numbers), "closeness")


def test_every_table_and_figure_is_on_the_page_beside_the_papers() -> None:
    page = index_html(
        Results(tables=[measured()], drawn=[drawn()], shown=[ShownPage("german", "case 7", "examples-german")])
    )
    seen = read(page)
    text = " ".join(seen.text)
    assert "1 table and 1 figure." in text
    assert "1.100 ± 0.141" in text
    assert "printed 1.00 ± 0.00" in text
    assert "1.235" in text
    assert "case 7" in text
    for link in ("figures/closeness.svg", "figures/closeness.png", "figures/closeness.csv", "trees.json", "trees.md"):
        assert link in seen.links
    assert all(f'id="{link[1:]}"' in page for link in seen.links if link.startswith("#"))


def test_a_tag_that_is_left_open_is_noticed() -> None:
    """Negative control of the reader."""
    with pytest.raises(AssertionError):
        read("<p><b>bold</p>")


def test_there_is_no_script_and_nothing_is_fetched() -> None:
    page = index_html(Results(tables=[measured()], drawn=[drawn()]))
    seen = read(page)
    assert "script" not in seen.tags
    assert not [link for link in seen.links if ":" in link or link.startswith("//")]
    assert "default-src 'none'" in page


@dataclass(frozen=True)
class Evil(TreesTable):
    title: ClassVar[str] = EVIL
    methods: ClassVar[tuple[str, ...]] = (EVIL,)
    notes: ClassVar[tuple[str, ...]] = (EVIL,)


def test_everything_is_escaped() -> None:
    results = Results(
        tables=[measured(EVIL, Evil())], left_out=[(EVIL, EVIL)], failed=[(EVIL, ValueError(EVIL))],
        shown=[ShownPage("german", EVIL, "examples-german")],
    )  # fmt: skip
    page = index_html(results, title=EVIL)
    assert EVIL not in page
    assert page.count("&lt;script&gt;") >= 8
    assert "script" not in read(page).tags


def test_what_is_missing_or_broken_is_said_first() -> None:
    results = Results(
        left_out=[("figure regions", 'figures need matplotlib: pip install "fewest[plots]"')],
        failed=[("table trees, german, split 1", DataError("no rows", do="add some")), ("x", KeyError("y"))],
    )  # fmt: skip
    text = " ".join(read(index_html(results)).text)
    assert "0 tables and 0 figures; 1 left out, 2 failed." in text
    assert 'pip install "fewest[plots]"' in text
    assert "no rows" in text
    assert "KeyError: 'y'" in text


def test_long_tables_of_numbers_are_cut_and_say_so() -> None:
    text = " ".join(read(index_html(Results(drawn=[drawn(70)]))).text)
    assert "10 more rows are in the CSV file" in text


def test_a_quick_page_warns_and_links_the_quick_files(tmp_path: Path) -> None:
    table = find("trees", quick=True)
    path = write_page(Plan(tmp_path, quick=True), Results(tables=[measured(table=table)]))
    assert path == tmp_path / "index.html"
    page = path.read_text(encoding="utf-8")
    assert "not to be compared" in page or "nothing here is to be compared" in page
    assert "trees-quick.json" in read(page).links


def test_columns_that_nobody_measured_are_not_shown() -> None:
    page = index_html(Results(tables=[measured()]))
    assert "mean SEV-T" in page
    assert "trees in set" not in page


def test_the_contents_link_every_file_and_both_pages_say_when_and_with_what(tmp_path: Path) -> None:
    results = Results(
        tables=[measured()],
        drawn=[drawn()],
        shown=[ShownPage("german", "case 7", "examples-german")],
        failed=[("table expo", DataError("no rows"))],
    )
    path = write_page(Plan(tmp_path), results, clock=lambda: datetime(2026, 1, 31, tzinfo=UTC))
    contents = (tmp_path / "index.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", contents)
    assert links == ["trees.md", "examples-german.md", *(f"figures/closeness.{end}" for end in ("svg", "png", "csv"))]
    assert "- table expo: no rows" in contents
    for page in (contents, path.read_text(encoding="utf-8")):
        assert f"Made 2026-01-31 with Python {platform.python_version()}, fewest " in page
        assert f"numpy {metadata.version('numpy')}" in page
