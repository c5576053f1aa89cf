"""Distributions, frequencies, trade-offs, flexibility, before and after: the numbers, and no reliance on colour."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.errors import MissingExtraError, UsageError
from fewest.reporting.plots import (
    BeforeAfterDisplay,
    FeatureFrequencyDisplay,
    FlexibilityDisplay,
    SevDistributionDisplay,
    TradeOffDisplay,
)
from fewest.reporting.plots.display import Display

Train = tuple[pd.DataFrame, np.ndarray]
POINTS = pd.DataFrame({
    "label": ["LR", "LR", "MLP", "MLP"], "variant": ["one", "clusters"] * 2, "sev": [2.0, 1.5, 1.8, 1.9],
    "l_inf": [1.0, 0.8, np.nan, 1.2], "log_likelihood": np.nan,
})  # fmt: skip


def is_grey(colours: Any) -> bool:
    return bool(np.all(np.atleast_2d(colours)[:, :1] == np.atleast_2d(colours)[:, :3]))


def test_the_distribution_counts_each_size_and_the_unexplained(out: fw.Explanations) -> None:
    table = SevDistributionDisplay.from_explanations({"one": out, "two": out}).table
    own = table[table["label"] == "one"]
    against = len(out) - out.counts()["ALREADY_NEGATIVE"]
    assert own["cases"].sum() == against
    for line in own[own["sev"] != "none"].itertuples():
        assert line.cases == (out.sev.dropna() == int(line.sev)).sum()
    assert own["share"].sum() == pytest.approx(1.0)


def test_cases_without_an_answer_stand_apart() -> None:
    X = pd.DataFrame({"a": [0, 1, 2], "b": [0, 0, 9]})
    decision = fw.Decision(lambda frame: (frame["b"] + frame["a"]).to_numpy() / 4, positive=True)
    kept = fw.Constraints(fw.Immutable("b"))
    refs = fw.references.single(decision, X, [0, 0, 1])
    out = fw.Explainer(decision, refs, constraints=kept, n_jobs=1).explain(X)
    assert SevDistributionDisplay.from_explanations(out).table["sev"].tolist() == ["none"] * bool(
        out.counts()["UNREACHABLE"]
    )
    with pytest.raises(UsageError, match="refused"):
        SevDistributionDisplay.from_explanations(fw.Explainer(decision, refs, n_jobs=1).explain(X[:1]))
    with pytest.raises(UsageError, match="no case is explained"):
        FeatureFrequencyDisplay.from_explanations(out)


def test_frequencies_are_those_of_the_answers(out: fw.Explanations) -> None:
    table = FeatureFrequencyDisplay.from_explanations(out, most=3).table
    assert len(table) == 3
    assert table["cases"].is_monotonic_decreasing
    for line in table.itertuples():
        assert line.cases == out.answers.moved[:, out.schema.index(str(line.feature))].sum()


def test_frequencies_of_several_stand_side_by_side_under_their_labels(out: fw.Explanations) -> None:
    one, both = (FeatureFrequencyDisplay.from_explanations(given, most=3) for given in (out, {"one": out, "two": out}))
    for label in ("one", "two"):
        own = both.table[both.table["label"] == label].reset_index(drop=True)
        pd.testing.assert_frame_equal(own.drop(columns="label"), one.table.drop(columns="label"))
    ax = both.plot().ax_
    assert [len(bars.patches) for bars in ax.containers] == [3, 3]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == one.table["feature"].tolist()
    with pytest.raises(UsageError, match="there are no explanations"):
        FeatureFrequencyDisplay.from_explanations({})


def test_labels_may_have_different_features() -> None:
    table = pd.DataFrame({"label": ["a", "b"], "feature": ["debt", "rent"], "cases": [3, 2], "share": [0.6, 0.4]})
    axes = FeatureFrequencyDisplay(table).plot().ax_
    assert [bar.get_width() for bar in axes.patches] == [0.6, 0.0, 0.0, 0.4]


def test_bars_can_be_told_apart_without_colour(out: fw.Explanations) -> None:
    ax = SevDistributionDisplay.from_explanations({"one": out, "two": out}).plot(style="paper").ax_
    looks = {(bar.get_hatch(), bar.get_facecolor()) for bars in ax.containers for bar in bars.patches}
    assert len(looks) == 2
    assert all(is_grey(face) for _, face in looks)


def test_points_are_joined_in_order_and_those_without_a_number_are_left_out() -> None:
    ax = TradeOffDisplay(POINTS).plot(style="paper").ax_
    drawn = [tuple(part.get_offsets()[0]) for part in ax.collections if len(part.get_offsets())]
    assert drawn == [(2.0, 1.0), (1.5, 0.8), (1.9, 1.2)]
    assert [(arrow.xyann, arrow.xy) for arrow in ax.texts] == [(pytest.approx((2.0, 1.0)), pytest.approx((1.5, 0.8)))]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["LR", "MLP", "one", "clusters"]
    assert all(is_grey(part.get_facecolors()) for part in ax.collections if len(part.get_facecolors()))


def test_a_trade_off_of_explanations_has_their_means(out: fw.Explanations) -> None:
    display = TradeOffDisplay.from_explanations({"LR": {"one": out}}, y="log_likelihood")
    line = display.table.iloc[0]
    assert line["sev"] == out.summary()["mean SEV"]
    assert line["log_likelihood"] == out.summary()["mean log-likelihood"]
    assert line["l_inf"] == pytest.approx(np.nanmean(out.answers.l_inf[out.answers.moved.any(axis=1)]))


def test_trade_offs_without_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match="no point"):
        TradeOffDisplay(POINTS, y="log_likelihood").plot()
    with pytest.raises(UsageError, match="no column"):
        TradeOffDisplay(POINTS, y="speed").plot()


def test_flexibility_never_raises_sev_and_begins_with_the_plain_references(model_explainer: fw.Explainer) -> None:
    plain = model_explainer.with_(credibility=None)
    cases = plain.references.frame.iloc[np.zeros(40, dtype=int)] + np.random.default_rng(3).normal(2, 1, (40, 4)).round(
        1
    )
    display = FlexibilityDisplay.from_explainer(plain, cases.reset_index(drop=True), amounts=(0.2, 0.1))
    assert display.table["flexibility"].tolist() == [0.0, 0.1, 0.2]
    assert display.table["sev"].iloc[0] == plain.explain(cases).summary()["mean SEV"]
    assert display.table["sev"].is_monotonic_decreasing
    assert display.plot().ax_.lines[0].get_ydata().tolist() == display.table["sev"].tolist()
    with pytest.raises(UsageError, match="no line has log_likelihood"):
        FlexibilityDisplay(display.table, y="log_likelihood").plot()
    with pytest.raises(UsageError, match="no flexibility"):
        FlexibilityDisplay.from_explainer(plain, cases, amounts=())


def test_before_is_hatched_and_after_is_solid(out: fw.Explanations) -> None:
    display = BeforeAfterDisplay.from_explanations({"LR": (out, out)})
    assert display.table["before"].tolist() == display.table["after"].tolist() == [out.summary()["mean SEV"]]
    ax = display.plot().ax_
    before, after = ax.containers[:2]
    assert before.patches[0].get_hatch() == "///"
    assert not after.patches[0].get_hatch()
    with pytest.raises(UsageError, match="nothing to compare"):
        BeforeAfterDisplay.from_explanations({}).plot()


def test_every_display_draws_into_given_axes(out: fw.Explanations) -> None:
    import matplotlib.pyplot as plt

    for display in (SevDistributionDisplay.from_explanations(out), TradeOffDisplay(POINTS)):
        figure, ax = plt.subplots()
        shown: Display = display.plot(ax)
        assert (shown.ax_, shown.figure_) == (ax, figure)
        figure.canvas.draw()


def test_without_matplotlib_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r'pip install "fewest\[plots\]"'):
        TradeOffDisplay(POINTS).plot()


def test_screens_have_colours_titles_and_the_same_hatches(out: fw.Explanations) -> None:
    display = SevDistributionDisplay.from_explanations({"one": out, "two": out})
    screen, paper = display.plot().ax_, display.plot(style="paper").ax_
    faces, hatches = (
        (
            {bar.get_facecolor() for bars in ax.containers for bar in getattr(bars, "patches", ())}
            for ax in (screen, paper)
        ),
        [[bar.get_hatch() for bars in ax.containers for bar in getattr(bars, "patches", ())] for ax in (screen, paper)],
    )
    coloured, grey = faces
    assert not any(is_grey(face) for face in coloured)
    assert all(is_grey(face) for face in grey)
    assert hatches[0] == hatches[1]
    assert screen.get_title() == "How many features must change"
    assert paper.get_title() == ""
    assert screen.yaxis.get_major_formatter()(0.5, None) == "50%"
    with pytest.raises(fw.errors.UsageError, match="style"):
        display.plot(style="glossy")  # type: ignore[arg-type]
