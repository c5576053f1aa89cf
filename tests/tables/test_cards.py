"""Every object shows a line and a small card: escaped, without script, cut short where it is long."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.reporting import Code, Codes, letter, reasons
from fewest.runs import Run, explain_files, verify
from fewest.tables.cards import MAX_BYTES, card_html
from fewest.tables.schema import Schema

ODD = "<b>debt</b>"


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of each, all about a feature with a hostile name."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({ODD: random.integers(0, 100, 60), "age": random.integers(20, 60, 60)})
    y = np.where(X[ODD] > 50, "bad", "good")
    decision = fw.Decision(LogisticRegression(max_iter=1000).fit(X, y), positive="bad")
    refs = fw.references.single(decision, X, y).sign_off("Credit Risk")
    explainer = fw.Explainer(decision, refs, constraints=fw.Immutable("age"), n_jobs=1)
    out = explainer.explain(X, alternatives=5)
    folder = tmp_path_factory.mktemp("cards")
    X.to_csv(folder / "cases.csv", index=False)
    run = explain_files(explainer, folder / "cases.csv", folder / "run", n_jobs=1)
    codes = Codes.of([Code(ODD, "any", "R1", "Debts")])
    return {
        "Schema": refs.schema, "Decision": decision, "References": refs, "Constraints": explainer.constraints,
        "Explainer": explainer, "Audit": refs.audit(X, y), "Credibility": fw.credibility.mixture(decision, X, y),
        "Explanations": out, "Explanation": out.explained[0], "Summary": out.summary(), "Reasons": reasons(out)[0],
        "CasesReasons": reasons(out), "Letter": letter(out.explained[0], codes, refs), "Run": run,
        "RunComparison": fw.compare(run, run),
        "Report": verify(Run.open(folder / "run").path, [folder / "cases.csv"], decision),
    }  # fmt: skip


NAMES = (
    "Schema", "Decision", "References", "Constraints", "Explainer", "Audit", "Credibility", "Explanations",
    "Explanation", "Summary", "Reasons", "CasesReasons", "Letter", "Run", "RunComparison", "Report",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_object_has_a_short_line_and_a_card(objects: dict[str, Any], name: str) -> None:
    shown, page = repr(objects[name]), objects[name]._repr_html_()
    assert len(shown) < 1500
    assert "object at 0x" not in shown
    assert "array(" not in shown
    assert 100 < len(page.encode("utf-8")) < MAX_BYTES
    assert "<script" not in page
    assert ODD not in page
    assert page.count("<div") == page.count("</div>")
    assert "prefers-color-scheme:dark" in page


def test_no_object_is_left_out(objects: dict[str, Any]) -> None:
    assert sorted(objects) == sorted(NAMES)


@pytest.mark.parametrize(
    ("name", "words"),
    [("Schema", "integer"), ("References", "stands for"), ("Letter", "R1"), ("Reasons", "necessary"), ("Run", "mean")],
)
def test_a_card_has_the_table(objects: dict[str, Any], name: str, words: str) -> None:
    page = objects[name]._repr_html_()
    assert "<table>" in page
    assert words in page


def test_many_references_are_named_in_part() -> None:
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 1000)
    refs = fw.references.supplied(decision, {"debt": list(range(300))})
    assert len(repr(refs)) < 300
    assert repr(refs).endswith(", ...>")
    assert refs._repr_html_().count('<th scope="col">') == 9


def test_a_card_stays_small_and_says_what_is_left_out() -> None:
    page = card_html(["x" * 9000], ("a",) * 30, [["é" * 900] * 30] * 900)
    assert len(page.encode("utf-8")) < MAX_BYTES
    assert re.search(r"Not shown: \d+ more rows and 20 more columns", page)
    assert "Not shown" not in card_html(["x"], ("a",), [["y"]])


def test_a_schema_of_levels_and_ranges_says_both() -> None:
    page = Schema.infer(pd.DataFrame({"age": [18, 75], "housing": ["own", "rent"]}))._repr_html_()
    assert "18 to 75" in page
    assert "own, rent" in page


def test_a_card_without_rows_is_a_line(tmp_path: Path) -> None:
    assert "<table>" not in card_html(["only words"])
