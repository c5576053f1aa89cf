"""Equal cubes are searched once: rows that repeat (everything missing, few levels) are among the most frequent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fewest.engine.search.problem import Found, Problem
from fewest.tables.arrays import Ints

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # an odd number whose powers have no pattern


def once(problem: Problem, search: Callable[[Problem, Ints], Found]) -> Found:
    """What ``search`` finds of the cubes it is given (a problem and their numbers in this one), for all cubes."""
    every = np.arange(problem.n_cubes)
    same_as = every
    if problem.n_cubes > 1 and problem.is_plain and problem.summed is None and problem.start.shape[1]:
        same_as = first_equal(problem)
    first = np.flatnonzero(same_as == every)
    if len(first) == problem.n_cubes:
        return search(problem, every)
    part, found = search(problem.take(first), first), Found.blank(problem)
    place = np.searchsorted(first, same_as)
    for name in ("outcome", "moved", "known", "cost", "lower", "nodes", "complete"):
        getattr(found, name)[:] = getattr(part, name)[place]
    return found


def first_equal(problem: Problem) -> Ints:
    """Of each cube the number of the first one that is equal to it in all that a plain search looks at."""
    parts = [problem.start, problem.distance, problem.limit[:, None], problem.goal_of[:, None], problem.movable]
    bits = [np.ascontiguousarray(part, dtype=np.float64).view(np.uint64) for part in parts]
    words = [part ^ (part >> np.uint64(31)) for part in bits]  # whole numbers differ in their highest bits alone
    factors = np.cumprod(np.full(sum(part.shape[1] for part in words), _SPREAD))
    splits = np.split(factors, np.cumsum([part.shape[1] for part in words])[:-1])
    key = sum(np.einsum("ij,j->i", part, own) for part, own in zip(words, splits, strict=True))
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    same_as = first[group]
    for part in words:  # keys may agree by chance
        different = (part != part[same_as]).any(axis=1)
        same_as[different] = np.flatnonzero(different)
    return np.asarray(same_as)
