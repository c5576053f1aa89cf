"""Compiled: the leaf each row of codes falls into."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def goes_left(
    value: float, node: int, threshold: Any, missing_left: Any, level_set: Any, levels_left: Any
) -> Any:  # pragma: no cover - compiled
    """Whether a code goes left at a node."""
    if np.isnan(value):
        return missing_left[node]
    row = level_set[node]
    if row >= 0:
        return levels_left[row, int(value)]
    return value <= threshold[node]


@numba.njit(cache=True, nogil=True)
def apply(
    codes: Any, feature: Any, threshold: Any, left: Any, right: Any, missing_left: Any, level_set: Any, levels_left: Any
) -> Any:  # pragma: no cover - compiled
    """Leaf of each row (n,)."""
    out = np.empty(len(codes), dtype=np.int32)
    for i in range(len(codes)):
        node = 0
        while feature[node] >= 0:
            value = codes[i, feature[node]]
            is_left = goes_left(value, node, threshold, missing_left, level_set, levels_left)
            node = left[node] if is_left else right[node]
        out[i] = node
    return out
