"""The tables of All-Opt and ExpO: what they train, what they compare with, and where their figures come from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewest as fw
from fewest.experiments.paper import allopt, find, summarise
from fewest.experiments.paper.allopt import KINDS, WALKS, AllOpt1Table
from fewest.experiments.paper.base import printed
from fewest.experiments.paper.data import Rows, load_split
from fewest.experiments.paper.models import CASES, PaperModel

pytest.importorskip("torch")

TEX = Path("../shared/paper/improving-decision-sparsity.tex")


@pytest.mark.parametrize(
    ("name", "lines"),
    [("expo", 6), ("allopt1", 4), ("alloptc", 3)],
)
@pytest.mark.slow
def test_a_quick_unit_has_a_record_per_method_and_is_the_same_again(
    name: str, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = find(name, quick=True)
    monkeypatch.setattr(allopt, "QUICK_LINES", table.methods)
    monkeypatch.setattr(allopt, "QUICK_TRAINED", allopt.TRAINED)
    records, again = (table.cells("german", 0, lambda line: None) for _ in range(2))
    assert [record.method for record in records] == list(table.methods)
    assert len(records) == lines
    for first, second in zip(records, again, strict=True):
        steady = {key for key in first.figures if not re.search("seconds|times|milli", key)}
        assert all(np.array_equal(first.figures[key], second.figures[key], equal_nan=True) for key in steady)
        assert 0.3 < first.figures["test_accuracy"] <= 1


@pytest.mark.slow
def test_the_papers_training_has_lines_of_its_own_beside_the_printed_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pacmap")
    table = find("alloptc", quick=True, preset="paper")
    monkeypatch.setattr(table.__class__, "quick_rows", 250)
    monkeypatch.setattr(allopt, "QUICK_PAPER_LINES", tuple(allopt.PAPER_LINES))
    records = table.cells("german", 0, lambda line: None)
    lines = summarise(table, records)
    assert [table.shown(line.method) for line in lines] == [
        "GBDT, paper's procedure", "LR linear, paper's procedure", "MLP, paper's procedure",
    ]  # fmt: skip
    assert all(line.cells["sev"].paper is not None for line in lines)
    assert all("base_decided" in record.figures for record in records)
    assert records[0].figures["base_decided"] > 0
    assert find("alloptc").settings("german") == find("alloptc", preset=None).settings("german")
    assert "preset" not in find("alloptc").settings("german")  # units measured before stay valid


@pytest.mark.parametrize("name", ["allopt1", "alloptc", "sevc", "floors", "counterfactuals"])
def test_what_quick_settings_leave_out_is_in_the_settings(name: str) -> None:
    quick, full = (find(name, quick=quick).settings("german") for quick in (True, False))
    models = "kinds" if "kinds" in full else "models"
    assert 0 < len(quick[models]) < len(full[models])
    assert set(quick[models]) < set(full[models])


def test_a_larger_booster_is_measured_against_the_papers() -> None:
    larger, own = (find(name).search("headline", "GBDT") for name in ("allopt1", "alloptc"))
    assert (larger.estimator.architecture.booster.max_depth, own.estimator.architecture.booster.max_depth) == (5, 3)
    assert isinstance(larger.baseline, PaperModel)
    assert larger.baseline.kind == "GBDT"
    assert own.baseline == "start"


@pytest.mark.slow
def test_sev_is_of_the_trained_models_own_test_positives() -> None:
    """The authors measured it on those of the model before."""
    table = AllOpt1Table(quick=True)
    record = table.cells("german", 0, lambda line: None)[0]
    rows = load_split("german", 0)
    search = table.search("german", "GBDT").fit(rows.X_train[:400], rows.y_train[:400])
    decision = fw.Decision(search, positive=1)
    cases = rows.X_test[:400][:CASES]
    out = fw.Explainer(decision, search.references_, unseen="allow").explain(cases[decision.verdicts(cases).positive])
    assert record.figures["sev"] == pytest.approx(out.sev.mean())


def test_every_dataset_has_a_walk_and_every_line_a_model() -> None:
    for table in (find("allopt1"), find("alloptc")):
        assert set(table.datasets) == {*WALKS, "mimic", "mimic_demo"}, "the others are not tuned"
        for dataset in table.datasets:
            for method in table.methods:
                search = table.search(dataset, method)  # type: ignore[attr-defined]
                assert search.tolerance <= 0.01
                assert search.estimator.model == KINDS[method][1]["model"]


@pytest.mark.skipif(not TEX.is_file(), reason="the paper is not beside the repository")
def test_printed_figures_are_the_papers() -> None:
    text = TEX.read_text()
    body = text[text.index("\\label{tab:allopt_1}") : text.index("\\label{tab:alloptc}")]
    for (dataset, method), figures in printed("printed_training.csv", "allopt1").items():
        sev = figures["sev"]
        assert f"{sev.mean:.2f}\\pm{sev.sd:.2f}" in body, (dataset, method)
    assert len(printed("printed_training.csv", "allopt1")) == len(printed("printed_training.csv", "alloptc")) == 21
    assert len(printed("printed_training.csv", "expo")) == 28


def test_expo_trains_on_no_more_rows_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    class EnoughError(Exception):
        pass

    def train(self: Any, model: str, way: str, rows: Rows) -> None:
        raise EnoughError(len(rows.X_train), len(rows.y_train), len(rows.X_test))

    table = find("expo")
    assert (table.settings("diabetes")["rows"], "rows" in table.settings("german")) == (10_000, False)
    monkeypatch.setattr(allopt, "MOST_ROWS", 150)
    monkeypatch.setattr(allopt.ExpoTable, "_train", train)
    with pytest.raises(EnoughError) as caught:
        table.cells("german", 0, lambda line: None)
    assert caught.value.args == (150, 150, 200)


def test_the_papers_training_learns_from_no_more_rows_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def trained(estimator: Any, rows: Rows) -> None:
        seen.append((len(rows.X_train), len(rows.y_train), len(rows.X_test)))
        raise KeyboardInterrupt

    table = find("allopt1", preset="paper")
    assert (table.settings("german")["rows"], "rows" in find("allopt1").settings("german")) == (10_000, False)
    monkeypatch.setattr(allopt, "MOST_ROWS", 150)
    monkeypatch.setattr(allopt, "_timed", trained)
    with pytest.raises(KeyboardInterrupt):
        table.cells("german", 0, lambda line: None)
    assert seen == [(150, 150, 200)]
