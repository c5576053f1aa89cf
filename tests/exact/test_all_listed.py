"""Whether all smallest sets are listed is what the search proved, never what the length of a list suggests."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.errors import FewestError
from fewest.reporting import reasons
from fewest.results.explanation import proof_line

P = 8
NAMES = [f"f{j}" for j in range(P)]
Sets = set[tuple[frozenset[str], tuple[int, ...]]]  # features and the values they take


def any_of(size: int, p: int = P) -> fw.Decision:
    """A closed box that accepts as soon as ``size`` of the p features are zero."""
    return fw.Decision(lambda rows: np.where(rows.to_numpy(float).sum(axis=1) > p - size, 0.9, 0.1), positive=True)


def ones(p: int = P) -> pd.DataFrame:
    return pd.DataFrame(np.ones((1, p), dtype=int), columns=[f"f{j}" for j in range(p)])


def zeros(decision: fw.Decision, p: int = P) -> Any:
    return fw.references.supplied(decision, ones(p) * 0, X=pd.concat([ones(p), ones(p) * 0]))


def test_a_search_that_stopped_at_its_first_set_does_not_say_that_all_are_listed() -> None:
    decision = any_of(5, 20)
    answer = fw.Explainer(decision, zeros(decision, 20)).explain(ones(20), alternatives=50)[0]
    assert (answer.sev, answer.proof.minimal) == (5, True)
    assert not answer.all_listed
    assert "listed" in proof_line(answer)
    with pytest.raises(FewestError, match="perhaps not all"):
        reasons(answer)


@pytest.mark.parametrize(("asked", "whole"), [(27, False), (28, True), (29, True)])
def test_a_full_list_is_complete_where_the_search_saw_that_there_are_no_more(asked: int, whole: bool) -> None:
    decision = any_of(2)
    answer = fw.Explainer(decision, zeros(decision)).explain(ones(), alternatives=asked)[0]
    assert len(answer.alternatives) == min(asked, 28)
    assert answer.all_listed is whole


def test_sets_that_the_model_refuses_do_not_make_a_cut_list_complete() -> None:
    """Linear by its coefficients; asked about certain rows, it says no. A full list shrinks, and stays incomplete."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, size=(400, P)), columns=NAMES)
    model = LogisticRegression(C=1e6).fit(X, X.sum(axis=1) > P - 2)
    model.coef_[:] = 1.0
    model.intercept_[:] = -(P - 1) + 1e-12  # seven ones are a tie within rounding: structure and model may differ
    decision = fw.Decision(model, positive=True)
    refs = fw.references.supplied(decision, ones() * 0, X=X)
    truth = smallest(decision, ones(), refs.frame)
    for asked in (1, 3, 7, 8, 9, 27, 28, 29):
        answer = fw.Explainer(decision, refs).explain(ones(), alternatives=asked)[0]
        if answer.all_listed:
            assert listed(answer) == truth
        assert listed(answer) <= truth


def smallest(decision: fw.Decision, case: pd.DataFrame, goals: pd.DataFrame) -> Sets:
    """All smallest sets towards any of the goals, with their values, by asking the model alone."""
    mine, theirs = case.to_numpy()[0], goals.to_numpy()
    for size in range(1, P + 1):
        moves = [(list(places), goal) for places in combinations(range(P), size) for goal in theirs]
        moves = [(places, goal) for places, goal in moves if (goal[places] != mine[places]).all()]
        rows = np.repeat(mine[None], len(moves), axis=0)
        for row, (places, goal) in zip(rows, moves, strict=True):
            row[places] = goal[places]
        accepted = ~decision.verdicts(pd.DataFrame(rows, columns=NAMES)).positive if moves else []
        turned = [move for move, good in zip(moves, accepted, strict=True) if good]
        if turned:
            return {(frozenset(NAMES[j] for j in places), tuple(goal[places].tolist())) for places, goal in turned}
    return set()


def listed(answer: fw.Explanation) -> Sets:
    return {
        (frozenset(c.feature for c in changes), tuple(int(c.after) for c in changes)) for changes in answer.alternatives
    }


def features(sets: Sets) -> set[frozenset[str]]:
    return {names for names, _ in sets}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["linear", "trees", "box"])
def test_smallest_sets_towards_all_references_are_listed(kind: str, seed: int) -> None:
    """With several references a set towards any of them is a smallest set; a list that leaves some out says so."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 4, size=(300, P)), columns=NAMES)
    y = X.sum(axis=1) + rng.normal(size=300) > 13
    model = fitted(kind, X, y)
    decision = fw.Decision((lambda rows: model.predict_proba(rows)[:, 1]) if kind == "box" else model, positive=True)
    verdicts = decision.verdicts(X)
    goals = X[~verdicts.positive].drop_duplicates().iloc[:4]
    refs = fw.references.supplied(decision, goals, X=X, assignment="sparsest")
    cases = X[verdicts.positive].iloc[:6]
    truths = [smallest(decision, cases.iloc[[k]], refs.frame) for k in range(len(cases))]
    seen = 0
    for asked in (1, 3, 1000):
        out = fw.Explainer(decision, refs).explain(cases, alternatives=asked)
        for answer, truth in zip(out, truths, strict=True):
            assert listed(answer) <= truth
            count = len(features(truth))
            assert len(features(listed(answer))) == len(answer.alternatives) == min(asked, count)
            assert answer.all_listed == (count <= asked)
            assert answer.alternatives[0] == answer.changes
            seen += answer.all_listed
    assert seen


def fitted(kind: str, X: pd.DataFrame, y: pd.Series) -> object:
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    if kind == "trees":
        return GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, y)
    return LogisticRegression().fit(X, y)


def test_the_oracle_catches_a_list_that_claims_too_much() -> None:
    """A twin that infers completeness from the length of the list says so of one set of 15,504."""
    decision = any_of(5, 20)
    answer = fw.Explainer(decision, zeros(decision, 20)).explain(ones(20), alternatives=50)[0]
    twin = replace(answer, all_listed=0 < len(answer.alternatives) < 50)
    assert twin.all_listed
    found = reasons(twin)
    assert {reason.kind for reason in found[0].given} == {"necessary"}  # the false claim that the field prevents


@pytest.mark.parametrize("seed", range(4))
def test_sets_towards_flexible_twins_are_listed_where_they_are_as_small(seed: int) -> None:
    """A twin is shown only where it needs fewer features; a set towards it that is as small is a smallest set still."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 9, size=(300, P)), columns=NAMES)
    y = X.sum(axis=1) + rng.normal(size=300) > 34
    decision = fw.Decision(fitted("trees", X, y), positive=True)
    refs = fw.references.single(decision, X, y).flexible(0.2)
    verdicts = decision.verdicts(X)
    cases = X[verdicts.positive].iloc[:8]
    out = fw.Explainer(decision, refs).explain(cases, alternatives=1000)
    plain = fw.Explainer(decision, refs).explain(cases)
    assert out.answers.moved.tolist() == plain.answers.moved.tolist()
    assert out.answers.reference.tolist() == plain.answers.reference.tolist()
    truths = [smallest(decision, cases.iloc[[k]], refs.frame) for k in range(len(cases))]
    assert [features(listed(answer)) for answer in out] == [features(truth) for truth in truths]
    assert all(listed(answer) <= truth for answer, truth in zip(out, truths, strict=True))
    assert all(answer.all_listed for answer in out)
