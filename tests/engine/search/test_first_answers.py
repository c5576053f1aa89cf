"""The first answers of a process are those of the compiled searches, to the byte, and need no compiling."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import random_models as rm
from slow_cases import few_or_all

from fewest import checks
from fewest.engine import numba_cache
from fewest.engine.search import additive, first_answers, levelwise
from fewest.engine.search.first_answers import Readiness
from fewest.engine.search.problem import Budget, Found, Outcome, Problem
from fewest.engine.structure.base import Additive, Ensemble, Network, Reading
from fewest.errors import VerificationError

MAKERS = {"linear": rm.linear, "tree ensembles": rm.tree_ensemble, "networks": rm.network}


def answers(make: Callable[[Any], Any], seed: int, alternatives: int = 3) -> str:
    random = np.random.default_rng([seed, 5])
    setting = make(random)
    explainer = rm.random_explainer(random, setting)
    return explainer.explain(setting.cases, alternatives=alternatives).to_json()


@pytest.mark.parametrize("count", few_or_all(2, 12))
@pytest.mark.parametrize("kind", MAKERS)
def test_the_answers_are_the_same_to_the_byte_whichever_way_is_taken(
    kind: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = [answers(MAKERS[kind], seed) for seed in range(count)]
    begun = Readiness()
    monkeypatch.setattr(first_answers, "READINESS", begun)
    for seed in range(count):
        begun.loaded.clear()  # questions with costs load the compiled search
        assert answers(MAKERS[kind], seed) == compiled[seed], seed
    assert begun.spent > 0
    # ... and where the one way hands over to the other: after sets of one unit, or with hardly any set looked at.
    monkeypatch.setattr(first_answers, "FEW", 6)
    few = []
    for seed in range(count):
        begun.loaded.clear()
        few.append(answers(MAKERS[kind], seed))
    begun.loaded.update({Additive, Ensemble, Network})
    assert few == [answers(MAKERS[kind], seed) for seed in range(count)]


def run_checks(count: int = 12) -> None:
    for seed in range(count):
        random = np.random.default_rng([seed, 77])
        setting = list(MAKERS.values())[seed % 3](random)
        first_answers.READINESS.loaded.clear()
        explainer = rm.random_explainer(random, setting)
        out = explainer.explain(setting.cases, alternatives=200)
        checks.check_turns(out)
        checks.check_exact(explainer, out)


def test_the_first_answers_agree_with_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_answers, "READINESS", Readiness())
    run_checks()


def test_a_twin_that_looks_at_too_few_sets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of the test above."""
    monkeypatch.setattr(first_answers, "READINESS", Readiness())
    right = levelwise.look_at_size

    def careless(score: Any, problem: Problem, tolerance: float, found: Found, active: Any, size: int) -> Any:
        """Sees nothing of what the last unit does."""
        movable = problem.movable.copy()
        movable[:, -1] &= size > 1
        return right(score, replace(problem, movable=movable), tolerance, found, active, size)

    monkeypatch.setattr(levelwise, "look_at_size", careless)
    with pytest.raises(VerificationError):
        run_checks()


def test_nodes_are_the_sets_up_to_the_size_of_the_answer() -> None:
    movable = np.ones((2, 4), dtype=bool)
    rows = np.zeros((2, 4))
    goal_of, unit_of = np.zeros(2, dtype=np.int32), np.arange(4, dtype=np.int32)
    problem = Problem(rows, rows, goal_of, unit_of, movable, rows, np.full(2, np.inf))
    found = Found.blank(problem)
    found.outcome[:] = Outcome.FOUND, Outcome.NONE
    found.cost[0] = 2
    first_answers._say_alike(problem, found)
    assert found.nodes.tolist() == [4 + 6, 15]


def test_the_additive_kernel_counts_as_the_first_answers_do() -> None:
    """Sizes found, limits in the way, nothing to move, and more sets than are counted, in one problem each way."""
    random = np.random.default_rng(0)
    n, units = 400, 14
    rows, goal = random.normal(size=(n, units)), np.zeros((1, units))
    movable = random.random((n, units)) < random.choice([0.0, 0.3, 1.0], size=(n, 1))
    limit = random.choice([0.0, 0.5, 1.0, 2.0, 3.0, np.inf], size=n)
    tables = (np.zeros(n, dtype=np.int32), np.arange(units, dtype=np.int32), movable, np.abs(rows))
    problem = Problem(rows, goal, *tables, limit)
    structure = Additive(Reading(0.0, 1e-9, np.asarray, tables[1]), random.normal(size=units), 1.0)
    found = additive.solve(structure, problem)
    again = Found.blank(problem)
    again.outcome[:], again.cost[:], again.nodes[:] = found.outcome, found.cost, found.nodes
    again.lower[:] = found.lower
    first_answers._say_alike(problem, again)
    assert len(set(found.outcome.tolist())) == 2
    assert np.array_equal(again.nodes, found.nodes)
    assert np.array_equal(again.lower, found.lower)
    silent = additive.solve(structure, replace(problem, budget=Budget(nodes=first_answers.LEAST - 1)))
    assert not np.array_equal(silent.nodes, found.nodes), "negative control: the kernel's own nodes are others"


def test_a_search_is_loaded_when_looking_at_sets_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    structure = Additive(None, np.zeros(1), 0.0)  # type: ignore[arg-type]
    monkeypatch.setattr(first_answers, "_is_compiled", lambda structure: True)
    assert Readiness().has_time(structure, 0.5)
    assert not Readiness(spent=0.6).has_time(structure, 0.5)
    assert not Readiness(loaded={Additive}).has_time(structure, 0.5)
    monkeypatch.setattr(first_answers, "_is_compiled", lambda structure: False)
    assert Readiness(spent=0.6).has_time(structure, 0.5)
    assert not Readiness(spent=5.6).has_time(structure, 0.5)


LINEAR = """
import sys, numpy as np, pandas as pd
from sklearn.linear_model import LogisticRegression
import fewest as fw
X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd"))
y = (X.sum(axis=1) > 0).astype(int)
decision = fw.Decision(LogisticRegression().fit(X, y), positive=1)
fw.Explainer(decision, fw.references.single(decision, X, y)).explain(X)
print("numba" in sys.modules)
"""


def test_a_small_table_of_a_linear_model_does_not_even_import_numba() -> None:
    done = subprocess.run([sys.executable, "-c", LINEAR], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


SLOW = """
import time
from fewest.engine import numba_cache
numba_cache.PATIENCE = 0.01
from numba import njit
njit(lambda x: x)(1)
print("other code", flush=True)
@njit
def long(x):
    return x + 1
long.py_func.__module__ = "fewest.engine.long"
long(1)
long(1.0)
"""


def test_one_line_says_that_something_compiles_for_long(tmp_path: Any) -> None:
    done = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, text=True, check=True)
    assert done.stderr == numba_cache.COMPILING + "\n"
