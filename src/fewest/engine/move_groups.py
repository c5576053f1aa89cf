"""From features to units: linked features move as one, and the set rules are said in units."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fewest.constraints import Constraints, Forbidden, Implies, Linked
from fewest.engine.search.problem import Rules
from fewest.tables.arrays import Bools, Floats, Ints32
from fewest.tables.schema import Schema


@dataclass(frozen=True)
class MoveGroups:
    """Which unit each feature belongs to, and the rules in units."""

    unit_of: Ints32  # (p,) int32: Unit of each feature. Without links it is 0..p-1.
    count: int  # Number of units
    rules: Rules  # As they are where all features differ
    about: tuple[Ints32, ...]  # Features each of the rules is about

    @classmethod
    def build(cls, schema: Schema, constraints: Constraints) -> MoveGroups:
        """Join linked features and restate the set rules."""
        joined = np.arange(len(schema))
        for link in constraints.of(Linked):
            members = [joined[schema.index(name)] for name in link.names]
            joined[np.isin(joined, members)] = min(members)
        unit_of = np.unique(joined, return_inverse=True)[1].astype(np.int32)
        edges = np.array(
            [[schema.index(edge.cause), schema.index(edge.effect)] for edge in constraints.of(Implies)], dtype=np.int32
        ).reshape(-1, 2)
        edges = edges[unit_of[edges[:, 0]] != unit_of[edges[:, 1]]]  # linked features move together anyway
        together = tuple(
            np.array([schema.index(name) for name in item.names], dtype=np.int32) for item in constraints.of(Forbidden)
        )
        rules = Rules(unit_of[edges], tuple(np.unique(unit_of[names]) for names in together))
        return cls(unit_of, int(unit_of.max()) + 1, rules, (*edges, *together))

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
        binds = self._binds(differs)
        for _ in range(len(self.rules.implies)):
            before = held.copy()
            for k, (a, b) in enumerate(self.rules.implies):
                held[:, a] |= held[:, b] & binds[:, k]
            if (before == held).all():
                break
        movable = present & ~held
        return np.asarray(movable)

    def rules_for(self, differs: Bools) -> Rules:
        """The rules in each row: one about a feature that has the goal's value already says nothing."""
        if self.trivial:  # units that do not differ are not movable, which says the same
            return self.rules
        return replace(self.rules, binds=self._binds(differs))

    def _binds(self, differs: Bools) -> Bools:
        """Where all features that a rule is about differ (n, rules)."""
        none = np.empty((len(differs), 0), dtype=bool)
        return np.column_stack([none, *(differs[:, names].all(axis=1) for names in self.about)])

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
