"""Flexible references: a little lower in score, inside their band, and never at the cost of anybody."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import random_models as rm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from slow_cases import few_or_all

import fewest as fw
from fewest.errors import UsageError
from fewest.references import References, flexible, single
from fewest.references.flexible import Flexibility, typed_inside
from fewest.references.spread import Spread, band, position, sketch

RANDOM = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "debt": RANDOM.integers(0, 100, 400),
        "income": RANDOM.normal(50, 15, 400).round(1),
        "age": RANDOM.integers(18, 80, 400),
        "job": pd.Series(RANDOM.choice(["clerk", "none"], 400), dtype="str"),
    }
)
RISK = (X["debt"] - X["income"] + 10 * (X["job"] == "none")).to_numpy()
Y = (RISK > 10).astype(int)


def linear_score(frame: pd.DataFrame) -> np.ndarray:
    """Debt raises the score, income lowers it, age plays no part."""
    risk = frame["debt"] - frame["income"] + 10 * (frame["job"] == "none") - 10
    return np.asarray(1 / (1 + np.exp(-risk.to_numpy(dtype=float) / 20)))


DECISION = fw.Decision(linear_score, positive=1)
REFS = single(DECISION, X, Y)


def plain_quantile(column: str, level: float) -> float:
    return float(np.quantile(X.loc[Y == 0, column], level))


@pytest.mark.parametrize("at", ["uniform", "quantiles"])
def test_numbers_go_to_the_end_of_their_band_where_the_score_is_lowest(at: Any) -> None:
    refs = REFS.flexible(0.05, at=at)
    before, after = refs.frame.iloc[0], refs.frame.iloc[1]
    for column, towards in (("debt", -0.05), ("income", 0.05)):
        accepted = X.loc[Y == 0, column]
        level = ((accepted < before[column]).mean() + (accepted <= before[column]).mean()) / 2
        assert after[column] == pytest.approx(plain_quantile(column, level + towards), abs=1)
    assert (after["age"], after["job"]) == (before["age"], before["job"])
    assert refs.score[1] < refs.score[0]


def test_names_support_people_and_provenance_follow() -> None:
    refs = REFS.flexible(0.1, grid=7)
    assert refs.names == ("mean", "mean (flexible)")
    assert refs.flexible_of == (-1, 0)
    assert refs.support.tolist() == [int((Y == 0).sum())] * 2
    assert refs.provenance["flexible"] == {"eps": 0.1, "grid": 7, "passes": 1, "at": "uniform"}
    assert refs.frame.dtypes.equals(X.dtypes)
    assert refs.plain().frame.equals(REFS.frame)


def test_a_flexible_reference_can_be_moved_again_and_starts_from_the_original() -> None:
    assert REFS.flexible(0.05).flexible(0.1).frame.equals(REFS.flexible(0.1).frame)


def test_nothing_moves_with_eps_nought() -> None:
    refs = REFS.flexible(0.0)
    assert refs.frame.iloc[[0]].equals(refs.frame.iloc[[1]].reset_index(drop=True))
    cases = X.iloc[:80]
    plain, same = (fw.Explainer(DECISION, r, n_jobs=1).explain(cases) for r in (REFS, refs))
    assert np.array_equal(plain.answers.moved, same.answers.moved)
    assert same.summary()["flexibility used"] == 0
    assert "flexibility used" not in plain.summary()


def test_training_rows_can_be_given_instead_of_the_quantiles_that_are_kept() -> None:
    supplied = fw.references.supplied(DECISION, REFS.frame, X=X)
    with pytest.raises(UsageError, match="how accepted cases spread") as caught:
        supplied.flexible(0.05)
    assert caught.value.do == "pass X and y"
    with pytest.raises(UsageError, match="both"):
        supplied.flexible(0.05, X=X)
    given_rows = supplied.flexible(0.05, X=X, y=Y)
    assert given_rows.frame.equals(REFS.flexible(0.05).frame)


@pytest.mark.parametrize("eps", [-0.01, 0.51, float("nan"), "a lot", True, None])
def test_a_senseless_eps_is_refused(eps: Any) -> None:
    with pytest.raises(UsageError, match="eps"):
        REFS.flexible(eps)


@pytest.mark.parametrize(("option", "value"), [("grid", 1), ("grid", 2.5), ("passes", 0), ("at", "random")])
def test_other_senseless_options_are_refused(option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=option):
        REFS.flexible(0.05, **{option: value})


def test_leaves_are_flexible_already() -> None:
    from sklearn.tree import DecisionTreeClassifier

    table = X[["debt", "age"]]
    decision = fw.Decision(DecisionTreeClassifier(max_depth=2).fit(table, Y))
    with pytest.raises(UsageError, match="boxes"):
        fw.references.leaves(decision, table, Y).flexible(0.05)


def test_missing_values_and_text_do_not_move() -> None:
    table = X.assign(income=np.where(X["income"] > 60, np.nan, X["income"]))
    decision = fw.Decision(lambda f: linear_score(f.assign(income=f["income"].fillna(50))), positive=1)
    gap = fw.references.supplied(decision, table.iloc[[0]].assign(income=np.nan, debt=20), X=table, on_positive="allow")
    moved = gap.flexible(0.2, X=table, y=Y).frame
    assert moved["income"].isna().all()
    assert moved["debt"].tolist()[1] < 20
    assert moved["job"].nunique() == 1


# The band


def test_many_equal_values_are_one_place_in_the_middle_of_them() -> None:
    """Nine in ten have nothing: within 5 % of them, nobody has anything."""
    gains = sketch(fw.Schema.infer(pd.DataFrame({"gain": [0]})), pd.DataFrame({"gain": [0] * 90 + list(range(1, 11))}))
    assert position(gains["gain"], 0.0) == pytest.approx(0.45, abs=0.01)
    assert band(gains["gain"], 0.0, 0.05) == (0.0, 0.0)
    assert band(gains["gain"], 0.0, 0.5)[1] > 4


def test_a_value_outside_the_quantiles_is_at_their_end() -> None:
    values = np.arange(101.0)
    assert (position(values, -5.0), position(values, 500.0)) == (0.0, 1.0)
    assert band(values, 500.0, 0.1) == (90.0, 100.0)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.floats(-1e4, 1e4), st.floats(0, 50), st.integers(0, 3), st.lists(st.floats(-2e4, 2e4), min_size=1, max_size=5)
)
def test_rounding_never_leaves_the_band(low: float, width: float, decimals: int, values: list[float]) -> None:
    feature = fw.Feature("a", "number" if decimals else "integer", ("a",), decimals=decimals)
    typed = typed_inside(feature, np.array(values), low, low + width)
    step = 10.0**-decimals
    assert (typed >= low - 1e-6 * step).all()
    assert (typed <= low + width + 1e-6 * step).all()
    assert np.allclose(typed / step, np.round(typed / step), atol=1e-6)
    # Within this much of a step, either answer is right.
    surely, perhaps = (np.floor((low + width) / step - near) >= np.ceil(low / step + near) for near in (2e-6, -2e-6))
    assert len(typed) in ({len(values)} if surely else {0, len(values)} if perhaps else {0})


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.floats(0, 0.5), st.sampled_from(["uniform", "quantiles"]), st.integers(1, 3))
def test_moved_numbers_are_typed_inside_their_band_and_score_no_higher(
    seed: int, eps: float, at: Any, passes: int
) -> None:
    setting = (rm.linear, rm.tree_ensemble)[seed % 2](np.random.default_rng(seed))
    refs = setting.references.flexible(eps, at=at, passes=passes)
    schema, before, after = refs.schema, refs.frame.iloc[0], refs.frame.iloc[1]
    assert refs.score[1] <= refs.score[0]
    for feature in schema.features:
        column = feature.columns[0]
        if not feature.is_numeric:
            assert before[column] == after[column]
            continue
        low, high = band(refs.spread.quantiles[column], float(before[column]), eps)
        assert after[column] == before[column] or low - 1e-9 <= after[column] <= high + 1e-9
        assert after[column] == schema.snap({column: after[column]})[column]


# SEV


def costs(decision: fw.Decision, refs: References, cases: pd.DataFrame, **options: Any) -> np.ndarray:
    """Least cost per case; inf where there is no answer, -1 where there is nothing to explain."""
    out = fw.Explainer(decision, refs, n_jobs=1, **options).explain(cases)
    status = np.array([answer.status for answer in out])
    found = np.where(status == fw.Status.EXPLAINED, out.answers.cost, np.inf)
    return np.where(status == fw.Status.ALREADY_NEGATIVE, -1.0, found)


MAKERS = (rm.linear, rm.tree_ensemble, rm.network, rm.kernel_machine)


@pytest.mark.parametrize("count", few_or_all(6, 120))
def test_flexibility_never_raises_sev(count: int) -> None:
    for seed in range(count):
        random = np.random.default_rng([seed, 5])
        eps = random.uniform(0, 0.5)
        setting = MAKERS[seed % len(MAKERS)](random)
        refs = setting.references
        if not refs.spread.quantiles:
            other = next((label for label in setting.decision.classes if label != setting.decision.positive), "no")
            refs = refs.flexible(eps, X=setting.cases, y=np.full(len(setting.cases), other)).plain()
        plain, moved = (costs(setting.decision, some, setting.cases) for some in (refs, refs.flexible(eps)))
        assert (moved <= plain).all()


@pytest.mark.parametrize("assignment", ["features", "sparsest", "embedding"])
def test_with_clusters_too_and_twins_come_last(assignment: Any) -> None:
    refs = fw.references.clusters(DECISION, X, Y, n_clusters=3, embedding="pca", assignment=assignment)
    moved = refs.flexible(0.1)
    plain, both = refs.candidates(X), moved.candidates(X)
    assert np.array_equal(both[:, : plain.shape[1]], plain)
    assert np.array_equal(both[:, plain.shape[1] :], plain + 3)
    assert (costs(DECISION, moved, X) <= costs(DECISION, refs, X)).all()


def narrow(refs: References) -> tuple[pd.DataFrame, References]:
    """Cases that one number of the flexible reference turns, and none of the plain one."""
    flexible_refs = refs.flexible(0.2)
    debt, moved = (int(value) for value in flexible_refs.frame["debt"])
    income = np.arange(debt - 15, moved + 12, 0.5)
    cases = pd.DataFrame({"debt": 99, "income": income, "age": 40, "job": "clerk"}).astype({"job": X["job"].dtype})
    return cases[DECISION.verdicts(cases).positive], flexible_refs


def test_a_twin_turns_a_two_into_a_one_and_its_use_is_reported() -> None:
    """What the authors' code cannot do: it never tries its second reference at depth 1."""
    cases, refs = narrow(REFS)
    plain = fw.Explainer(DECISION, REFS, n_jobs=1).explain(cases)
    moved = fw.Explainer(DECISION, refs, n_jobs=1).explain(cases)
    fewer = moved.answers.cost < plain.answers.cost
    assert ((plain.answers.cost == 2) & (moved.answers.cost == 1)).any()
    assert np.array_equal(moved.answers.reference == 1, fewer)
    assert moved.summary()["flexibility used"] == pytest.approx(fewer.mean())
    assert {answer.reference for answer in moved} == {"mean", "mean (flexible)"}


