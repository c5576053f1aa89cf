"""ExpO tuned: chosen on rows held out, among models that are about as good, and the curve is there to see."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fewest.experiments.paper import expo_curve, find, summarise
from fewest.experiments.paper.expo_curve import GRID, NONE, WeightAndSpread, choose

pytest.importorskip("torch")


def test_a_weight_that_costs_accuracy_is_not_chosen_and_a_model_that_refuses_nobody_is_not_either() -> None:
    figures = {"test_accuracy": 0.8, "test_auc": 0.8, "sev": 1.5}
    a, b, c = (WeightAndSpread(weight, 1.0) for weight in (1.0, 10.0, 100.0))
    curve = {NONE: figures, a: {**figures, "test_accuracy": 0.7, "sev": 1.0}, b: {**figures, "sev": math.nan}}
    assert choose(curve) == NONE
    assert choose({**curve, c: {**figures, "sev": 1.4}}) == c
    assert choose({NONE: {**figures, "sev": math.nan}}) == NONE


def test_a_quick_unit_has_the_whole_curve_and_a_tuned_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expo_curve, "TRAINED", {"LR": "logistic"})
    monkeypatch.setattr(expo_curve, "REGULARIZERS", {"1DFed": "1d"})
    table: Any = find("expo_curve", quick=True)
    records = table.cells("german", 0, lambda line: None)
    assert [record.method for record in records] == [f"LR 1DFed {choice}" for choice in (*GRID, "tuned")]
    assert sum(record.figures["chosen"] for record in records[:-1]) == 1
    assert "held_sev" in records[0].figures
    assert "sev" not in records[0].figures
    assert records[-1].figures["decided"] > 0
    assert len(summarise(table, records)) == len(records)
