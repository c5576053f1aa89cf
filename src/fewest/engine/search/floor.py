"""The floor: a second condition on vertices, a log-density that must not fall below a level (credible SEV, rule 9).

A vertex counts only if it is turned AND at or above the floor. Nothing else changes for the searches that look at
vertices: they are handed a score that stays above the tolerance where the density is too low.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fewest.tables.arrays import Bools, Floats, Ints, Ints32

if TYPE_CHECKING:
    from fewest.engine.search.problem import Problem

Score = Callable[[Ints, Bools], Floats]


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
    """The condition for all cubes of a problem."""

    level: float  # Least log-density that counts
    # Cube numbers (v,), in the numbering of ``cubes``, and sets (v, u) -> log-density of the vertices (v,), each by
    # itself
    log_density: Score
    cubes: Ints  # (n,) int64: What ``log_density`` calls the cubes of the problem
    bodies: MixtureCubes | None = None  # What bounds are made from, where the density is a mixture

    def take(self, cubes: Ints) -> Floor:
        """The condition for some of the cubes, renumbered."""
        bodies = self.bodies
        return replace(
            self,
            cubes=self.cubes[cubes],
            bodies=None if bodies is None else replace(bodies, start=bodies.start[cubes]),
        )

    def missing(self, cubes: Ints, moved: Bools) -> Floats:
        """How much log-density the vertices lack; zero or less where they are credible."""
        return np.asarray(self.level - self.log_density(self.cubes[cubes], moved))


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
