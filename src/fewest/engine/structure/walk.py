"""Compiled walk of rows through additive trees."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def goes_left(z, threshold, missing_left, category, left_levels):  # type: ignore[no-untyped-def]
    """Whether a value takes the left branch of a split."""
    if category < 0:
        if np.isnan(z):
            return missing_left
        return z <= threshold
    if np.isnan(z) or z < 0 or z >= left_levels.shape[1]:
        return missing_left
    return left_levels[category, np.int64(z)]


FEW = 16  # rows up to which setting up the quicker walk costs more than it saves
BLOCK = 128  # rows that go through a tree one after the other, while it is in the cache


@njit(cache=True, nogil=True)
def ensemble_raw(  # type: ignore[no-untyped-def]
    Z, column, threshold, left, right, missing_left, category, left_levels, value, root, base
):
    """Sum of the leaves each row falls into, added tree after tree."""
    n = Z.shape[0]
    out = np.full(n, base)
    if n <= FEW or left_levels.shape[0] > 0:
        for i in range(n):
            for tree in range(root.shape[0]):
                node = root[tree]
                while column[node] >= 0:
                    z = Z[i, column[node]]
                    if goes_left(z, threshold[node], missing_left[node], category[node], left_levels):
                        node = left[node]
                    else:
                        node = right[node]
                out[i] += value[node]
        return out
    child, test, depth = _laid_out(column, left, right, root)
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        for tree in range(root.shape[0]):
            i = first
            while i < last:  # four rows side by side: each step waits for the one before it
                b, c, d = min(i + 1, last - 1), min(i + 2, last - 1), min(i + 3, last - 1)
                at = at_b = at_c = at_d = root[tree]
                for _ in range(depth[tree]):
                    at = child[at, _side(Z[i, test[at]], threshold[at], missing_left[at])]
                    at_b = child[at_b, _side(Z[b, test[at_b]], threshold[at_b], missing_left[at_b])]
                    at_c = child[at_c, _side(Z[c, test[at_c]], threshold[at_c], missing_left[at_c])]
                    at_d = child[at_d, _side(Z[d, test[at_d]], threshold[at_d], missing_left[at_d])]
                out[i] += value[at]
                if b > i:
                    out[b] += value[at_b]
                if c > b:
                    out[c] += value[at_c]
                if d > c:
                    out[d] += value[at_d]
                i += 4
    return out


@njit(cache=True, nogil=True)
def linear_leaf_sums(  # type: ignore[no-untyped-def]
    Z, column, threshold, left, right, missing_left, category, left_levels, value, root, constant, begin, used, factor,
    term_of, terms,
):  # fmt: skip
    """What the leaves of each row add to each term: a linear function, or a value where a column of it is missing."""
    out = np.zeros((Z.shape[0], terms))
    for i in range(Z.shape[0]):
        for tree in range(root.shape[0]):
            node = root[tree]
            while column[node] >= 0:
                z = Z[i, column[node]]
                if goes_left(z, threshold[node], missing_left[node], category[node], left_levels):
                    node = left[node]
                else:
                    node = right[node]
            total = constant[node]
            for at in range(begin[node], begin[node + 1]):
                x = Z[i, used[at]]
                if np.isnan(x):
                    total = value[node]
                    break
                total += factor[at] * x
            out[i, term_of[node]] += total
    return out


@njit(cache=True, nogil=True, inline="always")
def _side(z, threshold, missing_left):  # type: ignore[no-untyped-def]
    """1 for left, 0 for right, without a branch: which way a row goes cannot be foreseen."""
    return np.int32((z <= threshold) | (np.isnan(z) & missing_left))


@njit(cache=True, nogil=True)
def _laid_out(column, left, right, root):  # type: ignore[no-untyped-def]
    """Children of each node (right, left), a leaf its own; the column each tests, 0 for leaves; depths of the trees."""
    nodes = column.shape[0]
    child, test = np.empty((nodes, 2), dtype=np.int32), np.zeros(nodes, dtype=np.int32)
    depth = np.zeros(root.shape[0], dtype=np.int32)
    waiting, level = np.empty(nodes + 1, dtype=np.int32), np.empty(nodes + 1, dtype=np.int32)
    for tree in range(root.shape[0]):
        waiting[0], level[0] = root[tree], 0
        count = 1
        while count > 0:
            count -= 1
            node, down = waiting[count], level[count]
            if column[node] < 0:
                child[node, 0], child[node, 1] = node, node
                depth[tree] = max(depth[tree], down)
                continue
            child[node, 0], child[node, 1], test[node] = right[node], left[node], column[node]
            waiting[count], waiting[count + 1] = left[node], right[node]
            level[count], level[count + 1] = down + 1, down + 1
            count += 2
    return child, test, depth
