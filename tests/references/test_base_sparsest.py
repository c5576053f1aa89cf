"""The sparsest of several references is the best of what each of them alone would give, for every kind of model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from slow_cases import pairs

import fewest as fw
from fewest.tables.closeness import feature_distances

MODELS = {
    "additive": lambda: LogisticRegression(),
    "ensemble": lambda: GradientBoostingClassifier(n_estimators=25, random_state=0),
    "network": lambda: MLPClassifier((12,), max_iter=60, random_state=0),
}
OPTIONS = {
    "plain": {},
    "weighted": {"weights": {"a": 2.5, "c": 0.4}},
    "constrained": {"constraints": fw.Constraints(fw.Immutable("b"), fw.Only("a", "down"), fw.AtMost(3))},
    "opaque": {"structure": "opaque"},
    "linked": {"constraints": fw.Constraints(fw.Linked("a", "d"))},
}


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(3)
    X = pd.DataFrame(random.normal(size=(400, 6)).round(1), columns=list("abcdef"))
    y = ((X["a"] + X["b"] * X["c"] - X["d"] + random.normal(0, 0.5, 400)) > 0.2).astype(int).to_numpy()
    return X, y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "option"), pairs(list(MODELS), list(OPTIONS)))
def test_sparsest_is_the_best_of_the_single_ones(kind: str, option: str, table) -> None:
    X, y = table
    decision = fw.Decision(MODELS[kind]().fit(X, y))
    positive = decision.verdicts(X).positive
    goals, cases = X[~positive].iloc[:5], X[positive].iloc[:50]
    cost, far, status = outcome(decision, goals, cases, option)
    alone = [outcome(decision, goals.iloc[[k]], cases, option) for k in range(len(goals))]
    costs, fars = (np.array([part[k] for part in alone]) for k in (0, 1))
    assert np.allclose(cost, costs.min(axis=0))
    tied = np.isclose(costs, costs.min(axis=0))
    found = np.isfinite(cost)
    assert np.allclose(far[found], np.where(tied, fars, np.inf).min(axis=0)[found])
    assert ((status == fw.Status.UNREACHABLE) == ~found).all()
    assert found.sum() > 20


def outcome(decision, goals: pd.DataFrame, cases: pd.DataFrame, option: str):
    """Cost and length of each answer, inf where there is none, and the status."""
    schema = fw.Schema.infer(pd.concat([goals, cases]))
    # The same scale for all: distances must be comparable between runs.
    for name in schema.names:
        schema = schema.with_(name, scale=1.0)
    refs = fw.references.supplied(decision, goals, schema=schema, assignment="sparsest")
    out = fw.Explainer(decision, refs, n_jobs=1, **OPTIONS[option]).explain(cases)
    a = out.answers
    steps = feature_distances(refs.schema, out.frame, refs.frame, np.maximum(a.reference, 0))
    found = a.moved.any(axis=1)
    assert a.proved[found].all()
    status = np.array([fw.Status(name) for name in out.to_frame()["status"]])
    return np.where(found, a.cost, np.inf), np.where(a.moved, steps, 0.0).sum(axis=1), status
