"""How far the nearest set of two or three features is at most: some are found by what each adds alone, and scored.

What lies further away than one that turns the case need not be looked at.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search._ties import NOISE, SAME
from fewest.engine.search.domains._cell_distances import FREE
from fewest.engine.search.domains._profiles import nearest_steps, permitted, score_with

NEARER = 0.9  # as far as the one before, at most, for another to be scored
MISSES = 8  # sets that do not turn the case, after which no more are scored


@inner()
def _measure_ways(trees, feature, here, near):  # type: ignore[no-untyped-def]
    """How far the nearest cell on the other side of each split is, at least."""
    upto, onwards, walk = near.upto, near.onwards, trees.walk
    for f in range(trees.start.shape[0] - 1):
        first, last, least = trees.start[f], trees.start[f + 1] if here.state[f] == FREE else 0, np.inf
        for c in range(first, last):
            least = min(least, here.far[c])
            upto[c] = least
        least = np.inf
        for c in range(last - 1, first - 1, -1):
            least = min(least, here.far[c])
            onwards[c] = least
    for test in range(feature.shape[0]):
        f = feature[test]
        if here.state[f] != FREE:
            continue
        other = 1 if here.side[test] else 0
        low, high = np.int64(walk.span[test, other, 0]) - f, np.int64(walk.span[test, other, 1]) - f
        if not walk.ranged[f] or low >= high:
            near.cross[test] = here.least[f]
        else:
            near.cross[test] = upto[high - 1] if low == trees.start[f] else onwards[low]


@inner()
def _alike(asked, near, count):  # type: ignore[no-untyped-def]
    """Whether one nearest set is asked for, and all sets of a size cost the same."""
    return asked.listing == 0 and near.sizes[0] >= near.sizes[count - 1] * (1 - SAME)


@inner()
def first_pair(trees, tests, asked, here, near, count, base):  # type: ignore[no-untyped-def]
    """A distance below which there is a pair that turns the case, and the nearest one; inf where none was found."""
    if not _alike(asked, near, count):
        return np.inf
    _measure_ways(trees, tests.feature, here, near)
    far, misses, sure = np.inf, 0, asked.cut - asked.tolerance - trees.rounding
    for b in range(1, count):
        for a in range(b):
            f, g = near.order[a], near.order[b]
            if near.best[f] + near.best[g] >= sure + base:
                break
            away, x, y = nearest_steps(trees.start, near, f, g, sure + base, NEARER * far)
            if x < 0 or not permitted(asked, asked.weight[f] + asked.weight[g], np.inf, (f, g, -1)):
                continue
            turns = score_with(trees, tests, here.side, asked.base, (f, g, -1), (x, y, -1)) < sure
            far, misses = (away, misses) if turns else (far, misses + 1)
            if misses > MISSES:
                return far + 2 * NOISE
    return far + 2 * NOISE


@inner()
def first_triple(trees, tests, asked, here, near, count, base):  # type: ignore[no-untyped-def]
    """As `first_pair`, which comes before, with three features."""
    if not _alike(asked, near, count):
        return np.inf
    far, misses, sure = np.inf, 0, asked.cut - asked.tolerance - trees.rounding
    for c in range(2, count):
        for b in range(1, c):
            for a in range(b):
                f, g, h = near.order[a], near.order[b], near.order[c]
                if near.best[f] + near.best[g] + near.best[h] >= sure + 2 * base:
                    break
                away, cells = NEARER * far, (np.int64(-1), np.int64(-1), np.int64(-1))
                for k in range(trees.start[f], near.step_end[f]):
                    step, left = near.step_far[k], sure + 2 * base - near.step_score[k]
                    if step >= away:
                        break
                    more, y, z = nearest_steps(trees.start, near, g, h, left, away - step)
                    if y >= 0:
                        away, cells = step + more, (near.step_cell[k], y, z)
                cost = asked.weight[f] + asked.weight[g] + asked.weight[h]
                if cells[0] < 0 or not permitted(asked, cost, np.inf, (f, g, h)):
                    continue
                turns = score_with(trees, tests, here.side, asked.base, (f, g, h), cells) < sure
                far, misses = (away, misses) if turns else (far, misses + 1)
                if misses > MISSES:
                    return far + 2 * NOISE
    return far + 2 * NOISE
