"""Compiled walk of rows through additive trees."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def goes_left(z, threshold, missing_left, category, left_levels):  # type: ignore[no-untyped-def]
    if category < 0:
        if np.isnan(z):
            return missing_left
        return z <= threshold
    if np.isnan(z) or z < 0 or z >= left_levels.shape[1]:
        return missing_left
    return left_levels[category, np.int64(z)]


@njit(cache=True, nogil=True)
def ensemble_raw(  # type: ignore[no-untyped-def]
    Z, column, threshold, left, right, missing_left, category, left_levels, value, root, base
):
    out = np.empty(Z.shape[0])
    for i in range(Z.shape[0]):
        total = base
        for tree in range(root.shape[0]):
            node = root[tree]
            while column[node] >= 0:
                z = Z[i, column[node]]
                if goes_left(z, threshold[node], missing_left[node], category[node], left_levels):
                    node = left[node]
                else:
                    node = right[node]
            total += value[node]
        out[i] = total
    return out
