"""One feature alone, over whole domains: each tree is a step function of it, and the sum of these is exact.

The *profile* of a feature holds the score of the case with each of the feature's cells in place of its own value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search._ties import NOISE, SAME
from fewest.engine.search.domains._cell_distances import FREE
from fewest.engine.search.domains._leaf_slots import LeafSlots, Runs, WalkedTrees
from fewest.tables.arrays import Bools, Floats, Ints, Ints32


class NearTrees(NamedTuple):
    """The ensemble, as the search for one or two features reads it."""

    walk: WalkedTrees
    feature: Ints32  # (tests,): Feature that each split asks about
    leaves: LeafSlots
    runs: Runs
    start: Ints  # (p + 1,): First cell of each feature
    rounding: float  # How far the order of a sum may change it


class NearRoom(NamedTuple):
    """Room for one case: the leaves that one to three changes lead to, and the profiles of the features."""

    waiting: Ints32  # (nodes + 1, 4)
    tree: Ints  # (trees + 1,): First leaf of each tree; that one is the case's own
    leaf: Ints32  # (leaves,), as the three that follow
    first: Ints32  # A feature that has to change for it, or -1
    second: Ints32  # Another, or -1
    third: Ints32  # A third one, or -1
    score: Floats  # (cells + p,): The profiles, each with one place more
    edge: Bools  # (cells + p,): Whether some leaf begins or ends here
    best: Floats  # (p,): The least of each profile
    steps: Ints  # (p,): Steps of each feature: cells outwards from the case, those that are lower than all nearer ones
    step_far: Floats  # (cells,): How far each step is, from the first cell of the feature on
    step_fall: Floats  # (cells,): What it takes off the score
    order: Ints  # (p,): Features that may change, the least profile first
    sizes: Floats  # (p,): Their weights, ascending


def make_near_room(trees: NearTrees, p: int) -> NearRoom:
    """Room for one case of p features."""
    leaves, m = len(trees.leaves.value), int(trees.start[-1]) + p
    return NearRoom(
        np.zeros((len(trees.walk.test) + 1, 4), dtype=np.int32), np.zeros(len(trees.leaves.tree), dtype=np.int64),
        np.zeros(leaves, dtype=np.int32), np.zeros(leaves, dtype=np.int32), np.zeros(leaves, dtype=np.int32),
        np.zeros(leaves, dtype=np.int32),
        np.zeros(m), np.zeros(m, dtype=bool), np.zeros(p), np.zeros(p, dtype=np.int64), np.zeros(m), np.zeros(m),
        np.zeros(p, dtype=np.int64), np.zeros(p),
    )  # fmt: skip


@inner()
def find_leaves(walk, feature, side, state, near, most):  # type: ignore[no-untyped-def]
    """Leaves for which up to ``most`` (one to three) features have to change, tree by tree, the case's own first."""
    n = 0
    for tree in range(walk.root.shape[0]):
        near.tree[tree] = n
        near.waiting[0, 0], near.waiting[0, 1], near.waiting[0, 2], near.waiting[0, 3] = walk.root[tree], -1, -1, -1
        count = 1
        while count > 0:
            count -= 1
            node, a, b, c = (
                near.waiting[count, 0],
                near.waiting[count, 1],
                near.waiting[count, 2],
                near.waiting[count, 3],
            )
            known = 0 if a < 0 else 1 if b < 0 else 2 if c < 0 else 3
            test = walk.test[node]
            while test >= 0:
                f = feature[test]
                here, there = walk.left[node], walk.right[node]
                if not side[test]:
                    here, there = there, here
                new = f not in (a, b, c)
                if state[f] == FREE and (not new or known < most):
                    near.waiting[count, 0], near.waiting[count, 1] = there, a
                    near.waiting[count, 2], near.waiting[count, 3] = b, c
                    if new:
                        near.waiting[count, known + 1] = f
                    count += 1
                node = here
                test = walk.test[node]
            near.leaf[n], near.first[n], near.second[n], near.third[n] = walk.leaf[node], a, b, c
            n += 1
    near.tree[walk.root.shape[0]] = n


@inner()
def slot_of(leaves, leaf, f):  # type: ignore[no-untyped-def]
    """The slot of a leaf that is about a feature, or -1."""
    for slot in range(leaves.slot[leaf], leaves.slot[leaf + 1]):
        if leaves.feature[slot] == f:
            return slot
    return np.int64(-1)


@inner()
def draw_profiles(trees, state, near, base):  # type: ignore[no-untyped-def]
    """The profiles of all features; the score of the case itself is given back."""
    leaves, runs = trees.leaves, trees.runs
    for at in range(near.score.shape[0]):
        near.score[at], near.edge[at] = 0.0, False
    for tree in range(near.tree.shape[0] - 1):
        own = leaves.value[near.leaf[near.tree[tree]]]
        base += own
        for k in range(near.tree[tree] + 1, near.tree[tree + 1]):
            leaf, f = near.leaf[k], near.first[k]
            slot, zero, change = slot_of(leaves, leaf, f), trees.start[f] + f, leaves.value[leaf] - own
            for run in range(runs.start[slot], runs.start[slot + 1]):
                low, high = zero + runs.low[run], zero + runs.high[run] + 1
                if low < high:
                    near.score[low] += change
                    near.score[high] -= change
                    near.edge[low], near.edge[high] = True, True
    for f in range(trees.start.shape[0] - 1):
        if state[f] == FREE:
            score = base
            for at in range(trees.start[f] + f, trees.start[f + 1] + f):
                score += near.score[at]
                near.score[at] = score
    return base


