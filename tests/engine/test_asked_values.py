"""Whole domains of models that are not read: against brute force, within budgets, under a floor; and broken twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from all_values import best_of_all
from any_value_models import compare, functions, networks, trees
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.neural_network import MLPClassifier

import fewest as fw
from fewest.engine import asked_values
from fewest.engine.asked_values import CaseSearch
from fewest.engine.search.domains.any_values import TreeDomains
from fewest.results.explanation import Status


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("make", [networks, functions])
def test_networks_and_functions_have_the_answers_of_brute_force(make: Any) -> None:
    wrong = {seed: found for seed in range(4) if (found := compare(make, seed))}
    assert wrong == {}


def test_a_search_that_leaves_a_feature_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a broken twin."""
    sets = CaseSearch._sets

    def twin(self: CaseSearch, able: list[int]) -> Any:
        return sets(self, able[1:] or able)

    monkeypatch.setattr(CaseSearch, "_sets", twin)
    assert any(compare(functions, seed, plain=True) for seed in range(8))


def test_a_search_that_takes_a_part_of_the_rows_for_all_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a twin that stops early and does not say so."""
    ask = CaseSearch._ask_level

    def twin(self: CaseSearch, *level: Any) -> bool:
        self._budget = 0
        ask(self, *level)
        return True

    monkeypatch.setattr(CaseSearch, "_ask_level", twin)
    assert any(compare(functions, seed, plain=True) for seed in range(12))


def people(n: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.integers(0, 6, (n, 4)), columns=["a", "b", "c", "d"])
    y = (X["a"] + X["b"] - X["c"] + random.normal(0, 1.5, n) > 3).to_numpy().astype(int)
    return X, y


def test_what_is_read_and_what_is_asked_agree() -> None:
    X, y = people()
    decision = fw.Decision(GradientBoostingClassifier(n_estimators=12, random_state=0).fit(X, y))
    refs = fw.references.anyone(decision, X, y)
    read = fw.Explainer(decision, refs).explain(X.iloc[:40], alternatives=3)
    asked = fw.Explainer(decision, refs, structure="opaque").explain(X.iloc[:40], alternatives=3)
    assert asked.answers.status.tolist() == read.answers.status.tolist()
    assert np.array_equal(asked.answers.cost, read.answers.cost, equal_nan=True)
    assert asked.answers.complete.tolist() == read.answers.complete.tolist()
    for row in np.flatnonzero(read.answers.status == 0).tolist():
        one, other = (
            {tuple(sorted(change.feature for change in part)) for part in out[row].alternatives}
            for out in (read, asked)
        )
        assert one == other or not read.answers.complete[row]
    assert {answer.proof.strategy for answer in asked if answer.changes} == {asked_values.STRATEGY}


def test_a_small_budget_gives_a_bound_and_only_what_the_model_confirms() -> None:
    X, y = people()
    network = MLPClassifier((6,), max_iter=3000, random_state=0).fit(X / 6, y)
    decision = fw.Decision(lambda rows: network.predict_proba(rows / 6)[:, 1], positive=1, threshold=0.1)
    refs = fw.references.anyone(decision, X, y)
    cases = X[decision.verdicts(X).positive].iloc[:25]
    whole = fw.Explainer(decision, refs).explain(cases)
    assert (whole.answers.cost[whole.answers.status == 0] >= 2).any()
    for nodes in (3, 20, 60):
        out = fw.Explainer(decision, refs, max_nodes=nodes).explain(cases)
        assert out.counts()["BUDGET"] > 0
        known = np.isfinite(whole.answers.cost)
        assert (out.answers.lower[known] <= whole.answers.cost[known]).all()
        shown = out.answers.moved.any(axis=1)
        assert shown.any()
        assert not decision.verdicts(out.turned()[shown]).positive.any()
        assert (out.answers.cost[shown] >= whole.answers.cost[shown]).all()
    none = fw.Explainer(decision, refs).explain(cases, time_limit=0)
    assert not none.answers.proved.any()
    assert (none.answers.lower == 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_floor_of_credibility_is_kept_as_in_brute_force(seed: int) -> None:
    X, y = people()
    decision = fw.Decision(GradientBoostingClassifier(n_estimators=8 + seed, random_state=seed).fit(X, y))
    refs = fw.references.anyone(decision, X, y)
    floor = fw.credibility.mixture(decision, X, y, quantile=0.6)

    def both(rows: pd.DataFrame) -> np.ndarray:
        """The score where a row is credible; refused where it is not."""
        credible = floor.log_density(rows.astype(dict(X.dtypes))) >= floor.floor
        return np.where(credible, decision.score(rows), 1.0)

    oracle, cases = fw.Decision(both, positive=1), X[decision.verdicts(X).positive].iloc[:6]
    out = fw.Explainer(decision, refs, credibility=floor).explain(cases)
    plain = fw.Explainer(decision, refs).explain(cases)
    assert out.answers.cost.tolist() != plain.answers.cost.tolist()
    for k in range(len(cases)):
        best = best_of_all(oracle, refs, cases.iloc[[k]])
        if best is None:
            assert out[k].status == Status.NOT_CREDIBLE
        else:
            assert (out[k].status, out[k].cost) == (Status.EXPLAINED, best[0])
            assert out.answers.log_density[k] >= floor.floor


def test_a_floor_that_is_not_asked_for_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a twin that lets every row pass."""
    monkeypatch.setattr(CaseSearch, "_credible", lambda self, rows, turned: (turned, np.zeros(len(rows))))
    with pytest.raises(AssertionError):
        test_a_floor_of_credibility_is_kept_as_in_brute_force(0)


def test_columns_of_several_features_are_asked() -> None:
    X, y = people()
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    model = make_pipeline(PolynomialFeatures(2), GradientBoostingClassifier(n_estimators=5, random_state=0)).fit(X, y)
    decision = fw.Decision(model)
    refs, cases = fw.references.anyone(decision, X, y), X[decision.verdicts(X).positive].iloc[:4]
    out = fw.Explainer(decision, refs).explain(cases)
    assert out[0].proof.strategy == asked_values.STRATEGY
    for k in range(4):
        best = best_of_all(decision, refs, cases.iloc[[k]])
        assert (out[k].cost or None) == (None if best is None else best[0])


def test_trees_that_are_read_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = []
    solve = TreeDomains.solve
    monkeypatch.setattr(TreeDomains, "solve", lambda self, *asked: solved.append(1) or solve(self, *asked))
    assert compare(trees, 1) == []
    assert solved
