"""The front as a picture: readable without colour, drawn where asked."""

from __future__ import annotations

import builtins

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from fewest.errors import MissingExtraError, UsageError
from fewest.reporting.plots import FrontDisplay

mpl.use("agg")
FRONT = pd.DataFrame({
    "mean_sev_t": [1.0, 1.1, 1.4, np.nan], "accuracy": [0.7, 0.72, 0.71, 0.6], "leaves": [3, 5, 6, 1],
    "trees": [2, 1000, 7, 1], "pareto": [True, True, False, False], "chosen": [True, False, False, False],
})  # fmt: skip


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def test_points_stand_where_the_trees_are_and_the_chosen_one_is_marked():
    shown = FrontDisplay(FRONT).plot(style="paper")
    others, best, chosen = shown.ax_.collections
    assert others.get_offsets().tolist() == [[1.4, 0.71]]
    assert best.get_offsets().tolist() == [[1.0, 0.7], [1.1, 0.72]]
    assert chosen.get_offsets().tolist() == [[1.0, 0.7]]
    assert best.get_sizes()[0] < best.get_sizes()[1]
    assert shown.ax_.get_title() == "1,010 near-optimal trees"
    for points in (others, best, chosen):
        colours = np.concatenate([points.get_edgecolors(), points.get_facecolors()])
        assert (colours[:, :1] == colours[:, :3]).all()


def test_it_draws_into_given_axes():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2)
    shown = FrontDisplay(FRONT).plot(ax=axes[1])
    assert shown.ax_ is axes[1]
    assert shown.figure_ is figure
    assert not axes[0].collections


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(UsageError, match="front_"):
        FrontDisplay.from_estimator(object())
    with pytest.raises(UsageError, match="no tree"):
        FrontDisplay(FRONT.iloc[3:]).plot()


def test_without_matplotlib_the_install_line_is_given(monkeypatch):
    real = builtins.__import__

    def blocked(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", blocked)
    with pytest.raises(MissingExtraError, match=r'pip install "fewest\[plots\]"'):
        FrontDisplay(FRONT).plot()
