"""Compiled exact Shapley values of additive trees between two rows."""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import entry
from fewest.engine.structure.walk import goes_left


@entry
def tree_values(  # type: ignore[no-untyped-def]
    Z, background, begin, node, left, feature, value, share, column, threshold, missing_left, category, left_levels, p
):
    """Mean over background rows of each row's Shapley values.

    A leaf is reached by exactly the mixed rows that take some features from the row (those whose tests only it passes)
    and some from the background row; its value is shared among these by the weights of Shapley.
    """
    out = np.zeros((Z.shape[0], p))
    who, own = np.empty(p, dtype=np.int64), np.empty(p, dtype=np.bool_)
    for i in range(Z.shape[0]):
        for b in range(background.shape[0]):
            for leaf in range(begin.shape[0] - 1):
                k, count, mine, reachable = begin[leaf], 0, 0, True
                while reachable and k < begin[leaf + 1]:
                    j, here, there = feature[k], True, True
                    while k < begin[leaf + 1] and feature[k] == j:
                        n = node[k]
                        test = threshold[n], missing_left[n], category[n]
                        here &= goes_left(Z[i, column[n]], test[0], test[1], test[2], left_levels) == left[k]
                        there &= goes_left(background[b, column[n]], test[0], test[1], test[2], left_levels) == left[k]
                        k += 1
                    reachable = here or there
                    if here != there and reachable:
                        who[count], own[count] = j, here
                        mine += here
                        count += 1
                if reachable:
                    for t in range(count):
                        if own[t]:
                            out[i, who[t]] += value[leaf] * share[mine - 1, count - mine]
                        else:
                            out[i, who[t]] -= value[leaf] * share[mine, count - mine - 1]
    return out / background.shape[0]
