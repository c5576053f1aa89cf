"""Equal cubes are searched once: rows that repeat (everything missing, few levels) are among the most frequent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.engine.search.problem import Found, Problem
from fewest.tables.arrays import Ints

Words = npt.NDArray[np.uint64]
REPEATED = 0.9  # at most this share of the cubes may differ for it to be worth while
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # an odd number whose powers have no pattern


def once(problem: Problem, search: Callable[[Problem, Ints], Found]) -> Found:
    """What ``search`` finds of the cubes it is given (a problem and their numbers in this one), for all cubes."""
    every = np.arange(problem.n_cubes)
    same_as = every
    plain = problem.n_cubes > 1 and problem.is_plain and problem.summed is None and problem.start.shape[1]
    # Equal cubes have equal distances: where few repeat, comparing the rest would take longer than it saves.
    if plain and len(np.unique(_keys([_words(problem.distance)]))) <= REPEATED * problem.n_cubes:
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
    parts: list[Any] = [
        problem.start,
        problem.distance,
        problem.limit[:, None],
        problem.goal_of[:, None],
        problem.movable,
    ]
    words = [_words(part) for part in parts]
    _, first, group = np.unique(_keys(words), return_index=True, return_inverse=True)
    same_as = first[group]
    for part in words:  # keys may agree by chance
        different = (part != part[same_as]).any(axis=1)
        same_as[different] = np.flatnonzero(different)
    return np.asarray(same_as)


def _words(part: npt.NDArray[Any]) -> Words:
    bits = np.ascontiguousarray(part, dtype=np.float64).view(np.uint64)
    return np.asarray(bits ^ (bits >> np.uint64(31)))  # whole numbers differ in their highest bits alone


def _keys(words: list[Words]) -> Words:
    """One number for each row of tables side by side; equal rows have equal ones."""
    widths = [part.shape[1] for part in words]
    splits = np.split(np.cumprod(np.full(sum(widths), _SPREAD)), np.cumsum(widths)[:-1])
    return np.asarray(sum(np.einsum("ij,j->i", part, own) for part, own in zip(words, splits, strict=True)))
