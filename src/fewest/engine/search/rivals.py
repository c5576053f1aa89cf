"""Exact search for a class among three or more: turned where any other class overtakes it.

The smallest set is the smallest over the comparisons with each other class, and each of these is searched and proved
by itself, within what the ones before it need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fewest.engine.search._subsets import TurnedSubsets
from fewest.engine.search._ties import as_cheap
from fewest.engine.search.problem import Found, Outcome, Problem, Score
from fewest.engine.structure.base import Rivals, Structure
from fewest.tables.arrays import Bools, Floats, Ints


def solve(structure: Rivals, problem: Problem, score: Score, search: Callable[[Structure, Problem], Found]) -> Found:
    """Cheapest sets that turn each cube towards any class; ``score`` gives signed scores, ``search`` takes a member."""
    n, found = problem.n_cubes, Found.blank(problem)
    best, lower, complete = np.full(n, np.inf), np.full(n, np.inf), np.ones(n, dtype=bool)
    parts: list[Found] = []
    for member, span in zip(structure.members, structure.spans, strict=True):
        part = search(member, _columns(replace(problem, limit=np.minimum(problem.limit, best)), span))
        best = np.where(part.known, np.fmin(best, part.cost), best)
        lower = np.minimum(lower, part.lower)
        found.nodes += part.nodes
        parts.append(part)
    for part in parts:
        complete &= part.complete | (part.lower > as_cheap(best))
    turned = TurnedSubsets(problem)
    cubes, rows = _met(parts, best)
    if len(cubes):
        turned.add(cubes, rows, np.asarray(score(cubes, rows), dtype=np.float64))
    turned.settle(found, problem.cost, complete)
    known = found.known
    found.lower[:] = np.minimum(lower, np.where(known, found.cost, np.inf))
    found.outcome[known & (as_cheap(found.lower) < found.cost)] = Outcome.STOPPED
    nothing = ~known & np.all([part.outcome == Outcome.NONE for part in parts], axis=0)
    found.outcome[nothing] = Outcome.NONE
    found.complete[nothing] = problem.all_sets > 0
    return found


def _met(parts: list[Found], best: Floats) -> tuple[Ints, Bools]:
    """The cheapest sets of all comparisons, each once: cubes (s,) and units (s, u)."""
    cubes, rows = [], []
    for part in parts:
        cheap = np.flatnonzero(part.known & (part.cost <= as_cheap(best)))
        if part.sets is None:
            cubes.append(cheap)
            rows.append(part.moved[cheap])
            continue
        for cube in cheap.tolist():
            # A search that was stopped lists nothing, but knows a set.
            listed = part.sets[cube] if len(part.sets[cube]) else part.moved[[cube]]
            cubes.append(np.full(len(listed), cube))
            rows.append(listed)
    if not cubes:
        return np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=bool)
    table = np.column_stack([np.concatenate(cubes), np.concatenate(rows)]).astype(np.int64)
    table = np.unique(table, axis=0)
    return table[:, 0], table[:, 1:].astype(bool)


def _columns(problem: Problem, span: slice) -> Problem:
    """The same cubes with the columns of a member."""
    first, last = span.start, span.stop
    joint, summed = [], problem.summed
    for part in problem.joint:
        own = (part.columns >= first) & (part.columns < last)
        if own.any():
            joint.append(part._replace(columns=part.columns[own] - first, values=part.values[:, :, own]))
    if summed is not None:
        own = (summed.columns >= first) & (summed.columns < last)
        summed = summed._replace(columns=summed.columns[own] - first, steps=summed.steps[:, :, own])
        if not own.any():
            summed = None
    return replace(
        problem, start=np.ascontiguousarray(problem.start[:, span]), goal=np.ascontiguousarray(problem.goal[:, span]),
        unit_of=problem.unit_of[span], joint=tuple(joint), summed=summed,
    )  # fmt: skip
