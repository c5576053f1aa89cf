"""One feature alone, over whole domains: each tree is a step function of it, and the sum of these is exact.

The *profile* of a feature holds the score of the case with each of the feature's cells in place of its own value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.search._ties import NOISE, SAME
from fewest.engine.search.domains._cell_distances import FREE, stand
from fewest.engine.search.domains._leaf_slots import LEAF, Counts, LeafSlots, Runs, WalkedTrees, bit_of
from fewest.tables.arrays import Bools, Floats, Ints, Ints32


class NearTrees(NamedTuple):
    """The ensemble, as the search for one or two features reads it."""

    walk: WalkedTrees
    leaves: LeafSlots
    runs: Runs
    start: Ints  # (p + 1,): First cell of each feature
    rounding: float  # How far the order of a sum may change it


class NearRoom(NamedTuple):
    """Room for one case: the leaves that one to three changes lead to, and the profiles of the features."""

    waiting: Counts  # (nodes + 1, 5): Ways still to be walked
    tree: Ints  # (trees + 1,): First leaf of each tree; that one is the case's own
    leaf: Counts  # (leaves,), as the three that follow
    first: Ints32  # A feature that has to change for it, or -1
    second: Ints32  # Another, or -1
    third: Ints32  # A third one, or -1
    score: Floats  # (cells + p,): The profiles, each with one place more
    open: Floats  # (cells + p,): The profiles where a cell may be entered, else inf
    edge: Bools  # (cells + p,): Whether the profile changes here
    best: Floats  # (p,): The least of each profile
    step_far: Floats  # (cells,): Steps of each feature: cells outwards from the case, those lower than all nearer ones
    step_score: Floats  # (cells,): Their scores, from the first cell of the feature on; the last is its least
    step_cell: Ints  # (cells,): Which cells they are
    step_end: Ints  # (p,): After the last step of each feature
    upto: Floats  # (cells,): How far the nearest cell of a feature is, of those up to this one
    onwards: Floats  # (cells,): Of those from this one on
    cross: Floats  # (tests,): How far the other side of each split is at least
    away: Floats  # (nodes + 1,): How far what waits is at least
    order: Ints  # (p,): Features that may change, the least profile first
    sizes: Floats  # (p,): Their weights, ascending


def make_near_room(trees: NearTrees, p: int) -> NearRoom:
    """Room for one case of p features."""
    leaves, m = len(trees.leaves.value), int(trees.start[-1]) + p
    return NearRoom(
        np.zeros((len(trees.walk.node) + 1, 5), dtype=np.uint32), np.zeros(len(trees.leaves.tree), dtype=np.int64),
        np.zeros(leaves, dtype=np.uint32), np.zeros(leaves, dtype=np.int32), np.zeros(leaves, dtype=np.int32),
        np.zeros(leaves, dtype=np.int32),
        np.zeros(m), np.zeros(m), np.zeros(m, dtype=bool), np.zeros(p), np.zeros(m), np.zeros(m),
        np.zeros(m, dtype=np.int64),
        np.zeros(p, dtype=np.int64), np.zeros(m), np.zeros(m), np.zeros(len(trees.walk.span)),
        np.zeros(len(trees.walk.node) + 1), np.zeros(p, dtype=np.int64), np.zeros(p),
    )  # fmt: skip


@inner()
def find_leaves(walk, side, state, near, most, limit):  # type: ignore[no-untyped-def]
    """Leaves for which up to ``most`` (two or three) features have to change, tree by tree, the case's own first.

    Where ``limit`` is finite, those that are surely not nearer are left out, by ``near.cross``.
    """
    n, nodes, span, waiting, near_only = 0, walk.node, walk.span, near.waiting, limit < np.inf
    for tree in range(walk.root.shape[0]):
        near.tree[tree] = n
        waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = walk.root[tree], LEAF, LEAF, LEAF
        near.away[0] = 0.0
        count = 1
        while count > 0:
            count -= 1
            node, a, b, c = waiting[count, 0], waiting[count, 1], waiting[count, 2], waiting[count, 3]
            known, away = 0 if a == LEAF else 1 if b == LEAF else 2 if c == LEAF else 3, near.away[count]
            test = nodes[node, 0]
            while test != LEAF:
                f, way = nodes[node, 3], 0 if side[test] else 1
                new, other = f not in (a, b, c), 1 - way
                if state[f] == FREE and (not new or known < most) and span[test, other, 0] < span[test, other, 1]:
                    if not new and span[test, way, 0] >= span[test, way, 1]:  # the case's own value alone
                        way = other
                    elif not near_only or (away if new else 0.0) + near.cross[test] < limit:
                        waiting[count, 0] = nodes[node, 1 + other]
                        waiting[count, 1], waiting[count, 2], waiting[count, 3] = a, b, c
                        near.away[count] = away
                        if new:
                            waiting[count, known + 1] = f
                            near.away[count] += near.cross[test]
                        count += 1
                node = nodes[node, 1 + way]
                test = nodes[node, 0]
            near.leaf[n], near.first[n], near.second[n], near.third[n] = nodes[node, 3], a, b, c
            n += 1
    near.tree[walk.root.shape[0]] = n


@inner(inline="always")
def slot_of(leaves, leaf, f):  # type: ignore[no-untyped-def]
    """The slot of a leaf that is about a feature, or -1."""
    for slot in range(leaves.slot[leaf], leaves.slot[leaf + 1]):
        if leaves.feature[slot] == f:
            return slot
    return np.int64(-1)


@inner(inline="always")
def _turn_off(walk, side, state, waiting, node):  # type: ignore[no-untyped-def]
    """Walk to the case's own leaf, and list the ways that a change of one feature leads off to; leaf, and how many.

    In ``waiting``: where the way goes on, the feature, the cells that lead there, and the split.
    """
    count, nodes, span, met = 0, walk.node, walk.span, np.uint64(0)
    test = nodes[node, 0]
    while test != LEAF:
        f, way = nodes[node, 3], 0 if side[test] else 1
        low, high = span[test, 1 - way, 0], span[test, 1 - way, 1]
        if state[f] == FREE and low < high:
            if met & bit_of(f) != 0:  # splits above may ask about it as well
                for k in range(count):
                    if waiting[k, 1] == f:
                        above = waiting[k, 4]
                        own = 0 if side[above] else 1
                        low, high = max(low, span[above, own, 0]), min(high, span[above, own, 1])
            met |= bit_of(f)
            waiting[count, 0], waiting[count, 1], waiting[count, 4] = nodes[node, 2 - way], f, test
            waiting[count, 2], waiting[count, 3] = low, high
            count += 1
        node = nodes[node, 1 + way]
        test = nodes[node, 0]
    return nodes[node, 3], count


@inner(inline="always")
def _step(leaves, runs, ranged, score, leaf, f, low, high, change):  # type: ignore[no-untyped-def]
    """Note, as differences, what the cells of a feature that lead to a leaf change."""
    if ranged:
        score[low] += change
        score[high] -= change
        return
    slot = slot_of(leaves, leaf, f)
    for run in range(runs.start[slot], runs.start[slot + 1]):
        score[runs.span[run, 0]] += change
        score[runs.span[run, 1]] -= change


@inner()
def draw_profiles(trees, side, state, near, base):  # type: ignore[no-untyped-def]
    """The profiles of all features; the score of the case itself is given back."""
    leaves, walk, waiting, score = trees.leaves, trees.walk, near.waiting, near.score
    nodes, span = walk.node, walk.span
    for at in range(score.shape[0]):
        score[at] = 0.0
    for tree in range(walk.root.shape[0]):
        leaf, count = _turn_off(walk, side, state, waiting, walk.root[tree])
        own = leaves.value[leaf]
        base += own
        while count > 0:
            count -= 1
            node, f, low, high = waiting[count, 0], waiting[count, 1], waiting[count, 2], waiting[count, 3]
            if low >= high:
                continue
            test = nodes[node, 0]
            while test != LEAF:
                way = 0 if side[test] else 1
                if nodes[node, 3] == f:
                    first, last = max(low, span[test, 1 - way, 0]), min(high, span[test, 1 - way, 1])
                    low, high = max(low, span[test, way, 0]), min(high, span[test, way, 1])
                    if low >= high:  # only the other way
                        low, high, way = first, last, 1 - way
                    elif first < last:
                        waiting[count, 0], waiting[count, 1] = nodes[node, 2 - way], f
                        waiting[count, 2], waiting[count, 3] = first, last
                        count += 1
                node = nodes[node, 1 + way]
                test = nodes[node, 0]
            leaf = nodes[node, 3]
            _step(leaves, trees.runs, walk.ranged[f], score, leaf, f, low, high, leaves.value[leaf] - own)
    for f in range(trees.start.shape[0] - 1):
        if state[f] == FREE:
            total = base
            for at in range(trees.start[f] + f, trees.start[f + 1] + f):
                near.edge[at] = score[at] != 0.0
                total += score[at]
                score[at] = total
    return base


@entry
def score_cells(trees, tests, cells, asked, here, near, score):  # type: ignore[no-untyped-def]
    """The profiles of all cases (n, cells + p); the score of the case where a feature may not change."""
    for i in range(score.shape[0]):
        stand(tests, cells, asked, here, i)
        base = draw_profiles(trees, here.side, here.state, near, asked.base)
        for f in range(trees.start.shape[0] - 1):
            for at in range(trees.start[f] + f, trees.start[f + 1] + f):
                score[i, at] = near.score[at] if here.state[f] == FREE else base


@inner()
def score_with(trees, tests, side, total, features, cells):  # type: ignore[no-untyped-def]
    """The score of the case with two or three features (-1 for none) in these cells."""
    walk, zero, (f, g, h) = trees.walk, trees.runs.zero, features
    for tree in range(walk.root.shape[0]):
        node = walk.root[tree]
        test = walk.node[node, 0]
        while test != LEAF:
            left, asked = side[test], walk.node[node, 3]
            if asked in (f, g, h):
                c = cells[0] if asked == f else cells[1] if asked == g else cells[2]
                if walk.ranged[asked]:
                    left = walk.span[test, 0, 0] <= zero[asked] + c < walk.span[test, 0, 1]
                else:
                    left = (tests.bits[test, 1, c // 64] >> np.uint64(c % 64)) & np.uint64(1) != 0
            node = walk.node[node, 1 if left else 2]
            test = walk.node[node, 0]
        total += trees.leaves.value[walk.node[node, 3]]
    return total


@inner()
def rank_features(start, weight, here, near):  # type: ignore[no-untyped-def]
    """Sort the features that may change by what they do alone, and their weights; how many there are."""
    count = 0
    for f in range(start.shape[0] - 1):
        if here.state[f] != FREE:
            continue
        best = np.inf
        for c in range(start[f], start[f + 1]):
            near.open[c + f] = near.score[c + f] if here.far[c] < np.inf else np.inf
            best = min(best, near.open[c + f])
        near.best[f] = best
        a = count
        while a > 0 and near.best[near.order[a - 1]] > best:
            near.order[a] = near.order[a - 1]
            a -= 1
        near.order[a] = f
        b = count
        while b > 0 and near.sizes[b - 1] > weight[f]:
            near.sizes[b] = near.sizes[b - 1]
            b -= 1
        near.sizes[b] = weight[f]
        count += 1
    return count


@inner()
def draw_steps(start, here, near):  # type: ignore[no-untyped-def]
    """The steps of all features that may change."""
    for f in range(start.shape[0] - 1):
        if here.state[f] != FREE:
            continue
        first, last, lowest = start[f], start[f + 1], np.inf
        at, above = first, first + here.place[f]
        below = above - 1
        while below >= first or above < last:
            if below >= first and not here.far[below] < np.inf:
                below -= 1
                continue
            if above < last and not here.far[above] < np.inf:
                above += 1
                continue
            if above >= last or (below >= first and here.far[below] <= here.far[above]):
                c, below = below, below - 1
            else:
                c, above = above, above + 1
            if near.score[c + f] < lowest:
                lowest = near.score[c + f]
                near.step_far[at], near.step_score[at], near.step_cell[at] = here.far[c], lowest, c - first
                at += 1
        near.step_end[f] = at


@inner()
def nearest_steps(start, near, f, g, need, limit):  # type: ignore[no-untyped-def]
    """How far the nearest steps of two features are that get below ``need``, and these; ``limit`` and -1: none."""
    far, one, two, at = limit, np.int64(-1), np.int64(-1), near.step_end[g] - 1
    for k in range(start[f], near.step_end[f]):
        left = need - near.step_score[k]
        if near.step_far[k] >= far:
            break
        if near.step_score[at] >= left:
            continue
        while at > start[g] and near.step_score[at - 1] < left:
            at -= 1
        if near.step_far[k] + near.step_far[at] < far:
            far, one, two = near.step_far[k] + near.step_far[at], near.step_cell[k], near.step_cell[at]
    return far, one, two


@inner()
def permitted(asked, cost, best, features):  # type: ignore[no-untyped-def]
    """Whether these features (-1 for none) may change together at this cost."""
    if cost > min(asked.most, best) * (1 + SAME):
        return False
    for row in range(asked.forbidden.shape[0]):
        n, held = 0, 0
        for other in range(asked.forbidden.shape[1]):
            if asked.forbidden[row, other]:
                n += 1
                held += other in features
        if n == held:
            return False
    return True


@inner()
def enter(listing, out, i, cost, far, features, cells):  # type: ignore[no-untyped-def]
    """Enter a point that surely turns the case: these features (-1 for none) at these cells."""
    if cost < out.cost[i] * (1 - SAME):
        out.cost[i], out.far[i], out.met[i] = cost, np.inf, 0
    out.met[i] += 1
    if far < out.far[i] - NOISE:
        out.far[i] = far
        _write(out.points, i, 0, features, cells)
    if out.met[i] <= listing:
        _write(out.points, i, out.met[i], features, cells)


@inner()
def room_near(out, i, cost, far):  # type: ignore[no-untyped-def]
    """Make room for a point that only the model can decide; its place, -1 where there is none.

    Those that do not cost less than a sure one make room.
    """
    n = out.band_count[i]
    if n == out.band.shape[1] and out.cost[i] < np.inf:
        n = 0
        for k in range(out.band_count[i]):
            if out.band_cost[i, k] < out.cost[i] * (1 - SAME):
                out.band_cost[i, n], out.band_far[i, n] = out.band_cost[i, k], out.band_far[i, k]
                for other in range(out.band.shape[2]):
                    out.band[i, n, other] = out.band[i, k, other]
                n += 1
            else:
                out.spilled[i] = min(out.spilled[i], out.band_cost[i, k])
        out.band_count[i] = n
    if n == out.band.shape[1]:
        out.spilled[i] = min(out.spilled[i], cost)
        return np.int64(-1)
    out.band_cost[i, n], out.band_far[i, n] = cost, far
    out.band_count[i] += 1
    return n


@inner()
def enter_near(out, i, cost, far, features, cells):  # type: ignore[no-untyped-def]
    """Enter a point that only the model can decide."""
    n = room_near(out, i, cost, far)
    if n >= 0:
        _write(out.band, i, n, features, cells)


@inner()
def _write(points, i, at, features, cells):  # type: ignore[no-untyped-def]
    for other in range(points.shape[2]):
        points[i, at, other] = -1
    for k in range(3):
        if features[k] >= 0:
            points[i, at, features[k]] = cells[k]


@inner()
def try_alone(trees, asked, here, near, out, i, f):  # type: ignore[no-untyped-def]
    """Enter the nearest cell of one feature that turns the case, and those that only the model can decide."""
    cost, sure = asked.weight[f], asked.cut - asked.tolerance - trees.rounding
    wall = asked.cut + asked.tolerance + trees.rounding
    if near.best[f] >= wall or not permitted(asked, cost, out.cost[i], (f, -1, -1)):
        return
    first, n = trees.start[f], trees.start[f + 1] - trees.start[f]
    far, cell, score, at = np.inf, -1, np.inf, 0
    while at < n:
        here_far, nearest, value = here.far[first + at], at, near.score[first + f + at]
        at += 1
        while at < n and not near.edge[first + f + at]:  # the same leaves of all trees
            if here.far[first + at] < here_far:
                here_far, nearest = here.far[first + at], at
            at += 1
        if here_far == np.inf or value >= wall:
            continue
        if value >= sure:
            enter_near(out, i, cost, here_far, (f, -1, -1), (nearest, -1, -1))
        elif here_far < far - NOISE or (here_far <= far + NOISE and value < score):
            far, cell, score = here_far, nearest, value
    if cell >= 0:
        enter(asked.listing, out, i, cost, far, (f, -1, -1), (cell, -1, -1))
