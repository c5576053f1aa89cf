"""ExpO tuned: chosen on rows held out, among models that are about as good, and the curve is there to see."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from fewest.experiments.paper import expo_curve, find, load_split, summarise
from fewest.experiments.paper.allopt import WALKS
from fewest.experiments.paper.expo_curve import GRID, NONE, WeightAndSpread, choose

pytest.importorskip("torch")

from fewest.models.training import ExpOClassifier
from fewest.models.training.one_warm_up import fit_each


def test_a_weight_that_costs_accuracy_is_not_chosen_and_a_model_that_refuses_nobody_is_not_either() -> None:
    figures = {"test_accuracy": 0.8, "test_auc": 0.8, "sev": 1.5}
    a, b, c = (WeightAndSpread(weight, 1.0) for weight in (1.0, 10.0, 100.0))
    curve = {NONE: figures, a: {**figures, "test_accuracy": 0.7, "sev": 1.0}, b: {**figures, "sev": math.nan}}
    assert choose(curve) == NONE
    assert choose({**curve, c: {**figures, "sev": 1.4}}) == c
    assert choose({NONE: {**figures, "sev": math.nan}}) == NONE


def test_a_shared_warm_up_gives_what_fitting_each_from_the_start_gives() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    y = (X["a"] * X["b"] + X["c"] > 0).astype(int)
    estimator = ExpOClassifier.from_settings(
        model="mlp", warmup_epochs=4, epochs=3, hidden=(6,), device="cpu", learning_rate=0.05
    )
    choices = [{"c": 0.0, "spread": 0.1}, {"c": 50.0, "spread": 1.0}, {"c": 1.0, "spread": 0.5}]
    together = [model.predict_proba(X) for model in fit_each(estimator, X, y, choices)]
    alone = [clone(estimator).set_params(**choice).fit(X, y) for choice in choices]
    assert all(np.array_equal(a, b.predict_proba(X)) for a, b in zip(together, alone, strict=True))
    assert not np.array_equal(together[0], together[1])
    assert len(alone[0].history_) == len(list(fit_each(estimator, X, y, choices))[2].history_) == 7


def test_the_folds_are_those_of_all_opts_search() -> None:
    table: Any = find("expo_curve")
    rows = load_split("german", 0)
    folds = list(table.folds("german", rows))
    assert len(folds) == WALKS["german"].validation == 4
    assert sorted(index for fold in folds for index in fold.X_test.index) == sorted(rows.X_train.index)


def test_a_quick_unit_has_the_ends_of_the_curve_and_a_tuned_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expo_curve, "REGULARIZERS", {"1DFed": "1d"})
    table: Any = find("expo_curve", quick=True)
    records = table.cells("german", 0, lambda line: None)
    assert [record.method for record in records] == [f"LR 1DFed {choice}" for choice in (GRID[0], GRID[-1], "tuned")]
    assert sum(record.figures["chosen"] for record in records[:-1]) == 1
    assert "held_sev" in records[0].figures
    assert "sev" not in records[0].figures
    assert records[-1].figures["decided"] > 0
    assert len(summarise(table, records)) == len(records)
