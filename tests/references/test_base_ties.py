"""Among references that need as few features, the one whose explanation is closest is kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fewest as fw

TABLE = pd.DataFrame({"a": [0.0, 2.0, 4.0, 6.0, 8.0], "b": [0.0, 5.0, 0.0, 5.0, 0.0]})
GOALS = pd.DataFrame({"a": [0.0, 4.0], "b": [5.0, 0.0]})
CASE = pd.DataFrame({"a": [6.0], "b": [5.0]})


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_closest_explanation_wins_not_the_closest_reference(order: list[int]) -> None:
    decision = fw.Decision(lambda frame: (frame["a"] > 5).to_numpy(dtype=float), positive=1)
    refs = fw.references.supplied(decision, GOALS.iloc[order], X=TABLE, assignment="sparsest")
    answer = fw.Explainer(decision, refs, n_jobs=1).explain(CASE)[0]
    assert GOALS["a"].iloc[order[refs.candidates(CASE)[0, 0]]] == 0.0
    assert (answer.sev, answer.changes[0].after, answer.proof.minimal) == (1, 4.0, True)


def test_no_reference_alone_gives_a_closer_explanation_of_that_size() -> None:
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(300, 5)).round(1), columns=list("abcde"))
    decision = fw.Decision(LogisticRegression().fit(X, (X.sum(axis=1) > 0).astype(int)))
    goals = X[~decision.verdicts(X).positive].iloc[:4]
    cases = X[decision.verdicts(X).positive].iloc[:60]

    def explained(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        refs = fw.references.supplied(decision, rows, X=X, assignment="sparsest")
        out = fw.Explainer(decision, refs, n_jobs=1).explain(cases)
        scale = np.array([feature.scale for feature in refs.schema.features])
        step = np.abs(cases.to_numpy() - refs.frame.to_numpy()[np.maximum(out.answers.reference, 0)]) / scale
        size = np.where(out.answers.status == 0, out.answers.cost, np.inf)
        return size, np.where(out.answers.moved, step, 0.0).sum(axis=1)

    size, far = explained(goals)
    for k in range(len(goals)):
        one_size, one_far = explained(goals.iloc[[k]])
        assert (size <= one_size).all()
        assert (far <= one_far + 1e-9)[size == one_size].all()
