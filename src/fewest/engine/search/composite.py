"""Exact search for sums of non-decreasing functions of ensembles and additive models: votes, calibrated folds, stacks.

Each member is a polynomial on the cube; a node bounds every one of them and sums the functions at these bounds. What
the tables of the functions let pass is scored exactly. Costs, floors, nets among the members and what is too large are
searched level by level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fewest.engine.search import levelwise
from fewest.engine.search._blocks import tree_changes
from fewest.engine.search._cube import ALL
from fewest.engine.search._greedy import give_up
from fewest.engine.search._members import (
    CAPPED,
    DONE,
    MOST_UNITS,
    SLOTS,
    TOO_MANY,
    Curves,
    make_room,
    sets_of_size,
    terms_of,
)
from fewest.engine.search._run import pack, share_out, time_for
from fewest.engine.search._subsets import TurnedSubsets, acceptable
from fewest.engine.search._ties import as_cheap
from fewest.engine.search._work import Trees, Work, WorkCubes, WorkLeaves, leaf_lists, works
from fewest.engine.search.ensemble import depth, pack_trees
from fewest.engine.search.problem import Found, Outcome, Problem, Rules, Score
from fewest.engine.structure.base import Additive, Composite, Ensemble
from fewest.tables.arrays import Bools, Floats, Ints

CELLS = 1 << 13
MOST_TERMS = SLOTS // 2
LISTED = 1 << 14
DEGREES = (3, 6, ALL)  # of the polynomials, in turn: one cut off at a degree is exact for sets up to that size
EXPANDED = 1 << 20  # monomials before merging, beyond which a polynomial is not expanded
PATIENCE = 100_000  # nodes that are spent on a size
SURE = 1e-9  # of scores and sums: what rounding may add to them
_LATE = -1
_HOPELESS = 3  # size at which it is asked whether any set would do


def is_searched(structure: Composite, problem: Problem) -> bool:
    """Whether this search takes the problem; else it is looked at level by level."""
    few = bool((np.count_nonzero(problem.movable, axis=1) <= MOST_UNITS).all())
    fits = all(isinstance(member, Ensemble | Additive) for member in structure.members)
    counted = problem.cost is None and problem.floor is None and not problem.joint and problem.summed is None
    return fits and few and counted and bool(np.isfinite(structure.reading.cut))


def solve(structure: Composite, problem: Problem, score: Score, n_jobs: int = 1) -> Found:
    """Fewest units that turn each cube; ``score`` gives exact signed scores of vertices."""
    found, tolerance = Found.blank(problem), structure.reading.tolerance
    members = _members(structure, problem)
    curves, bound = _curves(structure, members, problem)
    hits: list[tuple[Ints, Bools]] = []
    state = np.zeros(problem.n_cubes, dtype=np.int64)

    def work_on(first: int, last: int) -> None:
        deepest = max((depth(member.trees) for member in members if member.trees is not None), default=1)
        with (
            leaf_lists.borrow(deepest) as leaves,
            works.borrow(problem.n_units, 0, 0, 1) as work,
            time_for(work.tally, problem.budget.nodes, problem.budget.deadline),
        ):
            for member in members:
                member.look(first, last, work)
            if problem.budget.expired():
                state[first:last] = _LATE
                return
            alone = _single_flips(members, curves, bound, problem, first, last)
            one = _CubeSearch(problem, score, tolerance, members, curves, bound, leaves, work)
            for cube in range(first, last):
                state[cube] = _LATE if problem.budget.expired() else one.answer(cube, alone, found)
            hits.extend(one.hits)

    share_out(work_on, problem.n_cubes, min(n_jobs, problem.n_cubes // 16))
    turned = TurnedSubsets(problem)
    if hits:
        cubes, rows = (np.concatenate(parts) for parts in zip(*hits, strict=True))
        scores = np.asarray(score(cubes, rows), dtype=np.float64)
        hit = scores < tolerance
        turned.add(cubes[hit], rows[hit], scores[hit])
    turned.settle(found, None)
    give_up(score, problem, tolerance, LISTED, found, np.flatnonzero(state == CAPPED))
    rest = np.flatnonzero(state == TOO_MANY)
    if len(rest):
        found.put(rest, levelwise.solve(lambda local, moved: score(rest[local], moved), problem.take(rest), tolerance))
    return found


@dataclass(frozen=True)
class _Member:
    """A member of the sum on its cubes; ``factor`` turns it round where its function falls."""

    factor: float
    trees: Trees | None  # None: an additive model
    cubes: WorkCubes | None
    constant: Floats  # (n,): Score of each start
    steps: Floats  # (n, u): What each flip alone adds
    bends: Bools  # (n, trees): Trees that are not the same on the whole cube
    low: float
    high: float

    def look(self, first: int, last: int, work: Work) -> None:
        """Walk the starts and single flips of some cubes through the trees."""
        if self.trees is not None:
            tree_changes(first, last, self.trees, self.cubes, work, self.steps, self.constant, self.bends)


def _members(structure: Composite, problem: Problem) -> list[_Member]:
    made, n = [], problem.n_cubes
    free = replace(problem, rules=Rules(), rejected={})  # the kernels here know neither, and have no room for them
    for member, span, weight in zip(structure.members, structure.spans, structure.weights, strict=True):
        own = replace(free, start=problem.start[:, span], goal=problem.goal[:, span], unit_of=problem.unit_of[span])
        factor = problem.sign * (1.0 if weight >= 0 else -1.0)
        if isinstance(member, Ensemble):
            trees = pack_trees(member, own)
            cubes = pack(own, 0.0, 0.0, True)._replace(sign=factor)
            leaves = np.split(np.where(member.column < 0, member.value, np.nan), member.root[1:])
            ends = [member.base + sum(float(end(part)) for part in leaves) for end in (np.nanmin, np.nanmax)]
            low, high = sorted(factor * end for end in ends)
            steps, bends = np.zeros((n, problem.n_units)), np.zeros((n, len(trees.root)), dtype=bool)
            made.append(_Member(factor, trees, cubes, np.zeros(n), steps, bends, low, high))
        else:
            assert isinstance(member, Additive)
            constant = factor * member.raw(own.start)
            change = factor * member.coef * (own.goal[own.goal_of] - own.start)
            steps = change @ (own.unit_of[:, None] == np.arange(problem.n_units)).astype(np.float64)
            low = float((constant + np.minimum(steps, 0.0).sum(axis=1)).min(initial=0.0))
            high = float((constant + np.maximum(steps, 0.0).sum(axis=1)).max(initial=0.0))
            made.append(_Member(factor, None, None, constant, steps, np.zeros((n, 0), dtype=bool), low, high))
    return made


@dataclass(frozen=True)
class _SingleFlips:
    """Of each cube from ``first`` on: units that may turn it alone, and those that do whatever the tables round off."""

    first: int
    may: Bools  # (cubes, units)
    sure: Bools  # (cubes, units)


def _single_flips(
    members: list[_Member], curves: Curves, bound: float, problem: Problem, first: int, last: int
) -> _SingleFlips:
    movable = problem.movable[first:last]
    sums = np.zeros((2, *movable.shape))
    for i, member in enumerate(members):
        y = member.constant[first:last, None] + member.steps[first:last]
        cell = (y - curves.low[i]) * curves.per[i]
        for side, at in enumerate((np.floor(cell - curves.slack), np.ceil(cell + curves.slack))):
            sums[side] += curves.value[i][np.clip(at, 0, CELLS).astype(np.int64)]
    return _SingleFlips(first, movable & (sums[0] < bound), movable & (sums[1] < bound - 2 * _margin(curves, bound)))


def _margin(curves: Curves, bound: float) -> float:
    """What rounding may add to a sum of the functions."""
    return SURE * (1.0 + abs(bound) + float(np.abs(curves.value[:, [0, -1]]).max(axis=1).sum()))


def _curves(structure: Composite, members: list[_Member], problem: Problem) -> tuple[Curves, float]:
    """The functions of the members as tables, non-decreasing, and the bound below which a sum of them may be turned."""
    low, per, value = [], [], []
    for member, link, weight in zip(members, structure.links, structure.weights, strict=True):
        pad = 1e-6 * (1.0 + abs(member.low) + abs(member.high))
        ends = np.linspace(member.low - pad, member.high + pad, CELLS + 1)
        low.append(ends[0])
        per.append(CELLS / (ends[-1] - ends[0]))
        value.append(np.maximum.accumulate(problem.sign * weight * link(member.factor * ends)))
    table = np.ascontiguousarray(value)
    bound = problem.sign * structure.reading.cut + structure.reading.tolerance
    curves = Curves(np.array(low), np.array(per), table, SURE * CELLS)
    return curves, bound + _margin(curves, bound)


class _CubeSearch:
    """The search of one thread, cube after cube; what may be turned goes to ``hits``."""

    def __init__(
        self, problem: Problem, score: Score, tolerance: float, members: list[_Member], curves: Curves, bound: float,
        leaves: WorkLeaves, work: Work,
    ) -> None:  # fmt: skip
        self._problem, self._score, self._tolerance = problem, score, tolerance
        self._members, self._curves, self._bound, self._leaves, self._work = members, curves, bound, leaves, work
        most = int(np.count_nonzero(problem.movable, axis=1).max(initial=1))
        self._stack, self._room = make_room(len(members), most, MOST_TERMS)
        self._listed = np.zeros(LISTED, dtype=np.int64)
        self._margin = 2 * _margin(curves, bound)
        self.hits: list[tuple[Ints, Bools]] = []

    def answer(self, cube: int, alone: _SingleFlips, found: Found) -> int:
        """Search one cube, size after size; sets of the first size that turn it, or may, are kept."""
        problem = self._problem
        m, whole = int(problem.movable[cube].sum()), float(np.floor(as_cheap(float(problem.limit[cube]))))
        most, k = int(min(m, max(whole, 0.0))), 1
        strict = bool(problem.rules) or cube in problem.rejected
        if most >= 1 and not strict:
            found.nodes[cube] += 1
            if self._single(cube, alone):
                return DONE
            k = 1 if alone.may[cube - alone.first].any() else 2
        units = np.flatnonzero(problem.movable[cube])
        self._room.distance[:m] = problem.distance[cube, units]
        for degree in DEGREES:
            if degree < k or k > most:
                continue
            complete = self._load(cube, m, units, degree)
            if complete is None:
                return TOO_MANY
            while k <= (most if complete else min(most, degree)):
                if complete and k == _HOPELESS and self._least(m) >= self._bound:
                    most, whole = 0, max(whole, m)
                    break
                found.lower[cube] = k
                state = self._size(cube, k, m, units, strict, found)
                if state is not None:
                    return state
                k += 1
        found.outcome[cube] = Outcome.NONE
        found.lower[cube] = np.inf if m <= whole else max(whole, 0.0) + 1.0
        found.complete[cube] = problem.all_sets > 0
        return DONE

    def _single(self, cube: int, alone: _SingleFlips) -> bool:
        """Keep single flips, where one of them turns the cube for sure."""
        here = cube - alone.first
        if not alone.sure[here].any():
            return False
        may = alone.may[here]
        if not self._problem.all_sets:
            far = self._problem.distance[cube]
            may = may & (far <= far[alone.sure[here]].min() * (1.0 + 1e-9) + 1e-12)
        units = np.flatnonzero(may)
        self.hits.append((np.full(len(units), cube), units[:, None] == np.arange(self._problem.n_units)))
        return True

    def _load(self, cube: int, m: int, units: Ints, degree: int) -> bool | None:
        """Put the members' polynomials at depth 0; whether they are complete, None where one is too large."""
        stack, room, whole = self._stack, self._room, True
        for i, member in enumerate(self._members):
            stack.begin[i, :2] = 0
            room.constant[0, i] = member.constant[cube]
            if member.trees is None:
                room.lin[0, i, :m] = member.steps[cube, units]
                continue
            count, complete = terms_of(
                cube, member.trees, member.cubes, degree, EXPANDED, self._leaves, self._work, member.steps,
                member.bends, stack.mask[i, :MOST_TERMS], stack.weight[i], room.lin[0, i],
            )  # fmt: skip
            if count < 0:
                return None
            stack.begin[i, 1] = count
            whole = whole and bool(complete)
        return whole

    def _least(self, m: int) -> float:
        """What the sum of the functions is at least, whatever is flipped."""
        total, curves = 0.0, self._curves
        for i in range(len(self._members)):
            falls = np.minimum(self._room.lin[0, i, :m], 0.0).sum()
            falls += np.minimum(self._stack.weight[i, : self._stack.begin[i, 1]], 0.0).sum()
            cell = (self._room.constant[0, i] + falls - curves.low[i]) * curves.per[i] - curves.slack
            total += curves.value[i, int(min(max(cell, 0.0), CELLS))]
        return float(total)

    def _size(self, cube: int, k: int, m: int, units: Ints, strict: bool, found: Found) -> int | None:
        """Look for turned sets of k units; None where there is none, else how the search of the cube ends.

        Where none is turned for sure, or rules and rejected sets have a say, the sets are scored at once.
        """
        problem, room = self._problem, self._room
        one = not (problem.all_sets or strict)
        room.best[:] = np.inf, float(one), self._margin
        cap = max(min(problem.budget.nodes - int(found.nodes[cube]), PATIENCE), 0)
        state, nodes = sets_of_size(k, m, self._bound, cap, self._curves, self._stack, room, self._listed)
        found.nodes[cube] += nodes
        if state != DONE:
            return int(state)
        count, sure = room.n_listed.tolist()
        if count == 0:
            return None
        rows = np.zeros((count, problem.n_units), dtype=bool)
        rows[:, units] = (self._listed[:count, None] >> np.arange(m)) & 1
        cubes = np.full(count, cube)
        if strict or not sure:
            hit = np.asarray(self._score(cubes, rows)) < self._tolerance
            hit &= acceptable(problem, cubes, rows)
            if not hit.any():
                return None
        self.hits.append((cubes, rows))
        return DONE
