"""What must hold whatever the model: more freedom never costs more, and no part of an answer is superfluous."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import random_models as rm
from slow_cases import few_or_all

import fewest as fw
from fewest import checks

MAKERS = (rm.boolean_function, rm.linear, rm.tree_ensemble)


def settings(count: int) -> Iterator[tuple[np.random.Generator, rm.Setting]]:
    for seed in range(count):
        random = np.random.default_rng([seed, 31])
        yield random, MAKERS[seed % len(MAKERS)](random)


def costs(setting: rm.Setting, **options: Any) -> np.ndarray:
    """Least cost per case; inf where there is no answer, -1 where there is nothing to explain."""
    out = fw.Explainer(setting.decision, setting.references, n_jobs=1, **options).explain(setting.cases)
    status = np.array([answer.status for answer in out])
    found = np.where(status == fw.Status.EXPLAINED, out.answers.cost, np.inf)
    return np.where(status == fw.Status.ALREADY_NEGATIVE, -1.0, found)


@pytest.mark.parametrize("count", few_or_all(12, 120))
def test_a_constraint_never_lowers_the_cost(count: int) -> None:
    for random, setting in settings(count):
        constraints = rm.random_constraints(random, setting.references.schema)
        assert (costs(setting, constraints=constraints) >= costs(setting)).all()


@pytest.mark.parametrize("count", few_or_all(12, 80))
def test_equal_weights_are_counts(count: int) -> None:
    for _, setting in settings(count):
        weights = dict.fromkeys(setting.references.schema.names, 2.0)
        plain, weighted = costs(setting), costs(setting, weights=weights)
        assert np.allclose(np.where(plain > 0, 2 * plain, plain), weighted)


@pytest.mark.parametrize("count", few_or_all(12, 80))
def test_a_milder_threshold_never_raises_the_cost(count: int) -> None:
    for random, setting in settings(count):
        cut = setting.decision.cut + random.uniform(0.01, 0.3)
        milder = fw.Decision(setting.decision.model, setting.decision.positive, cut)
        references = fw.references.supplied(
            milder, setting.references.frame, schema=setting.references.schema, on_positive="allow"
        )
        assert (costs(rm.Setting(milder, references, setting.cases)) <= costs(setting)).all()


@pytest.mark.parametrize("count", few_or_all(12, 80))
def test_no_part_of_an_answer_is_superfluous(count: int) -> None:
    for _, setting in settings(count):
        explainer = fw.Explainer(setting.decision, setting.references, n_jobs=1)
        out = explainer.explain(setting.cases)
        for answer in out:
            names = frozenset(change.feature for change in answer.changes)
            case = out.frame.iloc[[answer.row]]
            for name in names:
                assert not checks._turned(explainer, case, setting.references.frame, names - {name})


@pytest.mark.parametrize("count", few_or_all(12, 80))
def test_all_features_of_an_accepted_reference_always_suffice(count: int) -> None:
    for _, setting in settings(count):
        if (setting.references.score < setting.decision.cut).all():
            assert np.isfinite(costs(setting)).all()
            assert (costs(setting) <= len(setting.references.schema)).all()
