"""The cheapest sets of one or two features over whole domains; larger ones are left to the search over boxes."""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.search._ties import SAME
from fewest.engine.search._work import NODE_CAP, NODES
from fewest.engine.search.domains._box_work import FOUND, MANY
from fewest.engine.search.domains._cell_distances import stand
from fewest.engine.search.domains._pair_grids import bound_pairs, try_pair
from fewest.engine.search.domains._profiles import (
    draw_profiles,
    draw_steps,
    find_leaves,
    rank_features,
    try_alone,
)


@inner()
def _pairs(trees, asked, here, near, pair, out, tally, i, count, base):  # type: ignore[no-untyped-def]
    """All pairs that can turn the case; False where the budget ran out."""
    wall = asked.cut + asked.tolerance + trees.rounding
    find_leaves(trees.walk, trees.feature, here.side, here.state, near, 2)
    bound_pairs(trees, here.far, near, pair, count)
    draw_steps(trees.start, here, near, base)
    for b in range(1, count):
        for a in range(b):
            f, g = near.order[a], near.order[b]
            if near.best[f] + near.best[g] - base + pair.bound[a, b] >= wall:
                continue
            if tally[NODES] >= tally[NODE_CAP]:
                return False
            tally[NODES] += 1
            try_pair(trees, asked, here, near, pair, out, i, f, g, base, pair.bound[a, b])
    return True


@entry
def search(trees, tests, cells, asked, here, near, pair, out, tally, todo, first, last):  # type: ignore[no-untyped-def]
    """The cases from first to last; ``todo`` says from which size on there may be more, 0 where all is known."""
    for i in range(first, last):
        if tally[NODE_CAP] == 0:
            return
        stand(tests, cells, asked, here, i)
        find_leaves(trees.walk, trees.feature, here.side, here.state, near, 1)
        base = draw_profiles(trees, here.state, near, asked.base)
        count = rank_features(trees.start, asked.weight, here, near)
        tally[NODES] = 1 + count
        if count > 0 and tally[NODES] > tally[NODE_CAP]:
            out.lower[i], out.nodes[i] = near.sizes[0], tally[NODES]
            continue
        for k in range(count):
            try_alone(trees, asked, here, near, out, i, near.order[k])
        size, lowest, whole = 2, 0.0, True
        if count > 1:
            lowest = near.sizes[0] + near.sizes[1]
            whole = lowest > min(asked.most, out.cost[i]) * (1 + SAME)
            if not whole and count <= pair.bound.shape[0]:
                if not _pairs(trees, asked, here, near, pair, out, tally, i, count, base):
                    out.lower[i] = lowest
                    out.met[i] += MANY  # others may be there
                    size = 0
                else:
                    size = 3
                    lowest += near.sizes[2] if count > 2 else np.inf
                    whole = lowest > min(asked.most, out.cost[i]) * (1 + SAME)
        out.nodes[i] = tally[NODES]
        if out.cost[i] < np.inf and (whole or (size == 0 and lowest >= out.cost[i] * (1 - SAME))):
            out.outcome[i], out.lower[i] = FOUND, out.cost[i]
        else:
            todo[i] = size
