"""Sets looked at where a torch module lies: rows are mixed on its device, and only the nearest turned sets come back.

The search is that of `levelwise`; only how all sets of one size are looked at is different. Sets are numbered, so a
slice of them is the same for all cubes that have equally many units to move.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import Any

import numpy as np
import torch

from fewest.engine.search._subsets import TurnedSubsets, as_rows, combinations, unit_lists
from fewest.engine.search.problem import Found, Outcome, Problem
from fewest.engine.structure.base import Module
from fewest.errors import ModelError
from fewest.tables.arrays import Ints
from fewest.tables.scores import chances_of, home_of

VERTICES = {"cpu": 2**13, "cuda": 2**20}  # rows of a call; halved where the device has no room for them
SLACK = 1.0 + 1e-9  # of distances: what is further than the nearest by more than this cannot rank first


class ModuleLevels:
    """The cubes of a problem on the device of a module."""

    def __init__(self, structure: Module, problem: Problem, tolerance: float) -> None:
        self._structure, self._problem, self._tolerance = structure, problem, tolerance
        self._device = home_of(structure.module)
        self._vertices = VERTICES[self._device.type]
        # Single precision, as the module is given tables; distances are compared in double.
        self._start, self._goal = (self._tensor(rows, torch.float32) for rows in (problem.start, problem.goal))
        self._goal_of = self._tensor(problem.goal_of, torch.int64)
        self._distance = self._tensor(problem.distance, torch.float64)
        unit_of = self._tensor(problem.unit_of, torch.int64)
        self._moves, self._unit_of = unit_of >= 0, unit_of.clamp(min=0)
        self._best = torch.full((problem.n_cubes,), torch.inf, dtype=torch.float64, device=self._device)

    def _tensor(self, values: Any, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor(np.ascontiguousarray(values), dtype=dtype, device=self._device)

    def look(self, found: Found, active: Ints, size: int) -> Ints:
        """Settle those of the cubes that sets of this size turn; the others, and all that the deadline left out."""
        problem, turned = self._problem, TurnedSubsets(self._problem)
        self._best.fill_(torch.inf)
        with torch.no_grad():
            for cubes, units, table in self._slices(active, size):
                if problem.budget.expired():
                    break
                self._look_where_room_is(turned, cubes, units, table)
                found.nodes[cubes] += len(table)
        turned.settle(found, None)
        return np.asarray(active[found.outcome[active] == Outcome.STOPPED])

    def _slices(self, active: Ints, size: int) -> Iterator[tuple[Ints, torch.Tensor, torch.Tensor]]:
        """Cubes, their units (c, m), and numbers of sets as positions among these (w, size): a call each."""
        widths = self._problem.movable[active].sum(axis=1)
        for m in np.unique(widths).tolist():
            cubes, ways = active[widths == m], comb(m, size)
            units = self._tensor(unit_lists(self._problem.movable, cubes), torch.int64)
            most = self._vertices
            for low in range(0, ways, most):
                table = self._tensor(combinations(m, size, low, min(low + most, ways)), torch.int64)
                step = max(1, most // len(table))
                for first in range(0, len(cubes), step):
                    yield cubes[first : first + step], units[first : first + step], table

    def _look_where_room_is(self, turned: TurnedSubsets, cubes: Ints, units: torch.Tensor, table: torch.Tensor) -> None:
        """The same in halves where the device runs out of memory."""
        try:
            self._look(turned, cubes, units, table)
            return
        except torch.OutOfMemoryError:
            if len(cubes) == len(table) == 1:
                raise
        self._vertices = max(1, min(self._vertices, len(cubes) * len(table) // 2))
        if len(cubes) > 1:
            half = len(cubes) // 2
            parts = (cubes[:half], units[:half], table), (cubes[half:], units[half:], table)
        else:
            half = len(table) // 2
            parts = (cubes, units, table[:half]), (cubes, units, table[half:])
        for part in parts:
            self._look_where_room_is(turned, *part)

    def _look(self, turned: TurnedSubsets, cubes: Ints, units: torch.Tensor, table: torch.Tensor) -> None:
        """Score all these sets of all these cubes, and keep the turned ones that are nearest so far."""
        here = self._tensor(cubes, torch.int64)
        lists = units[:, table]  # (c, w, size)
        scores = self._scores(here, lists)
        far = self._distance[here].gather(1, lists.flatten(1)).view(lists.shape).sum(dim=2)
        far = torch.where(scores < self._tolerance, far, torch.inf)
        self._best[here] = torch.minimum(self._best[here], far.amin(dim=1))
        kept = (far <= SLACK * self._best[here][:, None]) & (far < torch.inf)
        cube, place = kept.nonzero(as_tuple=True)
        sets = lists[cube, place].cpu().numpy()
        turned.add(cubes[cube.cpu().numpy()], as_rows(sets, self._problem.n_units), scores[kept].cpu().numpy())

    def _scores(self, cubes: torch.Tensor, lists: torch.Tensor) -> torch.Tensor:
        """Signed scores (c, w) of the vertices whose moved units are listed (c, w, size)."""
        moved = torch.zeros((*lists.shape[:2], self._problem.n_units), dtype=torch.bool, device=self._device)
        moved.scatter_(2, lists, torch.ones_like(lists, dtype=torch.bool))
        from_goal = moved[:, :, self._unit_of] & self._moves
        rows = torch.where(from_goal, self._goal[self._goal_of[cubes]][:, None], self._start[cubes][:, None])
        module, which = self._structure.module, self._structure.positive
        chance = chances_of(module, module(rows.flatten(0, 1)))[:, which].double().view(lists.shape[:2])
        if bool(chance.isnan().any()):
            raise ModelError("the module's score of a mixed row is NaN", do="look for values it cannot take")
        return self._problem.sign * (chance - self._structure.cut)
