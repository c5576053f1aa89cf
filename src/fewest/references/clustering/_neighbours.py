"""Weighted mean over the nearest landmarks, by exhaustive search; a row gets the same bits alone and in any batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from fewest.tables.arrays import Floats

Singles = npt.NDArray[np.float32]

ROWS = 16  # rows that share a block of landmarks while it is in the cache
LANDMARKS = 256


@njit(cache=True, nogil=True)
def interpolate(points: Singles, landmarks: Singles, values: Floats, k: int) -> Floats:
    """Mean of the k nearest landmarks' values, weighted by inverse squared distance; a landmark's own value on it.

    Distances are summed over dimensions in order and landmarks are visited in order, so nothing depends on the blocks.
    Single precision decides which landmarks are near: twice as fast, and far finer than the rule itself.
    """
    n, m = len(points), landmarks.shape[1]
    out = np.zeros((n, values.shape[1]))
    nearest = np.empty((ROWS, k), dtype=np.int64)
    apart = np.empty((ROWS, k), dtype=np.float32)
    squared = np.empty(LANDMARKS, dtype=np.float32)
    for first in range(0, n, ROWS):
        last = min(first + ROWS, n)
        apart[:] = np.inf
        nearest[:] = 0
        for low in range(0, m, LANDMARKS):
            size = min(LANDMARKS, m - low)
            for row in range(first, last):
                _squared(points[row], landmarks, low, squared[:size])
                _keep_nearest(squared[:size], low, apart[row - first], nearest[row - first])
        for row in range(first, last):
            _mean(apart[row - first], nearest[row - first], values, out[row])
    return out


@njit(cache=True, nogil=True)
def _squared(point: Singles, landmarks: Singles, low: int, out: Singles) -> None:
    """Squared distances to some landmarks, from number ``low`` on."""
    out[:] = 0
    for j in range(len(point)):
        # A slice of a whole row is contiguous for the compiler, one of the table is not: this vectorises.
        line, x = landmarks[j][low : low + len(out)], point[j]
        for i in range(len(out)):
            step = line[i] - x
            out[i] += step * step


@njit(cache=True, nogil=True)
def _keep_nearest(squared: Singles, low: int, apart: Singles, nearest: npt.NDArray[np.int64]) -> None:
    """Put what is nearer into the sorted list; among equals the earlier landmark stays."""
    for i in range(len(squared)):
        if squared[i] >= apart[-1]:
            continue
        at = len(apart) - 1
        while at > 0 and apart[at - 1] > squared[i]:
            apart[at] = apart[at - 1]
            nearest[at] = nearest[at - 1]
            at -= 1
        apart[at] = squared[i]
        nearest[at] = low + i


@njit(cache=True, nogil=True)
def _mean(apart: Singles, nearest: npt.NDArray[np.int64], values: Floats, out: Floats) -> None:
    if apart[0] == 0.0:
        out[:] = values[nearest[0]]
        return
    total = 0.0
    for at in range(len(apart)):
        # Relative to the nearest: weights stay within (0, 1] however small or large distances are.
        weight = apart[0] / apart[at]
        total += weight
        out += weight * values[nearest[at]]
    out /= total