def test_a_reference_decided_positive_can_have_a_twin_that_reaches() -> None:
    positive = fw.references.supplied(
        DECISION, {"debt": [58], "income": [47.0], "age": [40], "job": ["clerk"]}, X=X, on_positive="allow"
    )
    assert positive.score[0] >= DECISION.cut
    moved = positive.flexible(0.2, X=X, y=Y)
    assert moved.score[1] < DECISION.cut
    cases = X[DECISION.verdicts(X).positive].iloc[:20]
    assert np.isfinite(costs(DECISION, moved, cases)).sum() > np.isfinite(costs(DECISION, positive, cases)).sum()


def test_moves_that_harm_each_other_are_not_made_together() -> None:
    """Each of two numbers alone lowers the score; both at once raise it."""
    table = pd.DataFrame({"a": np.tile(np.arange(21), 10), "b": np.repeat(np.arange(21), 10)})

    def either_or(frame: pd.DataFrame) -> np.ndarray:
        a, b = (frame[c].to_numpy(dtype=float) < 10 for c in "ab")
        return np.where(a & b, 0.45, np.where(a | b, 0.1, 0.3))

    decision = fw.Decision(either_or, positive=1)
    refs = single(decision, table, np.zeros(len(table))).flexible(0.1)
    assert refs.frame.iloc[0].tolist() == [10, 10]
    assert refs.score.tolist() == [0.3, 0.1]


