"""Nothing smaller turns the decision: proved again by asking the model about every smaller set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.runs.verification.model_scores import Scorer, replaced
from fewest.runs.verification.rules import StatedRules, differing
from fewest.tables.arrays import Bools, Floats

VERTICES = 20_000
LEAST = 1e-9
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ClaimCubes:
    """Cases, each with the reference beside it, and the claim that no set cheaper than ``below`` turns it."""

    rules: StatedRules
    # case, reference: (n, columns)
    case: pd.DataFrame
    reference: pd.DataFrame
    below: Floats  # (n,) float: Infinite where no set at all is said to turn the case
    plus: bool  # Whether the case's values are put onto the reference, instead of the other way round

    def take(self, rows: Rows) -> ClaimCubes:
        """Some of them."""
        return ClaimCubes(self.rules, self.case.iloc[rows], self.reference.iloc[rows], self.below[rows], self.plus)

    def turned(self, scorer: Scorer, rows: Rows, moved: Bools) -> Bools:
        """Whether the model turns when the sets (s, p) are moved in these rows (s,)."""
        start, goal = self.case.iloc[rows], self.reference.iloc[rows]
        if self.plus:
            start, goal = goal, start
        scores = scorer.score(replaced(self.rules.schema, start, goal, moved))
        return np.asarray(scores >= scorer.decision.cut if self.plus else scores < scorer.decision.cut)


@dataclass(frozen=True)
class ClaimUnits:
    """What can move in each case, as units."""

    members: Bools  # (u, p) bool
    # differs, permitted: (n, p) bool
    differs: Bools
    permitted: Bools
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

    def levels(self, below: Floats, most: float) -> tuple[Rows, Floats]:
        """For each case the largest number of units that can cost less than ``below``, and how many sets that makes."""
        limit = np.minimum(below * (1 - LEAST), most)
        cheapest = np.cumsum(np.sort(np.where(self.movable, self.cost, np.inf), axis=1), axis=1)
        deepest = (cheapest <= limit[:, None]).sum(axis=1)
        width = self.movable.sum(axis=1)
        pairs, which = np.unique(np.column_stack([width, deepest]), axis=0, return_inverse=True)
        sets = [float(sum(comb(m, k) for k in range(1, depth + 1))) for m, depth in pairs.tolist()]
        return deepest, np.array(sets)[which]


def refute(cubes: ClaimCubes, scorer: Scorer, budget: float) -> tuple[Bools, dict[int, Bools]]:
    """Which claims were proved again within the budget (n,), and the cheaper set where one is false.

    Parameters
    ----------
    budget : float
        Most sets to ask about, per case.
    """
    units = ClaimUnits.of(cubes)
    deepest, sets = units.levels(cubes.below, cubes.rules.most)
    cheap = sets <= budget
    found: dict[int, Bools] = {}
    width = units.movable.sum(axis=1)
    order = np.argsort(~units.movable, axis=1, kind="stable")
    for m, depth in sorted({(int(m), int(d)) for m, d in zip(width[cheap], deepest[cheap], strict=True) if d}):
        rows = np.flatnonzero(cheap & (width == m) & (deepest == depth))
        for size in range(1, depth + 1):
            chosen = _choices(m, size)
            for part in _pieces(rows, len(chosen)):
                for piece in _pieces(np.arange(len(chosen)), 1):
                    _ask(cubes, units, scorer, part, order[part][:, chosen[piece]], found)
    return cheap, found


def _ask(
    cubes: ClaimCubes, units: ClaimUnits, scorer: Scorer, rows: Rows, chosen: Rows, found: dict[int, Bools]
) -> None:
    """Ask the model about sets of units (rows, sets, size); note those that turn it and should not."""
    r, c, _ = chosen.shape
    case = np.repeat(rows, c)
    member = np.zeros((r * c, units.movable.shape[1]), dtype=bool)
    np.put_along_axis(member, chosen.reshape(r * c, -1), True, axis=1)
    moved = (member.astype(int) @ units.members.astype(int) > 0) & units.differs[case]
    cost = moved @ cubes.rules.weights
    below = cubes.below[case]
    fits = cost < below * (1 - LEAST)
    fits &= cubes.rules.allowed(moved, units.differs[case], units.permitted[case])
    case, moved = case[fits], moved[fits]
    if len(case) == 0:
        return
    for k in np.flatnonzero(cubes.turned(scorer, case, moved)):
        found.setdefault(int(case[k]), moved[k])


@lru_cache(maxsize=64)
def _choices(m: int, size: int) -> Rows:
    """All sets of ``size`` out of m, one per row."""
    return np.array(list(combinations(range(m), size)), dtype=np.int64).reshape(-1, size)


def _pieces(rows: Rows, each: int) -> Iterator[Rows]:
    """Rows in pieces that make at most this many vertices."""
    step = max(1, VERTICES // max(1, each))
    for first in range(0, len(rows), step):
        yield rows[first : first + step]
