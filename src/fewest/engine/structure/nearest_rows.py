"""Compiled sums over the nearest training rows, of which only intervals of the distances need be known.

Distances here are sums over the columns: their power-th root is what the library calls the distance. ``slack`` is what
rounding may add to them: rows closer together than that may change places.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import entry, inner


@inner
def sink(heap, at, size):  # type: ignore[no-untyped-def]
    """Let a value of a heap, largest first, go down to its place."""
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[at] >= heap[child]:
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@inner
def smallest(values, n, size, heap):  # type: ignore[no-untyped-def]
    """The ``size`` smallest of n values into a heap whose top is the largest of them; ``size`` is at most n."""
    for i in range(size):
        heap[i] = values[i]
    for at in range(size // 2 - 1, -1, -1):
        sink(heap, at, size)
    for i in range(size, n):
        if values[i] < heap[0]:
            heap[0] = values[i]
            sink(heap, 0, size)


@inner
def second(heap, size):  # type: ignore[no-untyped-def]
    """The largest value of a heap but for its top."""
    return max(heap[1], heap[2]) if size > 2 else heap[1]


@inner
def root(value, power):  # type: ignore[no-untyped-def]
    """The distance that belongs to a sum over columns."""
    if power == 2.0:
        return np.sqrt(value)
    return value if power == 1.0 else value ** (1.0 / power)


@inner
def share(v, low, high, power, weighted):  # type: ignore[no-untyped-def]
    """The least that a row of value v adds, its distance being between two others."""
    if not weighted:
        return v
    if v >= 0.0:
        return v / root(high, power)
    return v / root(low, power) if low > 0.0 else -np.inf


@inner
def least(low, high, point, n, v, rows, sign, k, power, weighted, slack, blur, heap):  # type: ignore[no-untyped-def]
    """The least mean of sign * v over the k nearest of n rows, given the ends of their distances; and their reach.

    Rows that are among the nearest whatever the distances are count with their least share, and of those that may be
    the smallest shares. ``rows`` names the rows. The mean is weighted on the scale of the k-th distance; that of a
    ``point``, where both ends are the same, is exact unless ``slack`` lets rows change places. ``blur`` is how far off
    the distances may be where rows are weighed by them.
    """
    beyond, reach, scale = np.inf, np.inf, 1.0
    if n > k:
        smallest(low, n, k + 1, heap)
        beyond = heap[0] - slack
        reach = second(heap, k + 1)
    else:
        smallest(low, n, k, heap)
        reach = heap[0]
    if weighted:
        scale = root(max(reach, slack), power)
    if n > k:
        if not point:
            smallest(high, n, k, heap)
            reach = heap[0]
        reach += slack
    else:
        reach = np.inf
    total, sure = 0.0, 0
    for i in range(n):
        if high[i] + slack < beyond:
            total += share(sign * v[rows[i]], low[i] - blur, high[i] + blur, power, weighted)
            sure += 1
    left, held = k - sure, 0
    if left > 0:
        for i in range(n):
            if high[i] + slack >= beyond and low[i] - slack <= reach:
                value = share(sign * v[rows[i]], low[i] - blur, high[i] + blur, power, weighted)
                if held < left:
                    heap[held] = value
                    held += 1
                    if held == left:
                        for at in range(left // 2 - 1, -1, -1):
                            sink(heap, at, left)
                elif value < heap[0]:
                    heap[0] = value
                    sink(heap, 0, left)
        for i in range(held):
            total += heap[i]
    return total * scale / k, reach


@inner
def signed_mean(distance, n, v, rows, sign, k, power, weighted, slack, heap):  # type: ignore[no-untyped-def]
    """The mean of sign * v over the k nearest rows; zero where its sign depends on which of equally near ones count."""
    low, _ = least(distance, distance, True, n, v, rows, sign, k, power, weighted, slack, slack, heap)
    if low < 0.0:
        other, _ = least(distance, distance, True, n, v, rows, -sign, k, power, weighted, slack, slack, heap)
        if other <= 0.0:
            return 0.0
        low = -other
    # Shares a little off what rows count would be seen where means are equal.
    mean, _ = least(distance, distance, True, n, v, rows, sign, k, power, weighted, slack, 0.0, heap)
    return mean if abs(mean) < np.inf and (mean < 0.0) == (low < 0.0) else low


@entry
def means(distances, v, k, power, weighted, slack):  # type: ignore[no-untyped-def]
    """`signed_mean` for each row of distances (q, n), with a slack for each."""
    n = distances.shape[1]
    out, heap, rows = np.empty(distances.shape[0]), np.empty(k + 2), np.arange(n)
    for q in range(distances.shape[0]):
        out[q] = signed_mean(distances[q], n, v, rows, 1.0, k, power, weighted, slack[q], heap)
    return out
