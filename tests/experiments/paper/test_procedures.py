"""Whose procedure a line measures: the paper's, the authors' or ours, under that name and beside the printed figure."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fewest import references
from fewest.decision import Decision
from fewest.errors import UsageError
from fewest.experiments import paper
from fewest.experiments.paper import Store, as_dict, as_markdown, as_text, run_table, summarise
from fewest.experiments.paper.data import Rows
from fewest.experiments.paper.models import densities_of, explain, fit
from fewest.experiments.paper.points import unrounded
from fewest.tables.schema import Schema

pytest.importorskip("pacmap")


@pytest.fixture(scope="module")
def measured() -> Any:
    table = paper.find("sevc", quick=True, preset="both")
    return table, run_table(table, ["german"], 1, Store())


def test_a_table_has_both_procedures_under_their_names_beside_the_printed_figure(measured: Any) -> None:
    table, records = measured
    lines = summarise(table, records)
    shown = [table.shown(line.method) for line in lines]
    assert shown[:3] == ["GBDT, paper's procedure", "GBDT, authors' code", "GBDT, ours (default)"]
    assert len(shown) == 6
    assert {line.cells["sev"].paper.mean for line in lines[:3]} == {1.22}
    for text in (as_text(table, lines), as_markdown(table, lines)):
        assert "printed" in text
        assert "cases decided positive" in text
        assert '"m": 1.01' in text
    assert as_dict(table, lines)["settings"]["german"]["preset"] == "both"
    json.dumps(as_dict(table, lines), allow_nan=False)


def test_the_papers_line_is_that_of_its_preset(measured: Any) -> None:
    """The figure is made again from the library's own preset, and differs from the default's on some line."""
    table, records = measured
    rows = table.rows("german", 0)
    by_name = {record.method: record.figures for record in records}
    kinds = ("GBDT", "L2LR")
    for kind in kinds:
        decision = Decision(fit(kind, "german", rows.X_train, rows.y_train, True), positive=1)
        refs = references.clusters(decision, rows.X_train, rows.y_train, n_clusters=3, m=1.01, preset="paper")
        figures = explain(decision, refs, rows, densities_of(decision, rows, 3))
        assert figures["l_inf"] == by_name[f"{kind} clusters paper"]["l_inf"]
        assert figures["decided"] == by_name[f"{kind} clusters paper"]["decided"] > 0
    assert any(by_name[f"{k} clusters paper"]["l_inf"] != by_name[f"{k} clusters"]["l_inf"] for k in kinds)


def test_an_impossible_value_is_counted_as_such() -> None:
    """References of a loosened schema lead to fractions of whole numbers: the line says so."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({"count": random.integers(0, 4, 200), "size": random.normal(size=200)})
    y = (X["count"] + X["size"] + random.normal(0, 0.3, 200) > 2).to_numpy(dtype=np.int64)
    rows = Rows(X[:150], X[150:], y[:150], y[150:])
    decision = Decision(fit("L2LR", "german", rows.X_train, rows.y_train), positive=1)
    densities = densities_of(decision, rows, 1)
    typed = references.single(decision, rows.X_train, rows.y_train)
    loose = references.single(decision, rows.X_train, rows.y_train, schema=unrounded(Schema.infer(rows.X_train)))
    assert explain(decision, typed, rows, densities)["possible"] == 1.0
    assert explain(decision, loose, rows, densities)["possible"] < 1.0


def test_a_preset_that_a_table_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="one procedure"):
        paper.find("trees", preset="paper")
    with pytest.raises(UsageError, match="preset"):
        paper.find("sevc", preset="papers")
    with pytest.raises(UsageError, match='has no dataset "loans"'):
        run_table(paper.find("sevc", quick=True, preset="both"), ["loans"], 1, Store())
