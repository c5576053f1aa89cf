"""Sets that wait to be tried: the cheapest first, then the one that may be nearest, then the one that came first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.tables.arrays import Floats, Ints


class Queue(NamedTuple):
    """A heap of sets, each named by a number that grows with the order in which they came."""

    cost: Floats  # (n,)
    far: Floats  # (n,): How far each leads at least
    item: Ints  # (n,)


def make_queue(n: int) -> Queue:
    """Room for n sets."""
    return Queue(np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64))


@inner()
def _before(queue, a, b):  # type: ignore[no-untyped-def]
    if queue.cost[a] != queue.cost[b]:
        return queue.cost[a] < queue.cost[b]
    if queue.far[a] != queue.far[b]:
        return queue.far[a] < queue.far[b]
    return queue.item[a] < queue.item[b]


@inner()
def _swap(queue, a, b):  # type: ignore[no-untyped-def]
    queue.cost[a], queue.cost[b] = queue.cost[b], queue.cost[a]
    queue.far[a], queue.far[b] = queue.far[b], queue.far[a]
    queue.item[a], queue.item[b] = queue.item[b], queue.item[a]


@inner()
def push(queue, n, cost, far, item):  # type: ignore[no-untyped-def]
    """Put a set into a queue of n; how many there are now."""
    queue.cost[n], queue.far[n], queue.item[n] = cost, far, item
    at = n
    while at > 0 and _before(queue, at, (at - 1) // 2):
        _swap(queue, at, (at - 1) // 2)
        at = (at - 1) // 2
    return n + 1


@inner()
def pop(queue, n):  # type: ignore[no-untyped-def]
    """Take the first set off a queue of n: it lies behind the n - 1 that are left."""
    _swap(queue, 0, n - 1)
    at = 0
    while True:
        first = at
        for child in (2 * at + 1, 2 * at + 2):
            if child < n - 1 and _before(queue, child, first):
                first = child
        if first == at:
            return n - 1
        _swap(queue, at, first)
        at = first
