"""All small cases of linked features beside all other rules, against the documented meaning taken word by word.

Four features, each of which has the reference's value already or not, and a fifth that never moves and shifts the
score, so that one explainer sees every pattern at several distances from the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain, combinations, permutations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from slow_cases import mostly_slow

import fewest as fw
from fewest import checks
from fewest.constraints import Constraint
from fewest.engine.move_groups import MoveGroups
from fewest.persistence._settings import constraints_to_json
from fewest.runs.verification.rules import StatedRules

NAMES = ("a", "b", "c", "d")
CASES = pd.DataFrame(product((0, 1), (0, 1), (0, 1), (0, 1), (0, 1, 2)), columns=[*NAMES, "shift"])
REFERENCE = pd.DataFrame([[0, 0, 0, 0, 0]], columns=CASES.columns)
HELD = fw.Immutable("shift")
WEIGHTS = {"a": 2.0, "b": 1.0, "c": 1.5, "d": 1.0}
LINKS = (
    (fw.Linked("a", "b"),),
    (fw.Linked("a", "b", "c"),),
    (fw.Linked("a", "b"), fw.Linked("b", "c")),
    (fw.Linked("a", "b"), fw.Linked("c", "d")),
)
OTHERS: tuple[Constraint, ...] = (
    *(fw.Implies(*pair) for pair in permutations(NAMES, 2)),
    *(fw.Forbidden(*names) for size in (1, 2, 3) for names in combinations(NAMES, size)),
    *(fw.Immutable(name) for name in NAMES),
    fw.Only("a", "up"),
    fw.Only("b", "down"),
    fw.AtMost(1),
    fw.AtMost(2),
)


def sums(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(frame[list(NAMES)] @ [1.0, 1.4, 0.8, 1.1] + frame["shift"] * 0.9)


def function() -> Any:
    return lambda frame: 1 / (1 + np.exp(1.9 - sums(frame)))


def linear() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=100).fit(CASES, sums(CASES) > 1.9)


def trees() -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=12, random_state=0).fit(CASES, sums(CASES) > 1.9)


def network() -> Any:
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier((6,), max_iter=400, solver="lbfgs", random_state=0)
    return model.fit(CASES.to_numpy(dtype=float), sums(CASES) > 1.9)


MODELS = {"additive": linear, "ensemble": trees, "network": network, "levelwise": function}


@cache
def explainer(strategy: str) -> fw.Explainer:
    model = MODELS[strategy]()
    decision = fw.Decision(model, positive=True if hasattr(model, "classes_") else "refused", threshold=0.5)
    return fw.Explainer(decision, fw.references.supplied(decision, REFERENCE, X=CASES), n_jobs=1)


@cache
def turned(strategy: str) -> dict[tuple[int, ...], bool]:
    """The model's own verdict on every row there is."""
    scores = explainer(strategy).decision.score(CASES)
    return {tuple(row): bool(score < 0.5) for row, score in zip(CASES.to_numpy().tolist(), scores, strict=True)}


def components(links: Iterable[fw.Linked]) -> list[set[str]]:
    """Links that share a feature are one link."""
    joined: list[set[str]] = []
    for link in links:
        touching = [group for group in joined if group & set(link.names)]
        joined = [group for group in joined if group not in touching] + [set(link.names).union(*touching)]
    return joined


def permitted(name: str, rules: Sequence[Constraint]) -> bool:
    """Whether the feature may go from 1 to 0."""
    for rule in rules:
        if isinstance(rule, fw.Immutable) and rule.name == name:
            return False
        if isinstance(rule, fw.Only) and rule.name == name and rule.direction == "up":
            return False
    return True


def allowed(moved: set[str], differs: set[str], rules: Sequence[Constraint]) -> bool:
    """The documented meaning; ``moved`` are features whose value changes, so they all differ."""
    if not all(permitted(name, rules) for name in moved):
        return False
    for group in components([rule for rule in rules if isinstance(rule, fw.Linked)]):
        if moved & group and not group & differs <= moved:
            return False
    for rule in rules:
        if isinstance(rule, fw.Implies) and rule.cause in moved and rule.effect in differs - moved:
            return False
        if isinstance(rule, fw.Forbidden) and set(rule.names) <= moved:
            return False
    return True


def truth(strategy: str, row: tuple[int, ...], rules: Sequence[Constraint], weights: dict[str, float]) -> Any:
    """Least cost of an allowed set that turns the row, and all sets of that cost; None where there is none."""
    differs = {name for name, value in zip(NAMES, row, strict=False) if value}
    most = min((rule.most for rule in rules if isinstance(rule, fw.AtMost)), default=np.inf)
    found: list[tuple[float, frozenset[str]]] = []
    for moved in chain.from_iterable(combinations(sorted(differs), size) for size in range(1, 5)):
        cost = sum(weights.get(name, 1.0) for name in moved)
        after = (*(0 if name in moved else value for name, value in zip(NAMES, row, strict=False)), row[-1])
        if cost <= most and allowed(set(moved), differs, rules) and turned(strategy)[after]:
            found.append((cost, frozenset(moved)))
    least = min((cost for cost, _ in found), default=None)
    return None if least is None else (least, {moved for cost, moved in found if cost == least})


