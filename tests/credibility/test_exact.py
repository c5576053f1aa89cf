"""The smallest credible set, against brute force through the user's model and the public log-density."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import random_models as rm
from slow_cases import mostly_slow

import fewest as fw
from fewest import checks
from fewest.engine.points import ENGINE
from fewest.engine.search import _blocks, _branch, _branch_costs, _cube, _gaussians, _node, _ranks, additive, credible
from fewest.errors import VerificationError

KINDS = {
    "linear": 120,
    "tree_ensemble": 120,
    "network": 60,
    "kernel_machine": 40,
    "calibrated": 30,
    "hist_gradient": 30,
}


@pytest.mark.parametrize("share", mostly_slow((15, 1), (15,)))
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_agrees_with_brute_force(
    kind: str, share: int, cases: Any, random_credibility: Any, random_options: Any
) -> None:
    decided, seen, count = 0, Counter[str](), KINDS[kind] // share
    for random, case in cases(kind, count):
        explainer = case.explainer(random_credibility(random, case), **random_options(random, case))
        out = explainer.explain(case.setting.cases, alternatives=200)
        checks.check_turns(out)
        decided += checks.check_exact(explainer, out)
        seen.update(out.counts())
        shown = out.answers.status == list(fw.Status).index(fw.Status.EXPLAINED)
        assert (out.answers.log_density[shown] >= explainer.credibility.floor).all()
    assert decided >= count
    if share == 1:  # a few models may have no answer of a kind
        assert seen["EXPLAINED"] >= count // 4
        assert seen["NOT_CREDIBLE"] >= count // 10
    assert seen["BUDGET"] == 0


def test_it_agrees_where_the_inside_is_not_read(cases: Any, random_credibility: Any, random_options: Any) -> None:
    for random, case in cases("tree_ensemble", 10, 3):
        dense, options = random_credibility(random, case), random_options(random, case)
        read = case.explainer(dense, **options).explain(case.setting.cases, alternatives=50).to_frame()
        opaque = case.explainer(dense, structure="opaque", **options).explain(case.setting.cases, alternatives=50)
        same = ["status", "sev", "score_after", "proved", "n_alternatives", "l_inf", "log_density"]
        assert read[same].equals(opaque.to_frame()[same])


@pytest.mark.slow
def test_it_agrees_on_larger_cubes() -> None:
    """Ten features: bounds and depths that small cubes never reach."""
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    sizes = Counter[Any]()
    for estimator in (LogisticRegression(), GradientBoostingClassifier(n_estimators=15, random_state=0)):
        for seed in range(12):
            random = np.random.default_rng([seed, 9])
            setting = rm.fitted(random, estimator, scale=isinstance(estimator, LogisticRegression), n=200, p=10)
            X = rm.table(np.random.default_rng([seed, 9]), 200, 10)
            y = setting.decision.verdicts(X).positive.astype(int)
            y = y if setting.decision.positive == 1 else 1 - y
            dense = fw.credibility.mixture(
                setting.decision, X, y, quantile=0.3, n_components=2, schema=setting.references.schema
            )
            explainer = fw.Explainer(setting.decision, setting.references, credibility=dense, n_jobs=1)
            out = explainer.explain(setting.cases, alternatives=500)
            checks.check_exact(explainer, out)
            sizes.update(answer.sev for answer in out)
    assert max(size for size in sizes if size is not None) >= 4


def caught(
    cases: Any, random_credibility: Any, random_options: Any, count: int = 60, first: int = 0, **options: Any
) -> bool:
    """Whether the checks above notice that something is wrong; ``first`` is looked at first: few models show it."""
    try:
        for random, case in cases("linear", count, 1, first):
            explainer = case.explainer(random_credibility(random, case), **random_options(random, case), **options)
            checks.check_exact(explainer, explainer.explain(case.setting.cases, alternatives=200))
    except VerificationError:
        return True
    return False


def test_the_engine_itself_passes(cases: Any, random_credibility: Any, random_options: Any) -> None:
    assert not caught(cases, random_credibility, random_options, count=8)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, cases: Any) -> None:
    """The compiled search of additive models as plain Python, so that parts of it can be exchanged."""
    for _, case in cases("linear", 3):  # what stays compiled must be compiled before its parts are exchanged
        case.explainer(None).explain(case.X)
    for module in (_gaussians, _ranks, _node, _branch, _branch_costs, _cube, _blocks, additive, credible):
        for name, thing in list(vars(module).items()):
            if hasattr(thing, "py_func"):
                monkeypatch.setattr(module, name, thing.py_func)


@pytest.mark.usefixtures("slow")
def test_the_engine_passes_as_plain_python(cases: Any, random_credibility: Any, random_options: Any) -> None:
    """What the twins below are twins of."""
    assert not caught(cases, random_credibility, random_options, count=8)


@pytest.mark.usefixtures("slow")
def test_an_unsound_density_bound_is_caught(
    monkeypatch: pytest.MonkeyPatch, cases: Any, random_credibility: Any, random_options: Any
) -> None:
    honest = _gaussians.by_tangents
    monkeypatch.setattr(_gaussians, "by_tangents", lambda *given: 2.0 * abs(honest(*given)))
    assert caught(cases, random_credibility, random_options, first=13)


@pytest.mark.usefixtures("slow")
def test_pairs_that_bring_a_case_nearer_may_not_be_forgotten(
    monkeypatch: pytest.MonkeyPatch, cases: Any, random_credibility: Any, random_options: Any
) -> None:
    def forget(m: int, body: Any, room: Any) -> None:
        room.half[:] = room.less[:] = 0.0

    monkeypatch.setattr(_cube, "sort_pairs", forget)
    assert caught(cases, random_credibility, random_options, first=16)


@pytest.mark.usefixtures("slow")
def test_the_rule_that_drops_useless_features_is_caught(
    monkeypatch: pytest.MonkeyPatch, cases: Any, random_credibility: Any, random_options: Any
) -> None:
    honest = _blocks.begin_cube
    monkeypatch.setattr(_blocks, "begin_cube", lambda i, changes, cubes, work, _: honest(i, changes, cubes, work, None))
    assert caught(cases, random_credibility, random_options, first=31)


@pytest.mark.usefixtures("slow")
def test_slopes_that_are_not_carried_down_are_caught(
    monkeypatch: pytest.MonkeyPatch, cases: Any, random_credibility: Any, random_options: Any
) -> None:
    def forget(work: Any, t: int, body: Any, room: Any) -> None:
        room.value[t + 1], room.slope[t + 1] = room.value[t], room.slope[t]

    monkeypatch.setattr(_branch, "carry", forget)
    monkeypatch.setattr(_branch_costs, "carry", forget)
    assert caught(cases, random_credibility, random_options, first=9)


def test_a_floor_that_is_ignored_is_caught(cases: Any, random_credibility: Any, random_options: Any) -> None:
    def blind(task: Any, *rest: Any) -> Any:
        return ENGINE.set_up(replace(task, credibility=None), *rest)

    assert caught(cases, random_credibility, random_options, engine=replace(ENGINE, set_up=blind))


def test_a_density_of_the_case_instead_of_the_vertex_is_caught(
    cases: Any, random_credibility: Any, random_options: Any
) -> None:
    def stuck(attempt: Any) -> Any:
        floor = ENGINE.floor(attempt)
        if floor is None:
            return None
        return replace(floor, bodies=None, log_density=lambda cubes, moved: floor.log_density(cubes, moved & False))

    assert caught(cases, random_credibility, random_options, engine=replace(ENGINE, floor=stuck))
