"""Weights compare features with each other; the unit that they are measured in does not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from slow_cases import mostly_slow

import fewest as fw
from fewest import checks

P = 10
RANDOM = np.random.default_rng(1)
X = pd.DataFrame(RANDOM.normal(size=(200, P)).round(2), columns=[f"f{j}" for j in range(P)])
WEIGHTS = dict(zip(X.columns, 1 + RANDOM.random(P), strict=True))
FACTORS = RANDOM.random(P) + 0.5


def score(rows: pd.DataFrame) -> np.ndarray:
    return 1 / (1 + np.exp(-(rows.to_numpy() @ FACTORS)))


def answers(unit: float, references: int, **options: Any) -> tuple[fw.Explainer, Any]:
    decision = fw.Decision(score, positive="refused", threshold=0.1)
    chosen = fw.references.supplied(
        decision, X[score(X) < 0.05].head(references), X=X, assignment="sparsest" if references > 1 else None
    )
    weights = {name: unit * weight for name, weight in WEIGHTS.items()}
    explainer = fw.Explainer(decision, chosen, weights=weights, **options)
    return explainer, explainer.explain(X.head(60))


@pytest.mark.parametrize("unit", mostly_slow((1e-12, 1e-9, 1e9), (1e-12, 1e9)))
@pytest.mark.parametrize(("references", "nodes"), [(1, 60), (1, None), (4, None)], ids=["stopped", "one", "several"])
def test_answers_do_not_depend_on_the_unit_of_the_weights(unit: float, references: int, nodes: int | None) -> None:
    _, usual = answers(1.0, references, max_nodes=nodes)
    explainer, other = answers(unit, references, max_nodes=nodes)
    assert (usual.answers.status == other.answers.status).all()
    assert (usual.answers.moved == other.answers.moved).all()
    if nodes:
        assert usual.counts()["BUDGET"] > 3
    elif references == 1:
        assert checks.check_exact(explainer, other) > 20