def disagreements(strategy: str, rules: Sequence[Constraint], weights: dict[str, float]) -> list[str]:
    """Every case whose answer is not the oracle's."""
    asked = explainer(strategy).with_(constraints=fw.Constraints(HELD, *rules), weights=weights or None)
    open_ = [row for row, done in turned(strategy).items() if not done]
    out = asked.explain(pd.DataFrame(open_, columns=CASES.columns))
    wrong = []
    for row, answer in zip(open_, out, strict=True):
        expected = truth(strategy, row, rules, weights)
        names = frozenset(change.feature for change in answer.changes)
        given = (answer.cost, names) if answer.status == fw.Status.EXPLAINED else None
        fine = given is None and answer.status == fw.Status.UNREACHABLE if expected is None else (
            given is not None and given[0] == expected[0] and names in expected[1]
        )  # fmt: skip
        if not fine:
            wrong.append(f"{strategy} {rules} {weights} {row}: {answer.status} {given}, expected {expected}")
    return wrong


def tables(strategy: str, step: int) -> list[str]:
    """Disagreements beside every single rule, or every so many of them; every other one with weights."""
    every = [(*links, *others) for links in LINKS for size in (0, 1) for others in combinations(OTHERS, size)]
    asked = list(enumerate(every))[::step]
    return [line for k, rules in asked for line in disagreements(strategy, rules, WEIGHTS if k % 2 else {})]


@pytest.mark.parametrize("step", mostly_slow((13, 1), (13,)))
@pytest.mark.parametrize("strategy", MODELS)
def test_linked_features_mean_what_is_documented_whatever_is_searched(strategy: str, step: int) -> None:
    assert explainer(strategy).explain(CASES.tail(1))[0].proof.strategy == strategy
    wrong = tables(strategy, step)
    assert not wrong, "\n".join(wrong[:5])


def test_rules_that_bind_where_a_linked_feature_does_not_move_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MoveGroups, "rules_for", lambda units, differs: units.rules)
    assert len(tables("additive", 5)) > 4


@pytest.mark.parametrize("rule", [rule for rule in OTHERS if isinstance(rule, fw.Implies | fw.Forbidden)], ids=str)
def test_the_public_check_reads_linked_features_the_same_way(rule: Constraint) -> None:
    rules = (*LINKS[0], rule)
    asked = explainer("levelwise").with_(constraints=fw.Constraints(HELD, *rules))
    for row in CASES.index[(CASES["shift"] == 1) & ~(CASES[["a", "b"]] == 1).all(axis=1)]:
        expected = truth("levelwise", tuple(CASES.loc[row]), rules, {})
        given = checks.brute_force(asked, CASES.loc[[row]], REFERENCE)
        if not turned("levelwise")[tuple(CASES.loc[row])]:
            assert (given.cost, given.sets) == (expected or (None, frozenset()))


PATTERNS = np.array(list(product((False, True), repeat=len(NAMES))))
DIFFERS, MOVED = (PATTERNS[places] for places in np.nonzero((PATTERNS[:, None] | ~PATTERNS[None]).all(axis=2)))
START, GOAL = (pd.DataFrame(cells.astype(int), columns=NAMES) for cells in (DIFFERS, np.zeros_like(DIFFERS)))
SCHEMA = fw.Schema.infer(CASES[list(NAMES)])


@cache
def meant(*rules: Constraint) -> np.ndarray:
    """Which of the sets ``MOVED`` of features, among those that differ, the documented meaning allows."""
    names = np.array(NAMES)
    return np.array([allowed(set(names[m]), set(names[d]), rules) for m, d in zip(MOVED, DIFFERS, strict=True)])


def searched(constraints: fw.Constraints) -> np.ndarray:
    """Which of the sets of features are sets of movable units that the search's rules allow."""
    units = MoveGroups.build(SCHEMA, constraints)
    movable = units.movable(DIFFERS, constraints.permitted(SCHEMA, START, GOAL))
    moved = np.zeros_like(movable)
    for j, unit in enumerate(units.unit_of):
        moved[:, unit] |= MOVED[:, j]
    whole = (units.features(moved, DIFFERS) == MOVED).all(axis=1) & ~(moved & ~movable).any(axis=1)
    return whole & units.rules_for(DIFFERS).allow(moved, movable)


def verified(constraints: fw.Constraints) -> np.ndarray:
    """Which of the sets the verifier of run folders allows."""
    rules = StatedRules.read(SCHEMA, {"weights": {}, "constraints": constraints_to_json(constraints)})
    return rules.allowed(MOVED, DIFFERS, rules.permitted(START, GOAL))


@pytest.mark.parametrize("reading", [searched, verified])
@pytest.mark.parametrize("links", LINKS, ids=str)
def test_search_and_verifier_allow_the_same_sets_beside_every_pair_of_rules(
    links: tuple[Constraint, ...], reading: Callable[[fw.Constraints], np.ndarray]
) -> None:
    sizes = MOVED.sum(axis=1)
    for others in combinations(OTHERS, 2):
        constraints = fw.Constraints(*links, *others)
        expected = meant(*links) & meant(others[0]) & meant(others[1]) & (sizes <= constraints.most)
        wrong = np.flatnonzero((reading(constraints) & (sizes <= constraints.most)) != expected)
        assert len(wrong) == 0, f"{constraints}: {MOVED[wrong[0]]} where {DIFFERS[wrong[0]]} differ"
