"""Figures of explanations, against numbers worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import random_models as rm

import fewest as fw
from fewest.errors import DataError, UsageError
from fewest.results.metrics import closeness, likelihood, parity, sparsity, stability

# Standard deviations: debt 4, rate 0.5. Ranges: 10 and 1.
X = pd.DataFrame({"debt": [0, 10, 2, 8, 5], "rate": [0.0, 1.0, 0.5, 0.0, 1.0], "job": ["a", "b", "a", "b", "a"]})
SCHEMA = (
    fw.Schema.infer(X)
    .with_("debt", scale=4.0, minimum=0.0, maximum=10.0)
    .with_("rate", scale=0.5, minimum=0.0, maximum=1.0)
)


def score(frame: pd.DataFrame) -> np.ndarray:
    """Points for debt above 4, a rate above 0.4 and job b; two of three are too many, job b alone is."""
    high = (frame["debt"] > 4).to_numpy(dtype=float) + (frame["rate"] > 0.4).to_numpy(dtype=float)
    return np.asarray(0.3 * high + 0.6 * (frame["job"] == "b").to_numpy(dtype=float))


DECISION = fw.Decision(score, positive=1)
REFS = fw.references.supplied(DECISION, {"debt": [2], "rate": [0.0], "job": ["a"]}, schema=SCHEMA)
CASES = pd.DataFrame(
    {
        "debt": [0, 10, 10, 10],
        "rate": [0.0, 0.0, 1.0, 1.0],
        "job": ["b", "b", "a", "b"],
    }
)


def explain(cases: pd.DataFrame = CASES, **options: Any) -> fw.Explanations:
    return fw.Explainer(DECISION, REFS, n_jobs=1, **options).explain(cases)


def test_the_cases_are_what_the_figures_below_take_them_for() -> None:
    out = explain()
    assert [answer.sev for answer in out] == [1, 1, 1, 2]
    assert [[change.feature for change in answer.changes] for answer in out] == [
        ["job"], ["job"], ["debt"], ["debt", "job"]
    ]  # fmt: skip


def test_sparsity_by_hand() -> None:
    found = sparsity(explain())
    assert (found.n, found.mean_sev, found.share_one, found.largest) == (4, 1.25, 0.75, 2)
    held = sparsity(explain(constraints=fw.Constraints(fw.Immutable("job"))))
    assert (held.n, held.unreachable) == (1, 3)


def test_closeness_by_hand_keeps_the_cases_that_change_no_number() -> None:
    """Debt 10 to 2 is two standard deviations and four fifths of the range."""
    found = closeness(explain())
    assert (found.n, found.median_l_inf, found.mean_l_inf) == (4, 1.0, 1.0)
    assert (found.median_l2, found.mean_l2, found.mean_l0) == (1.0, 1.0, 1.25)
    shares = [1 / 3, 1 / 3, 0.8 / 3, 1.8 / 3]
    assert found.mean_gower == pytest.approx(np.mean(shares))
    assert found.median_gower == pytest.approx(1 / 3)


def test_closeness_of_two_numbers_at_once() -> None:
    linked = explain(CASES.iloc[[2]], constraints=fw.Constraints(fw.Linked("debt", "rate")))
    found = closeness(linked)
    assert (found.mean_l_inf, found.mean_l2, found.mean_l0) == (2.0, pytest.approx(math.sqrt(8)), 2.0)
    assert found.mean_gower == pytest.approx((0.8 + 1.0) / 3)


def leaving_zeros_out(out: fw.Explanations) -> float:
    """As in the authors' code: cases that change no number do not count."""
    steps = out.answers.l_inf[out.answers.l_inf > 0]
    return float(np.median(steps))


def test_a_median_without_the_zeros_is_another_figure() -> None:
    assert leaving_zeros_out(explain()) == 2.0 != closeness(explain()).median_l_inf


