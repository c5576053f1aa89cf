"""A turned set found quickly, for its size: flip what lowers the score most, then take back what is not needed."""

from __future__ import annotations

import numpy as np

from fewest.engine.search._subsets import acceptable, record, summed
from fewest.engine.search._ties import as_cheap
from fewest.engine.search.problem import Found, Outcome, Problem, Score
from fewest.tables.arrays import Bools, Floats, Ints


def give_up(score: Score, problem: Problem, tolerance: float, batch: int, found: Found, cubes: Ints) -> None:
    """What is still known about cubes out of budget: a greedy set, proved if it costs no more than the lower bound."""
    if not len(cubes):
        return
    rows, known, spent = descend(score, problem, tolerance, batch, cubes)
    found.nodes[cubes] += spent
    cost = rows.sum(axis=1) if problem.cost is None else summed(rows, problem.cost[cubes])
    known &= cost <= as_cheap(problem.limit[cubes])
    done = cubes[known]
    record(found, done, rows[known], problem.cost)
    if found.sets is not None:
        for cube in done:
            found.sets[cube] = found.moved[cube][None]
    proved = done[found.cost[done] <= as_cheap(found.lower[done])]
    found.outcome[proved] = Outcome.FOUND
    found.lower[proved] = found.cost[proved]


def descend(score: Score, problem: Problem, tolerance: float, batch: int, cubes: Ints) -> tuple[Bools, Bools, Ints]:
    """Greedy sets for ``cubes``: rows (c, u), whether each is acceptable and turned (c,), vertices spent (c,)."""
    closure = _closure(problem, cubes)
    rows = np.zeros((len(cubes), problem.n_units), dtype=bool)
    known = np.zeros(len(cubes), dtype=bool)
    spent = np.zeros(len(cubes), dtype=np.int64)
    open_ = np.arange(len(cubes))
    while len(open_) and not problem.budget.expired():
        units = problem.movable[cubes[open_]] & ~rows[open_]
        at, unit = np.nonzero(units)
        tried = rows[open_[at]] | closure[open_[at], unit]
        if problem.rules:
            here = cubes[open_[at]]
            fine = problem.rules.take(here).allow(tried, problem.movable[here])
            at, tried = at[fine], tried[fine]
        values = _scores(score, cubes[open_[at]], tried, batch)
        spent[open_] += np.bincount(at, minlength=len(open_))
        which, row = _lowest(at, values)
        rows[open_[which]] = tried[row]
        hit = (values[row] < tolerance) & acceptable(problem, cubes[open_[which]], tried[row])
        known[open_[which[hit]]] = True
        open_ = open_[which[~hit]]  # cubes without any move left drop out, too
    _prune(score, problem, tolerance, batch, cubes, rows, known, spent)
    return rows, known, spent


def _prune(
    score: Score, problem: Problem, tolerance: float, batch: int, cubes: Ints, rows: Bools, known: Bools, spent: Ints
) -> None:
    """Take units back while the set stays turned and acceptable, the one that leaves the lowest score first."""
    open_ = np.nonzero(known & (rows.sum(axis=1) > 1))[0]
    while len(open_) and not problem.budget.expired():
        at, unit = np.nonzero(rows[open_])
        tried = rows[open_[at]]
        tried[np.arange(len(at)), unit] = False
        fine = acceptable(problem, cubes[open_[at]], tried)
        at, tried = at[fine], tried[fine]
        values = _scores(score, cubes[open_[at]], tried, batch)
        spent[open_] += np.bincount(at, minlength=len(open_))
        which, row = _lowest(at, values)
        hit = values[row] < tolerance
        rows[open_[which[hit]]] = tried[row[hit]]
        open_ = open_[which[hit]]
        open_ = open_[rows[open_].sum(axis=1) > 1]


def _scores(score: Score, cubes: Ints, rows: Bools, batch: int) -> Floats:
    """Score in calls of at most ``batch`` vertices."""
    parts = [score(cubes[low : low + batch], rows[low : low + batch]) for low in range(0, len(cubes), batch)]
    return np.concatenate(parts) if parts else np.empty(0)


def _lowest(groups: Ints, values: Floats) -> tuple[Ints, Ints]:
    """Groups present, and the position of the lowest value in each (the first of equals)."""
    order = np.lexsort((values, groups))
    which, first = np.unique(groups[order], return_index=True)
    return which, order[first]


def _closure(problem: Problem, cubes: Ints) -> Bools:
    """Units that must move along with each unit, itself included: (c, u, u)."""
    u = problem.n_units
    movable = problem.movable[cubes]
    closure = np.broadcast_to(np.eye(u, dtype=bool), (len(cubes), u, u)).copy()
    implies, _ = problem.rules.take(cubes).each(len(cubes))
    for _ in range(u if implies else 0):
        before = closure.copy()
        for a, b, here in implies:
            closure[:, :, b] |= closure[:, :, a] & (movable[:, b] & here)[:, None]
        if (before == closure).all():
            break
    return closure
