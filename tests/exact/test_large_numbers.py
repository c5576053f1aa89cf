"""Linear models on numbers of any size: terms that cancel are rounded on their scale, and the band is as wide."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeClassifier
from slow_cases import few_or_all

import fewest as fw

P = 12
NAMES = [f"f{j}" for j in range(P)]


def near_the_line(scale: float, seed: int) -> tuple[fw.Decision, pd.DataFrame, pd.DataFrame] | None:
    """A case, a reference, and a cut that the best single change passes by one rounding."""
    draw = np.random.default_rng(seed)
    X = pd.DataFrame((draw.normal(size=(60, P)) * scale).round(0), columns=NAMES)
    model = RidgeClassifier().fit(X / scale, X.sum(axis=1) > 0)
    model.coef_, model.intercept_ = draw.normal(size=(1, P)).round(3), np.zeros(1)
    case, goal = X.iloc[[0]], X.iloc[[1]]
    singles = [changed(case, goal, name) for name in NAMES]
    scores = [float(model.decision_function(row)[0]) for row in singles]
    best = int(np.argmin(scores))
    model.intercept_ = np.array([-scores[best]])
    cut = float(np.nextafter(model.decision_function(singles[best])[0], np.inf))
    decision = fw.Decision(model, positive=True, threshold=cut, kind="decision")
    if alone(decision, case) < cut or alone(decision, goal) >= cut:
        return None
    return decision, X, goal


def changed(case: pd.DataFrame, goal: pd.DataFrame, name: str) -> pd.DataFrame:
    return case.assign(**{name: goal[name].to_numpy()})


def alone(decision: fw.Decision, row: pd.DataFrame) -> float:
    return float(decision.model.decision_function(row)[0])


@pytest.mark.parametrize("count", few_or_all(20, 60))
@pytest.mark.parametrize("scale", [1e3, 1e8, 1e10])
def test_a_single_change_that_passes_the_line_by_one_rounding_is_found(scale: float, count: int) -> None:
    seen = 0
    for seed in range(count):
        setting = near_the_line(scale, seed)
        if setting is None:
            continue
        decision, X, goal = setting
        refs = fw.references.supplied(decision, goal, X=X)
        answer = fw.Explainer(decision, refs).explain(X.iloc[:20])[0]
        one = any(alone(decision, changed(X.iloc[[0]], goal, name)) < decision.cut for name in NAMES)
        assert (answer.sev == 1) == one, (seed, answer)
        seen += 1
    assert seen > count // 12
