"""Of several references only the one shown is confirmed; where the model does not, the case is answered anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier

import fewest as fw
from fewest.engine.points import ENGINE, confirm
from fewest.engine.search import solve


@pytest.fixture(scope="module")
def explainer():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("abcdef"))
    y = (X.sum(axis=1) + 0.3 * rng.normal(size=300) > 0).astype(int)
    decision = fw.Decision(GradientBoostingClassifier(n_estimators=15, random_state=0).fit(X, y))
    accepted = X[decision.model.predict(X) == 0].iloc[:4]
    goals = fw.references.supplied(decision, accepted, assignment="sparsest")
    return fw.Explainer(decision, goals, n_jobs=1), X


def same(a, b):
    """Whether all that is said of the cases is equal, but for the work it took."""
    return all(
        np.array_equal(getattr(a.answers, name), getattr(b.answers, name), equal_nan=name not in ("moved", "proved"))
        for name in ("status", "moved", "reference", "score_after", "cost", "lower", "proved", "l_inf")
    )


def hasty(structure, problem, *rest, **more):
    """A search that calls a single unit enough where two are needed, until the model has said that it is not."""
    found = solve(structure, problem, *rest, **more)
    for cube in np.flatnonzero(found.known & (found.cost == 2)).tolist():
        if cube not in problem.rejected:
            first = np.flatnonzero(problem.movable[cube])[0]
            found.moved[cube] = np.arange(problem.n_units) == first
            found.cost[cube] = found.lower[cube] = 1.0
    return found


def test_the_leader_alone_is_confirmed_with_the_answers_of_confirming_all(explainer):
    plain, X = explainer

    def all_of_them(attempt, cubes):
        return confirm(attempt, cubes)

    out = plain.explain(X)
    assert (out.answers.cost >= 2).sum() > 10
    assert same(out, plain.with_(engine=replace(ENGINE, confirm=all_of_them)).explain(X))


def test_a_leader_that_the_model_does_not_confirm_is_searched_again(explainer):
    plain, X = explainer
    out = plain.with_(engine=replace(ENGINE, solve=hasty)).explain(X)
    assert same(out, plain.explain(X))


def test_the_comparison_catches_a_twin_that_believes_the_search(explainer):
    plain, X = explainer
    blind = replace(ENGINE, solve=hasty, confirm=lambda attempt, cubes: cubes[:0])
    assert not same(plain.with_(engine=blind).explain(X), plain.explain(X))
