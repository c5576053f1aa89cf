"""LeafSumClassifier is read as the trees it holds, and explained from the inside like any booster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import random_boosters as rb
import random_models as rm
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from slow_cases import few_or_all

import fewest as fw
from fewest import checks
from fewest.datasets import load
from fewest.engine.structure import Ensemble, read

KINDS = ("proba", "decision", "label")


@pytest.fixture(scope="module", params=rb.NAMES)
def made(request: pytest.FixtureRequest) -> rb.Boosted:
    return rb.boosted(request.param, seed=1, n=600)


def margin(model: Any, rows: Any) -> np.ndarray:
    return np.asarray(model.decision_function(rows))


def test_both_classes_and_all_scores_are_read(made: rb.Boosted, tools: Any) -> None:
    model = made.relearned(np.random.default_rng(0))
    # Codes of categories are whole numbers: split thresholds belong into the other columns.
    edges = made.name != "hist categories"
    for asked in tools.questions(KINDS):
        structure, _ = tools.check_it(model, made.Z, asked, raw=margin, edges=edges)
        assert isinstance(structure, Ensemble)
    assert structure.reading.tolerance < 1e-6


def test_the_raw_score_is_exactly_the_decision_function(made: rb.Boosted) -> None:
    model = made.relearned(np.random.default_rng(1))
    for positive, sign in ((1, 1.0), (0, -1.0)):
        structure = read(model, positive=positive)
        assert isinstance(structure, Ensemble)
        assert np.array_equal(structure.raw(structure.reading.prepare(made.Z)), sign * margin(model, made.Z))


def test_wrong_readings_are_caught(tools: Any) -> None:
    """Negative controls."""
    made = rb.boosted("hist", 2, n=600)
    model = made.relearned(np.random.default_rng(0))
    right = read(model, threshold=0.4)
    assert isinstance(right, Ensemble)
    assert tools.wrong(model, right, made.Z, 0.4, raw=margin) == []
    for broken in (
        replace(right, value=made.ensemble.value, base=made.ensemble.base),
        replace(right, value=-right.value, base=-right.base),
        replace(right, base=right.base + 1e-3),
        replace(right, missing_left=~right.missing_left),
        replace(right, left=right.right, right=right.left),
        replace(right, reading=replace(right.reading, source=np.roll(right.reading.source, 1))),
    ):
        assert tools.wrong(model, broken, made.Z, 0.4, raw=margin) != []


def test_the_band_follows_the_learned_values() -> None:
    made = rb.boosted("gradient", 2)
    small = made.relearned(np.random.default_rng(0))
    ensemble = small.ensemble_
    large = type(small).from_ensemble(replace(ensemble, value=1e6 * ensemble.value), [0, 1], made.Z.shape[1])
    assert read(large).reading.tolerance > 1e4 * read(small).reading.tolerance


def setting(name: str, seed: int) -> rm.Setting:
    """A random table, an encoder and trees with values of their own, small enough for brute force."""
    random = np.random.default_rng([seed, 9])
    made = rb.boosted(name, seed, n=80, p=int(random.integers(2, 7)), gaps=0.25)
    pipeline = make_pipeline(made.encoder, made.relearned(random))
    decision = fw.Decision(pipeline, positive=int(random.integers(2)))
    cases = made.frame.sample(6, random_state=seed)
    goal = made.frame.sample(1, random_state=seed + 1)
    references = fw.references.supplied(decision, goal, X=made.frame, on_positive="allow")
    return rm.Setting(decision, references, cases)


@pytest.mark.parametrize("count", few_or_all(3, 10))
@pytest.mark.parametrize("name", rb.NAMES)
def test_the_engine_looks_inside_and_agrees_with_brute_force(name: str, count: int) -> None:
    decided = 0
    for seed in range(count):
        one = setting(name, seed)
        explainer = rm.random_explainer(np.random.default_rng(seed), one)
        assert isinstance(explainer.look_inside(one.cases).structure, Ensemble)
        out = explainer.explain(one.cases, alternatives=200)
        checks.check_turns(out)
        decided += checks.check_exact(explainer, out)
    assert decided >= 1.5 * count


def test_german_credit_is_explained_alike_with_the_inside_taken_away() -> None:
    data = load("german")
    encoder = rm.encoder(data.X, scale=False).fit(data.X)
    Z = np.asarray(encoder.transform(data.X), dtype=float)
    booster = GradientBoostingClassifier(n_estimators=40, random_state=0).fit(Z, data.y)
    made = rb.Boosted("gradient", data.X, data.y, encoder, booster, Z, None)  # type: ignore[arg-type]
    decision = fw.Decision(make_pipeline(encoder, made.relearned(np.random.default_rng(0))))
    explainer = fw.Explainer(decision, fw.references.single(decision, data.X, data.y))
    denied = data.X[decision.verdicts(data.X).positive].head(12)
    out = explainer.explain(denied)
    assert "ensemble" in str(out[0].proof.strategy)
    blind = fw.Decision(lambda frame: decision.model.predict_proba(frame)[:, 1], threshold=0.5)
    same = fw.Explainer(blind, explainer.references).explain(denied)
    assert [answer.sev for answer in out] == [answer.sev for answer in same]