def test_more_passes_go_on_from_the_moved_reference() -> None:
    """The second number only matters once the first has moved."""
    table = pd.DataFrame({"a": np.tile(np.arange(21), 10), "b": np.repeat(np.arange(21), 10)})

    def chain(frame: pd.DataFrame) -> np.ndarray:
        a, b = frame["a"].to_numpy(dtype=float), frame["b"].to_numpy(dtype=float)
        return np.where(a < 10, np.where(b < 10, 0.1, 0.2), 0.3)

    refs = single(fw.Decision(chain, positive=1), table, np.zeros(len(table)))
    assert [float(refs.flexible(0.1, passes=passes).score[1]) for passes in (1, 2)] == [0.2, 0.1]


def test_boosted_trees_and_pipelines_are_moved_in_raw_columns() -> None:
    table = X[["debt", "income", "age"]]
    decision = fw.Decision(GradientBoostingClassifier(n_estimators=20, random_state=0).fit(table, Y))
    refs = single(decision, table, Y)
    assert (costs(decision, refs.flexible(0.1), table) <= costs(decision, refs, table)).all()


# Broken twins: what the checks above would say of them


def every_move_alone_lowers_the_score(refs: References) -> bool:
    """What Algorithm 1 promises of each number by itself."""
    before, after = refs.frame.iloc[[0]], refs.frame.iloc[1]
    moved = [column for column in refs.frame if after[column] != before[column].iloc[0]]
    scores = [float(refs.decision.score(before.assign(**{column: after[column]}))[0]) for column in moved]
    return bool(moved) and max(scores) < refs.score[0]


