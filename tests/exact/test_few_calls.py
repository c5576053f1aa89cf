"""A closed box that is expensive to call and cheap by the row is called a few times for a whole table."""

from __future__ import annotations

import numpy as np
import pandas as pd

import fewest as fw
from fewest import checks


class Attention:
    """Scores a row by attention to training rows; counts its calls."""

    def __init__(self, X: pd.DataFrame, y: np.ndarray) -> None:
        self.rows, self.y, self.classes_, self.calls = X.to_numpy(), y, np.array([0, 1]), 0
        self.feature_names_in_ = X.columns.to_numpy()

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        self.calls += 1
        near = X.to_numpy() @ self.rows.T
        weight = np.exp(near - near.max(axis=1, keepdims=True))
        chance = np.einsum("ij,j->i", weight, self.y) / weight.sum(axis=1)
        return np.column_stack([1.0 - chance, chance])


def test_the_calls_of_a_table_are_a_few_whatever_its_length() -> None:
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(200, 9)).round(2), columns=list("abcdefghi"))
    y = (X.sum(axis=1) + np.sin(3 * X.a) > 0).astype(int).to_numpy()
    model = Attention(X, y)
    decision = fw.Decision(model, positive=1)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    refused = X[decision.verdicts(X).positive]
    explainer.explain(refused.iloc[:1])
    calls = {}
    for count in (5, 20, 80):
        model.calls = 0
        out = explainer.explain(refused.iloc[:count])
        # The cases, sets of one unit, of two and so on, the answers; near ties are scored alone.
        calls[count] = model.calls - 2 - int(out.sev.max())
    assert max(calls.values()) <= 2, calls
    small = explainer.explain(refused.iloc[:5])
    assert checks.check_exact(explainer, small) == 5
