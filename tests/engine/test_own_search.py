"""A search of the user's in place of those of fewest: confirmed by the model, held to nothing but its own word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest.engine.points import ENGINE
from fewest.engine.search import Found, Outcome, Problem, levelwise
from fewest.errors import UsageError

X = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 5)).round(1)).add_prefix("x")
y = (X.sum(axis=1) > 0.5).astype(int)
DECISION = fw.Decision(LogisticRegression().fit(X, y), positive=1)
EXACT = fw.Explainer(DECISION, fw.references.single(DECISION, X, y), n_jobs=1)


def searched(search: Any, explainer: fw.Explainer = EXACT) -> fw.Explanations:
    return explainer.with_(engine=ENGINE.with_search("mine", search)).explain(X)


def everything(score: Any, problem: Problem, tolerance: float) -> Found:
    """A search that is not one: it moves all that may move and says that nothing less will do."""
    found = Found.blank(problem)
    found.moved[:], found.known[:], found.outcome[:] = problem.movable, True, Outcome.FOUND
    found.cost[:] = found.lower[:] = problem.movable.sum(axis=1)
    return found


def nothing(score: Any, problem: Problem, tolerance: float) -> Found:
    """Claims that the first movable unit alone turns every cube."""
    found = Found.blank(problem)
    found.moved[np.arange(problem.n_cubes), problem.movable.argmax(axis=1)] = True
    found.known[:], found.outcome[:], found.cost[:], found.lower[:] = True, Outcome.FOUND, 1.0, 1.0
    return found


def same(a: fw.Explanations, b: fw.Explanations) -> bool:
    return bool((a.sev == b.sev).fillna(True).all())


def test_an_exact_search_gives_the_same_answers_under_its_own_name() -> None:
    out = searched(levelwise.solve)
    assert out.strategies[1] == "mine"
    assert same(out, EXACT.explain(X))
    assert (out.answers.moved == EXACT.explain(X).answers.moved).all()


def test_a_search_that_takes_too_much_is_caught_by_the_comparison() -> None:
    """Negative control of the test above: its sets turn the model, so that only the sizes show it."""
    out = searched(everything)
    assert out.counts()["EXPLAINED"] > 0
    assert not same(out, EXACT.explain(X))


def test_what_the_model_does_not_confirm_is_not_shown() -> None:
    """A claim that is true of some cases only: the others come back without an answer, not with a wrong one."""
    out = searched(nothing)
    shown = out.sev.notna().to_numpy()
    assert 0 < shown.sum() < DECISION.verdicts(X).positive.sum()
    assert (EXACT.explain(X).sev[shown] == 1).all()


def test_it_keeps_a_floor_of_credibility_without_knowing_of_it() -> None:
    density = fw.credibility.supplied(DECISION, X, y, lambda rows: -abs(rows["x0"]), quantile=0.5)
    floored = EXACT.with_(credibility=density)
    assert same(searched(levelwise.solve, floored), floored.explain(X))


@pytest.mark.parametrize("given", [("", levelwise.solve), ("mine", None)])
def test_a_search_without_name_or_function_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="with_search"):
        ENGINE.with_search(*given)


def test_a_search_that_gives_something_else_is_refused() -> None:
    with pytest.raises(UsageError, match='"mine" gave no Found'):
        searched(lambda score, problem, tolerance: None)


def test_references_that_are_boxes_refuse_it() -> None:
    tree = fw.Decision(DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y), positive=1)
    with pytest.raises(UsageError, match="references that are points"):
        fw.Explainer(tree, fw.references.leaves(tree, X, y), engine=ENGINE.with_search("mine", levelwise.solve))


def test_it_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='cannot hold the search "mine"'):
        EXACT.with_(engine=ENGINE.with_search("mine", levelwise.solve)).save(tmp_path / "a.fewest")