def test_always_the_lower_quantile_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the authors' code: the first grid value, whatever the sign of its effect."""

    def lower_end(decision: Any, schema: Any, frame: pd.DataFrame, spread: Spread, wanted: Flexibility) -> pd.DataFrame:
        ends = {
            c: int(band(spread.quantiles[c], float(frame[c].iloc[0]), wanted.eps)[0])
            for c in flexible.numeric_columns(schema)
        }
        return schema.conform(frame.assign(**ends))

    assert every_move_alone_lowers_the_score(REFS.flexible(0.2))
    monkeypatch.setattr("fewest.references.base.move", lower_end)
    assert not every_move_alone_lowers_the_score(REFS.flexible(0.2))


def test_dropping_the_plain_reference_from_the_race_is_caught() -> None:
    """A twin alone raises SEV for somebody: the invariant needs both."""
    raised = []
    for seed in range(12):
        setting = rm.tree_ensemble(np.random.default_rng(seed))
        both = setting.references.flexible(0.3)
        alone = replace(both.take([1]), flexible_of=())
        with_plain, without = (costs(setting.decision, some, setting.cases) for some in (both, alone))
        raised.append((without > with_plain).any())
        assert (with_plain <= without).all()
    assert any(raised)


def test_logistic_models_gain_what_their_weights_say() -> None:
    table = X[["debt", "income"]]
    model = LogisticRegression(max_iter=1000).fit(table, Y)
    refs = single(fw.Decision(model), table, Y).flexible(0.1)
    step = (refs.frame.iloc[1] - refs.frame.iloc[0]).to_numpy(dtype=float)
    assert (np.sign(step) == -np.sign(model.coef_[0])).all()
