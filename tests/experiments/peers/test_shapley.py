"""Shapley values are those of the definition, summed over all orders of a few features."""

from __future__ import annotations

from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.engine.structure import read
from fewest.errors import ModelError
from fewest.experiments.peers import TopSHAP, shapley_values
from fewest.experiments.peers.taking_values import Attribution


def by_definition(structure: Any, feature_of: np.ndarray, z: np.ndarray, background: np.ndarray) -> np.ndarray:
    p = int(feature_of.max()) + 1

    def worth(players: tuple[int, ...]) -> float:
        rows = np.where(np.isin(feature_of, players), z, background)
        return float(structure.raw(np.ascontiguousarray(rows)).mean())

    out = np.zeros(p)
    for j in range(p):
        others = [k for k in range(p) if k != j]
        for size in range(p):
            share = factorial(size) * factorial(p - size - 1) / factorial(p)
            for players in combinations(others, size):
                out[j] += share * (worth((*players, j)) - worth(players))
    return out


MODELS = {
    "additive": LogisticRegression(),
    "boosted": GradientBoostingClassifier(n_estimators=15, max_depth=4, random_state=0),
    "forest": RandomForestClassifier(n_estimators=5, random_state=0),
}


@pytest.fixture(params=list(MODELS))
def setting(request: pytest.FixtureRequest) -> tuple[Any, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    Z = random.normal(size=(150, 7)).round(1)
    y = (Z[:, 0] * Z[:, 1] + Z[:, 2] - Z[:, 5] + random.normal(0, 0.3, 150) > 0).astype(int)
    feature_of = np.array([0, 1, 2, 2, 3, 4, 4])  # two features have two columns
    return read(MODELS[request.param].fit(Z, y)), feature_of, Z


def test_values_are_those_of_the_definition(setting: tuple[Any, np.ndarray, np.ndarray]) -> None:
    structure, feature_of, Z = setting
    background = Z[50:58]
    values = shapley_values(structure, feature_of, Z[:6], background)
    for row in range(6):
        assert np.allclose(values[row], by_definition(structure, feature_of, Z[row], background), atol=1e-10)


def test_values_add_up_to_the_score_less_the_mean(setting: tuple[Any, np.ndarray, np.ndarray]) -> None:
    structure, feature_of, Z = setting
    values = shapley_values(structure, feature_of, Z, Z[:20])
    assert np.allclose(values.sum(axis=1), structure.raw(Z) - structure.raw(Z[:20]).mean())


def test_other_columns_or_another_background_are_noticed(setting: tuple[Any, np.ndarray, np.ndarray]) -> None:
    """Negative control of the tests above."""
    structure, feature_of, Z = setting
    truth = by_definition(structure, feature_of, Z[0], Z[50:58])
    assert not np.allclose(shapley_values(structure, feature_of, Z[:1], Z[60:68])[0], truth, atol=1e-3)
    assert not np.allclose(
        shapley_values(structure, np.array([0, 1, 2, 3, 3, 4, 4]), Z[:1], Z[50:58])[0], truth, atol=1e-3
    )


def test_networks_have_no_exact_values(mixed: Any) -> None:
    case = mixed("network")
    structure = read(case.decision.model[-1])
    with pytest.raises(ModelError, match="Network"):
        shapley_values(structure, np.arange(3), np.zeros((1, 3)), np.zeros((1, 3)))


def test_the_first_features_by_value_are_taken_and_no_more_than_needed(mixed: Any) -> None:
    case = mixed("ensemble")
    settings = TopSHAP(background=30)
    out = settings.fit(case.decision, case.X, case.y).explain(case.cases)
    search = Attribution.read(settings, case.decision, case.X, case.y)
    goal = fw.references.single(case.decision, case.X, case.y, on_positive="allow").frame
    for row in np.flatnonzero(out.found)[:5]:
        one = out.cases.iloc[[row]]
        for j in np.argsort(-search.values(one)[0], kind="stable"):
            assert case.decision.verdicts(one).positive.all()
            name = out.schema.names[j]
            one = one.assign(**{name: goal[name].array})
            if (one.iloc[0] == out.frame.iloc[row]).all() and not case.decision.verdicts(one).positive[0]:
                break
        else:
            pytest.fail("the answer is no prefix")
