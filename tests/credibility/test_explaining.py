"""Explainer and Explanations under a floor: invariants, statuses, words, references of every kind."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from slow_cases import few_or_all

import fewest as fw
from fewest import checks
from fewest.errors import UsageError
from fewest.results.explanation import STATUSES

EXPLAINED, NOT_CREDIBLE = STATUSES.index(fw.Status.EXPLAINED), STATUSES.index(fw.Status.NOT_CREDIBLE)
KINDS = ("linear", "tree_ensemble", "network", "kernel_machine")
ANSWER = ["status", "sev", "features", "score_after", "lower_bound", "proved", "reference", "l_inf"]


def mixture(case: Any, floor: float, **options: Any) -> fw.credibility.Credibility:
    decision = case.setting.decision
    return fw.credibility.mixture(
        decision, case.X, case.y, quantile=floor, n_components=2, schema=case.schema, **options
    )


@pytest.mark.parametrize("count", few_or_all(2, 12))
@pytest.mark.parametrize("kind", KINDS)
def test_a_floor_never_lowers_sev_and_none_changes_nothing(kind: str, count: int, cases: Any) -> None:
    for _, case in cases(kind, count, 5):
        rows = case.X.iloc[:30]
        plain = case.explainer(None).explain(rows)
        dense = mixture(case, 0.0)
        free = case.explainer(dense).explain(rows)
        assert free.to_frame()[ANSWER].astype(str).equals(plain.to_frame()[ANSWER].astype(str))
        before = plain
        for quantile in (0.05, 0.3, 0.8):
            after = case.explainer(dense.at(quantile)).explain(rows)
            for row in np.flatnonzero(after.answers.status == EXPLAINED):
                assert before.answers.status[row] == EXPLAINED
                assert after.answers.moved[row].sum() >= before.answers.moved[row].sum()
            assert (after.answers.status[before.answers.status == NOT_CREDIBLE] == NOT_CREDIBLE).all()
            before = after


@pytest.mark.parametrize("count", few_or_all(1, 3))
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_depends_on_its_case_alone(kind: str, count: int, cases: Any) -> None:
    for _, case in cases(kind, count, 6):
        explainer = case.explainer(mixture(case, 0.3))
        checks.check_batches(explainer, case.X.iloc[:24])
        one = explainer.explain(case.X, alternatives=3).to_json()
        assert one == explainer.with_(n_jobs=2).explain(case.X, alternatives=3).to_json()
        assert one == case.explainer(mixture(case, 0.3)).explain(case.X, alternatives=3).to_json()


@pytest.mark.parametrize("count", few_or_all(2, 5))
@pytest.mark.parametrize("kind", KINDS)
def test_a_floor_no_vertex_meets_is_proved_and_shows_the_plain_answer(kind: str, count: int, cases: Any) -> None:
    for _, case in cases(kind, count, 7):
        rows = case.X.iloc[:20]
        nowhere = fw.credibility.supplied(
            case.setting.decision, case.X, case.y, lambda frame: np.zeros(len(frame)), schema=case.schema
        )
        high = mixture(case, 1.0)
        for dense in (nowhere, high):
            unmet = fw.credibility.Credibility(
                dense.schema, dense.density, dense.floor + 1e6, 1.0, dense.name, dense.negatives
            )
            out, plain = case.explainer(unmet).explain(rows), case.explainer(None).explain(rows)
            turned = plain.answers.status == EXPLAINED
            assert (out.answers.status[turned] == NOT_CREDIBLE).all()
            assert (out.answers.status[~turned] == plain.answers.status[~turned]).all()
            assert out.answers.proved[turned].all()
            assert np.isinf(out.answers.lower[turned]).all()
            assert (out.answers.moved == plain.answers.moved).all()
            assert not np.isnan(out.answers.log_density[turned]).any()


@pytest.fixture
def loans() -> tuple[fw.Decision, pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(2)
    years = random.integers(18, 70, 300)
    history = np.maximum(0, years - 18 - random.integers(0, 8, 300))  # nobody has credit before 18
    debt = random.normal(size=300).round(1)
    X = pd.DataFrame({"age": years, "history": history, "debt": debt})
    y = (debt - 0.1 * history + random.normal(size=300) * 0.3 > -1.5).astype(int)
    return fw.Decision(LogisticRegression().fit(X, y), positive=1), X, y


def test_the_papers_example_a_credit_history_longer_than_a_life(loans: Any) -> None:
    decision, X, y = loans
    refs = fw.references.single(decision, X, y)
    young = pd.DataFrame({"age": [20], "history": [1], "debt": [0.0]})
    plain = fw.Explainer(decision, refs, n_jobs=1).explain(young)[0]
    dense = fw.credibility.mixture(decision, X, y)
    credible = fw.Explainer(decision, refs, n_jobs=1, credibility=dense).explain(young)[0]
    assert [change.feature for change in plain.changes] == ["history"]
    assert [change.feature for change in credible.changes] == ["age", "history"]
    assert credible.log_density is not None
    assert credible.log_density >= dense.floor > dense.log_density(young.assign(history=refs.frame["history"][0]))[0]
    none = fw.Explainer(
        decision, refs, n_jobs=1, credibility=dense, constraints=fw.Constraints(fw.Immutable("age"))
    ).explain(young)
    assert none[0].status == fw.Status.NOT_CREDIBLE
    assert none[0].sev is None
    assert none[0].proof.minimal
    assert "leads where accepted cases hardly ever are" in str(none[0])
    assert "history had been" in str(none[0])
    assert json.loads(none.to_json())["answers"][0]["log_density"] < dense.floor
    within = fw.Explainer(
        decision, refs, n_jobs=1, credibility=dense, constraints=fw.Constraints(fw.AtMost(1))
    ).explain(young)
    assert "within the limit" in str(within[0])
    assert within[0].proof.lower_bound == 2


def test_the_summary_tells_likelihoods_and_what_is_not_credible(loans: Any) -> None:
    decision, X, y = loans
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    assert "mean log-likelihood" not in explainer.explain(X).summary()
    dense = fw.credibility.mixture(decision, X, y, quantile=0.2)
    out = explainer.with_(credibility=dense, constraints=fw.Constraints(fw.Immutable("age"))).explain(X)
    summary = out.summary()
    shown = out.answers.log_density[out.answers.status == EXPLAINED]
    assert summary["mean log-likelihood"] == pytest.approx(shown.mean())
    assert summary["median log-likelihood"] == pytest.approx(np.median(shown))
    assert summary["not credible"] == (out.answers.status == NOT_CREDIBLE).sum() > 0
    assert out.strategies[1] == "additive, above the floor"


def test_the_sparsest_reference_is_the_sparsest_credible_one(loans: Any) -> None:
    decision, X, y = loans
    good = X[(y == 0) & ~decision.verdicts(X).positive]
    table = good.iloc[[0, 5, 9, 14]].reset_index(drop=True)
    refs = fw.references.supplied(decision, table, X=X, assignment="sparsest")
    dense = fw.credibility.mixture(decision, X, y, quantile=0.4, schema=refs.schema)
    out = fw.Explainer(decision, refs, n_jobs=1, credibility=dense).explain(X.iloc[:60])
    for answer in out:
        if answer.status == fw.Status.ALREADY_NEGATIVE:
            continue
        case = out.frame.iloc[[answer.row]]
        explainer = fw.Explainer(decision, refs, n_jobs=1, credibility=dense)
        truths = [checks.brute_force(explainer, case, refs.frame.iloc[[k]]).cost for k in range(len(refs))]
        best = min((cost for cost in truths if cost is not None), default=None)
        assert answer.sev == best
        assert (answer.status == fw.Status.NOT_CREDIBLE) == (best is None)


def test_a_budget_leaves_a_proved_bound() -> None:
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(600, 24)).round(1), columns=[f"x{j}" for j in range(24)])
    X += random.normal(size=(600, 1)).round(1)
    y = (X.sum(axis=1) > 0).astype(int).to_numpy()
    decision = fw.Decision(LogisticRegression().fit(X, y))
    refs = fw.references.single(decision, X, y)
    dense = fw.credibility.mixture(decision, X, y, quantile=0.9, n_components=2)
    cases = X[y == 1].iloc[:40]
    whole = fw.Explainer(decision, refs, n_jobs=1, credibility=dense).explain(cases)
    short = fw.Explainer(decision, refs, n_jobs=1, credibility=dense, max_nodes=2).explain(cases)
    stopped = short.answers.status == STATUSES.index(fw.Status.BUDGET)
    assert stopped.any()
    known = whole.answers.status == EXPLAINED
    assert (short.answers.lower[known] <= whole.answers.cost[known] + 1e-9).all()
    late = fw.Explainer(decision, refs, n_jobs=1, credibility=dense).explain(cases, time_limit=0.0)
    assert late.counts()["BUDGET"] == (whole.answers.status != STATUSES.index(fw.Status.ALREADY_NEGATIVE)).sum()


def test_leaves_below_the_floor_are_not_offered() -> None:
    random = np.random.default_rng(4)
    X = pd.DataFrame({"a": random.normal(size=400), "b": random.normal(size=400), "c": random.integers(0, 4, 400)})
    y = ((X["a"] + X["b"] * (X["c"] > 1) + random.normal(size=400)) > 0).astype(int).to_numpy()
    decision = fw.Decision(DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y))
    refs = fw.references.leaves(decision, X, y)
    plain = fw.Explainer(decision, refs, n_jobs=1).explain(X)
    dense = fw.credibility.leaf_support(decision, X, y, quantile=0.3)
    out = fw.Explainer(decision, refs, n_jobs=1, credibility=dense).explain(X, alternatives=20)
    assert checks.check_turns(out) > 50
    for answer, before in zip(out, plain, strict=True):
        if answer.status == fw.Status.EXPLAINED:
            assert answer.log_density == pytest.approx(np.log(answer.credibility))
            assert answer.log_density >= dense.floor
            assert answer.sev >= before.sev
            landed = checks.rebuilt(out, answer)
            assert dense.credible(landed).all()
    assert (out.answers.moved.sum(axis=1) > plain.answers.moved.sum(axis=1)).any()
    costs = refs.reach().costs(refs.tree.encode(out.frame))
    offered = dense.density.of_node[refs.reach().leaf] >= dense.floor  # type: ignore[attr-defined]
    best = costs[:, offered].min(axis=1)
    explained = out.answers.status == EXPLAINED
    assert (out.answers.cost[explained] == best[explained]).all()
    few = fw.Explainer(
        decision, refs, n_jobs=1, credibility=dense.at(1.0), constraints=fw.Constraints(fw.Immutable("a"))
    ).explain(X)
    assert few.counts()["NOT_CREDIBLE"] > 0
    shown = few[int(np.flatnonzero(few.answers.status == NOT_CREDIBLE)[0])]
    assert shown.changes
    assert "hardly ever" in str(shown)


def test_leaf_support_serves_a_tree_with_point_references() -> None:
    random = np.random.default_rng(5)
    X = pd.DataFrame(random.normal(size=(300, 4)).round(1), columns=list("abcd"))
    y = (X.sum(axis=1) + random.normal(size=300) > 0).astype(int).to_numpy()
    decision = fw.Decision(DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y))
    dense = fw.credibility.leaf_support(decision, X, y, quantile=0.2)
    refs = fw.references.single(decision, X, y, centre="medoid")
    explainer = fw.Explainer(decision, refs, n_jobs=1, credibility=dense)
    assert checks.check_exact(explainer, explainer.explain(X.iloc[:80], alternatives=30)) > 20


def test_what_makes_no_sense_is_refused(loans: Any) -> None:
    decision, X, y = loans
    refs = fw.references.single(decision, X, y)
    dense = fw.credibility.mixture(decision, X, y, n_components=1)
    with pytest.raises(UsageError, match=r"SEV\+"):
        fw.Explainer(decision, refs, credibility=dense, direction="plus")
    other = fw.credibility.mixture(decision, X.assign(more=X["debt"]), y, n_components=1,
                                   schema=fw.Schema.infer(X.assign(more=X["debt"])))  # fmt: skip
    with pytest.raises(UsageError, match="different features"):
        fw.Explainer(decision, refs, credibility=other)
    tree = fw.Decision(DecisionTreeClassifier(max_depth=3).fit(X, y))
    with pytest.raises(UsageError, match="leaf_support"):
        fw.Explainer(tree, fw.references.leaves(tree, X, y), credibility=dense)
