"""The path of a search as a picture: readable without colour, with the tolerance and the choice in it."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from fewest.errors import MissingExtraError, UsageError
from fewest.reporting.plots import TrainingFrontDisplay

FRONT = pd.DataFrame({
    "c1": [0.0, 0.1, 0.8, 3.2], "c2": [0.0, 1.0, 1.0, 1.0], "accuracy": [0.74, 0.75, 0.74, 0.9],
    "roc_auc": [0.80, 0.79, 0.79, 0.7], "mean_sev": [1.5, 1.2, 1.0, np.nan], "positives": [20, 20, 20, 0],
    "unreachable": [0, 2, 0, 0], "chosen": [False, False, True, False],
})  # fmt: skip


def test_stops_stand_where_they_were_measured_and_the_chosen_one_is_starred() -> None:
    shown = TrainingFrontDisplay(FRONT, tolerance=0.02).plot()
    auc, auc_star, accuracy, accuracy_star = shown.ax_.collections
    assert auc.get_offsets().tolist() == [[1.5, 0.80], [1.2, 0.79], [1.0, 0.79]]
    assert accuracy.get_offsets().tolist() == [[1.5, 0.74], [1.2, 0.75], [1.0, 0.74]]
    assert auc_star.get_offsets().tolist() == [[1.0, 0.79]]
    assert accuracy_star.get_offsets().tolist() == [[1.0, 0.74]]
    assert [text.get_text() for text in shown.ax_.texts] == ["0", "0.1", "0.8"]


def test_bands_reach_down_from_the_best_that_could_be_chosen() -> None:
    bands = TrainingFrontDisplay(FRONT, tolerance=0.02).plot().ax_.patches
    heights = [(band.get_y(), band.get_y() + band.get_height()) for band in bands]
    # The stop at c1 = 0.1 has the best accuracy, but a tenth of its positive rows cannot be turned.
    assert heights == [pytest.approx((0.78, 0.80)), pytest.approx((0.72, 0.74))]
    assert bands[0].get_hatch() != bands[1].get_hatch()


def test_nothing_is_said_by_colour_alone() -> None:
    ax = TrainingFrontDisplay(FRONT).plot(style="paper").ax_
    for points in ax.collections:
        colours = np.concatenate([points.get_edgecolors(), points.get_facecolors()])
        assert (colours[:, :1] == colours[:, :3]).all()
    hollow = ax.collections[0].get_facecolors()
    assert hollow[1][3] == 0
    assert hollow[0][3] == 1
    assert len({line.get_linestyle() for line in ax.lines}) == 2
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"AUC", "accuracy", "chosen"} <= set(named)


def test_every_branch_starts_at_the_warm_up() -> None:
    two = pd.concat([FRONT.iloc[:3], FRONT.iloc[1:3].assign(c2=5.0, mean_sev=[1.4, 1.3])], ignore_index=True)
    lines = TrainingFrontDisplay(two, measures=("roc_auc",)).plot().ax_.lines
    assert [line.get_xdata().tolist() for line in lines] == [[1.5, 1.2, 1.0], [1.5, 1.4, 1.3]]


def test_it_draws_a_search_into_given_axes() -> None:
    class Search:
        front_, tolerance, max_unreachable, measures = FRONT, 0.05, 0.5, ["accuracy"]

    _, axes = plt.subplots(1, 2)
    shown = TrainingFrontDisplay.from_estimator(Search()).plot(ax=axes[1])
    assert shown.ax_ is axes[1]
    assert axes[1].get_ylabel() == "accuracy"
    assert axes[1].patches[0].get_y() == pytest.approx(0.70)
    assert not axes[0].collections


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(UsageError, match="fitted AllOptSearchCV"):
        TrainingFrontDisplay.from_estimator(object())
    with pytest.raises(UsageError, match="no stop"):
        TrainingFrontDisplay(FRONT.iloc[3:]).plot()


def test_without_matplotlib_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r'pip install "fewest\[plots\]"'):
        TrainingFrontDisplay(FRONT).plot()
