"""Two features together, over whole domains: which can turn a case, and the exact score on the grid of their cells.

The score with two features changed is the sum of their profiles and of what trees that ask about both add to it: each
leaf of such a tree is a rectangle of the grid, summed over all leaves by differences.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search._profiles import NearTrees, enter, enter_near, permitted, slot_of
from fewest.engine.search._ties import NOISE, SAME
from fewest.tables.arrays import Floats, Ints

WIDEST = 1024  # cells of a feature, up to which pairs are tried on their grids


class PairRoom(NamedTuple):
    """Room for the pairs of one case, and for the grid of one pair."""

    place: Ints  # (p,): Place of each feature in the order
    alone: Floats  # (p,): What the feature takes off at most, each tree by itself
    in_tree: Floats  # (p,): The same in one tree
    touched: Ints  # (p,)
    bound: Floats  # (q, q): What two take off beyond the sum of both, at most
    pair_tree: Floats  # (q, q): The least leaf of one tree for which both have to change
    pairs: Ints  # (leaves,)
    own_head: Ints  # (p,): First of the case's own leaves that asks about a feature; its slot
    own_next: Ints  # (slots,)
    own_leaf: Ints  # (slots,): The leaf it belongs to
    one_head: Ints  # (p,): First leaf for which the feature alone has to change; its place in the list
    two_head: Ints  # (q, q): The same for two features
    next: Ints  # (leaves,)
    slots: Ints  # (leaves, 2): What the leaves of one pair ask of both features
    kind: Ints  # (leaves,): 1 where the first feature has to change, 2 the second, 3 both, 0 none
    worth: Floats  # (leaves,)
    group: Ints  # (2, most cells): Group of each cell: the same leaves of all trees
    nearest: Ints  # (2, most cells): The nearest cell of each group
    side: Floats  # (2, most cells + 1)
    grid: Floats  # (most cells + 1, most cells + 1)


def make_pair_room(trees: NearTrees, q: int) -> PairRoom:
    """Room for up to q features that may change; none where grids would be too large."""
    p, leaves, slots = len(trees.start) - 1, len(trees.leaves.value), len(trees.leaves.feature)
    widest = int(np.diff(trees.start).max(initial=0))
    if widest > WIDEST:
        q = widest = 0

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    return PairRoom(
        ints(p), np.zeros(p), np.full(p, np.inf), ints(p), np.zeros((q, q)), np.full((q, q), np.inf), ints(leaves),
        ints(p), ints(slots), ints(slots), ints(p), ints(q, q), ints(leaves), ints(leaves, 2), ints(leaves),
        np.zeros(leaves), ints(2, widest), ints(2, widest), np.zeros((2, widest + 1)),
        np.zeros((widest + 1, widest + 1)),
    )  # fmt: skip


@inner()
def _reachable(trees, far, leaf, f):  # type: ignore[no-untyped-def]
    """Whether a cell of the leaf is allowed."""
    slot = slot_of(trees.leaves, leaf, f)
    for run in range(trees.runs.start[slot], trees.runs.start[slot + 1]):
        for c in range(trees.start[f] + trees.runs.low[run], trees.start[f] + trees.runs.high[run] + 1):
            if far[c] < np.inf:
                return True
    return False


@inner()
def bound_pairs(trees, far, near, pair, count):  # type: ignore[no-untyped-def]
    """What each pair takes off at most, every tree taking its own best leaf; and the leaves by what has to change."""
    leaves = trees.leaves
    for f in range(pair.alone.shape[0]):
        pair.alone[f], pair.own_head[f], pair.one_head[f] = 0.0, -1, -1
    for a in range(count):
        pair.place[near.order[a]] = a
        for b in range(count):
            pair.bound[a, b], pair.two_head[a, b] = 0.0, -1
    for tree in range(near.tree.shape[0] - 1):
        leaf = near.leaf[near.tree[tree]]
        own, met, twos = leaves.value[leaf], 0, 0
        for slot in range(leaves.slot[leaf], leaves.slot[leaf + 1]):
            f = leaves.feature[slot]
            if f < pair.own_head.shape[0]:
                pair.own_next[slot], pair.own_head[f], pair.own_leaf[slot] = pair.own_head[f], slot, leaf
        for k in range(near.tree[tree] + 1, near.tree[tree + 1]):
            leaf, f, g = near.leaf[k], near.first[k], near.second[k]
            if not _reachable(trees, far, leaf, f):
                continue
            value = leaves.value[leaf] - own
            if g < 0:
                pair.next[k], pair.one_head[f] = pair.one_head[f], k
                if value < 0.0:
                    if pair.in_tree[f] == np.inf:
                        pair.touched[met] = f
                        met += 1
                    pair.in_tree[f] = min(pair.in_tree[f], value)
            elif _reachable(trees, far, leaf, g):
                a, b = pair.place[f], pair.place[g]
                if a > b:
                    a, b = b, a
                pair.next[k], pair.two_head[a, b] = pair.two_head[a, b], k
                if value < 0.0:
                    if pair.pair_tree[a, b] == np.inf:
                        pair.pairs[twos] = a * count + b
                        twos += 1
                    pair.pair_tree[a, b] = min(pair.pair_tree[a, b], value)
        for m in range(twos):
            a, b = pair.pairs[m] // count, pair.pairs[m] % count
            one = min(pair.in_tree[near.order[a]], pair.in_tree[near.order[b]], 0.0)
            pair.bound[a, b] += min(pair.pair_tree[a, b] - one, 0.0)
            pair.pair_tree[a, b] = np.inf
        for m in range(met):
            f = pair.touched[m]
            pair.alone[f] += pair.in_tree[f]
            for k in range(m):
                g = pair.touched[k]
                a, b = pair.place[f], pair.place[g]
                if a > b:
                    a, b = b, a
                pair.bound[a, b] -= max(pair.in_tree[f], pair.in_tree[g])
        for m in range(met):
            pair.in_tree[pair.touched[m]] = np.inf


@inner()
def _gather(trees, near, pair, f, g):  # type: ignore[no-untyped-def]
    """The leaves that ask about both features and for which no other has to change; how many."""
    leaves, n = trees.leaves, 0
    slot = pair.own_head[f]
    while slot >= 0:
        leaf = pair.own_leaf[slot]
        other = slot_of(leaves, leaf, g)
        if other >= 0:
            pair.slots[n, 0], pair.slots[n, 1], pair.kind[n], pair.worth[n] = slot, other, 0, leaves.value[leaf]
            n += 1
        slot = pair.own_next[slot]
    for way in range(3):
        if way < 2:
            k = pair.one_head[f if way == 0 else g]
        else:
            a, b = pair.place[f], pair.place[g]
            k = pair.two_head[min(a, b), max(a, b)]
        while k >= 0:
            leaf = near.leaf[k]
            one, two = slot_of(leaves, leaf, f), slot_of(leaves, leaf, g)
            if one >= 0 and two >= 0:
                pair.slots[n, 0], pair.slots[n, 1], pair.kind[n], pair.worth[n] = one, two, way + 1, leaves.value[leaf]
                n += 1
            k = pair.next[k]
    return n


@inner()
def _group(trees, far, near, pair, way, f, n, room_for):  # type: ignore[no-untyped-def]
    """Put cells that no leaf tells apart into groups, the near ones alone; how many, and the first and last cell."""
    first, count = trees.start[f], trees.start[f + 1] - trees.start[f]
    group, nearest, runs = pair.group[way], pair.nearest[way], trees.runs
    low, high = count, -1
    for c in range(count):
        if far[first + c] < room_for:
            low, high = min(low, c), c
        group[c] = 1 if near.edge[first + f + c] else 0
    for k in range(n):
        slot = pair.slots[k, way]
        for run in range(runs.start[slot], runs.start[slot + 1]):
            if runs.low[run] <= runs.high[run]:
                group[runs.low[run]] = 1
                if runs.high[run] + 1 < count:
                    group[runs.high[run] + 1] = 1
    groups, best = 0, np.inf
    for c in range(low, high + 1):
        if c == low or group[c] == 1:
            best = np.inf
            nearest[groups] = c
            pair.side[way, groups] = 0.0
            groups += 1
        group[c] = groups - 1
        if far[first + c] < best:
            best = far[first + c]
            nearest[groups - 1] = c
    pair.side[way, groups] = 0.0
    return groups, low, high


@inner()
def _span(runs, group, low, high, run):  # type: ignore[no-untyped-def]
    """First group of a run, and the one after its last; the same where it is too far."""
    first, last = max(np.int64(runs.low[run]), low), min(np.int64(runs.high[run]), high)
    if first > last:
        return np.int64(0), np.int64(0)
    return group[first], group[last] + 1


@inner()
def _fill(runs, pair, n, ends):  # type: ignore[no-untyped-def]
    """Add the leaves to the grid as differences; what is left over for all of it."""
    rest = 0.0
    for k in range(n):
        one, two, kind, worth = pair.slots[k, 0], pair.slots[k, 1], pair.kind[k], pair.worth[k]
        rest += worth if kind == 0 else 0.0
        for run in range(runs.start[one], runs.start[one + 1]):
            a, b = _span(runs, pair.group[0], ends[0], ends[1], run)
            if a == b:
                continue
            if kind < 2:  # the profile of the first feature has it already
                pair.side[0, a] -= worth
                pair.side[0, b] += worth
            for other in range(runs.start[two], runs.start[two + 1]):
                c, d = _span(runs, pair.group[1], ends[2], ends[3], other)
                if c < d:
                    pair.grid[a, c] += worth
                    pair.grid[a, d] -= worth
                    pair.grid[b, c] -= worth
                    pair.grid[b, d] += worth
        if kind in (0, 2):
            for other in range(runs.start[two], runs.start[two + 1]):
                c, d = _span(runs, pair.group[1], ends[2], ends[3], other)
                pair.side[1, c] -= worth
                pair.side[1, d] += worth
    return rest


@inner()
def try_pair(trees, asked, here, near, pair, out, i, f, g, base):  # type: ignore[no-untyped-def]
    """Enter the nearest cells of two features that turn the case, and those that only the model can decide."""
    cost, limit = asked.weight[f] + asked.weight[g], np.inf
    if not permitted(asked, cost, out.cost[i], f, g):
        return
    if asked.listing == 0 and cost >= out.cost[i] * (1 - SAME):
        limit = out.far[i] - NOISE
    if here.least[f] + here.least[g] >= limit:
        return
    n = _gather(trees, near, pair, f, g)
    rows, low, high = _group(trees, here.far, near, pair, 0, f, n, limit - here.least[g])
    columns, left, right = _group(trees, here.far, near, pair, 1, g, n, limit - here.least[f])
    for r in range(rows + 1):
        for c in range(columns + 1):
            pair.grid[r, c] = 0.0
    base = _fill(trees.runs, pair, n, (low, high, left, right)) - base
    sure, wall = asked.cut - asked.tolerance - trees.rounding, asked.cut + asked.tolerance + trees.rounding
    total = 0.0
    for c in range(columns):  # what a group adds whatever the other feature is
        total += pair.side[1, c]
        pair.side[1, c] = total + near.score[trees.start[g] + g + pair.nearest[1, c]] + base
    total = 0.0
    far, best, cell, other = np.inf, np.inf, -1, -1
    for r in range(rows):
        total += pair.side[0, r]
        own = total + near.score[trees.start[f] + f + pair.nearest[0, r]]
        first = here.far[trees.start[f] + pair.nearest[0, r]]
        add = 0.0
        for c in range(columns):
            if r > 0:
                pair.grid[r, c] += pair.grid[r - 1, c]
            add += pair.grid[r, c]
            score = own + pair.side[1, c] + add
            if score >= wall:
                continue
            away = first + here.far[trees.start[g] + pair.nearest[1, c]]
            if away >= limit:
                continue
            if score >= sure:
                enter_near(out, i, cost, away, f, pair.nearest[0, r], g, pair.nearest[1, c])
            elif away < far - NOISE or (away <= far + NOISE and score < best):
                far, best, cell, other = away, score, pair.nearest[0, r], pair.nearest[1, c]
    if cell >= 0:
        enter(asked.listing, out, i, cost, far, f, cell, g, other)