def test_l_inf_is_the_one_of_the_answers_on_random_models() -> None:
    for seed in range(12):
        setting = (rm.linear, rm.tree_ensemble)[seed % 2](np.random.default_rng(seed))
        out = fw.Explainer(setting.decision, setting.references, n_jobs=1).explain(setting.cases)
        explained = np.array([answer.status == fw.Status.EXPLAINED for answer in out])
        found = closeness(out)
        assert found.n == explained.sum()
        if found.n:
            assert found.mean_l_inf == pytest.approx(out.answers.l_inf[explained].mean())
            assert found.mean_l0 == pytest.approx(out.sev.mean())


def test_sev_plus_is_measured_from_the_reference() -> None:
    found = closeness(explain(CASES.iloc[[1]], direction="plus"))
    assert (found.n, found.mean_l0) == (1, 1.0)
    with pytest.raises(UsageError, match="refused"):
        likelihood(explain(direction="plus"), density())


def density() -> fw.credibility.Credibility:
    made = fw.credibility.supplied(DECISION, X, np.zeros(5), lambda rows: -rows["debt"].to_numpy(dtype=float))
    return replace(made, schema=SCHEMA, floor=-2.0)


def test_likelihood_by_hand() -> None:
    """The cases end with debts 0, 10, 2 and 2."""
    found = likelihood(explain(), density())
    assert (found.n, found.mean, found.median, found.share_credible) == (4, -3.5, -2.0, 0.75)


def test_nothing_explained_gives_no_figures() -> None:
    out = explain(X.iloc[[0]])
    assert sparsity(out).n == 0
    assert math.isnan(sparsity(out).mean_sev)
    assert math.isnan(closeness(out).median_l_inf)
    assert math.isnan(likelihood(out, density()).mean)
    assert math.isnan(stability(fw.Explainer(DECISION, REFS, n_jobs=1), X.iloc[[0]]).share_changed)


# Stability


def steps(frame: pd.DataFrame) -> np.ndarray:
    """Either number at or above zero is enough to refuse."""
    return np.asarray(0.4 + 0.2 * (frame[["a", "b"]].to_numpy() >= 0).sum(axis=1))


def noisy(cases: pd.DataFrame, noise: float, **options: Any) -> Any:
    table = pd.DataFrame({"a": [-2.0, 2.0], "b": [-2.0, 2.0]})
    schema = fw.Schema.infer(table).with_("a", scale=1.0, decimals=3, kind="number")
    schema = schema.with_("b", scale=1.0, decimals=3, kind="number")
    decision = fw.Decision(steps, positive=1)
    refs = fw.references.supplied(decision, {"a": [-1.0], "b": [-1.0]}, schema=schema)
    return stability(fw.Explainer(decision, refs, n_jobs=1), cases, noise=noise, **options)


def test_cases_far_from_a_step_keep_their_set_and_those_on_it_do_not() -> None:
    far = pd.DataFrame({"a": [1.5, 1.0], "b": [-1.0, 1.0]})
    assert noisy(far, 0.05).share_changed == 0
    near = pd.DataFrame({"a": [1.5] * 200, "b": [0.001] * 200})
    found = noisy(near, 0.2, repeats=4)
    assert found.n == 200
    assert found.share_changed == pytest.approx(0.5, abs=0.06)
    assert found.share_ever_changed == pytest.approx(1 - 0.5**4, abs=0.06)
    assert found.share_turned == 0


def test_noise_that_turns_the_decision_itself_is_told_apart() -> None:
    edge = pd.DataFrame({"a": [0.001] * 200, "b": [-1.5] * 200})
    found = noisy(edge, 0.05)
    assert found.share_turned == pytest.approx(0.5, abs=0.06)
    assert found.share_changed == found.share_turned


def test_no_noise_changes_nothing_and_the_seed_decides() -> None:
    near = pd.DataFrame({"a": [1.5] * 50, "b": [0.001] * 50})
    assert noisy(near, 0.0).share_ever_changed == 0
    assert noisy(near, 0.5, random_state=3) == noisy(near, 0.5, random_state=3)


