"""The tree of a run: the path of a case, the path once changed, the front; damaged files are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='pip install "fewest[explore]"')
pytest.importorskip("uvicorn", reason='pip install "fewest[explore]"')
pytest.importorskip("pyarrow", reason='pip install "fewest[runs]"')

from explorer_runs import Subject, make_tree, problems_of

from fewest.runs import Run

Ask = Callable[..., Any]


@pytest.fixture
def treed(own_run: Path) -> Path:
    make_tree(own_run)
    return own_run


def test_the_tree_is_drawn_with_both_paths_and_its_twin(ask: Ask, treed: Path) -> None:
    table = Run.open(treed).table()
    row = int(table[table["features"].map(lambda names: "months" in names)]["row"].iloc[0])
    page = ask(treed).get(f"/tree?row={row}").text
    assert "<svg" in page
    assert "<style" not in page
    assert 'href="/static/tree.css"' in page
    assert "solid: this case" in page
    assert "dashed: with the change" in page
    assert "months &lt;= 30.5?" in page
    assert problems_of(page) == []


def test_the_decision_page_leads_to_the_tree(ask: Ask, treed: Path, subject: Subject) -> None:
    assert "/tree?row=2" in ask(treed).get("/decision/2").text
    assert "/tree?row=2" not in ask(subject.run).get("/decision/2").text


def test_the_path_of_a_withheld_set_is_not_drawn(ask: Ask, treed: Path) -> None:
    table = Run.open(treed).table()
    row = int(table[table["features"].map(lambda names: "months" in names)]["row"].iloc[0])
    page = ask(treed, protected=["months"]).get(f"/tree?row={row}").text
    assert "dashed: with the change" not in page
    assert "had been" not in page


def test_the_front_is_a_table(ask: Ask, treed: Path) -> None:
    page = ask(treed).get("/tree").text
    assert "mean SEV-T" in page
    assert "none is better" in page


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 1, "kind": "tree"}', '{"names": ["a"]}', "null"])
def test_a_damaged_tree_is_named(ask: Ask, treed: Path, content: str) -> None:
    (treed / "tree.json").write_text(content)
    answer = ask(treed).get("/tree")
    assert answer.status == 200
    assert "The tree cannot be drawn" in answer.text


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", '"', "\x00\x00"])
def test_a_damaged_front_is_none(ask: Ask, treed: Path, content: str) -> None:
    (treed / "front.csv").write_text(content)
    assert "nothing is known of other trees" in ask(treed).get("/tree").text
