"""The oracle: every set of features is tried, through the model's own scores of raw rows. It knows nothing of a search.

A `Cube` holds the score of every vertex between a case and a reference. `truth` reads the answer to a question off it,
from what the constraints are documented to mean; `wrong` compares an answer of `fewest` with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import fewest as fw

Score = Callable[[pd.DataFrame], "np.ndarray[Any, Any]"]
NEAR = 1e-6  # rows this close to the threshold are asked about alone
SAME = 1e-9


def scorer(model: Any, positive: Any, against: Any = None) -> Score:
    """The model's score of raw rows, of the class explained."""
    classes = np.asarray(model.classes_).tolist()
    j = classes.index(positive)

    def score(rows: pd.DataFrame) -> np.ndarray[Any, Any]:
        if hasattr(model, "predict_proba"):
            table = np.asarray(model.predict_proba(rows), dtype=float)
        elif hasattr(model, "decision_function"):
            table = np.asarray(model.decision_function(rows), dtype=float)
            if table.ndim == 1:
                return table if j == 1 else -table
        else:
            return (np.asarray(model.predict(rows)).ravel() == positive).astype(float)
        if len(classes) == 2:
            return table[:, j]
        if against is not None:
            return table[:, j] - table[:, classes.index(against)]
        return table[:, j] - np.delete(table, j, axis=1).max(axis=1)

    return score


def carefully(score: Score, cut: float) -> Score:
    """Rows near the threshold are scored alone: that is what the model says of a person."""

    def careful(rows: pd.DataFrame) -> np.ndarray[Any, Any]:
        out = np.array(score(rows), dtype=float)
        for i in np.flatnonzero(np.abs(out - cut) <= NEAR * max(1.0, abs(cut))):
            out[i] = score(rows.iloc[[i]])[0]
        return out

    return careful


def equal(a: Any, b: Any) -> bool:
    """Whether two cells are the same value."""
    if pd.isna(a) or pd.isna(b):
        return bool(pd.isna(a) and pd.isna(b))
    return bool(a == b)


@dataclass(frozen=True, eq=False)
class Cube:
    """All vertices between a case and a reference.

    `names` are the features that differ; bit i of a vertex says that the i-th of them has the reference's value.
    """

    names: list[str]
    bits: np.ndarray[Any, Any]
    scores: np.ndarray[Any, Any]
    rows: pd.DataFrame
    case: dict[str, Any]
    goal: dict[str, Any]

    @classmethod
    def of(cls, case: pd.DataFrame, goal: pd.DataFrame, features: Mapping[str, Sequence[str]], score: Score) -> Cube:
        """Build and score it. case, goal: one row each, with equal dtypes."""
        here, there = case.iloc[0].to_dict(), goal.iloc[0].to_dict()
        names = [name for name, columns in features.items() if not all(equal(here[c], there[c]) for c in columns)]
        bits = (np.arange(2 ** len(names))[:, None] >> np.arange(len(names)) & 1).astype(bool)
        both = pd.concat([case, goal], ignore_index=True)
        take = {column: np.zeros(len(bits), dtype=int) for column in case.columns}
        for i, name in enumerate(names):
            for column in features[name]:
                take[column] = bits[:, i].astype(int)
        rows = pd.DataFrame({column: both[column].take(take[column]).reset_index(drop=True) for column in case.columns})
        return cls(names, bits, score(rows), rows, here, there)


@dataclass(frozen=True)
class Question:
    """What is asked beside the model: direction, costs, constraints, a floor."""

    name: str = "plain"
    plus: bool = False
    weights: Mapping[str, float] = field(default_factory=dict)
    constraints: tuple[Any, ...] = ()
    density: Callable[[pd.DataFrame], Any] | None = None
    floor: float = -np.inf

    @property
    def most(self) -> float:
        """The tightest limit."""
        return min((rule.most for rule in self.constraints if isinstance(rule, fw.AtMost)), default=np.inf)


