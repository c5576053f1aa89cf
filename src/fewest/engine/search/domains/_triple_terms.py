"""Three features together, over whole domains: how low the score may get, by the grids of two and what is beyond them.

As with two features: a leaf that asks about all three adds its worth, or takes it off, where those that have to change
for it are inside and the others outside. What is not below zero is left out of the bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search.domains._cell_distances import FREE
from fewest.engine.search.domains._pair_grids import draw_grid
from fewest.engine.search.domains._pair_terms import PairRoom, link_pairs
from fewest.engine.search.domains._profiles import NearTrees, find_leaves
from fewest.engine.search.domains._queue import Queue, make_queue
from fewest.tables.arrays import Floats, Ints, Ints32

TRIPLED = 48  # features that may change, up to which all triples are bounded


class TripleRoom(NamedTuple):
    """Room for the triples of one case; features by their place in the order, ascending."""

    fall: Floats  # (q, q, q): What three take off beyond what two of them do, at most
    head: Ints32  # (q, q, q): First leaf for which all three have to change; its place in the list
    dip: Floats  # (q, q): What two take off beyond what each does alone: the least of their grid
    half: Floats  # (q, q): The same with half of what each does alone
    whole: Floats  # (q, q): The same with all of it
    beside: Floats  # (p, cells + p): What the feature beside it comes to at least, with what both add together
    side: Floats  # (6, most cells): By groups of two features: profiles, the least beside them, the least together
    slots: Ints  # (leaves, 3): What the leaves of one triple ask of its features
    inside: Ints  # (leaves,): Which of them have to change, as bits
    worth: Floats  # (leaves,)
    active: Ints  # (leaves,): Those of them that are there with one cell of the first feature
    line: Floats  # (3, most cells + 1): What three take off at most, or add, cell by cell
    queue: Queue


def make_triple_room(trees: NearTrees, pair: PairRoom) -> TripleRoom:
    """Room for triples; none where there are too many."""
    p, leaves, widest = len(trees.start) - 1, len(trees.leaves.value), pair.cell.shape[1]
    q = p if 0 < p <= TRIPLED and widest else 0
    leaves = leaves if q else 0
    return TripleRoom(
        np.zeros((q, q, q)), np.zeros((q, q, q), dtype=np.int32), np.zeros((q, q)), np.zeros((q, q)), np.zeros((q, q)),
        np.zeros(pair.fall.shape if q else (0, 0)), np.zeros((6, widest)), np.zeros((leaves, 3), dtype=np.int64),
        np.zeros(leaves, dtype=np.int64), np.zeros(leaves), np.zeros(leaves, dtype=np.int64),
        np.zeros((3, widest + 1)), make_queue(q * (q - 1) * (q - 2) // 6),
    )  # fmt: skip


@inner(inline="always")
def _lower(triple, a, b, c, worth):  # type: ignore[no-untyped-def]
    """Note what one leaf takes off with three features; their places, ascending."""
    low, high = min(a, b, c), max(a, b, c)
    middle = a + b + c - low - high
    triple.fall[low, middle, high] += min(worth, 0.0)
    return low, middle, high


@inner(inline="always")
def _mark_leaf(leaves, state, near, pair, triple, k):  # type: ignore[no-untyped-def]
    """Enter what one leaf takes off with all triples that it asks about."""
    leaf, f, g, h, worth = near.leaf[k], near.first[k], near.second[k], near.third[k], pair.worth[k]
    if h >= 0:
        low, middle, high = _lower(triple, pair.place[f], pair.place[g], pair.place[h], worth)
        pair.next[k], triple.head[low, middle, high] = triple.head[low, middle, high], k
        return
    for slot in range(leaves.slot[leaf], leaves.slot[leaf + 1]):
        other = leaves.feature[slot]
        if state[other] != FREE or other in (f, g):
            continue
        if g >= 0:
            _lower(triple, pair.place[f], pair.place[g], pair.place[other], -worth)
            continue
        for more in range(slot + 1, leaves.slot[leaf + 1]):
            if state[leaves.feature[more]] == FREE and leaves.feature[more] != f:
                _lower(triple, pair.place[f], pair.place[other], pair.place[leaves.feature[more]], worth)


@inner()
def _least_profile(trees, far, near, pair, triple, way, g, f, base, limit):  # type: ignore[no-untyped-def]
    """The least of the profile of f in each of its groups beside g, less the score of the case; how many groups."""
    first, n = trees.start[f], np.int64(0)
    for c in range(trees.start[f + 1] - first):
        group = np.int64(pair.group[g, first + f + c])
        if group >= n:
            triple.side[way, n], triple.side[2 + way, n], triple.side[4 + way, n] = np.inf, np.inf, np.inf
            n += 1
        if far[first + c] < limit:
            triple.side[way, group] = min(triple.side[way, group], near.score[first + f + c] - base)
    return n


@inner()
def _sum_up(trees, far, near, pair, triple, a, b, base, limit):  # type: ignore[no-untyped-def]
    """What the grid of two features comes to at least: for each cell of either, and altogether."""
    f, g = near.order[a], near.order[b]
    rows = _least_profile(trees, far, near, pair, triple, 0, g, f, base, limit)
    columns = _least_profile(trees, far, near, pair, triple, 1, f, g, base, limit)
    dip, half, whole, side = np.inf, np.inf, np.inf, triple.side
    for r in range(rows):
        at = pair.at[a, b] + r * pair.wide[a, b]
        for c in range(columns):
            add, both = pair.grid[at + c], side[0, r] + side[1, c]
            if both < np.inf:
                dip, half, whole = min(dip, add), min(half, add + both / 2), min(whole, add + both)
                side[2, r], side[3, c] = min(side[2, r], side[1, c] + add), min(side[3, c], side[0, r] + add)
                side[4, r], side[5, c] = min(side[4, r], add), min(side[5, c], add)
    triple.dip[a, b], triple.half[a, b], triple.whole[a, b] = dip, half, whole
    for way in range(2):
        one, two = (g, f) if way == 0 else (f, g)
        zero = trees.start[two] + two
        for at in range(zero, zero + trees.start[two + 1] - trees.start[two]):
            group = pair.group[one, at]
            triple.beside[one, at], pair.fall[one, at] = side[2 + way, group], side[4 + way, group]


@inner()
def mark_triples(trees, here, near, pair, triple, count, base, limit):  # type: ignore[no-untyped-def]
    """Draw the grids of all pairs, sum them up, and bound what is beyond them; False where there is no room.

    What is not nearer than ``limit`` is left out.
    """
    find_leaves(trees.walk, here.side, here.state, near, 3, limit)
    link_pairs(trees, here, near, pair, count)
    end = np.int64(0)
    for b in range(count):
        for a in range(b):
            end = draw_grid(trees, near, pair, a, b, end)
            if end < 0:
                return False
            _sum_up(trees, here.far, near, pair, triple, a, b, base, limit)
            for c in range(a):
                triple.fall[c, a, b], triple.head[c, a, b] = 0.0, -1
    for tree in range(near.tree.shape[0] - 1):
        for k in range(near.tree[tree] + 1, near.tree[tree + 1]):
            _mark_leaf(trees.leaves, here.state, near, pair, triple, k)
    return True


@inner()
def lowest_triple(triple, a, b, c, base):  # type: ignore[no-untyped-def]
    """How low the score may get with three features."""
    return base + triple.half[a, b] + triple.half[a, c] + triple.half[b, c] + triple.fall[a, b, c]


@inner(inline="always")
def lowest_with(near, pair, triple, at, g, h, dip, whole):  # type: ignore[no-untyped-def]
    """How low a cell of a feature may get with two others: each takes what is best with it, or with the other."""
    one, two = triple.beside[g, at] + triple.beside[h, at] + dip, pair.fall[g, at] + pair.fall[h, at] + whole
    return near.score[at] + (one if one > two else two)


@inner(inline="always")
def _nearest_cell(trees, far, near, pair, triple, f, g, h, dip, whole, need):  # type: ignore[no-untyped-def]
    """How far the nearest cell of f is that may be low enough with two other features; inf where none is."""
    best, first = np.inf, trees.start[f]
    for c in range(first, trees.start[f + 1]):
        if far[c] < best and lowest_with(near, pair, triple, c + f, g, h, dip, whole) < need:
            best = far[c]
    return best


@inner()
def nearest_triple(trees, far, near, pair, triple, a, b, c, wall):  # type: ignore[no-untyped-def]
    """How far three features lead at least, where the score has to be below the wall."""
    f, g, h, dip, whole = near.order[a], near.order[b], near.order[c], triple.dip, triple.whole
    need, total = wall - triple.fall[a, b, c], 0.0
    total += _nearest_cell(trees, far, near, pair, triple, f, g, h, dip[b, c], whole[b, c], need)
    if total < np.inf:
        total += _nearest_cell(trees, far, near, pair, triple, g, f, h, dip[a, c], whole[a, c], need)
    if total < np.inf:
        total += _nearest_cell(trees, far, near, pair, triple, h, f, g, dip[a, b], whole[a, b], need)
    return total
