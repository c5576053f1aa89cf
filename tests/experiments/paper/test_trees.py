import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewest.experiments.paper import Rows, as_dict, as_markdown, find, load_split, run_table, summarise
from fewest.experiments.paper.runner import Store
from fewest.experiments.paper.trees import SEARCHED, TreesTable, measure
from fewest.models.trees import CARTClassifier, Leaf, Split, Tree
from fewest.models.trees.estimator import recount

TEX = Path(__file__).parents[4] / "shared" / "paper" / "improving-decision-sparsity.tex"


def given(root: Split | Leaf, X: pd.DataFrame, y: np.ndarray) -> CARTClassifier:
    """A classifier with a tree of one's choice."""
    model = CARTClassifier().fit(X, y)
    model.tree_ = recount(Tree.build(model.schema_, root), model.schema_.conform(X), np.asarray(y) == 1)
    return model


def squares() -> Rows:
    """All pairs of two numbers from 0 to 3; positive where both are above 1."""
    X = pd.DataFrame(list(itertools.product(range(4), range(4))), columns=["a", "b"])
    y = ((X["a"] > 1) & (X["b"] > 1)).to_numpy().astype(np.int64)
    return Rows(X, X, y, y)


def test_figures_are_those_counted_by_hand() -> None:
    rows = squares()
    root = Split("a", 1.5, Leaf(False), Split("b", 1.5, Leaf(False), Leaf(True)))
    model = given(root, rows.X_train, rows.y_train)
    assert measure(model, rows) == {
        "train_accuracy": 1.0, "test_accuracy": 1.0, "leaves": 3.0, "sev_t": 1.0, "decided": 4.0, "unreachable": 0.0,
    }  # fmt: skip


def test_features_are_counted_and_not_tests() -> None:
    X = pd.DataFrame({"a": [0, 1, 2, 3], "b": [0, 0, 0, 0]})
    y = np.array([0, 1, 1, 1])
    rows = Rows(X, X, y, y)
    root = Split("a", 0.5, Leaf(False), Split("a", 1.5, Leaf(True), Split("a", 2.5, Leaf(True), Leaf(True))))
    assert measure(given(root, X, y), rows)["sev_t"] == 1.0


def test_a_tree_that_refuses_everybody_has_no_mean_and_counts_them() -> None:
    rows = squares()
    everybody = np.ones(16, dtype=np.int64)
    everybody[0] = 0
    model = given(Leaf(True), rows.X_train, everybody)
    figures = measure(model, Rows(rows.X_train, rows.X_test, everybody, everybody))
    assert np.isnan(figures["sev_t"])
    assert figures["unreachable"] == figures["decided"] == 16.0


def test_a_tree_that_refuses_nobody_has_no_mean_and_counts_none() -> None:
    rows = squares()
    model = given(Leaf(False), rows.X_train, rows.y_train)
    figures = measure(model, rows)
    assert np.isnan(figures["sev_t"])
    assert figures["unreachable"] == figures["decided"] == 0.0


def test_levels_first_met_in_the_test_rows_are_no_obstacle() -> None:
    train = pd.DataFrame({"job": ["none", "none", "clerk", "clerk"]})
    test = pd.DataFrame({"job": ["none", "cook"]})
    model = given(Split("job", frozenset(["none"]), Leaf(True), Leaf(False)), train, np.array([1, 1, 0, 0]))
    figures = measure(model, Rows(train, test, np.array([1, 1, 0, 0]), np.array([1, 0])))
    assert (figures["sev_t"], figures["test_accuracy"]) == (1.0, 1.0)


@pytest.mark.slow
def test_a_quick_run_on_german_gives_all_methods_and_the_set() -> None:
    pytest.importorskip("gosdt")
    pytest.importorskip("praxis")
    table = find("trees", quick=True)
    records = run_table(table, ["german"], 1, Store())
    assert [record.method for record in records] == list(TreesTable.methods)
    for record in records:
        assert 0.5 < record.figures["test_accuracy"] < 1
        assert record.figures["unreachable"] == 0
        assert ("trees" in record.figures) == record.method.startswith("TOpt")
    topt = records[-1].figures
    assert topt["trees"] >= 1
    assert topt["fewest_leaves"] <= topt["leaves"] <= topt["most_leaves"]
    assert repr(table.cells("german", 0, lambda line: None)) == repr(records)
    lines = summarise(table, records)
    assert as_dict(table, lines)["lines"][3]["figures"]["sev_t"]["paper"] == {"mean": 1.0, "sd": 0.0}
    assert as_markdown(table, lines).count("\n| german |") == 5


def test_the_settings_are_plain_values_for_every_dataset() -> None:
    assert {*SEARCHED, "mimic", "mimic_demo"} == set(TreesTable.datasets), "the others are not tuned"
    for dataset in TreesTable.datasets:
        settings = TreesTable().settings(dataset)
        assert settings["CART"] == settings["C4.5"] == {"max_depth": 4}
        assert settings["GOSDT"]["regularization"] == settings["TOpt"]["regularization"] > 0
        assert settings["TOpt"]["max_depth"] == settings["GOSDT"]["max_depth"] == 4
        same = {name: value for name, value in settings["TOpt"].items() if name != "bound"}
        assert same == settings["GOSDT"], "both search the same binary tests at the same price"
    assert TreesTable(quick=True).settings("adult") != TreesTable().settings("adult")
    assert len(load_split("german", 0).X_train) < TreesTable.quick_rows


@pytest.mark.parametrize(
    ("dataset", "method", "figure", "printed"),
    [
        ("adult", "C4.5", "train_accuracy", "0.85 ± 0.01"),
        ("adult", "TOpt", "test_accuracy", "0.82 ± 0.01"),
        ("compas", "GOSDT", "sev_t", "1.12 ± 0.02"),
        ("compas", "TOpt", "train_accuracy", "0.66 ± 0.01"),
        ("fico", "GOSDT", "sev_t", "1.80 ± 0.02"),
        ("fico", "C4.5", "sev_t", "1.13 ± 0.05"),
        ("headline", "CART", "sev_t", "1.27 ± 0.01"),
        ("headline", "GOSDT", "test_accuracy", "0.76 ± 0.02"),
        ("diabetes", "GOSDT", "test_accuracy", "0.60 ± 0.01"),
        ("german", "CART", "train_accuracy", "0.75 ± 0.01"),
    ],
)
def test_published_figures_are_as_printed(dataset: str, method: str, figure: str, printed: str) -> None:
    assert str(TreesTable.published[dataset, method][figure]) == printed


@pytest.mark.skipif(not TEX.is_file(), reason="the paper's source is not here")
def test_every_published_figure_stands_in_the_paper() -> None:
    source = TEX.read_text(encoding="utf-8")
    table = source[source.index(r"\label{tab:tree_perf}") :]
    table = table[: table.index(r"\end{table}")]
    rows = re.findall(r"(CART|C4\.5|GOSDT|Topt) & (.*?) \\\\", table)
    found = [
        (method, tuple(float(n) for n in re.findall(r"\d+\.\d+", row.replace("\\pm", " ")))) for method, row in rows
    ]
    typed = [
        (method.replace("TOpt", "Topt"), tuple(number for pair in figures.values() for number in pair))
        for (_, method), figures in TreesTable.published.items()
        if method != "TOpt paper"
    ]
    assert len(found) == 28
    assert typed == found
