"""Whole domains of a model that is not read: its own scores, set by set from the cheapest on, under a budget.

What was asked in full is proved; where there are more rows than the budget has, those whose features do most alone are
asked, and what is not excluded is said.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import combinations, groupby
from typing import NamedTuple

import numpy as np
import pandas as pd

from fewest.engine.choices import CODE, or_plain
from fewest.engine.cubes import DEFAULT_OWN_NODES
from fewest.engine.domain_rows import Allowed, DomainTask
from fewest.results.answers import Answers
from fewest.results.explanation import Status
from fewest.tables.arrays import Bools, Floats, Ints
from fewest.tables.closeness import Distances

STRATEGY = "any value, asked level by level"
MOST_SETS = 3000  # sets of features that are looked at; larger sizes are left to the bound
SAME = 1e-9  # costs this close (relatively) are equal

Features = tuple[int, ...]


class Hit(NamedTuple):
    """A row that turns the model."""

    cost: float
    far: float  # Summed steps
    score: float
    features: Features
    places: Ints  # (p,)
    log_density: float


def answer(task: DomainTask, frame: pd.DataFrame) -> Answers:
    """Verified answers for a part of the table."""
    return or_plain(_answer(task, frame), _answer, task, frame)


def _answer(task: DomainTask, frame: pd.DataFrame) -> Answers:
    verdicts = task.chosen.decision.verdicts(frame)
    answers = Answers.blank(len(frame), len(task.sight.domains))
    answers.score[:] = verdicts.score
    rows = np.flatnonzero(verdicts.positive)
    if len(rows) == 0:
        return answers
    cases = frame.iloc[rows]
    allowed = task.allowed(cases)
    answers.strategy[rows], answers.reference[rows] = 1, 0
    for k, row in enumerate(rows.tolist()):
        search = CaseSearch(task, cases.iloc[[k]], allowed, k)
        search.run()
        search.write(answers, row)
    return answers


class CaseSearch:
    """The search of one case."""

    def __init__(self, task: DomainTask, case: pd.DataFrame, allowed: Allowed, k: int) -> None:
        self._task, self._case, self._allowed = task, case, allowed
        self._may, self._own = allowed.may[k], allowed.own[k]
        self._budget = task.chosen.max_nodes or DEFAULT_OWN_NODES
        self.spent, self.lower, self.whole = 0, 0.0, False
        self.best: Hit | None = None
        self.level: dict[Features, Hit] = {}  # The nearest hit of each set at the cost of the best
        p = len(allowed.direction)
        self._places: list[Ints] = [np.empty(0, dtype=np.int64)] * p  # Values that are tried, the least score first
        self._far: list[Floats] = [np.empty(0)] * p
        self._all = np.ones(p, dtype=bool)  # Whether these are all values

    def run(self) -> None:
        """Ask level by level until one turns the model, or the budget is spent."""
        alone = self._look_at_single_features()
        able = [j for j in range(len(self._may)) if len(self._places[j])]
        if not able:
            self.lower, self.whole = np.inf, True
            return
        sets, beyond = self._sets(able)
        self.whole = True
        for cost, group in groupby(sets, lambda one: one[0]):
            self.lower = min(cost, beyond)
            if self.lower > self._task.chosen.constraints.most * (1 + SAME):
                return
            if cost >= beyond * (1 - SAME) or not self._ask_level(cost, [one for _, one in group], alone):
                self.whole = False
                break
            if self.best is not None:
                return
        else:
            self.lower = beyond
            self.whole = bool(np.isinf(beyond) or beyond > self._task.chosen.constraints.most * (1 + SAME))
        if self.best is None and not self.whole:
            self._add_features_in_turn(able)

    def _sets(self, able: list[int]) -> tuple[list[tuple[float, Features]], float]:
        """Allowed sets of features by their cost, and what all that are left out cost at least."""
        weight, forbidden = self._allowed.weight, self._allowed.forbidden
        sets: list[tuple[float, Features]] = []
        cheapest = np.sort(weight[able])
        for size in range(1, len(able) + 1):
            more = [one for one in combinations(able, size) if not _holds(forbidden, one)]
            if size > 1 and len(sets) + len(more) > MOST_SETS:
                return _by_cost(sets), float(cheapest[:size].sum())
            sets += [(float(weight[list(one)].sum()), one) for one in more]
        return _by_cost(sets), np.inf

    def _look_at_single_features(self) -> dict[int, list[Hit]]:
        """Ask about each feature alone, and sort its values by their score."""
        domains, direction = self._task.sight.domains, self._allowed.direction
        for j in np.flatnonzero(self._may).tolist():
            own, number, domain = self._own[j], domains[j].number, domains[j]
            if domain.measured:
                far = np.abs(number - own) / domain.feature.scale if not np.isnan(own) else np.ones(len(number))
            else:
                far = Distances.read(self._task.sight.schema, self._case, domain.frame).between(
                    np.zeros(len(domain), dtype=int), np.arange(len(domain))
                )[:, j]
            fits = far > 0
            if direction[j]:
                fits &= (number - own) * direction[j] > 0
            self._places[j], self._far[j] = np.flatnonzero(fits), far
        share = self._budget / max(1, sum(len(places) for places in self._places))
        for j, places in enumerate(self._places):
            kept = max(1, int(share * len(places)))
            if share < 1 and kept < len(places):
                self._places[j], self._all[j] = places[np.linspace(0, len(places) - 1, kept).astype(int)], False
        if time.monotonic() >= self._task.deadline:
            self._all[:] = False
            return {}
        hits: dict[int, list[Hit]] = {}
        for (j,), found, score in self._ask([((j,), self._places[j][:, None]) for j in range(len(self._may))]):
            hits[j] = found
            self._places[j] = self._places[j][np.argsort(score, kind="stable")]
        return hits

    def _ask(self, wanted: list[tuple[Features, Ints]]) -> Iterator[tuple[Features, list[Hit], Floats]]:
        """Score rows: sets of features with their places (v, size); for each set what turned, and all scores."""
        wanted = [(features, places) for features, places in wanted if len(places)]
        if not wanted:
            return
        parts = []
        for features, at in wanted:
            places = np.full((len(at), len(self._may)), -1, dtype=np.int64)
            places[:, list(features)] = at
            parts.append(places)
        everything = np.concatenate(parts)
        self.spent += len(everything)
        rows = self._task.sight.written(self._case.iloc[np.zeros(len(everything), dtype=int)], everything)
        verdicts = self._task.chosen.decision.verdicts(rows)
        good, density = self._credible(rows, ~verdicts.positive)
        first = 0
        for (features, _), places in zip(wanted, parts, strict=True):
            here = slice(first, first + len(places))
            first += len(places)
            far = np.sum([self._far[j][places[:, j]] for j in features], axis=0)
            cost = float(self._allowed.weight[list(features)].sum())
            score = verdicts.score[here]
            found = [
                Hit(cost, float(np.round(far[v], 12)), float(score[v]), features, places[v], float(density[here][v]))
                for v in np.flatnonzero(good[here]).tolist()
            ]
            yield features, found, score

    def _credible(self, rows: pd.DataFrame, turned: Bools) -> tuple[Bools, Floats]:
        """Which of the rows that turn the model are credible enough, and their log-density."""
        density, credibility = np.full(len(rows), np.nan), self._task.credibility
        at = np.flatnonzero(turned)
        if credibility is None or len(at) == 0:
            return turned, density
        density[at] = credibility.log_density(rows.iloc[at])
        good = turned.copy()
        good[at] = density[at] >= credibility.floor
        return good, density

    def _ask_level(self, cost: float, sets: list[Features], alone: dict[int, list[Hit]]) -> bool:
        """Ask about sets that cost the same; whether that was all there is to ask."""
        hits = [hit for one in sets if len(one) == 1 for hit in alone.get(one[0], [])]
        whole = all(self._all[list(one)].all() for one in sets)
        larger = [one for one in sets if len(one) > 1]
        if larger:
            left = 0 if time.monotonic() >= self._task.deadline else self._budget - self.spent
            cap = self._cap(larger, left)
            whole &= all(len(self._places[j]) <= cap for one in larger for j in one)
            if cap:
                grids = [(one, _grid([self._places[j][:cap] for j in one])) for one in larger]
                hits += [hit for _, found, _ in self._ask(grids) for hit in found]
        for hit in hits:
            known = self.level.get(hit.features)
            if known is None or (hit.far, hit.score) < (known.far, known.score):
                self.level[hit.features] = hit
        if self.level:
            self.best = min(self.level.values(), key=lambda hit: (hit.far, hit.score, hit.features))
            self.lower = cost
        return whole

    def _cap(self, sets: list[Features], left: int) -> int:
        """How many values of each feature can be tried together within what is left of the budget."""
        counts = np.array([len(places) for places in self._places], dtype=float)
        low, high = 0, int(counts.max(initial=0))
        while low < high:
            middle = (low + high + 1) // 2
            rows = sum(float(np.minimum(counts[list(one)], middle).prod()) for one in sets)
            low, high = (middle, high) if rows <= left else (low, middle - 1)
        return low

    def _add_features_in_turn(self, able: list[int]) -> None:
        """Some set that turns the model, if changing one feature after the other finds one: an answer, not a bound."""
        if time.monotonic() >= self._task.deadline:
            return
        order: list[int] = []
        for j in able:
            if not _holds(self._allowed.forbidden, (*order, j)):
                order.append(j)
        sets = [tuple(sorted(order[: size + 1])) for size in range(len(order))]
        found = self._firsts(sets)
        while found is not None:
            self.best = found
            found = self._firsts([tuple(f for f in found.features if f != j) for j in found.features])
        if self.best is not None and self.best.cost > self._task.chosen.constraints.most * (1 + SAME):
            self.best = None

    def _firsts(self, sets: list[Features]) -> Hit | None:
        """The cheapest of these sets that turns with the value of each feature that does most alone."""
        grids = [(one, np.array([[self._places[j][0] for j in one]])) for one in sets if one]
        hits = [hit for _, found, _ in self._ask(grids) for hit in found]
        return min(hits, key=lambda hit: (hit.cost, hit.far, hit.score, hit.features), default=None)

    def write(self, answers: Answers, row: int) -> None:
        """Enter what was found of the case."""
        answers.nodes[row], answers.lower[row] = self.spent, self.lower
        best = self.best
        proved = self.whole if best is None else self.lower >= best.cost * (1 - SAME)
        known = Status.UNREACHABLE if best is None else Status.EXPLAINED
        answers.status[row], answers.proved[row] = CODE[known if proved else Status.BUDGET], proved
        if best is None:
            return
        self._task.write(answers, np.array([row]), self._case, best.places[None], np.array([best.score]))
        answers.cost[row], answers.log_density[row] = best.cost, best.log_density
        if self._task.alternatives:
            self._list(answers, row, best)

    def _list(self, answers: Answers, row: int, best: Hit) -> None:
        """The sets that cost the same, each with its nearest values, the one shown first."""
        most = self._task.alternatives
        others = sorted((hit for hit in self.level.values() if hit is not best), key=lambda hit: hit[1:4])
        places = np.array([hit.places for hit in others[: most - 1]], dtype=np.int64).reshape(-1, len(self._may))
        answers.alternatives[row] = np.vstack([best.places[None] >= 0, places >= 0])
        answers.towards[row] = np.append(answers.reference[row], self._task.enter(places)).astype(np.int32)
        answers.complete[row] = self.whole and len(self.level) <= most


def _grid(values: list[Ints]) -> Ints:
    """All combinations (v, size) of places of several features."""
    return np.stack([part.ravel() for part in np.meshgrid(*values, indexing="ij")], axis=1)


def _holds(forbidden: Bools, features: Features) -> bool:
    """Whether a set of features holds one that is forbidden."""
    return bool((forbidden[:, list(features)].sum(axis=1) == forbidden.sum(axis=1)).any()) if len(forbidden) else False


def _by_cost(sets: list[tuple[float, Features]]) -> list[tuple[float, Features]]:
    """Sorted by cost, with costs that are the same but for rounding made equal."""
    sets.sort()
    out: list[tuple[float, Features]] = []
    for cost, features in sets:
        out.append((out[-1][0] if out and cost <= out[-1][0] * (1 + SAME) else cost, features))
    return out
