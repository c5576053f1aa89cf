"""From a `Problem` to plain arrays for the compiled searches and back; blocks, threads and the deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Timer

import numpy as np

from fewest.engine.search._work import NODE_CAP, Work, WorkAnswers, WorkCubes, works
from fewest.engine.search.problem import Found, Problem
from fewest.tables.arrays import Bools, Ints

Kernel = Callable[[int, int, Work, WorkAnswers], None]

_ROOM = 1 << 25  # flags for the listed sets of one block


def pack(problem: Problem, cut: float, tolerance: float, small_trees: bool) -> WorkCubes:
    """The problem as contiguous arrays of fixed types: one compiled version serves all problems."""
    n, u = problem.n_cubes, problem.n_units
    forbidden = np.zeros((len(problem.rules.forbidden), u), dtype=bool)
    for row, units in zip(forbidden, problem.rules.forbidden, strict=True):
        row[units] = True
    sizes = np.zeros(n + 1, dtype=np.int64)
    sizes[0] = len(forbidden)
    rejected = []
    for i in sorted(problem.rejected):
        rejected.append(np.asarray(problem.rejected[i], dtype=bool).reshape(-1, u))
        sizes[i + 1] = len(rejected[-1])
    cost = np.empty((0, 0)) if problem.cost is None else problem.cost
    binds = np.empty((0, 0)) if problem.rules.binds is None else problem.rules.binds
    return WorkCubes(
        start=np.ascontiguousarray(problem.start, dtype=np.float64),
        goal=np.ascontiguousarray(problem.goal, dtype=np.float64),
        goal_of=np.ascontiguousarray(problem.goal_of, dtype=np.int32),
        movable=np.ascontiguousarray(problem.movable, dtype=bool),
        distance=np.ascontiguousarray(problem.distance, dtype=np.float64),
        cost=np.ascontiguousarray(cost, dtype=np.float64),
        limit=np.ascontiguousarray(problem.limit, dtype=np.float64),
        sign=float(problem.sign),
        cut=float(cut),
        tolerance=float(tolerance),
        implies=np.ascontiguousarray(np.reshape(problem.rules.implies, (-1, 2)), dtype=np.int32),
        binds=np.ascontiguousarray(binds, dtype=bool),
        banned=np.concatenate([forbidden, *rejected]),
        banned_from=np.cumsum(sizes),
        n_forbidden=len(forbidden),
        all_sets=int(problem.all_sets),
        node_cap=int(problem.budget.nodes),
        small_trees=small_trees,
    )


def run(problem: Problem, cubes: WorkCubes, kernel: Kernel, n_jobs: int) -> tuple[Found, Bools]:
    """Run a kernel over contiguous slices of the cubes, one per thread; a cube's answer depends on the cube only.

    Returns the answers and the cubes that were given up as too large.
    """
    n, u = problem.n_cubes, problem.n_units
    found = Found.blank(problem)
    todo, retry = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    counts = np.zeros(n, dtype=np.int64)
    n_banned = cubes.n_forbidden + int(np.diff(cubes.banned_from).max(initial=0))
    largest = max(1, min(8192, _ROOM // (problem.all_sets * u) if problem.all_sets and u else 8192))

    def work_on(first: int, last: int) -> None:
        out = WorkAnswers(
            found.outcome, found.moved, found.known, found.cost, found.lower, found.nodes, found.complete, todo,
            retry, np.zeros((min(largest, last - first) * problem.all_sets, u), dtype=bool), counts,
        )  # fmt: skip
        # One set more than are listed, so that "these are all" is known.
        shape = (u, len(cubes.implies), n_banned, problem.all_sets + 1)
        with works.borrow(*shape) as work, time_for(work.tally, cubes.node_cap, problem.budget.deadline):
            while first < last and not problem.budget.expired():
                end = min(first + largest, last)
                kernel(first, end, work, out)
                if found.sets is not None:
                    for i in range(first, end):
                        place = (i - first) * problem.all_sets
                        found.sets[i] = out.sets[place : place + counts[i]].copy()
                first = end

    share_out(work_on, n, min(n_jobs, n // 16))
    return found, retry


def share_out(work_on: Callable[[int, int], None], n: int, n_jobs: int) -> None:
    """Call ``work_on(first, last)`` on contiguous slices of n cubes, one per thread."""
    if n_jobs <= 1:
        work_on(0, n)
        return
    edges = np.linspace(0, n, n_jobs + 1).astype(int).tolist()
    with ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(work_on, edges[:-1], edges[1:]))


@contextmanager
def time_for(tally: Ints, node_cap: int, deadline: float) -> Iterator[None]:
    """Let kernels spend this many nodes on a cube; none, from the deadline on, wherever they are then."""
    tally[NODE_CAP] = node_cap
    if not np.isfinite(deadline):
        yield
        return
    left = deadline - time.monotonic()
    if left <= 0:
        tally[NODE_CAP] = 0
    clock = Timer(max(0.0, left), tally.__setitem__, (NODE_CAP, 0))
    clock.start()
    try:
        yield
    finally:
        clock.cancel()
        clock.join()
