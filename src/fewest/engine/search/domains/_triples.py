"""Three features together, over whole domains: how low the score may get with them, by what each tree can add.

The score with three features changed is the sum of their profiles and of what trees add that ask about several of them.
What a tree adds beyond its part of the profiles has a least value over its leaves, and the sum of these is a bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search.domains._pair_grids import forget_ones, list_ones, reachable, rise
from fewest.tables.arrays import Floats, Ints

TRIPLED = 48  # features that may change, up to which all triples are bounded


class TripleRoom(NamedTuple):
    """Room for the triples of one case; features by their place in the order."""

    two: Floats  # (q, q): What two take off beyond what each does alone, at most
    three: Floats  # (q, q, q): What three take off beyond that, at most; it may be positive
    two_tree: Floats  # (q, q): The same in one tree, its features by their place in ``features``
    three_tree: Floats  # (q, q, q)
    features: Ints  # (q,): Places of the features of one tree, ascending
    local: Ints  # (q,): Where they are among these, or -1
    rises: Floats  # (q,): What the tree adds at most with each of them alone, in one leaf
    ends: Ints  # (3, 2): First and last cell of three features, while fewer of them are searched


def make_triple_room(p: int) -> TripleRoom:
    """Room for cases of p features; none where there are too many."""
    q = p if p <= TRIPLED else 0
    two, three = np.zeros((q, q)), np.zeros((q, q, q))
    features = np.zeros(q, dtype=np.int64)
    return TripleRoom(
        two, three, two.copy(), three.copy(), features, features - 1, np.zeros(q),
        np.zeros((3, 2), dtype=np.int64),
    )  # fmt: skip


@inner()
def _features(near, pair, triple, tree, count):  # type: ignore[no-untyped-def]
    """The features that the leaves of a tree need; how many, with all that is known of them at nothing."""
    for k in range(near.tree[tree] + 1, near.tree[tree + 1]):
        triple.local[pair.place[near.first[k]]] = 0
        if near.second[k] >= 0:
            triple.local[pair.place[near.second[k]]] = 0
        if near.third[k] >= 0:
            triple.local[pair.place[near.third[k]]] = 0
    n = 0
    for place in range(count):
        if triple.local[place] == 0:
            triple.local[place], triple.features[n] = n, place
            n += 1
    for a in range(n):
        for b in range(a + 1, n):
            triple.two_tree[a, b] = 0.0
            for c in range(b + 1, n):
                triple.three_tree[a, b, c] = 0.0
    return n


@inner()
def _lower(triple, a, b, c, worth):  # type: ignore[no-untyped-def]
    """Note that the tree takes off this much with three of its features."""
    low, high = min(a, b, c), max(a, b, c)
    middle = a + b + c - low - high
    triple.three_tree[low, middle, high] = min(triple.three_tree[low, middle, high], worth)


@inner()
def _add_leaf(near, pair, triple, k, worth, n):  # type: ignore[no-untyped-def]
    """Enter what one leaf takes off, with every set of two or three features that leads there."""
    a = triple.local[pair.place[near.first[k]]]
    if near.third[k] >= 0:
        b, c = triple.local[pair.place[near.second[k]]], triple.local[pair.place[near.third[k]]]
        _lower(triple, a, b, c, worth)
    elif near.second[k] >= 0:
        b = triple.local[pair.place[near.second[k]]]
        triple.two_tree[min(a, b), max(a, b)] = min(triple.two_tree[min(a, b), max(a, b)], worth)
        for c in range(n):
            if c not in (a, b):
                _lower(triple, a, b, c, worth - triple.rises[c])
    else:
        for b in range(n):
            if b == a:
                continue
            triple.two_tree[min(a, b), max(a, b)] = min(triple.two_tree[min(a, b), max(a, b)], -triple.rises[b])
            for c in range(b + 1, n):
                if c != a:
                    _lower(triple, a, b, c, -triple.rises[b] - triple.rises[c])


@inner()
def bound_triples(trees, far, near, pair, triple, count):  # type: ignore[no-untyped-def]
    """What two and three features take off at most beyond what fewer do, tree by tree."""
    leaves = trees.leaves
    for a in range(count):
        pair.place[near.order[a]] = a
        triple.local[a] = -1
        for b in range(count):
            triple.two[a, b] = 0.0
            for c in range(count):
                triple.three[a, b, c] = 0.0
    for tree in range(near.tree.shape[0] - 1):
        own, ones = near.leaf[near.tree[tree]], list_ones(trees, far, near, pair, tree)
        n = _features(near, pair, triple, tree, count)
        for k in range(near.tree[tree] + 1, near.tree[tree + 1]):
            leaf, worth = near.leaf[k], 0.0
            if near.second[k] >= 0:
                worth = leaves.value[leaf] - leaves.value[own]
            fits, last = True, 1 if near.second[k] < 0 else 2 if near.third[k] < 0 else 3
            for way in range(last):
                f = near.first[k] if way == 0 else near.second[k] if way == 1 else near.third[k]
                fits &= reachable(trees, far, leaf, f)
                if last > 1:
                    worth -= rise(trees, near, pair, ones, own, leaf, f)
            if not fits:
                continue
            for a in range(n if last < 3 else 0):
                f = near.order[triple.features[a]]
                triple.rises[a] = rise(trees, near, pair, ones, own, leaf, f) if pair.most[f] > 0.0 else 0.0
            _add_leaf(near, pair, triple, k, worth, n)
        forget_ones(near, pair, ones)
        for a in range(n):
            first = triple.features[a]
            for b in range(a + 1, n):
                second, both = triple.features[b], triple.two_tree[a, b]
                triple.two[first, second] += both
                for c in range(b + 1, n):
                    more = triple.three_tree[a, b, c] - both - triple.two_tree[a, c] - triple.two_tree[b, c]
                    triple.three[first, second, triple.features[c]] += more
        for a in range(n):
            triple.local[triple.features[a]] = -1


@inner()
def profile_wall(asked, rounding, triple, a, b, c):  # type: ignore[no-untyped-def]
    """Below what three profiles have to add up for the case to turn, each less the score of the case."""
    together = triple.two[a, b] + triple.two[a, c] + triple.two[b, c] + triple.three[a, b, c]
    return asked.cut + asked.tolerance + rounding - together


@inner()
def narrow_to(trees, here, near, triple, s, f, room_for, most):  # type: ignore[no-untyped-def]
    """Leave the cells of a feature that are near and low enough, from the first to the last; False where none is."""
    first, low, high = trees.start[f], -1, -1
    triple.ends[s, 0], triple.ends[s, 1] = here.low[f], here.high[f]
    for c in range(here.low[f], here.high[f] + 1):
        if here.far[first + c] < room_for and near.score[first + f + c] < most:
            low, high = c if low < 0 else low, c
    here.low[f], here.high[f] = low, high
    return low >= 0


@inner()
def widen_again(here, triple, s, f):  # type: ignore[no-untyped-def]
    """Undo what `narrow_to` did."""
    here.low[f], here.high[f] = triple.ends[s, 0], triple.ends[s, 1]
