"""The table of counterfactual methods: the same cases for all, validity by the model alone, the paper beside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest.experiments.paper.counterfactuals as module
from fewest import references
from fewest.decision import Decision
from fewest.experiments.paper import find, load_split, names
from fewest.experiments.paper.counterfactuals import (
    QUICK_KINDS,
    SEV,
    CounterfactualsTable,
    Judge,
    missing,
    peers,
    sparsest,
)
from fewest.experiments.paper.data import Rows
from fewest.experiments.paper.models import densities_of, fit
from fewest.experiments.peers import NICE, Counterfactuals
from fewest.explainer import Explainer
from fewest.tables.schema import Schema

TEX = Path(__file__).parents[4] / "shared" / "paper" / "improving-decision-sparsity.tex"


@pytest.fixture(scope="module")
def rows() -> Rows:
    return Rows(*(part[:400] for part in load_split("german", 0)))


@pytest.fixture(scope="module")
def decision(rows: Rows) -> Decision:
    return Decision(fit("L2LR", "german", rows.X_train, rows.y_train), positive=1)


@pytest.fixture(scope="module")
def judge(decision: Decision, rows: Rows) -> Judge:
    return Judge(decision, densities_of(decision, rows, 3))


@pytest.mark.slow
def test_a_quick_run_on_german_gives_every_method_that_is_installed() -> None:
    assert "counterfactuals" in names()
    table = find("counterfactuals", quick=True)
    told: list[str] = []
    records = table.cells("german", 0, told.append)
    here = [peer.name for peer in peers() if peer.name not in missing()]
    assert [record.method for record in records] == [f"{kind} {name}" for kind in QUICK_KINDS for name in (*SEV, *here)]
    assert len(told) == len(records)
    for record in records:
        assert 0 < record.figures["cases"] <= 8
        assert record.figures["milliseconds"] > 0
        assert ("features" in record.figures) == (record.figures["valid"] > 0)
    by_kind = {kind: {r.figures["cases"] for r in records if r.method.startswith(kind)} for kind in QUICK_KINDS}
    assert all(len(counts) == 1 for counts in by_kind.values())
    sev = {r.method: r.figures for r in records}
    assert sev["L2LR SEV-cluster"]["valid"] == sev["L2LR sparsest"]["valid"] == 1.0
    assert sev["L2LR sparsest"]["features"] <= sev["L2LR SEV-cluster"]["features"]


@pytest.mark.slow
def test_lines_of_a_missing_package_are_left_out_and_the_settings_know(monkeypatch: pytest.MonkeyPatch) -> None:
    with_all = CounterfactualsTable(quick=True).settings("german")
    monkeypatch.setattr(module, "missing", lambda: ("DiCE", "REVISE", "Wachter", "Growing Spheres"))
    table = CounterfactualsTable(quick=True)
    assert set(table.settings("german")["peers"]) == {"NICE", "SHAP top-k"}
    methods = {record.method for record in table.cells("german", 0, lambda line: None)}
    assert {method.split(" ", 1)[1] for method in methods} == {*SEV, "NICE", "SHAP top-k"}
    assert list(with_all["lines"]) == ["clusters paper", "clusters"]
    assert with_all["cases"] != CounterfactualsTable().settings("german")["cases"]


def test_figures_are_those_counted_by_hand(decision: Decision, rows: Rows, judge: Judge) -> None:
    cases = rows.X_test[decision.verdicts(rows.X_test).positive].iloc[:6]
    fitted = NICE().fit(decision, rows.X_train, rows.y_train)
    out, figures = fitted.explain(cases), judge.figures(fitted.explain, cases)
    differs = np.array([(out.frame[c].astype(object) != cases[c].astype(object)).to_numpy() for c in cases])
    assert figures["features"] == differs.sum(axis=0).mean()
    numbers = cases.select_dtypes("number").columns
    spread = rows.X_train[numbers].std(ddof=0)
    assert figures["l_inf"] == pytest.approx(((out.frame[numbers] - cases[numbers]).abs() / spread).max(axis=1).mean())
    assert figures["valid"] == 1.0
    assert figures["log_likelihood"] == judge.densities[0].log_density(out.frame).mean()


def test_a_method_that_returns_the_cases_is_not_valid_and_has_no_figures(
    decision: Decision, rows: Rows, judge: Judge
) -> None:
    """Negative control: what a search aimed at the wrong class gives."""
    cases = rows.X_test[decision.verdicts(rows.X_test).positive].iloc[:4]
    schema = Schema.infer(rows.X_train)

    def returns_them(some: pd.DataFrame) -> Counterfactuals:
        return Counterfactuals(schema, some, some, np.ones(len(some), dtype=bool))

    figures = judge.figures(returns_them, cases)
    assert figures["valid"] == 0.0
    assert "features" not in figures


def test_sparsest_never_needs_more_features_than_the_references_it_holds(decision: Decision, rows: Rows) -> None:
    few = references.clusters(decision, rows.X_train, rows.y_train, n_clusters=3)
    many = sparsest(decision, rows.X_train, rows.y_train, few)
    cases = rows.X_test[decision.verdicts(rows.X_test).positive]

    def sizes(refs: Any) -> Any:
        return Explainer(decision, refs, n_jobs=1, unseen="allow").explain(cases).answers.moved.sum(axis=1)

    assert (sizes(many) <= sizes(few)).all()
    assert len(many) > len(few)


def test_a_slow_method_is_timed_on_the_cases_and_a_fast_one_on_more(
    decision: Decision, rows: Rows, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = rows.X_test[decision.verdicts(rows.X_test).positive].iloc[:4]
    fitted = NICE().fit(decision, rows.X_train, rows.y_train)
    asked: list[int] = []

    def explain(some: pd.DataFrame) -> Counterfactuals:
        asked.append(len(some))
        return fitted.explain(some)

    for slow, wanted in ((0.0, [1, 1, 4]), (np.inf, [1, 1, 4, 12])):
        monkeypatch.setattr(module, "SLOW", slow)
        asked.clear()
        judge.figures(explain, cases, pd.concat([cases] * 3))
        assert asked == wanted


def test_a_reference_the_model_accepts_is_taken_where_it_decides_the_mean_against() -> None:
    """A few enormous values pull the mean to the side the model refuses; the median stays."""
    debt = np.where(np.arange(100) < 90, np.arange(100) % 30, 1000.0)
    X, y = pd.DataFrame({"debt": debt}), np.zeros(100)
    decision = Decision(lambda some: (some["debt"] > 40).to_numpy().astype(float), positive=1)
    assert references.single(decision, X, y, on_positive="allow").score[0] == 1.0
    assert module._typical(decision, X, y).score[0] == 0.0
    assert module._typical(decision, X.iloc[:90], y[:90]).names == ("mean",)
    assert module._typical(decision, X + 100, y).names == ("mean",)


def test_settings_are_plain_values_for_every_dataset() -> None:
    for dataset in CounterfactualsTable.datasets:
        settings = CounterfactualsTable().settings(dataset)
        assert settings["peers"]["Wachter"]["raises"] > 0
        assert settings["peers"]["Growing Spheres"]["random_state"] == 0


@pytest.mark.skipif(not TEX.is_file(), reason="the paper's source is not here")
def test_every_published_figure_stands_in_the_paper() -> None:
    source = TEX.read_text(encoding="utf-8")
    table = source[source.index(r"\label{tab:cf}") :]
    table = table[: table.index(r"\end{table}")]
    found = [
        tuple(float(number) for number in re.findall(r"-?\d+\.?\d*", line.replace("\\pm", " ").replace("{1}", "")))
        for line in table.splitlines()
        if "\\pm" in line
    ]
    typed = [
        tuple(number for pair in figures.values() for number in pair)
        for (_, method), figures in CounterfactualsTable.published.items()
        if method != "L2LR SEV-cluster paper"
    ]
    assert len(found) == 42
    assert typed == found
    assert str(CounterfactualsTable.published["german", "L2LR Wachter"]["features"]) == "6.00 ± 0.00"


def test_the_printed_sev_cluster_stands_beside_both_procedures_under_their_names() -> None:
    table = CounterfactualsTable()
    ours, papers = (table.published["fico", f"L2LR {line}"] for line in ("SEV-cluster", "SEV-cluster paper"))
    assert ours == papers
    shown = [table.shown(method) for method in table.methods[:4]]
    assert shown == [
        "L2LR SEV1", "L2LR SEV-cluster, paper's procedure", "L2LR SEV-cluster, ours (default)", "L2LR sparsest"
    ]  # fmt: skip
