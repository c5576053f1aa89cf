"""`references.anyone` against brute force over every combination of allowed values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from all_values import best_of_all
from any_value_models import bare, boosters, compare, histogram, linear, strict, strict_linear, trees
from sklearn.linear_model import LogisticRegression
from slow_cases import mostly_slow

import fewest as fw
from fewest.engine.search.domains.any_values import TreeDomains, ValueSums
from fewest.results.explanation import Status
from fewest.tables.closeness import feature_distances


@pytest.mark.parametrize("make", [trees, linear, strict_linear, histogram])
@pytest.mark.parametrize("block", mostly_slow(range(3), (0,)))
def test_the_fewest_features_and_closest_values_are_those_of_brute_force(make: Any, block: int) -> None:
    wrong = {seed: found for seed in range(12 * block, 12 * block + 12) if (found := compare(make, seed))}
    assert wrong == {}


@pytest.mark.parametrize("block", mostly_slow(range(2), (0,)))
def test_xgboost_and_lightgbm_have_the_answers_of_brute_force(block: int) -> None:
    pytest.importorskip("xgboost")
    pytest.importorskip("lightgbm")
    wrong = {seed: found for seed in range(6 * block, 6 * block + 6) if (found := compare(boosters, seed))}
    assert wrong == {}


def test_bare_ensembles_have_the_answers_of_brute_force() -> None:
    pytest.importorskip("xgboost")
    wrong = {seed: found for seed in range(10) if (found := compare(bare, seed))}
    assert wrong == {}


def test_the_closest_of_three_values_are_found_where_changing_two_at_a_time_does_not_lead_there() -> None:
    decision, X, y = strict_linear(np.random.default_rng(24))
    refs, case = fw.references.anyone(decision, X, y, within=(0, 1)), X.iloc[[48]]
    for alternatives in (0, 3):
        out = fw.Explainer(decision, refs, n_jobs=1).explain(case, alternatives=alternatives)
        far = feature_distances(refs.schema, case, out.turned(), np.arange(1)).sum()
        assert (out[0].cost, pytest.approx(far)) == best_of_all(decision, refs, case)
        assert out[0].sev == 3


def near_ties(apart: float) -> tuple[fw.Decision, pd.DataFrame]:
    """Three features of two values; the first alone leads onto the threshold, the second this far below it."""
    X = pd.DataFrame(np.random.default_rng(0).integers(2, 4, (60, 3)) * [1.0, 2.0, 1.0], columns=list("abc"))
    X.iloc[:3, 0] = 9.0  # a step of the first feature is the shorter one
    model = LogisticRegression().fit(X, np.arange(60) % 2)
    model.coef_, model.intercept_ = np.array([[2.0, 1.0 + apart, 0.3]]), np.array([-8.0])
    row = pd.DataFrame([[2.0, 6.0, 3.0]], columns=list("abc"))
    return fw.Decision(model, positive=1, threshold=float(model.predict_proba(row)[0, 1])), X


@pytest.mark.parametrize("apart", [1e-12, 0.0, -1e-12])
def test_points_at_the_threshold_are_all_put_to_a_linear_model(apart: float) -> None:
    decision, X = near_ties(apart)
    refs = fw.references.anyone(decision, X, np.arange(60) % 2, within=(0, 1))
    case = pd.DataFrame([[3.0, 6.0, 3.0]], columns=list("abc"))
    out = fw.Explainer(decision, refs, n_jobs=1).explain(case)
    far = feature_distances(refs.schema, case, out.turned(), np.arange(1)).sum()
    assert (out[0].cost, pytest.approx(far)) == best_of_all(decision, refs, case)
    assert (out[0].status, out[0].sev) == (Status.EXPLAINED, 1 if apart > 0 else 2)


def test_three_features_and_more_have_the_answers_of_brute_force() -> None:
    wrong = {seed: found for seed in range(100, 104) if (found := compare(strict, seed))}
    assert wrong == {}


def test_a_bound_that_promises_too_much_is_caught(monkeypatch: Any) -> None:
    """Negative control: a twin that leaves sets out whose score could get just below the threshold."""
    solve = TreeDomains.solve

    def twin(self: Any, *asked: Any) -> Any:
        self._near = self._near._replace(rounding=-0.5)
        return solve(self, *asked)

    monkeypatch.setattr(TreeDomains, "solve", twin)
    assert any(compare(strict, seed, plain=True) for seed in range(100, 106))


@pytest.mark.parametrize(("make", "search"), [(trees, TreeDomains), (linear, ValueSums)])
def test_a_search_that_leaves_a_feature_out_is_caught(make: Any, search: Any, monkeypatch: Any) -> None:
    """Negative control: a broken twin of the search."""
    solve = search.solve

    def twin(self: Any, asked: Any, *rest: Any) -> Any:
        return solve(self, asked._replace(may=asked.may & (np.arange(asked.may.shape[1]) > 0)), *rest)

    monkeypatch.setattr(search, "solve", twin)
    assert any(compare(make, seed, plain=True) for seed in range(12))


@pytest.mark.parametrize(("make", "search"), [(trees, TreeDomains), (linear, ValueSums)])
def test_a_search_that_measures_otherwise_is_caught(make: Any, search: Any, monkeypatch: Any) -> None:
    """Negative control: a twin for which every number is as far as any other."""
    solve = search.solve

    def twin(self: Any, asked: Any, *rest: Any) -> Any:
        return solve(self, asked._replace(measured=np.zeros_like(asked.measured)), *rest)

    monkeypatch.setattr(search, "solve", twin)
    assert any(compare(make, seed, plain=True) for seed in range(20))
