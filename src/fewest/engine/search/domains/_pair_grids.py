"""Two features together, over whole domains: which can turn a case, and the exact score on the grid of their cells.

The score with two features changed is the sum of their profiles and of what trees that ask about both add to it: each
leaf of such a tree is a rectangle of the grid, summed over all leaves by differences.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search._ties import NOISE, SAME
from fewest.engine.search.domains._profiles import NearTrees, enter, enter_near, nearest_two, permitted, slot_of
from fewest.tables.arrays import Floats, Ints

WIDEST = 1024  # cells of a feature, up to which pairs are tried on their grids


class PairRoom(NamedTuple):
    """Room for the pairs of one case, and for the grid of one pair."""

    place: Ints  # (p,): Place of each feature in the order
    bound: Floats  # (q, q): What two take off beyond what each does alone, at most
    in_tree: Floats  # (q, q): The same in one tree
    touched: Ints  # (q * q,): Pairs to which one tree adds
    most: Floats  # (p,): What one tree adds at most with the feature alone; zero or more
    ones: Ints  # (leaves,): Leaves of one tree for which one feature has to change; their places in the list
    one_slot: Ints  # (leaves,): What they ask of it
    one_worth: Floats  # (leaves,): What they add to the score of the case
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
        ints(p), np.zeros((q, q)), np.zeros((q, q)), ints(q * q), np.zeros(p), ints(leaves), ints(leaves),
        np.zeros(leaves),
        ints(p), ints(slots), ints(slots), ints(p), ints(q, q), ints(leaves), ints(leaves, 2), ints(leaves),
        np.zeros(leaves), ints(2, widest), ints(2, widest), np.zeros((2, widest + 1)),
        np.zeros((widest + 1, widest + 1)),
    )  # fmt: skip


@inner()
def reachable(trees, far, leaf, f):  # type: ignore[no-untyped-def]
    """Whether a cell of the leaf is allowed."""
    slot = slot_of(trees.leaves, leaf, f)
    for run in range(trees.runs.start[slot], trees.runs.start[slot + 1]):
        for c in range(trees.start[f] + trees.runs.low[run], trees.start[f] + trees.runs.high[run] + 1):
            if far[c] < np.inf:
                return True
    return False


@inner()
def _overlap(leaves, runs, a, b):  # type: ignore[no-untyped-def]
    """Whether two slots have a cell in common."""
    if leaves.row[a] < 0:
        return max(leaves.low[a], leaves.low[b]) <= min(leaves.high[a], leaves.high[b])
    for one in range(runs.start[a], runs.start[a + 1]):
        for two in range(runs.start[b], runs.start[b + 1]):
            if max(runs.low[one], runs.low[two]) <= min(runs.high[one], runs.high[two]):
                return True
    return False


@inner()
def rise(trees, near, pair, ones, own, leaf, f):  # type: ignore[no-untyped-def]
    """The most that a tree adds with feature f alone in a cell of the leaf; -inf where it has none."""
    slot, mine = slot_of(trees.leaves, leaf, f), slot_of(trees.leaves, own, f)
    best = 0.0 if slot < 0 or mine < 0 or _overlap(trees.leaves, trees.runs, slot, mine) else -np.inf
    for m in range(ones):
        if near.first[pair.ones[m]] != f or pair.one_worth[m] <= best:
            continue
        if slot < 0 or _overlap(trees.leaves, trees.runs, slot, pair.one_slot[m]):
            best = pair.one_worth[m]
    return best


@inner()
def _lower(pair, touched, f, g, worth):  # type: ignore[no-untyped-def]
    """Note that one tree takes off this much beyond what two features do alone; how many pairs it touches."""
    a, b = min(pair.place[f], pair.place[g]), max(pair.place[f], pair.place[g])
    if worth < pair.in_tree[a, b]:
        if pair.in_tree[a, b] == 0.0:
            pair.touched[touched] = a * pair.bound.shape[0] + b
            touched += 1
        pair.in_tree[a, b] = worth
    return touched


@inner()
def list_ones(trees, far, near, pair, tree):  # type: ignore[no-untyped-def]
    """List the leaves of one tree for which one feature has to change; how many."""
    leaves, n = trees.leaves, 0
    own = leaves.value[near.leaf[near.tree[tree]]]
    for k in range(near.tree[tree] + 1, near.tree[tree + 1]):
        leaf, f = near.leaf[k], near.first[k]
        if near.second[k] < 0 and reachable(trees, far, leaf, f):
            pair.ones[n], pair.one_slot[n], pair.one_worth[n] = k, slot_of(leaves, leaf, f), leaves.value[leaf] - own
            pair.most[f] = max(pair.most[f], pair.one_worth[n])
            n += 1
    return n


@inner()
def forget_ones(near, pair, ones):  # type: ignore[no-untyped-def]
    """Make room for the next tree."""
    for m in range(ones):
        pair.most[near.first[pair.ones[m]]] = 0.0


@inner()
def _link_leaves(trees, far, near, pair, tree, ones):  # type: ignore[no-untyped-def]
    """Put the leaves of one tree into the lists of the features that have to change for them."""
    leaves, own = trees.leaves, near.leaf[near.tree[tree]]
    for slot in range(leaves.slot[own], leaves.slot[own + 1]):
        f = leaves.feature[slot]
        if f < pair.own_head.shape[0]:
            pair.own_next[slot], pair.own_head[f], pair.own_leaf[slot] = pair.own_head[f], slot, own
    for m in range(ones):
        k = pair.ones[m]
        pair.next[k], pair.one_head[near.first[k]] = pair.one_head[near.first[k]], k
    for k in range(near.tree[tree] + 1, near.tree[tree + 1]):
        f, g = near.first[k], near.second[k]
        if g >= 0 and reachable(trees, far, near.leaf[k], f) and reachable(trees, far, near.leaf[k], g):
            a, b = min(pair.place[f], pair.place[g]), max(pair.place[f], pair.place[g])
            pair.next[k], pair.two_head[a, b] = pair.two_head[a, b], k


@inner()
def bound_pairs(trees, far, near, pair, count):  # type: ignore[no-untyped-def]
    """What each pair takes off at most beyond what both do alone, tree by tree; and the leaves by what has to change.

    With two features changed, a tree adds what its leaf says. Less what it adds with each of both alone (which their
    profiles hold), the least of that over its leaves is a bound.
    """
    leaves = trees.leaves
    for f in range(pair.own_head.shape[0]):
        pair.own_head[f], pair.one_head[f] = -1, -1
    for a in range(count):
        pair.place[near.order[a]] = a
        for b in range(count):
            pair.bound[a, b], pair.two_head[a, b] = 0.0, -1
    for tree in range(near.tree.shape[0] - 1):
        ones, touched, own = list_ones(trees, far, near, pair, tree), 0, near.leaf[near.tree[tree]]
        _link_leaves(trees, far, near, pair, tree, ones)
        for k in range(near.tree[tree] + 1, near.tree[tree + 1]):
            leaf, f, g = near.leaf[k], near.first[k], near.second[k]
            worth = leaves.value[leaf] - leaves.value[own]
            if g >= 0 and worth < pair.most[f] + pair.most[g]:
                worth -= rise(trees, near, pair, ones, own, leaf, f)
                touched = _lower(pair, touched, f, g, worth - rise(trees, near, pair, ones, own, leaf, g))
        for m in range(ones):
            for other in range(ones):
                f, g = near.first[pair.ones[m]], near.first[pair.ones[other]]
                if f != g and pair.one_worth[other] > 0.0:
                    slot = slot_of(leaves, near.leaf[pair.ones[m]], g)
                    if slot < 0 or _overlap(trees.leaves, trees.runs, slot, pair.one_slot[other]):
                        touched = _lower(pair, touched, f, g, -pair.one_worth[other])
        forget_ones(near, pair, ones)
        for m in range(touched):
            a, b = pair.touched[m] // pair.bound.shape[0], pair.touched[m] % pair.bound.shape[0]
            pair.bound[a, b] += pair.in_tree[a, b]
            pair.in_tree[a, b] = 0.0


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
def _group(trees, far, near, pair, way, f, n, room_for, most):  # type: ignore[no-untyped-def]
    """Put cells that no leaf tells apart into groups, the near and low ones; how many, and the first and last cell."""
    first, count = trees.start[f], trees.start[f + 1] - trees.start[f]
    group, nearest, runs = pair.group[way], pair.nearest[way], trees.runs
    low, high = count, -1
    for c in range(count):
        if far[first + c] < room_for and near.score[first + f + c] < most:
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
def draw_grid(trees, near, pair, f, g):  # type: ignore[no-untyped-def]
    """Draw what two features add together beyond their profiles, cell by cell: grid and sides and what is given back.

    `bound_pairs` has put the leaves in order.
    """
    n, rows = _gather(trees, near, pair, f, g), trees.start[f + 1] - trees.start[f]
    columns = trees.start[g + 1] - trees.start[g]
    for way in range(2):
        for c in range((rows if way == 0 else columns) + 1):
            pair.side[way, c] = 0.0
            if c < pair.group.shape[1]:
                pair.group[way, c] = c
    for r in range(rows + 1):
        for c in range(columns + 1):
            pair.grid[r, c] = 0.0
    rest = _fill(trees.runs, pair, n, (np.int64(0), rows - 1, np.int64(0), columns - 1))
    for way in range(2):
        for c in range(1, rows if way == 0 else columns):
            pair.side[way, c] += pair.side[way, c - 1]
    for r in range(rows):
        add = 0.0
        for c in range(columns):
            add += pair.grid[r, c]
            pair.grid[r, c] = add + (pair.grid[r - 1, c] if r > 0 else 0.0)
    return rest


@inner()
def _lowest(trees, far, near, f, room_for):  # type: ignore[no-untyped-def]
    """The least of a profile over the cells that are near enough."""
    best, first = np.inf, trees.start[f]
    for c in range(trees.start[f + 1] - first):
        if far[first + c] < room_for:
            best = min(best, near.score[first + f + c])
    return best


@inner()
def try_pair(trees, asked, here, near, pair, out, i, f, g, base, bound):  # type: ignore[no-untyped-def]
    """Enter the nearest cells of two features that turn the case, and those that only the model can decide.

    ``bound`` is what the two take off at most beyond what each does alone.
    """
    cost, limit = asked.weight[f] + asked.weight[g], np.inf
    if not permitted(asked, cost, out.cost[i], f, g):
        return
    if asked.listing == 0 and cost >= out.cost[i] * (1 - SAME):
        limit = out.far[i] - NOISE
    sure, wall = asked.cut - asked.tolerance - trees.rounding, asked.cut + asked.tolerance + trees.rounding
    if nearest_two(trees.start, near, f, g, wall - base - bound) >= limit:
        return
    one = _lowest(trees, here.far, near, f, limit - here.least[g]) + bound - base
    two = _lowest(trees, here.far, near, g, limit - here.least[f])
    n, most = _gather(trees, near, pair, f, g), wall - two - bound + base
    rows, low, high = _group(trees, here.far, near, pair, 0, f, n, limit - here.least[g], most)
    columns, left, right = _group(trees, here.far, near, pair, 1, g, n, limit - here.least[f], wall - one)
    for r in range(rows + 1):
        for c in range(columns + 1):
            pair.grid[r, c] = 0.0
    base = _fill(trees.runs, pair, n, (low, high, left, right)) - base
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
        if r > 0:
            for c in range(columns):
                pair.grid[r, c] += pair.grid[r - 1, c]
        if near.score[trees.start[f] + f + pair.nearest[0, r]] >= most:
            continue
        add = 0.0
        for c in range(columns):
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
