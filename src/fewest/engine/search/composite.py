"""Exact search for sums of non-decreasing functions of ensembles and additive models: votes, calibrated folds, stacks.

Each member is a polynomial on the cube; a node bounds every one of them and sums the functions at these bounds. What
the tables of the functions let pass is scored exactly. Costs, floors, nets among the members and what is too large are
searched level by level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fewest.engine.search import levelwise
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
from fewest.engine.search.problem import Found, Outcome, Problem, Score
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


def is_searched(structure: Composite, problem: Problem) -> bool:
    """Whether this search takes the problem; else it is looked at level by level."""
    few = bool((np.count_nonzero(problem.movable, axis=1) <= MOST_UNITS).all())
    fits = all(isinstance(member, Ensemble | Additive) for member in structure.members)
    counted = problem.cost is None and problem.floor is None
    return fits and few and counted and bool(np.isfinite(structure.reading.cut))


def solve(structure: Composite, problem: Problem, score: Score, n_jobs: int = 1) -> Found:
    """Fewest units that turn each cube; ``score`` gives exact signed scores of vertices."""
    found, tolerance = Found.blank(problem), structure.reading.tolerance
    members = _members(structure, problem)
    curves, bound = _curves(structure, members, problem)
    hits: list[tuple[Ints, Bools, Floats]] = []
    state = np.zeros(problem.n_cubes, dtype=np.int64)

    def work_on(first: int, last: int) -> None:
        deepest = max((depth(member.trees) for member in members if member.trees is not None), default=1)
        with (
            leaf_lists.borrow(deepest) as leaves,
            works.borrow(problem.n_units, 0, 0, 1) as work,
            time_for(work.tally, problem.budget.nodes, problem.budget.deadline),
        ):
            most = int(np.count_nonzero(problem.movable[first:last], axis=1).max(initial=1))
            one = _CubeSearch(problem, score, tolerance, members, curves, bound, most, leaves, work)
            for cube in range(first, last):
                state[cube] = _LATE if problem.budget.expired() else one.answer(cube, found, hits)

    share_out(work_on, problem.n_cubes, min(n_jobs, problem.n_cubes // 16))
    turned = TurnedSubsets(problem)
    if hits:
        cubes, rows, scores = (np.concatenate(parts) for parts in zip(*hits, strict=True))
        turned.add(cubes, rows, scores)
    turned.settle(found, None)
    give_up(score, problem, tolerance, LISTED, found, np.flatnonzero(state == CAPPED))
    rest = np.flatnonzero(state == TOO_MANY)
    if len(rest):
        found.put(rest, levelwise.solve(lambda local, moved: score(rest[local], moved), problem.take(rest), tolerance))
    return found


@dataclass(frozen=True)
class _Member:
    """A member of the sum and its cubes; ``factor`` turns it round where its function falls."""

    factor: float
    trees: Trees | None  # None: an additive model, with what each unit adds
    cubes: WorkCubes | None
    constant: Floats  # (n,): Score of the start, for additive models
    steps: Floats  # (n, u)
    low: float
    high: float


def _members(structure: Composite, problem: Problem) -> list[_Member]:
    made = []
    for member, span, weight in zip(structure.members, structure.spans, structure.weights, strict=True):
        own = replace(problem, start=problem.start[:, span], goal=problem.goal[:, span], unit_of=problem.unit_of[span])
        factor = problem.sign * (1.0 if weight >= 0 else -1.0)
        if isinstance(member, Ensemble):
            trees = pack_trees(member, own)
            cubes = pack(own, 0.0, 0.0, True)._replace(sign=factor)
            leaves = np.split(np.where(member.column < 0, member.value, np.nan), member.root[1:])
            ends = [member.base + sum(float(end(part)) for part in leaves) for end in (np.nanmin, np.nanmax)]
            low, high = sorted(factor * end for end in ends)
            made.append(_Member(factor, trees, cubes, np.empty(0), np.empty((0, 0)), low, high))
        else:
            assert isinstance(member, Additive)
            constant = factor * member.raw(own.start)
            change = factor * member.coef * (own.goal[own.goal_of] - own.start)
            steps = change @ (own.unit_of[:, None] == np.arange(problem.n_units)).astype(np.float64)
            low = float((constant + np.minimum(steps, 0.0).sum(axis=1)).min(initial=0.0))
            high = float((constant + np.maximum(steps, 0.0).sum(axis=1)).max(initial=0.0))
            made.append(_Member(factor, None, None, constant, steps, low, high))
    return made


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
    slack = SURE * CELLS
    margin = SURE * (1.0 + abs(bound) + float(np.abs(table).max(axis=1).sum()))
    return Curves(np.array(low), np.array(per), table, slack), bound + margin


class _CubeSearch:
    """The search of one thread, cube after cube."""

    def __init__(
        self, problem: Problem, score: Score, tolerance: float, members: list[_Member], curves: Curves, bound: float,
        most: int, leaves: WorkLeaves, work: Work,
    ) -> None:  # fmt: skip
        self._problem, self._score, self._tolerance = problem, score, tolerance
        self._members, self._curves, self._bound, self._leaves, self._work = members, curves, bound, leaves, work
        self._stack, self._room = make_room(len(members), most, MOST_TERMS)
        self._listed = np.zeros(LISTED, dtype=np.int64)
        trees = max((len(member.trees.root) for member in members if member.trees is not None), default=1)
        self._bends = np.zeros(trees, dtype=bool)
        self._changes = np.zeros((problem.n_cubes, problem.n_units))

    def answer(self, cube: int, found: Found, hits: list[tuple[Ints, Bools, Floats]]) -> int:
        """Search one cube, size after size; turned sets of the first size that has some go to ``hits``."""
        problem, units = self._problem, np.flatnonzero(self._problem.movable[cube])
        m, whole = len(units), float(np.floor(as_cheap(float(problem.limit[cube]))))
        most, k = int(min(m, max(whole, 0.0))), 1
        one = not (problem.all_sets or problem.rules or cube in problem.rejected)
        self._room.distance[:m] = problem.distance[cube, units]
        for degree in DEGREES:
            if degree < k or k > most:
                continue
            complete = self._load(cube, m, units, degree)
            if complete is None:
                return TOO_MANY
            if complete and self._least(m) >= self._bound:
                most = 0
                whole = max(whole, m)
            while k <= (most if complete else min(most, degree)):
                found.lower[cube] = k
                state = self._size(cube, k, m, units, one, found, hits)
                if state is not None:
                    return state
                k += 1
        found.outcome[cube] = Outcome.NONE
        found.lower[cube] = np.inf if m <= whole else max(whole, 0.0) + 1.0
        found.complete[cube] = problem.all_sets > 0
        return DONE

    def _load(self, cube: int, m: int, units: Ints, degree: int) -> bool | None:
        """Put the members' polynomials at depth 0; whether they are complete, None where one is too large."""
        stack, room, whole = self._stack, self._room, True
        for i, member in enumerate(self._members):
            stack.begin[i, :2] = 0
            if member.trees is None or member.cubes is None:
                room.constant[0, i], room.lin[0, i, :m] = member.constant[cube], member.steps[cube, units]
                continue
            bends = self._bends[: len(member.trees.root)]
            constant, count, complete = terms_of(
                cube, member.trees, member.cubes, degree, EXPANDED, self._leaves, self._work, self._changes, bends,
                stack.mask[i, :MOST_TERMS], stack.weight[i], room.lin[0, i],
            )  # fmt: skip
            if count < 0:
                return None
            room.constant[0, i], stack.begin[i, 1] = constant, count
            whole = whole and bool(complete)
        return whole

    def _least(self, m: int) -> float:
        """What the sum of the functions is at least, whatever is flipped."""
        total, curves = 0.0, self._curves
        for i in range(len(self._members)):
            falls = np.minimum(self._room.lin[0, i, :m], 0.0).sum()
            falls += np.minimum(self._stack.weight[i, : self._stack.begin[i, 1]], 0.0).sum()
            cell = (self._room.constant[0, i] + falls - curves.low[i]) * curves.per[i] - curves.slack
            total += curves.value[i, int(np.clip(np.floor(cell), 0, CELLS))]
        return float(total)

    def _size(
        self, cube: int, k: int, m: int, units: Ints, one: bool, found: Found, hits: list[tuple[Ints, Bools, Floats]]
    ) -> int | None:
        """Look for turned sets of k units; None where there is none, else how the search of the cube ends."""
        problem, room = self._problem, self._room
        margin = SURE * (1.0 + abs(self._bound))
        room.best[:] = np.inf, float(one), margin
        cap = max(min(problem.budget.nodes - int(found.nodes[cube]), PATIENCE), 0)
        state, nodes = sets_of_size(k, m, self._bound, cap, self._curves, self._stack, room, self._listed)
        found.nodes[cube] += nodes
        if state != DONE:
            return int(state)
        masks = self._listed[: room.n_listed[0]]
        if len(masks) == 0:
            return None
        rows = np.zeros((len(masks), problem.n_units), dtype=bool)
        rows[:, units] = (masks[:, None] >> np.arange(m)) & 1
        cubes = np.full(len(masks), cube)
        score = np.asarray(self._score(cubes, rows), dtype=np.float64)
        hit = (score < self._tolerance) & acceptable(problem, cubes, rows)
        if not hit.any():
            return None
        hits.append((cubes[hit], rows[hit], score[hit]))
        return DONE
