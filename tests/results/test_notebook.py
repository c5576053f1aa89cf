"""What a notebook shows: small, without script, escaped, and all of it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import parsed_back
import pytest

import fewest as fw
from fewest.results.explanations import Explanations
from fewest.results.notebook import Card, Overview
from fewest.tables.cards import MAX_BYTES


def explained(X: pd.DataFrame, **options: Any) -> Explanations:
    """Cases decided by their first column."""
    first = X.columns[0]
    decision = fw.Decision(lambda rows: (rows[first] == X[first].iloc[1]).to_numpy(dtype=float), positive="bad")
    return fw.Explainer(decision, fw.references.supplied(decision, X.iloc[[0]], X=X), n_jobs=1, **options).explain(X)


def table(features: int, name: str, level: str) -> pd.DataFrame:
    return pd.DataFrame({f"{name}{j}": [f"{level}{j}", f"{j}{level}"] for j in range(features)})


SMALL = explained(table(4, "f", "level"))


def test_a_block_has_sentence_proof_table_and_cube_in_this_order() -> None:
    page = SMALL[1]._repr_html_()
    places = [
        page.index(part) for part in ("If f0 had been", "Re-checked", '<tr class="fw-changed"', "<details>", "<svg")
    ]
    assert places == sorted(places)
    assert page.count('<tr class="fw-changed"') == 1
    assert page.count('<tr class="fw-same"') == 3
    assert parsed_back.of_table(page, SMALL.schema)["f0"] == "level0"


def test_a_block_works_without_script_and_in_the_dark() -> None:
    for page in (SMALL[1]._repr_html_(), SMALL._repr_html_()):
        assert "<script" not in page
        assert not re.search(r"\son\w+=", page)
        assert not re.search(r"\sstyle=", page)
        assert "http" not in page
        assert "@media (prefers-color-scheme" in page
        assert page.count("<div") == page.count("</div>")


def test_every_rule_of_the_style_is_scoped() -> None:
    style = re.search(r"<style>(.*)</style>", SMALL[1]._repr_html_(), flags=re.S)
    assert style is not None
    plain = re.sub(r"@media[^{]*", "", re.sub(r"\{[^{}]*\}", "{}", style[1]))
    for selectors in re.findall(r"([^{}]+)\{\}", plain):
        for selector in selectors.split(","):
            assert ".fw" in selector, selector


@pytest.mark.parametrize("length", [5, 60, 500, 20_000])
@pytest.mark.parametrize("features", [4, 40, 200])
def test_a_block_is_small_whatever_the_table(features: int, length: int) -> None:
    if features * length > 200_000:
        pytest.skip("the table itself would take long to explain")
    out = explained(table(features, "n" * length, "é" * length))
    for page in (out[1]._repr_html_(), out._repr_html_()):
        assert len(page.encode("utf-8")) < MAX_BYTES
    hidden = re.search(r"Not shown: (\d+) further", out[1]._repr_html_())
    assert (hidden is not None) == (features - out[1]._repr_html_().count("<tr class=") > 0)


PAYLOADS = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "</style><b>", "x\u202ey"]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_names_and_levels_stay_text(payload: str) -> None:
    out = explained(pd.DataFrame({payload: [payload, "other"], "b": [1, 2]}))
    for page in (out[1]._repr_html_(), out._repr_html_()):
        page.encode("utf-8")
        assert "<script" not in page
        assert "<img" not in page
        assert page.count("</style>") == 1
        assert "<b>" not in page


def test_text_that_utf_8_cannot_hold_does_not_spoil_the_page() -> None:
    assert "a?b" in Card("a\ud800b", "").html()


def test_leaving_texts_unescaped_is_caught() -> None:
    """Negative control: the same checks find a script that got through."""
    page = Card("<script>", "").html().replace("&lt;", "<").replace("&gt;", ">")
    assert "<script" in page


def test_the_table_shows_counts_histogram_and_first_rows() -> None:
    X = pd.DataFrame({"a": [0, 1, 1, 2, 1], "b": [0, 1, 2, 3, 4]})
    page = explained(X)._repr_html_()
    for said in ("Explanations of 5 cases", "explained", "accepted", "1 feature", "If a had been 0"):
        assert said in page
    assert page.count("<li>") == 3


def test_a_table_without_refusals_is_shown_too() -> None:
    X = pd.DataFrame({"a": [0, 1], "b": [0, 1]})
    out = explained(X)
    none = fw.Explainer(out.references.decision, out.references).explain(X.iloc[[0]])
    assert "<svg" not in none._repr_html_()
    assert "there is nothing to explain" in none[0]._repr_html_()
    assert "<svg" not in none[0]._repr_html_()
    assert Overview("nothing", {}, {}, (), ()).html()


def test_no_cube_is_drawn_of_an_answer_that_is_not_proved() -> None:
    from dataclasses import replace

    answer = SMALL[1]
    assert "<svg" in answer._repr_html_()
    assert "<svg" not in replace(answer, proof=replace(answer.proof, minimal=False))._repr_html_()
    assert np.isfinite(answer.score)


def test_a_sev_plus_has_its_own_heading() -> None:
    out = explained(pd.DataFrame({"a": [0, 1], "b": [0, 1]}), direction="plus")
    assert "Would have been enough" in out[1]._repr_html_()