@inner()
def rank_features(start, weight, here, near):  # type: ignore[no-untyped-def]
    """Sort the features that may change by what they do alone, and their weights; how many there are."""
    count = 0
    for f in range(start.shape[0] - 1):
        if here.state[f] != FREE:
            continue
        best = np.inf
        for c in range(start[f], start[f + 1]):
            if here.far[c] < np.inf:
                best = min(best, near.score[c + f])
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
def draw_steps(start, here, near, base):  # type: ignore[no-untyped-def]
    """The steps of all features that may change."""
    for f in range(start.shape[0] - 1):
        near.steps[f] = 0
        lowest, away = np.inf, 0.0
        while here.state[f] == FREE and away < np.inf:
            away, fall = np.inf, np.inf
            for c in range(start[f], start[f + 1]):
                score, far = near.score[c + f], here.far[c]
                if score < lowest and (far < away or (far == away and score < fall)):
                    away, fall = far, score
            if away < np.inf:
                at = start[f] + near.steps[f]
                near.step_far[at], near.step_fall[at] = away, fall - base
                near.steps[f] += 1
                lowest = fall


@inner()
def nearest_two(start, near, f, g, need):  # type: ignore[no-untyped-def]
    """The least distance at which the steps of two features take the score below ``need``."""
    best, k = np.inf, near.steps[g] - 1
    for j in range(start[f], start[f] + near.steps[f]):
        while k > 0 and near.step_fall[j] + near.step_fall[start[g] + k - 1] < need:
            k -= 1
        if k >= 0 and near.step_fall[j] + near.step_fall[start[g] + k] < need:
            best = min(best, near.step_far[j] + near.step_far[start[g] + k])
    return best


@inner()
def nearest_three(start, near, f, g, h, need):  # type: ignore[no-untyped-def]
    """The same of three features."""
    best = np.inf
    for j in range(start[h], start[h] + near.steps[h]):
        if near.step_far[j] >= best:
            break
        best = min(best, near.step_far[j] + nearest_two(start, near, f, g, need - near.step_fall[j]))
    return best


@inner()
def permitted(asked, cost, best, f, g):  # type: ignore[no-untyped-def]
    """Whether one feature, or two, may change at this cost."""
    if cost > min(asked.most, best) * (1 + SAME):
        return False
    for row in range(asked.forbidden.shape[0]):
        n, held = 0, 0
        for other in range(asked.forbidden.shape[1]):
            if asked.forbidden[row, other]:
                n += 1
                held += other in (f, g)
        if n == held:
            return False
    return True


@inner()
def enter(listing, out, i, cost, far, f, a, g, b):  # type: ignore[no-untyped-def]
    """Enter a point that surely turns the case: f at cell a and, where there is one, g at cell b."""
    if cost < out.cost[i] * (1 - SAME):
        out.cost[i], out.far[i], out.met[i] = cost, np.inf, 0
    out.met[i] += 1
    if far < out.far[i] - NOISE:
        out.far[i] = far
        _write(out.points, i, 0, f, a, g, b)
    if out.met[i] <= listing:
        _write(out.points, i, out.met[i], f, a, g, b)


@inner()
def enter_near(out, i, cost, far, f, a, g, b):  # type: ignore[no-untyped-def]
    """Enter a point that only the model can decide; those that do not cost less than a sure one make room."""
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
        return
    _write(out.band, i, n, f, a, g, b)
    out.band_cost[i, n], out.band_far[i, n] = cost, far
    out.band_count[i] += 1


@inner()
def _write(points, i, at, f, a, g, b):  # type: ignore[no-untyped-def]
    for other in range(points.shape[2]):
        points[i, at, other] = -1
    points[i, at, f] = a
    if g >= 0:
        points[i, at, g] = b


@inner()
def try_alone(trees, asked, here, near, out, i, f):  # type: ignore[no-untyped-def]
    """Enter the nearest cell of one feature that turns the case, and those that only the model can decide."""
    cost, sure = asked.weight[f], asked.cut - asked.tolerance - trees.rounding
    wall = asked.cut + asked.tolerance + trees.rounding
    if near.best[f] >= wall or not permitted(asked, cost, out.cost[i], f, -1):
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
            enter_near(out, i, cost, here_far, f, nearest, -1, -1)
        elif here_far < far - NOISE or (here_far <= far + NOISE and value < score):
            far, cell, score = here_far, nearest, value
    if cell >= 0:
        enter(asked.listing, out, i, cost, far, f, cell, -1, -1)