@dataclass(frozen=True)
class Truth:
    """The right answer towards one reference, or the best of several."""

    status: str
    cost: float | None = None
    sets: frozenset[frozenset[str]] = frozenset()
    beyond: float | None = None  # least cost without the limit


def permitted(name: str, cube: Cube, rules: Sequence[Any]) -> bool:
    """Whether the constraints on single features let one go from the case's value to the reference's."""
    for rule in rules:
        if isinstance(rule, fw.Immutable | fw.Only | fw.Range | fw.OneOf) and name in rule.features():
            if isinstance(rule, fw.Immutable):
                return False
            here, there = cube.case.get(name), cube.goal.get(name)
            if isinstance(rule, fw.OneOf):
                good = any(equal(there, level) for level in rule.levels)
            elif pd.isna(there):
                good = False
            elif isinstance(rule, fw.Range):
                good = rule.low <= there <= rule.high
            else:
                a, b = (place(cube, name, value) for value in (here, there))
                good = not pd.isna(here) and (b >= a if rule.direction == "up" else b <= a)
            if not good:
                return False
    return True


def place(cube: Cube, name: str, value: Any) -> Any:
    """Where a value stands among others: ordered categories by their order."""
    kind = cube.rows[name].dtype
    if isinstance(kind, pd.CategoricalDtype) and not pd.isna(value):
        return list(kind.categories).index(value)
    return value


def links(rules: Sequence[Any]) -> list[set[str]]:
    """Features that move together; links that share a feature are one link."""
    out: list[set[str]] = []
    for rule in rules:
        if isinstance(rule, fw.Linked):
            touched = [link for link in out if link & set(rule.names)]
            out = [link for link in out if link not in touched] + [set(rule.names).union(*touched)]
    return out


