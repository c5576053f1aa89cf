"""The cheapest sets of up to three features over whole domains; larger ones are left to the search over boxes."""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.search._ties import NOISE, SAME
from fewest.engine.search._work import NODE_CAP, NODES
from fewest.engine.search.domains._box_work import FOUND, MANY
from fewest.engine.search.domains._cell_distances import stand
from fewest.engine.search.domains._first_sets import first_pair, first_triple
from fewest.engine.search.domains._pair_grids import try_pair
from fewest.engine.search.domains._pair_terms import lowest_pair, mark_pairs, nearest_pair
from fewest.engine.search.domains._profiles import (
    draw_profiles,
    draw_steps,
    find_leaves,
    permitted,
    rank_features,
    try_alone,
)
from fewest.engine.search.domains._queue import pop, push
from fewest.engine.search.domains._triple_terms import lowest_triple, mark_triples, nearest_triple
from fewest.engine.search.domains._triples import try_triple


@inner()
def _wanted(asked, out, i, cost, far):  # type: ignore[no-untyped-def]
    """Whether a set may still be better than what was found."""
    if cost > min(asked.most, out.cost[i]) * (1 + SAME):
        return False
    return asked.listing > 0 or cost < out.cost[i] * (1 - SAME) or far < out.far[i] - NOISE


@inner()
def _pairs(trees, tests, asked, here, near, pair, out, tally, i, count, base):  # type: ignore[no-untyped-def]
    """All pairs that can turn the case, the nearest first; False where the budget ran out."""
    wall = asked.cut + asked.tolerance + trees.rounding
    draw_steps(trees.start, here, near)
    limit = first_pair(trees, tests, asked, here, near, count, base)
    find_leaves(trees.walk, here.side, here.state, near, 2, limit)
    mark_pairs(trees, here, near, pair, count, wall + base, limit)
    n, queue, far = 0, pair.queue, 0.0
    for b in range(1, count):
        for a in range(b):
            f, g = near.order[a], near.order[b]
            cost = asked.weight[f] + asked.weight[g]
            if lowest_pair(near, pair, f, g, base) >= wall or not permitted(asked, cost, out.cost[i], (f, g, -1)):
                continue
            if asked.listing == 0:
                far = nearest_pair(trees, here.far, near, pair, f, g, wall + base)
            if far < limit:
                n = push(queue, n, cost, far, b * count + a)
    while n > 0:
        n = pop(queue, n)
        if not _wanted(asked, out, i, queue.cost[n], queue.far[n]):
            continue
        if tally[NODES] >= tally[NODE_CAP]:
            return False
        tally[NODES] += 1
        try_pair(trees, asked, here, near, pair, out, i, queue.item[n] % count, queue.item[n] // count, base, limit)
    return True


@inner()
def _triples(trees, asked, here, near, pair, triple, out, tally, i, count, base, limit):  # type: ignore[no-untyped-def]
    """All sets of three that can turn the case, the nearest first; False where the budget ran out."""
    n, queue, far, wall = 0, triple.queue, 0.0, asked.cut + asked.tolerance + trees.rounding
    for c in range(2, count):
        for b in range(1, c):
            for a in range(b):
                if lowest_triple(triple, a, b, c, base) >= wall:
                    continue
                f, g, h = near.order[a], near.order[b], near.order[c]
                cost = asked.weight[f] + asked.weight[g] + asked.weight[h]
                if not permitted(asked, cost, out.cost[i], (f, g, h)):
                    continue
                if asked.listing == 0:
                    far = nearest_triple(trees, here.far, near, pair, triple, a, b, c, wall)
                if far < limit:
                    n = push(queue, n, cost, far, (c * count + b) * count + a)
    while n > 0:
        n = pop(queue, n)
        if not _wanted(asked, out, i, queue.cost[n], queue.far[n]):
            continue
        if tally[NODES] >= tally[NODE_CAP]:
            return False
        tally[NODES] += 1
        item = queue.item[n]
        places = item % count, item // count % count, item // (count * count)
        if not try_triple(trees, asked, here, near, pair, triple, out, tally, i, places, base, limit):
            return False
    return True


@inner()
def _of_two_and_three(trees, tests, asked, here, near, pair, triple, out, tally, i, count, base):  # type: ignore[no-untyped-def]
    """Sets of two and of three, as far as they may be better; the next size, the least cost of it, and how it ended.

    1 where no set of this size or beyond can be better, 0 where one may be, -1 where the budget ran out.
    """
    lowest = near.sizes[0]
    for size in range(2, 5):
        if count < size:
            return size, np.inf, 1
        lowest += near.sizes[size - 1]
        if lowest > min(asked.most, out.cost[i]) * (1 + SAME):
            return size, lowest, 1
        fine = True
        if size == 2 and count <= pair.at.shape[0]:
            fine = _pairs(trees, tests, asked, here, near, pair, out, tally, i, count, base)
        elif size == 3 and count <= triple.dip.shape[0]:
            limit = first_triple(trees, tests, asked, here, near, count, base)
            if not mark_triples(trees, here, near, pair, triple, count, base, limit):
                return size, lowest, 0
            fine = _triples(trees, asked, here, near, pair, triple, out, tally, i, count, base, limit)
        else:
            return size, lowest, 0
        if not fine:
            return size, lowest, -1
    return 4, lowest, 0


@entry
def search(trees, tests, cells, asked, here, near, pair, triple, out, tally, todo, first, last):  # type: ignore[no-untyped-def]
    """The cases from first to last; ``todo`` says from which size on there may be more, 0 where all is known."""
    for i in range(first, last):
        if tally[NODE_CAP] == 0:
            return
        stand(tests, cells, asked, here, i)
        base = draw_profiles(trees, here.side, here.state, near, asked.base)
        count = rank_features(trees.start, asked.weight, here, near)
        tally[NODES] = 1 + count
        if count > 0 and tally[NODES] > tally[NODE_CAP]:
            out.lower[i], out.nodes[i] = near.sizes[0], tally[NODES]
            continue
        for k in range(count):
            try_alone(trees, asked, here, near, out, i, near.order[k])
        size, lowest, end = _of_two_and_three(trees, tests, asked, here, near, pair, triple, out, tally, i, count, base)
        out.nodes[i] = tally[NODES]
        if end < 0:
            out.lower[i] = lowest
            out.met[i] += MANY  # others may be there
        if out.cost[i] < np.inf and (end > 0 or (end < 0 and lowest >= out.cost[i] * (1 - SAME))):
            out.outcome[i], out.lower[i] = FOUND, out.cost[i]
        elif end >= 0:
            todo[i] = size
