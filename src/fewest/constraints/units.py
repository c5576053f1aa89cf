"""From features to units: linked features move as one, and the set rules are said in units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fewest.constraints.base import Constraints, Forbidden, Implies, Linked
from fewest.schema import Schema
from fewest.search.problem import Rules

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Units:
    """Which unit each feature belongs to, and the rules in units.

    Attributes
    ----------
    unit_of : (p,) int32
        Unit of each feature. Without links it is 0..p-1.
    count : int
        Number of units.
    rules : Rules
    """

    unit_of: npt.NDArray[np.int32]
    count: int
    rules: Rules

    @classmethod
    def build(cls, schema: Schema, constraints: Constraints) -> Units:
        """Join linked features and restate the set rules."""
        joined = np.arange(len(schema))
        for link in constraints.of(Linked):
            members = [joined[schema.index(name)] for name in link.names]
            joined[np.isin(joined, members)] = min(members)
        _, unit_of = np.unique(joined, return_inverse=True)
        pairs = {
            (int(unit_of[schema.index(edge.cause)]), int(unit_of[schema.index(edge.effect)]))
            for edge in constraints.of(Implies)
        }
        implies = np.array(sorted(pair for pair in pairs if pair[0] != pair[1]), dtype=np.int32).reshape(-1, 2)
        forbidden = tuple(
            np.unique(np.array([unit_of[schema.index(name)] for name in item.names], dtype=np.int32))
            for item in constraints.of(Forbidden)
        )
        return cls(unit_of.astype(np.int32), int(unit_of.max()) + 1, Rules(implies, forbidden))

    @property
    def trivial(self) -> bool:
        """Whether every unit is one feature."""
        return self.count == len(self.unit_of)

    def features(self, moved: Bools, differs: Bools) -> Bools:
        """Features that a set of units changes: the members whose value differs (n, p)."""
        return np.asarray(moved[:, self.unit_of] & differs)

    def movable(self, differs: Bools, permitted: Bools) -> Bools:
        """Units with something to move and nothing that may not (n, u), after the implications."""
        present = self._any(differs)
        held = self._any(differs & ~permitted)
        for _ in range(len(self.rules.implies)):
            before = held.copy()
            for a, b in self.rules.implies:
                held[:, a] |= held[:, b] & present[:, a]
            if (before == held).all():
                break
        movable = present & ~held
        return np.asarray(movable)

    def total(self, values: Floats, differs: Bools) -> Floats:
        """Sum of feature values over the members of each unit that differ (n, u)."""
        out = np.zeros((len(differs), self.count))
        for j, unit in enumerate(self.unit_of):
            out[:, unit] += np.where(differs[:, j], values[..., j], 0.0)
        return out

    def _any(self, mask: Bools) -> Bools:
        if self.trivial:
            return mask
        out = np.zeros((len(mask), self.count), dtype=bool)
        for j, unit in enumerate(self.unit_of):
            out[:, unit] |= mask[:, j]
        return out
