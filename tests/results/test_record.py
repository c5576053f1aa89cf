"""The columns of an answer are named once, and everything that holds answers has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.results import record
from fewest.results.explanations import Explanations
from fewest.results.population import Tally, summarize

DOCS = Path(__file__).parents[2] / "docs" / "scale.md"
BEGIN, END = "<!-- columns: begin -->\n", "<!-- columns: end -->"
AGAIN = "write it anew: PYTHONPATH=src python tests/results/test_record.py"


def page(text: str) -> str:
    """The page with the table of columns as it is now."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}{record.as_markdown()}\n{END}{rest.split(END)[1]}"


NAMES = [f"C{row}" for row in range(80)]


def explained(**choices: Any) -> Explanations:
    random = np.random.default_rng(0)
    X = pd.DataFrame({"debt": random.integers(0, 100, 80), "age": random.integers(18, 80, 80)}, index=NAMES)
    decision = fw.Decision(LogisticRegression().fit(X, X["debt"] - X["age"] > 10))
    refs = fw.references.supplied(decision, {"debt": [5, 30], "age": [60, 75]}, assignment="sparsest")
    return fw.Explainer(decision, refs, n_jobs=1, **choices).explain(X, alternatives=3)


def test_the_docs_have_the_columns_of_the_record() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert page(text) == text, AGAIN


@pytest.mark.parametrize("direction", ["minus", "plus"])
def test_every_column_says_what_the_answer_says(direction: str) -> None:
    out = explained(direction=direction)
    (table,) = out.tables()
    both = [field for field in record.fields_in("part") if field in record.fields_in("json")]
    assert len(both) > 12
    for row, answer in zip(table.to_dict("records"), out, strict=True):
        for field in both:
            cell = row[field.name]
            known = None if not isinstance(cell, list) and pd.isna(cell) else cell
            said = field.plain(answer)
            assert (None if known == np.inf else known) == said, field.name


def test_a_row_of_http_is_a_row_of_json_under_other_names() -> None:
    for answer in explained():
        whole, short = record.to_json(answer), record.to_json(answer, "http")
        flat = {**short, **short["proof"]}
        for field in record.fields_in("http"):
            assert flat[(field.http or field.name).rpartition(".")[2]] == whole[field.name]
        json.dumps(short, allow_nan=False)


def test_a_wrong_column_would_be_noticed() -> None:
    """Negative control: the columns of other answers are others."""
    out = explained()
    (table,), (other,) = out.tables(), explained(direction="plus").tables()
    assert not table.equals(other)


def test_figures_are_those_of_the_parts_together() -> None:
    out = explained()
    whole = out.tally
    halves = [Explanations(out.frame, out.references, out.answers.take(rows), out.strategies)
              for rows in (range(30), range(30, 80))]  # fmt: skip
    assert Tally.total([half.tally for half in halves]) == whole
    assert Tally.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole
    assert whole.cases == len(out) == sum(out.counts().values())
    assert summarize(out)["mean SEV"] == out.sev.mean() == whole.mean_sev


if __name__ == "__main__":
    DOCS.write_text(page(DOCS.read_text(encoding="utf-8")), encoding="utf-8")
