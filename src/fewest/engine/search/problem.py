"""The question every search answers and the answer it gives, in the same words for all strategies.

A *problem* holds n hypercubes. Cube i starts at ``start[i]`` (the query for SEV-) and flipping unit u replaces the
columns of u by those of ``goal[goal_of[i]]`` (the reference). A *unit* is what moves as one: an original feature, or
several linked ones. Wanted: the cheapest set of units whose vertex is turned, i.e. ``sign * (raw - cut) < tolerance``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from fewest.engine.search.floor import Floor
from fewest.tables.arrays import Bools, Floats, Ints, Ints32


class Outcome(IntEnum):
    """How the search of one cube ended."""

    FOUND = 0  # the cheapest set, proved
    NONE = 1  # proved: no acceptable set costs at most the limit
    STOPPED = 2  # the budget ran out; the best set so far (if any) and a proved lower bound


@dataclass(frozen=True)
class Budget:
    """How much work a search may do.

    Parameters
    ----------
    nodes : int
        Search nodes (or vertices, where vertices are scored) per query.
    deadline : float
        `time.monotonic` moment after which no new query is begun.
    """

    nodes: int = 1_000_000
    deadline: float = math.inf

    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.deadline


@dataclass(frozen=True)
class Rules:
    """Which sets of units are allowed, beyond single units being movable.

    Parameters
    ----------
    implies : (k, 2) int32
        Pairs (a, b): a set that holds a must hold b, for the queries in which b is movable. (Where b is not movable
        because it already equals the goal there is nothing to do; where b may not move, a was made immovable.)
    forbidden : tuple of int32 arrays
        A set may not hold all units of any of these.
    binds : (n, k + len(forbidden)) bool or None
        In which cubes each rule, implications first, says anything; None: each in all of them. A unit of several
        features may move without the one that a rule is about.
    """

    implies: Ints32 = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    forbidden: tuple[Ints32, ...] = ()
    binds: Bools | None = None

    def __bool__(self) -> bool:
        return len(self.implies) > 0 or len(self.forbidden) > 0

    def take(self, cubes: Ints | list[int]) -> Rules:
        """The rules of some of the cubes."""
        return self if self.binds is None else replace(self, binds=self.binds[cubes])

    def each(self, n: int) -> tuple[list[tuple[int, int, Bools]], list[tuple[Ints32, Bools]]]:
        """Implications and forbidden sets, each with the n cubes it binds in (n,)."""
        count = len(self.implies) + len(self.forbidden)
        binds = np.broadcast_to(True, (n, count)) if self.binds is None else np.broadcast_to(self.binds, (n, count))
        implies = [(int(a), int(b), binds[:, k]) for k, (a, b) in enumerate(self.implies)]
        return implies, [(units, binds[:, k]) for k, units in enumerate(self.forbidden, len(implies))]

    def allow(self, sets: Bools, movable: Bools) -> Bools:
        """Which of ``sets`` (s, u), one of each cube or all of one, satisfy the rules, given the movable units."""
        movable = np.broadcast_to(movable, sets.shape)
        allowed = np.ones(len(sets), dtype=bool)
        implies, forbidden = self.each(len(sets))
        for a, b, here in implies:
            allowed &= ~here | ~sets[:, a] | sets[:, b] | ~movable[:, b]
        for units, here in forbidden:
            allowed &= ~here | ~sets[:, units].all(axis=1)
        return allowed


@dataclass(frozen=True)
class Problem:
    """n hypercubes and what is wanted of them.

    Attributes
    ----------
    start : (n, d) float64
        Prepared rows the cubes start from.
    goal : (g, d) float64
        Prepared rows that moved units take their columns from.
    goal_of : (n,) int32
        Row of ``goal`` for each cube.
    unit_of : (d,) int32
        Unit of each prepared column; -1 where the column is the same in all rows.
    movable : (n, u) bool
        Units that may move and whose values differ. All others keep the start's columns.
    distance : (n, u) float64
        How far moving the unit takes the case; sets of equal cost are ranked by their summed distance (least first),
        then by the signed score ``sign * (raw - cut)`` (least, i.e. largest margin, first), then by unit order
        (the set whose sorted unit list is lexicographically first). Distances and scores are compared after rounding
        to 12 significant decimals, so that the ranking does not depend on the order of a sum.
    cost : (n, u) float64 or None
        Cost of moving each unit, > 0; None counts units.
    limit : (n,) float64
        Only sets that cost at most this are wanted. May be inf.
    sign : int
        +1 looks for raw < cut (SEV-), -1 for raw >= cut (SEV+).
    rules : Rules
        Set rules.
    rejected : mapping
        Cube -> (s, u) bool sets that must not be returned again (they failed on the user's model).
    all_sets : int
        How many of the cheapest sets to list per cube; 0 returns only the best-ranked one.
    budget : Budget
    floor : Floor or None
        A least log-density that vertices must have to count.
    """

    start: Floats
    goal: Floats
    goal_of: Ints32
    unit_of: Ints32
    movable: Bools
    distance: Floats
    limit: Floats
    cost: Floats | None = None
    sign: int = 1
    rules: Rules = field(default_factory=Rules)
    rejected: Mapping[int, Bools] = field(default_factory=dict)
    all_sets: int = 0
    budget: Budget = field(default_factory=Budget)
    floor: Floor | None = None

    @property
    def n_cubes(self) -> int:
        """Number of hypercubes."""
        return len(self.start)

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.movable.shape[1])

    def take(self, cubes: Ints, rejected: Mapping[int, Bools] | None = None) -> Problem:
        """The problem of some of the cubes; ``rejected`` is keyed by their new numbers."""
        return replace(
            self,
            start=self.start[cubes],
            goal_of=self.goal_of[cubes],
            movable=self.movable[cubes],
            distance=self.distance[cubes],
            limit=self.limit[cubes],
            cost=None if self.cost is None else self.cost[cubes],
            rules=self.rules.take(cubes),
            rejected=rejected or {},
            floor=None if self.floor is None else self.floor.take(cubes),
        )


@dataclass
class Found:
    """What a search found, one entry per cube.

    Attributes
    ----------
    outcome : (n,) int8
        An `Outcome`.
    moved : (n, u) bool
        The best set; all False where none is known.
    known : (n,) bool
        Whether ``moved`` holds an acceptable set.
    cost : (n,) float64
        Cost of ``moved``; NaN where none is known.
    lower : (n,) float64
        Proved: no acceptable set costs less. inf where NONE is proved and the limit was inf.
    nodes : (n,) int64
        Search nodes or vertices spent.
    sets : list or None
        With ``all_sets``: for each cube the (s, u) cheapest sets, best-ranked first.
    complete : (n,) bool
        Whether ``sets`` holds all of them.
    """

    outcome: npt.NDArray[np.int8]
    moved: Bools
    known: Bools
    cost: Floats
    lower: Floats
    nodes: Ints
    sets: list[Bools] | None
    complete: Bools

    @classmethod
    def blank(cls, problem: Problem) -> Found:
        """Nothing searched yet: every cube STOPPED with lower bound 0."""
        n, u = problem.n_cubes, problem.n_units
        return cls(
            outcome=np.full(n, Outcome.STOPPED, dtype=np.int8),
            moved=np.zeros((n, u), dtype=bool),
            known=np.zeros(n, dtype=bool),
            cost=np.full(n, np.nan),
            lower=np.zeros(n),
            nodes=np.zeros(n, dtype=np.int64),
            sets=[np.zeros((0, u), dtype=bool) for _ in range(n)] if problem.all_sets else None,
            complete=np.zeros(n, dtype=bool),
        )

    def put(self, cubes: Ints, other: Found) -> None:
        """Overwrite the entries of some cubes."""
        for name in ("outcome", "moved", "known", "cost", "lower", "complete"):
            getattr(self, name)[cubes] = getattr(other, name)
        self.nodes[cubes] += other.nodes
        if self.sets is not None and other.sets is not None:
            for cube, sets in zip(cubes, other.sets, strict=True):
                self.sets[cube] = sets