def allowed(cube: Cube, rules: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Which sets of features may move together; a feature that has the reference's value does not move."""
    at = {name: i for i, name in enumerate(cube.names)}
    bits, good = cube.bits, np.ones(len(cube.bits), dtype=bool)
    for name, i in at.items():
        if not permitted(name, cube, rules):
            good &= ~bits[:, i]
    for link in links(rules):
        inside = [at[name] for name in link if name in at]
        good &= bits[:, inside].all(axis=1) | ~bits[:, inside].any(axis=1)
    for rule in rules:
        inside = [at[name] for name in rule.features() if name in at]
        if isinstance(rule, fw.Implies) and rule.cause in at and rule.effect in at:
            good &= ~bits[:, at[rule.cause]] | bits[:, at[rule.effect]]
        elif isinstance(rule, fw.Forbidden) and all(name in at for name in rule.features()):
            good &= ~bits[:, inside].all(axis=1)
    return good


def truth(cube: Cube, question: Question, cut: float) -> Truth:
    """The right answer towards one reference."""
    if cube.scores[0] < cut:
        return Truth("ALREADY_NEGATIVE")
    turned = cube.scores[::-1] >= cut if question.plus else cube.scores < cut
    turned[0] = False
    cost = cube.bits @ np.array([question.weights.get(name, 1.0) for name in cube.names])
    good = turned & allowed(cube, question.constraints)
    inside = good & (cost <= question.most * (1 + SAME))
    dense = inside
    if question.density is not None:
        dense = inside & (np.asarray(question.density(cube.rows), dtype=float) >= question.floor)
    beyond = float(cost[good].min()) if good.any() else None
    if not dense.any():
        return Truth("NOT_CREDIBLE" if inside.any() else "UNREACHABLE", beyond=beyond)
    least = float(cost[dense].min())
    sets = [v for v in np.flatnonzero(dense) if cost[v] <= least + SAME]
    named = frozenset(frozenset(name for i, name in enumerate(cube.names) if cube.bits[v, i]) for v in sets)
    return Truth("EXPLAINED", least, named, beyond)


def best(truths: Sequence[Truth]) -> Truth:
    """The right answer where all of these references are in the race."""
    found = [one for one in truths if one.status == "EXPLAINED"]
    if not found:
        beyond = min((one.beyond for one in truths if one.beyond is not None), default=None)
        order = ("ALREADY_NEGATIVE", "NOT_CREDIBLE", "UNREACHABLE")
        return Truth(min((one.status for one in truths), key=order.index), beyond=beyond)
    least = min(one.cost for one in found if one.cost is not None)
    tied = [one for one in found if one.cost is not None and one.cost <= least + SAME]
    return Truth("EXPLAINED", least, frozenset().union(*(one.sets for one in tied)), least)


def wrong(answer: Any, race: Mapping[str, Truth], cubes: Mapping[str, Cube], question: Question) -> str | None:
    """What is wrong with an answer, in a few words; None where it is right.

    Parameters
    ----------
    answer : Explanation
    race : mapping
        The right answer towards each reference that the case may be compared with.
    cubes : mapping
        Their cubes.
    question : Question
    """
    right = best(list(race.values()))
    status = answer.status.value
    if status == "BUDGET":
        reached = right.cost if right.cost is not None else np.inf
        return "the lower bound is too high" if answer.proof.lower_bound > reached + SAME else None
    if status != right.status:
        return f"{status}, the oracle says {right.status} ({right.cost})"
    if status == "UNREACHABLE" and right.beyond is not None and answer.proof.lower_bound > right.beyond + SAME:
        return f"lower bound {answer.proof.lower_bound}, a set beyond the limit costs {right.beyond}"
    if status != "EXPLAINED":
        return None
    assert right.cost is not None
    if abs(answer.cost - right.cost) > SAME * max(1.0, right.cost):
        return f"cost {answer.cost}, the oracle has {right.cost}: {sorted(map(sorted, right.sets))[:2]}"
    shown = frozenset(change.feature for change in answer.changes)
    if answer.sev != len(shown) or not (answer.proof.minimal and answer.proof.verified):
        return f"SEV {answer.sev}, {len(shown)} changes, {answer.proof}"
    if shown not in race[answer.reference].sets:
        return f"{sorted(shown)} is not one of the smallest sets towards {answer.reference}"
    off = wrong_values(answer, answer.changes, cubes[answer.reference])
    return off or wrong_list(answer, right) or wrong_ways(answer, race, cubes)


def wrong_ways(answer: Any, race: Mapping[str, Truth], cubes: Mapping[str, Cube]) -> str | None:
    """Every listed set has the values of a reference towards which it is a smallest set."""
    for changes in answer.alternatives:
        names = frozenset(change.feature for change in changes)
        least = {name: t for name, t in race.items() if t.cost is not None and abs(t.cost - answer.cost) <= SAME}
        goals = [name for name, truth in least.items() if names in truth.sets]
        if all(wrong_values(answer, changes, cubes[reference]) for reference in goals):
            return f"{sorted(names)} is listed with values of no reference that it leads to"
    return None


def wrong_values(answer: Any, changes: Any, cube: Cube) -> str | None:
    """Changes go from the case's values to the reference's, or the other way for SEV+."""
    for change in changes:
        if change.feature in cube.case:
            pair = cube.case[change.feature], cube.goal[change.feature]
            before, after = pair[::-1] if answer.plus else pair
            if not (equal(change.before, before) and equal(change.after, after)):
                return f"{change.feature} goes from {change.before!r} to {change.after!r}, not {before!r} to {after!r}"
    return None


def wrong_list(answer: Any, right: Truth) -> str | None:
    """Listed sets are smallest ones, each once, and all of them where that is claimed."""
    listed = [frozenset(change.feature for change in changes) for changes in answer.alternatives]
    if len(set(listed)) != len(listed):
        return "a set is listed twice"
    if not set(listed) <= right.sets:
        return f"{sorted(map(sorted, set(listed) - right.sets))[:2]} is listed, and not a smallest set"
    if answer.all_listed and set(listed) != right.sets:
        return f"all {len(listed)} sets are said to be listed, there are {len(right.sets)}"
    return None