def test_whole_numbers_move_by_whole_steps_and_missing_ones_stay() -> None:
    from fewest.results.metrics import _shaken

    table = pd.DataFrame({"count": [0, 5, 9], "rate": [0.5, np.nan, 0.25], "job": ["a", "b", "a"]})
    schema = fw.Schema.infer(table)
    moved = _shaken(schema, table, 2.0, np.random.default_rng(0))
    assert moved.dtypes.equals(table.dtypes)
    assert moved["count"].between(0, 9).all()
    assert np.isnan(moved["rate"][1])
    assert moved["job"].tolist() == ["a", "b", "a"]


@pytest.mark.parametrize("options", [{"noise": -1}, {"noise": math.nan}, {"repeats": 0}])
def test_senseless_noise_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        stability(fw.Explainer(DECISION, REFS, n_jobs=1), X, **options)


# Parity


def test_parity_by_hand() -> None:
    """Group m has SEV 1, 1, 2, 2 and one case that cannot be turned; group f has 1, 1, 1, 2."""
    out = explain(pd.concat([CASES] * 3, ignore_index=True))
    out.answers.moved[:] = False
    sizes = [1, 1, 2, 2, 0, 1, 1, 1, 2]
    status = [0] * 4 + [list(fw.Status).index(fw.Status.UNREACHABLE)] + [0] * 4 + [1] * 3
    out.answers.status[:] = status
    for row, size in enumerate(sizes):
        out.answers.moved[row, :size] = True
    found = parity(out, ["m"] * 5 + ["f"] * 5 + [None, "m"])
    assert found.index.tolist() == ["f", "m"]
    assert found["n"].tolist() == [4, 5]
    assert found["explained"].tolist() == [4, 4]
    assert found["mean_sev"].tolist() == [1.25, 1.5]
    assert found["share_unreachable"].tolist() == [0.0, 0.2]
    half = 3.182446305284263 * math.sqrt(1 / 3) / 2  # t(0.975, 3) times the standard error of 1, 1, 2, 2
    assert found.loc["m", ["low", "high"]].tolist() == pytest.approx([1.5 - half, 1.5 + half])
    assert found["difference"].tolist() == [-0.25, 0.25]
    error = math.sqrt(1 / 12 + 0.25 / 4)
    freedom = error**4 / ((1 / 12) ** 2 / 3 + (0.25 / 4) ** 2 / 3)
    assert freedom == pytest.approx(5.88, abs=0.01)
    assert found.loc["m", "difference_high"] == pytest.approx(0.25 + 2.459 * error, abs=2e-3)


def test_intervals_cover_what_they_should() -> None:
    from fewest.results.metrics import _difference, _mean

    random = np.random.default_rng(0)
    hits, gaps = 0, 0
    for _ in range(400):
        one, two = random.integers(1, 4, 30).astype(float), random.integers(1, 4, 20).astype(float)
        _, low, high = _mean(one, 0.9)
        hits += low <= 2 <= high
        _, low, high = _difference(one, two, 0.9)
        gaps += low <= 0 <= high
    assert hits / 400 == pytest.approx(0.9, abs=0.04)
    assert gaps / 400 == pytest.approx(0.9, abs=0.04)


def test_groups_too_small_for_an_interval_have_none() -> None:
    found = parity(explain(), ["a", "b", "b", "b"])
    assert math.isnan(found.loc["a", "low"])
    assert found.loc["a", "difference"] == pytest.approx(1 - 4 / 3)
    assert math.isnan(found.loc["a", "difference_low"])
    alone = parity(explain(CASES.iloc[:3]), ["a", "a", "a"])
    assert math.isnan(alone.loc["a", "difference"])
    assert alone.loc["a", ["low", "high"]].tolist() == [1.0, 1.0]


def test_senseless_groups_and_levels_are_refused() -> None:
    with pytest.raises(DataError, match="4 cases"):
        parity(explain(), ["a"])
    with pytest.raises(UsageError, match="level"):
        parity(explain(), ["a"] * 4, level=95)
