"""The question every search answers and the answer it gives, in the same words for all strategies.

A *problem* holds n hypercubes. Cube i starts at ``start[i]`` (the query for SEV-) and flipping unit u replaces the
columns of u by those of ``goal[goal_of[i]]`` (the reference). A *unit* is what moves as one: an original feature, or
several linked ones. Wanted: the cheapest set of units whose vertex is turned, i.e. ``sign * (raw - cut) < tolerance``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fewest.tables.arrays import Bools, Floats, Ints, Ints32

Score = Callable[[Ints, Bools], Floats]  # cube numbers (v,) and sets (v, u) -> a number for each vertex, by itself


class Outcome(IntEnum):
    """How the search of one cube ended."""

    FOUND = 0  # the cheapest set, proved
    NONE = 1  # proved: no acceptable set costs at most the limit
    STOPPED = 2  # the budget ran out; the best set so far (if any) and a proved lower bound


@dataclass(frozen=True)
class Budget:
    """How much work a search may do."""

    nodes: int = 1_000_000  # Search nodes (or vertices, where vertices are scored) per query
    deadline: float = math.inf  # `time.monotonic` moment after which no new query is begun

    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.deadline


@dataclass(frozen=True)
class Rules:
    """Which sets of units are allowed, beyond single units being movable."""

    # (k, 2): Pairs (a, b): a set that holds a must hold b, for the queries in which b is movable. (Where b is not
    # movable because it already equals the goal there is nothing to do; where b may not move, a was made immovable.)
    implies: Ints32 = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    forbidden: tuple[Ints32, ...] = ()  # A set may not hold all units of any of these
    # (n, k + len(forbidden)): In which cubes each rule, implications first, says anything; None: each in all of them.
    # A unit of several features may move without the one that a rule is about.
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


class Mixture(NamedTuple):
    """A Gaussian mixture as arrays."""

    constant: Floats  # (c,) float64: Log-density of each component at its mean, its weight included
    mean: Floats  # (c, e) float64
    root: Floats  # (c, e, e) float64: Upper triangular; the inverse covariance is ``root @ root.T``


@dataclass(frozen=True)
class MixtureCubes:
    """The cubes as a mixture sees them, for densities that can be bounded."""

    mixture: Mixture
    start: Floats  # (n, e) float64: Points the cubes start from
    goal: Floats  # (g, e) float64
    unit_of: Ints32  # (e,) int32: Unit that moves each coordinate; -1 where none does


@dataclass(frozen=True)
class Floor:
    """A second condition on vertices: a log-density that must not fall below a level (credible SEV, rule 9)."""

    level: float  # Least log-density that counts
    # Cube numbers (v,), in the numbering of ``cubes``, and sets (v, u) -> log-density of the vertices (v,), each by
    # itself
    log_density: Score
    cubes: Ints  # (n,) int64: What ``log_density`` calls the cubes of the problem
    bodies: MixtureCubes | None = None  # What bounds are made from, where the density is a mixture

    def take(self, cubes: Ints) -> Floor:
        """The condition for some of the cubes, renumbered."""
        bodies = None if self.bodies is None else replace(self.bodies, start=self.bodies.start[cubes])
        return replace(self, cubes=self.cubes[cubes], bodies=bodies)

    def missing(self, cubes: Ints, moved: Bools) -> Floats:
        """How much log-density the vertices lack; zero or less where they are credible."""
        return np.asarray(self.level - self.log_density(self.cubes[cubes], moved))


@dataclass(frozen=True)
class Problem:
    """n hypercubes and what is wanted of them.

    Sets of equal cost are ranked by their summed distance (least first), then by the signed score
    ``sign * (raw - cut)`` (least, i.e. largest margin, first), then by unit order (the set whose sorted unit list is
    lexicographically first). Distances and scores are compared after rounding to 12 significant decimals, so that the
    ranking does not depend on the order of a sum.
    """

    start: Floats  # (n, d): Prepared rows the cubes start from
    goal: Floats  # (g, d): Prepared rows that moved units take their columns from
    goal_of: Ints32  # (n,): Row of ``goal`` for each cube
    unit_of: Ints32  # (d,): Unit of each prepared column; -1 where the column is the same in all rows
    movable: Bools  # (n, u): Units that may move and whose values differ. All others keep the start's columns.
    distance: Floats  # (n, u): How far moving the unit takes the case
    limit: Floats  # (n,): Only sets that cost at most this are wanted. May be inf.
    cost: Floats | None = None  # (n, u): Cost of moving each unit, > 0; None counts units
    sign: int = 1  # +1 looks for raw < cut (SEV-), -1 for raw >= cut (SEV+)
    rules: Rules = field(default_factory=Rules)
    # Cube -> (s, u) sets that must not be returned again (they failed on the user's model)
    rejected: Mapping[int, Bools] = field(default_factory=dict)
    all_sets: int = 0  # How many of the cheapest sets to list per cube; 0 returns only the best-ranked one
    budget: Budget = field(default_factory=Budget)
    floor: Floor | None = None  # A least log-density that vertices must have to count

    @property
    def n_cubes(self) -> int:
        """Number of hypercubes."""
        return len(self.start)

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.movable.shape[1])

    @property
    def is_plain(self) -> bool:
        """Whether the one best set of each cube is asked for, by its size alone."""
        bound = self.cost is not None or self.rules or self.rejected or self.all_sets
        return not bound and self.floor is None

    def vertex_rows(self, cubes: Ints, moved: Bools) -> Floats:
        """Prepared rows of vertices: the columns of moved units come from the goal."""
        from_goal = np.where(self.unit_of >= 0, moved[:, self.unit_of], False)
        return np.where(from_goal, self.goal[self.goal_of[cubes]], self.start[cubes])

    def take(self, cubes: Ints) -> Problem:
        """The problem of some of the cubes, renumbered."""
        return replace(
            self,
            start=self.start[cubes],
            goal_of=self.goal_of[cubes],
            movable=self.movable[cubes],
            distance=self.distance[cubes],
            limit=self.limit[cubes],
            cost=None if self.cost is None else self.cost[cubes],
            rules=self.rules.take(cubes),
            rejected={k: self.rejected[cube] for k, cube in enumerate(cubes.tolist()) if cube in self.rejected},
            floor=None if self.floor is None else self.floor.take(cubes),
        )


@dataclass
class Found:
    """What a search found, one entry per cube."""

    outcome: npt.NDArray[np.int8]  # An `Outcome`
    moved: Bools  # (n, u): The best set; all False where none is known
    known: Bools  # Whether ``moved`` holds an acceptable set
    cost: Floats  # Cost of ``moved``; NaN where none is known
    lower: Floats  # Proved: no acceptable set costs less. inf where NONE is proved and the limit was inf.
    nodes: Ints  # Search nodes or vertices spent
    sets: list[Bools] | None  # With ``all_sets``: for each cube the (s, u) cheapest sets, best-ranked first
    complete: Bools  # Whether ``sets`` holds all of them

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


def combined(score: Score, problem: Problem, tolerance: float) -> Score:
    """The score for vertices that are credible; for turned ones that are not, one that does not count as turned.

    Where there is no floor this is ``score`` itself. Sets are still ranked by the model's own margin.
    """
    floor = problem.floor
    if floor is None:
        return score

    def both(cubes: Ints, moved: Bools) -> Floats:
        values = np.array(score(cubes, moved), dtype=np.float64)
        turned = np.flatnonzero(values < tolerance)
        if len(turned):
            lacking = floor.missing(cubes[turned], moved[turned])
            values[turned] = np.where(lacking > 0, tolerance + lacking, values[turned])
        return values

    return both
