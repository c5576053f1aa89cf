"""That nothing smaller exists, by asking the model: level by level, for every claim, until its budget is spent.

A claim that is too wide to be enumerated is attacked as well, where lies show soonest: single features, then those with
the largest effects together, then the set shown without one of its features, then the smaller levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.runs.verification.base import KnownDensity, Scorer, changed
from fewest.runs.verification.rules import StatedRules, differing
from fewest.tables.arrays import Bools, Floats, Ints

VERTICES = 20_000
LEAST = 1e-9


@dataclass(frozen=True)
class ClaimLimits:
    """What is claimed of some cases; a set is against it where it changes the outcome and costs too little."""

    plain: Floats  # (n,): No set below this cost turns the case, whatever its density
    below: Floats  # (n,): No set below this cost turns it and is as dense as the floor; infinite: none at all
    listed: npt.NDArray[np.object_]  # (n,): All sets that cost as much as the one shown, as bytes; None: not claimed

    def take(self, rows: Ints) -> ClaimLimits:
        """Those of some cases."""
        return ClaimLimits(self.plain[rows], self.below[rows], self.listed[rows])

    @cached_property
    def whole(self) -> Bools:
        """Where all smallest sets are said to be listed."""
        return np.array([one is not None for one in self.listed], dtype=bool)

    @cached_property
    def asked_up_to(self) -> Floats:
        """Cost up to which sets count, (n,)."""
        most = np.maximum(self.plain, self.below)
        return np.asarray(most * np.where(self.whole, 1 + LEAST, 1 - LEAST))

    def broken(self, case: Ints, moved: Bools, cost: Floats, credible: Bools) -> tuple[Bools, Bools]:
        """Of sets that change the outcome: which are smaller than they may be, and which lack in the list."""
        least = 1 - LEAST
        smaller = (cost < self.plain[case] * least) | (credible & (cost < self.below[case] * least))
        unlisted = np.zeros(len(case), dtype=bool)
        for k in np.flatnonzero(~smaller & credible & self.whole[case]):
            unlisted[k] = moved[k].tobytes() not in self.listed[case[k]]
        return smaller, unlisted


@dataclass
class Refuted:
    """Claims that are false: place of the case -> the features of a set that says so."""

    smaller: dict[int, Bools] = field(default_factory=dict)
    unlisted: dict[int, Bools] = field(default_factory=dict)

    def note(self, limits: ClaimLimits, case: Ints, moved: Bools, cost: Floats, credible: Bools) -> None:
        """Look at sets that change the outcome."""
        smaller, unlisted = limits.broken(case, moved, cost, credible)
        for which, found in ((smaller, self.smaller), (unlisted, self.unlisted)):
            for k in np.flatnonzero(which):
                found.setdefault(int(case[k]), moved[k])

    def among(self, count: int) -> Bools:
        """Which of some cases are refuted."""
        out = np.zeros(count, dtype=bool)
        out[[*self.smaller, *self.unlisted]] = True
        return out


@dataclass(frozen=True)
class ClaimCubes:
    """Cases, each with a reference beside it, and what is claimed of them."""

    rules: StatedRules
    case: pd.DataFrame  # (n, columns)
    reference: pd.DataFrame  # (n, columns)
    limits: ClaimLimits
    shown: Bools  # (n, p): The set shown; empty where none is
    plus: bool = False  # Whether the case's values are put onto the reference, instead of the other way round
    density: KnownDensity | None = None  # Where the run has a floor and it is known


@dataclass(frozen=True)
class ClaimUnits:
    """What can move in each case, as units."""

    members: Bools  # (u, p) bool
    differs: Bools  # (n, p) bool
    permitted: Bools  # (n, p) bool
    movable: Bools  # (n, u) bool
    cost: Floats  # (n, u) float

    @classmethod
    def of(cls, cubes: ClaimCubes) -> ClaimUnits:
        """The units of cases towards their references."""
        rules = cubes.rules
        unit = rules.units()
        members = unit == np.arange(unit.max() + 1)[:, None]
        differs = differing(rules.schema, cubes.case, cubes.reference)
        permitted = rules.permitted(cubes.case, cubes.reference)
        held = (differs & ~permitted).astype(int) @ members.T.astype(int) > 0
        present = differs.astype(int) @ members.T.astype(int) > 0
        cost = (differs * rules.weights) @ members.T.astype(float)
        return cls(members, differs, permitted, present & ~held, cost)

    def deepest(self, limit: Floats) -> Ints:
        """For each case the largest number of units that can cost up to a limit."""
        cheapest = np.cumsum(np.sort(np.where(self.movable, self.cost, np.inf), axis=1), axis=1)
        return np.asarray(((cheapest <= limit[:, None]) & np.isfinite(cheapest)).sum(axis=1))


def refute(cubes: ClaimCubes, scorer: Scorer, budget: float, draw: np.random.Generator) -> tuple[Bools, Refuted]:
    """Which claims were proved again within a budget of sets per case (n,), and which are false."""
    return _Enumeration(cubes, scorer, budget, draw).run()


class _Enumeration:
    """The sets of units that are asked about."""

    def __init__(self, cubes: ClaimCubes, scorer: Scorer, budget: float, draw: np.random.Generator) -> None:
        self.cubes, self.scorer, self.budget, self.draw = cubes, scorer, budget, draw
        self.units = ClaimUnits.of(cubes)
        self.refuted = Refuted()
        self.depth = self.units.deepest(np.minimum(cubes.limits.asked_up_to, cubes.rules.most * (1 + LEAST)))
        self.width = self.units.movable.sum(axis=1)
        self.order = np.argsort(~self.units.movable, axis=1, kind="stable")

    def run(self) -> tuple[Bools, Refuted]:
        """Level by level; a level that is too large is drawn from, and the claim stays open."""
        n = len(self.depth)
        spent, open_ = np.zeros(n), np.zeros(n, dtype=bool)
        for size in range(1, int(self.depth.max(initial=0)) + 1):
            todo = (self.depth >= size) & ~open_ & ~self.refuted.among(n)
            sets = np.array([comb(m, size) for m in range(int(self.width.max()) + 1)], dtype=float)[self.width]
            whole = todo & ((spent + sets <= self.budget) | (size == 1))
            for m in np.unique(self.width[whole]).tolist():
                self._ask_all(np.flatnonzero(whole & (self.width == m)), _choices(m, size))
            spent += np.where(whole, sets, 0)
            open_ |= todo & ~whole
            if size == 1:
                self._attack(np.flatnonzero(self._too_many() & ~self.refuted.among(n)))
            some = np.flatnonzero(todo & ~whole & ~self.refuted.among(n))
            self._ask_some(some, size, np.clip(self.budget - spent[some], 0, VERTICES).astype(int))
        return ~open_ & ~self.refuted.among(n), self.refuted

    def _too_many(self) -> Bools:
        """Cases with more sets than will be asked about."""
        pairs, which = np.unique(np.column_stack([self.width, self.depth]), axis=0, return_inverse=True)
        sets = [sum(comb(m, k) for k in range(1, depth + 1)) for m, depth in pairs.tolist()]
        return (np.array(sets, dtype=float)[which] > self.budget) & (self.depth > 1)

    def _ask_all(self, rows: Ints, chosen: Ints) -> None:
        for part in _pieces(rows, len(chosen)):
            for piece in _pieces(np.arange(len(chosen)), 1):
                self._ask(part, self._member(self.order[part][:, chosen[piece]]))

    def _ask_some(self, rows: Ints, size: int, count: Ints) -> None:
        """Sets of this size, drawn: as many as the budget has left."""
        rows, count = rows[count > 0], count[count > 0]
        for m, each in np.unique(np.column_stack([self.width[rows], count]), axis=0).tolist():
            for part in _pieces(rows[(self.width[rows] == m) & (count == each)], each):
                ranks = self.draw.random((len(part), each, m)).argsort(axis=2)[:, :, :size]
                self._ask(part, self._member(np.take_along_axis(self.order[part][:, None, :], ranks, axis=2)))

    def _attack(self, rows: Ints) -> None:
        """Features with the largest effects together, and the set shown without one of its own."""
        if len(rows) == 0:
            return
        units, count = self.units, self.units.movable.shape[1]
        one = np.broadcast_to(np.eye(count, dtype=bool), (len(rows), count, count))
        effect = np.vstack([self._ask(part, one[: len(part)]) for part in _pieces(rows, count)])
        best = np.argsort(np.where(units.movable[rows], effect, np.inf), axis=1, kind="stable")
        for size in range(2, int(self.depth[rows].max()) + 1):
            deep = np.flatnonzero(self.depth[rows] >= size)
            for part in _pieces(deep, 1):
                self._ask(rows[part], self._member(best[part, None, :size]))
        shown = (self.cubes.shown[rows] & units.differs[rows]).astype(int) @ units.members.T.astype(int) > 0
        for part in _pieces(np.arange(len(rows)), count):
            self._ask(
                rows[part], shown[part][:, None, :] & ~one[: len(part)]
            )  # without another one it is the set itself

    def _member(self, chosen: Ints) -> Bools:
        """Sets of units (r, c, k) by number, as masks (r, c, u)."""
        out = np.zeros((*chosen.shape[:2], self.units.movable.shape[1]), dtype=bool)
        np.put_along_axis(out, chosen, True, axis=2)
        return out

    def _ask(self, rows: Ints, member: Bools) -> Floats:
        """Ask the model about sets of units (rows, sets, u); the lower a score the better, infinite if not asked."""
        cubes, units = self.cubes, self.units
        r, c, u = member.shape
        case = np.repeat(rows, c)
        flat = member.reshape(r * c, u)
        moved = (flat.astype(int) @ units.members.astype(int) > 0) & units.differs[case]
        cost = moved @ cubes.rules.weights
        fits = (cost <= cubes.limits.asked_up_to[case]) & moved.any(axis=1)
        fits &= cubes.rules.allowed(moved, units.differs[case], units.permitted[case])
        out = np.full(r * c, np.inf)
        at = np.flatnonzero(fits)
        if len(at):
            start, goal = cubes.case.iloc[case[at]], cubes.reference.iloc[case[at]]
            rows_after = changed(cubes.rules.schema, start, goal, moved[at], cubes.plus)
            scores = self.scorer.score(rows_after)
            turns = np.flatnonzero(self.scorer.turned(scores, cubes.plus))
            hit = at[turns]
            if len(hit):
                dense = is_credible(cubes.density, rows_after.iloc[turns])
                self.refuted.note(cubes.limits, case[hit], moved[hit], cost[hit], dense)
            out[at] = -scores if cubes.plus else scores
        return out.reshape(r, c)


def is_credible(density: KnownDensity | None, frame: pd.DataFrame) -> Bools:
    """Which rows are as dense as the floor; all where there is none."""
    if density is None:
        return np.ones(len(frame), dtype=bool)
    return np.asarray(density.log_density(frame) >= density.floor)


@lru_cache(maxsize=64)
def _choices(m: int, size: int) -> Ints:
    """All sets of ``size`` out of m, one per row."""
    return np.array(list(combinations(range(m), size)), dtype=np.int64).reshape(-1, size)


def _pieces(rows: Ints, each: int) -> Iterator[Ints]:
    """Rows in pieces that make at most this many vertices."""
    step = max(1, VERTICES // max(1, each))
    for first in range(0, len(rows), step):
        yield rows[first : first + step]
