"""Two features together, over whole domains: what trees add beyond what each of both adds alone, and how low it gets.

A leaf adds what it is worth more than the case's own leaf of the tree. Where f has to change for it, and it asks about
g as well, that is in the profile of f, and is gone again where g leaves the leaf: -worth, for f inside and g outside.
Where both have to change it adds its worth, for both inside. The sum of these terms over all leaves is exact; the sum
of those below zero, for one cell of f and any of g, is a bound: the *fall* of the cell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search.domains._cell_distances import FREE
from fewest.engine.search.domains._leaf_slots import Words, bit_of
from fewest.engine.search.domains._profiles import NearTrees, nearest_steps, slot_of
from fewest.engine.search.domains._queue import Queue, make_queue
from fewest.tables.arrays import Bools, Floats, Ints, Ints32

WIDEST = 1024  # cells of a feature, up to which pairs are tried
PAIRED = 512  # features that may change, up to which pairs are tried
MOST_CELLS = 1 << 22  # cells times features, up to which pairs are tried
ARENA = 1 << 22  # cells of all grids that are kept together at most


class PairRoom(NamedTuple):
    """Room for the pairs of one case. The cells of f *beside* g are in row g, where `NearRoom.score` has those of f."""

    place: Ints  # (p,): Place of each feature in the order
    fall: Floats  # (p, cells + p): What a cell takes off at most, together with the feature beside it
    edge: Bools  # (p + 1, cells + p): Whether some leaf that asks about both begins or ends here; last one for triples
    group: Ints32  # (p, cells + p): Group of the cell: no leaf that asks about both tells its cells apart
    fits: Words  # (p,): The features with which one may be low enough, as bits
    low: Floats  # (p, p): The least that a profile and its falls come to, [g, f] for f beside g
    worth: Floats  # (leaves,): What each leaf adds more than the case's own
    asks: Words  # (leaves,): The features that it asks about, as bits
    one_head: Ints  # (p,): First leaf for which the feature alone has to change; its place in the list
    two_head: Ints  # (q, q): The same for two features, by their places in the order
    next: Ints  # (leaves,)
    at: Ints  # (q, q): Where the grid of two features begins, by their places in the order
    wide: Ints  # (q, q): The length of its rows
    slots: Ints  # (leaves, 2): What the leaves of one pair ask of both features
    inside: Ints  # (leaves,): Which of them have to change: 1 the first, 2 the second, 3 both
    terms: Floats  # (leaves,): What they add
    grid: Floats  # (arena,): Grids: a row for each group of the first feature, and one more place in each direction
    cell: Ints  # (3, most cells): Cells of two or three features that are tried
    queue: Queue


def make_pair_room(trees: NearTrees) -> PairRoom:
    """Room for pairs of the features that may change; none where there would have to be too much of it."""
    p, leaves = len(trees.start) - 1, len(trees.leaves.value)
    counts = np.diff(trees.start)
    widest, m = int(counts.max(initial=0)), int(trees.start[-1]) + p
    q = 0 if widest > WIDEST or p > PAIRED or m * p > MOST_CELLS else p
    m, rows = (m, p) if q else (0, 0)
    area = ((counts + 2).sum() ** 2 - ((counts + 2) ** 2).sum()) // 2

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    return PairRoom(
        ints(p), np.zeros((rows, m)), np.zeros((rows + 1, m), dtype=bool), np.zeros((rows, m), dtype=np.int32),
        np.zeros(rows, dtype=np.uint64), np.zeros((rows, rows)), np.zeros(leaves), np.zeros(leaves, dtype=np.uint64),
        ints(p), ints(q, q), ints(leaves), ints(q, q), ints(q, q),
        ints(leaves, 2), ints(leaves), np.zeros(leaves),
        np.zeros(max((WIDEST + 2) ** 2, min(int(area), ARENA)) if q else 0), ints(3, widest if q else 0),
        make_queue(q * (q - 1) // 2),
    )  # fmt: skip


@inner(inline="always")
def _mark(runs, fall, g, slot, worth):  # type: ignore[no-untyped-def]
    """Note, as differences, what the cells of a feature inside a leaf take off beside another."""
    for run in range(runs.start[slot], runs.start[slot + 1]):
        fall[g, runs.span[run, 0]] += worth
        fall[g, runs.span[run, 1]] -= worth


@inner(inline="always")
def _link_leaf(leaves, state, near, pair, k):  # type: ignore[no-untyped-def]
    """Put a leaf into the list of the features that have to change for it; sum up what it takes off with each pair."""
    leaf, f, g, worth = near.leaf[k], near.first[k], near.second[k], pair.worth[k]
    if g >= 0:
        a, b = min(pair.place[f], pair.place[g]), max(pair.place[f], pair.place[g])
        pair.next[k], pair.two_head[a, b] = pair.two_head[a, b], k
        pair.low[f, g] += min(worth, 0.0)
        return
    pair.next[k], pair.one_head[f] = pair.one_head[f], k
    if worth > 0.0:
        for slot in range(leaves.slot[leaf], leaves.slot[leaf + 1]):
            if state[leaves.feature[slot]] == FREE:
                pair.low[f, leaves.feature[slot]] -= worth


@inner(inline="always")
def _mark_leaf(trees, near, pair, k):  # type: ignore[no-untyped-def]
    """Enter what one leaf takes off with each pair that it asks about and that may be low enough."""
    leaves, leaf, f, g, worth = trees.leaves, near.leaf[k], near.first[k], near.second[k], pair.worth[k]
    if g >= 0:
        if worth < 0.0 and pair.low[f, g] < np.inf:
            _mark(trees.runs, pair.fall, g, slot_of(leaves, leaf, f), worth)
            _mark(trees.runs, pair.fall, f, slot_of(leaves, leaf, g), worth)
        return
    if worth <= 0.0 or pair.asks[k] & pair.fits[f] == 0:
        return
    one = slot_of(leaves, leaf, f)
    for slot in range(leaves.slot[leaf], leaves.slot[leaf + 1]):
        other = leaves.feature[slot]
        if other < pair.low.shape[0] and pair.low[f, other] < np.inf:
            _mark(trees.runs, pair.fall, other, one, -worth)
            pair.fall[f, trees.runs.zero[other]] -= worth  # outside of the leaf: everywhere, less the cells inside
            _mark(trees.runs, pair.fall, f, slot, worth)


@inner(inline="always")
def _add_up(profile, fall, g, first, last):  # type: ignore[no-untyped-def]
    """Sum the differences up to the falls of all cells of f beside g; the least that comes of them."""
    total, best = 0.0, np.inf
    for at in range(first, last):
        total += fall[g, at]
        fall[g, at] = total
        low = profile[at] + total
        best = low if low < best else best
    return best


@inner()
def link_pairs(trees, here, near, pair, count):  # type: ignore[no-untyped-def]
    """The leaves by what has to change for them, and what each pair takes off at most, in ``pair.low``."""
    for f in range(pair.low.shape[0]):
        for g in range(pair.low.shape[0]):
            pair.low[f, g] = 0.0
    for a in range(count):
        pair.place[near.order[a]], pair.one_head[near.order[a]] = a, -1
        for b in range(count):
            pair.two_head[a, b] = -1
    for tree in range(near.tree.shape[0] - 1):
        own = trees.leaves.value[near.leaf[near.tree[tree]]]
        for k in range(near.tree[tree] + 1, near.tree[tree + 1]):
            pair.worth[k], pair.asks[k] = trees.leaves.value[near.leaf[k]] - own, trees.leaves.asks[near.leaf[k]]
            if near.third[k] < 0:
                _link_leaf(trees.leaves, here.state, near, pair, k)


@inner()
def mark_pairs(trees, here, near, pair, count, need, limit):  # type: ignore[no-untyped-def]
    """The falls of all cells beside all features; ``pair.low`` is inf where two profiles cannot get below ``need``.

    Nor where they can only further away than ``limit``.
    """
    link_pairs(trees, here, near, pair, count)
    zero = trees.runs.zero
    for f in range(pair.low.shape[0]):
        pair.low[f, f], pair.fits[f] = np.inf, 0
        for g in range(f):
            fits = here.state[f] == FREE and here.state[g] == FREE
            left = need - pair.low[f, g] - pair.low[g, f]
            fits = fits and near.best[f] + near.best[g] < left
            if fits and limit < np.inf:
                fits = nearest_steps(trees.start, near, f, g, left, limit)[0] < limit
            pair.low[f, g] = 0.0 if fits else np.inf
            pair.low[g, f] = pair.low[f, g]
            if fits:
                pair.fits[f] |= bit_of(g)
                pair.fits[g] |= bit_of(f)
            for at in range(zero[f], zero[f + 1] if fits else 0):
                pair.fall[g, at] = 0.0
            for at in range(zero[g], zero[g + 1] if fits else 0):
                pair.fall[f, at] = 0.0
    for tree in range(near.tree.shape[0] - 1):
        for k in range(near.tree[tree] + 1, near.tree[tree + 1]):
            _mark_leaf(trees, near, pair, k)
    for b in range(count):
        f = near.order[b]
        for a in range(count):
            g = near.order[a]
            if pair.low[g, f] < np.inf:
                pair.low[g, f] = _add_up(near.open, pair.fall, g, zero[f], zero[f + 1] - 1)


@inner()
def lowest_pair(near, pair, f, g, base):  # type: ignore[no-untyped-def]
    """How low the score may get with two features."""
    return max(pair.low[g, f] + near.best[g], pair.low[f, g] + near.best[f]) - base


@inner(inline="always")
def _nearest_beside(trees, far, near, pair, f, g, need):  # type: ignore[no-untyped-def]
    """The least distance at which a cell of f, with its fall, and a step of g may add up to less than ``need``."""
    best, first, steps = np.inf, trees.start[f], trees.start[g]
    for c in range(trees.start[f + 1] - first):
        left = need - near.score[first + f + c] - pair.fall[g, first + f + c]
        if far[first + c] >= best or near.best[g] >= left:
            continue
        k = steps
        while near.step_score[k] >= left:
            k += 1
        best = min(best, far[first + c] + near.step_far[k])
    return best


@inner()
def nearest_pair(trees, far, near, pair, f, g, need):  # type: ignore[no-untyped-def]
    """How far two features lead at least, where their profiles and what they take off have to be below ``need``."""
    one = _nearest_beside(trees, far, near, pair, f, g, need)
    return max(one, _nearest_beside(trees, far, near, pair, g, f, need)) if one < np.inf else one
