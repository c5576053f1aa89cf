"""Three features together, over whole domains: the exact score, cell by cell, where the grids of two let it get low."""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search._ties import NOISE, SAME
from fewest.engine.search._work import NODE_CAP, NODES
from fewest.engine.search.domains._leaf_slots import bit_of
from fewest.engine.search.domains._pair_grids import list_cells
from fewest.engine.search.domains._profiles import enter, enter_near, slot_of
from fewest.engine.search.domains._triple_terms import lowest_with


@inner(inline="always")
def _term(trees, pair, triple, n, leaf, features, inside, worth):  # type: ignore[no-untyped-def]
    """Note what a leaf adds with three features, where it asks about all of them; how many there are then."""
    runs, last = trees.runs, pair.edge.shape[0] - 1
    for way in range(3):
        triple.slots[n, way] = slot_of(trees.leaves, leaf, features[way])
        if triple.slots[n, way] < 0:
            return n
    for way in range(3):
        slot = triple.slots[n, way]
        for run in range(runs.start[slot], runs.start[slot + 1]):
            pair.edge[last, runs.span[run, 0]], pair.edge[last, runs.span[run, 1]] = True, True
    triple.inside[n], triple.worth[n] = inside, worth
    return n + 1


@inner()
def _gather(trees, near, pair, triple, a, b, c):  # type: ignore[no-untyped-def]
    """All that leaves add with three features beyond what two of them do; how many there are."""
    f, g, h = near.order[a], near.order[b], near.order[c]
    n, last = 0, pair.edge.shape[0] - 1
    for one in (f, g, h):
        for at in range(trees.start[one] + one, trees.start[one + 1] + one + 1):
            pair.edge[last, at] = False
    asked = bit_of(f) | bit_of(g) | bit_of(h)
    heads = (pair.one_head[f], pair.one_head[g], pair.two_head[a, b], pair.one_head[h], pair.two_head[a, c],
             pair.two_head[b, c], np.int64(triple.head[a, b, c]))  # fmt: skip
    for inside in range(1, 8):
        k, sign = heads[inside - 1], -1.0 if inside in (3, 5, 6) else 1.0
        while k >= 0:
            if pair.asks[k] & asked == asked:
                n = _term(trees, pair, triple, n, near.leaf[k], (f, g, h), inside, sign * pair.worth[k])
            k = pair.next[k]
    return n


@inner(inline="always")
def _holds(runs, triple, term, way, c):  # type: ignore[no-untyped-def]
    """Whether a term is there with a cell of one of its features."""
    inside, slot = False, triple.slots[term, way]
    for run in range(runs.start[slot], runs.start[slot + 1]):
        inside |= runs.span[run, 0] <= c < runs.span[run, 1]
    return inside == (triple.inside[term] >> way & 1 == 1)


@inner(inline="always")
def _falls(runs, triple, terms, way, f):  # type: ignore[no-untyped-def]
    """What the first terms that are active take off at most, for each of the cells of one feature."""
    line, zero, n = triple.line[way], runs.zero[f], runs.zero[f + 1] - runs.zero[f] - 1
    for c in range(n):
        line[c] = 0.0
    for k in range(terms):
        term = triple.active[k]
        worth, slot = triple.worth[term], triple.slots[term, way]
        if worth >= 0.0:
            continue
        if triple.inside[term] >> way & 1 == 0:
            line[0] += worth
            worth = -worth
        for run in range(runs.start[slot], runs.start[slot + 1]):
            line[runs.span[run, 0] - zero] += worth
            line[runs.span[run, 1] - zero] -= worth
    for c in range(1, n):
        line[c] += line[c - 1]


@inner(inline="always")
def _keep_low(trees, near, pair, triple, way, n, features, others, terms, most):  # type: ignore[no-untyped-def]
    """Keep the cells of the first of three features in the list that may be low enough with the others; how many."""
    kept, (f, g, h) = 0, features
    _falls(trees.runs, triple, terms, way, f)
    zero, dip, whole = trees.runs.zero[f], triple.dip[others], triple.whole[others]
    for k in range(n):
        c = pair.cell[way, k]
        if lowest_with(near, pair, triple, zero + c, g, h, dip, whole) + triple.line[way, c] < most:
            pair.cell[way, kept] = c
            kept += 1
    return kept


@inner(inline="always")
def _on_line(trees, near, pair, triple, x, terms, depths, places, base):  # type: ignore[no-untyped-def]
    """With the first feature in cell x: the terms that are there, what they take off, and the third with the first."""
    a, b, c = places
    f, g, h = near.order[a], near.order[b], near.order[c]
    active = 0
    for term in range(terms):
        if _holds(trees.runs, triple, term, 0, trees.runs.zero[f] + x):
            triple.active[active] = term
            active += 1
    _falls(trees.runs, triple, active, 1, g)
    row = pair.at[a, c] + pair.wide[a, c] * pair.group[h, trees.start[f] + f + x]
    three = trees.start[h] + h
    for k in range(depths):
        z = pair.cell[2, k]
        triple.line[2, z] = near.score[three + z] - base + pair.grid[row + pair.group[f, three + z]]
    return active


@inner(inline="always")
def _exact(runs, triple, active, y, z):  # type: ignore[no-untyped-def]
    """What the active terms add with these cells of the second and the third feature."""
    total = 0.0
    for k in range(active):
        term = triple.active[k]
        if _holds(runs, triple, term, 1, y) and _holds(runs, triple, term, 2, z):
            total += triple.worth[term]
    return total


@inner()
def try_triple(trees, asked, here, near, pair, triple, out, tally, i, places, base, limit):  # type: ignore[no-untyped-def]
    """Enter the nearest cells of three features that turn the case, and those that only the model can decide.

    None that are not nearer than ``limit``: leaves further away were not looked at. False where the budget ran out.
    """
    a, b, c = places
    f, g, h = near.order[a], near.order[b], near.order[c]
    cost, runs = asked.weight[f] + asked.weight[g] + asked.weight[h], trees.runs
    if asked.listing == 0 and cost >= out.cost[i] * (1 - SAME):
        limit = min(limit, out.far[i] - NOISE)
    sure, wall = asked.cut - asked.tolerance - trees.rounding, asked.cut + asked.tolerance + trees.rounding
    terms, extra = _gather(trees, near, pair, triple, a, b, c), pair.edge.shape[0] - 1
    least = here.least[f] + here.least[g] + here.least[h]
    rows = list_cells(trees, here.far, near, pair, 0, f, (g, h, extra), limit - least + here.least[f])
    columns = list_cells(trees, here.far, near, pair, 1, g, (f, h, extra), limit - least + here.least[g])
    depths = list_cells(trees, here.far, near, pair, 2, h, (f, g, extra), limit - least + here.least[h])
    for term in range(terms):
        triple.active[term] = term
    rows = _keep_low(trees, near, pair, triple, 0, rows, (f, g, h), (b, c), terms, wall)
    columns = _keep_low(trees, near, pair, triple, 1, columns, (g, f, h), (a, c), terms, wall)
    depths = _keep_low(trees, near, pair, triple, 2, depths, (h, f, g), (a, b), terms, wall)
    one, two, three = trees.start[f] + f, trees.start[g] + g, trees.start[h] + h
    far, best, found = np.inf, np.inf, (np.int64(-1), np.int64(-1), np.int64(-1))
    for r in range(rows if columns > 0 and depths > 0 else 0):
        x = pair.cell[0, r]
        if here.far[one + x - f] + least - here.least[f] > far + NOISE:
            continue
        if tally[NODES] >= tally[NODE_CAP]:
            return False
        tally[NODES] += 1
        active = _on_line(trees, near, pair, triple, x, terms, depths, places, base)
        row = pair.at[a, b] + pair.wide[a, b] * pair.group[g, one + x]
        for s in range(columns):
            y = pair.cell[1, s]
            away = here.far[one + x - f] + here.far[two + y - g]
            if away + here.least[h] >= limit or away + here.least[h] > far + NOISE:
                continue
            own = near.score[one + x] + near.score[two + y] - base + pair.grid[row + pair.group[f, two + y]]
            low = wall - own - triple.line[1, y]
            if triple.beside[h, one + x] + pair.fall[h, two + y] >= low:
                continue
            if triple.beside[h, two + y] + pair.fall[h, one + x] >= low:
                continue
            at = pair.at[b, c] + pair.wide[b, c] * pair.group[h, two + y]
            for t in range(depths):
                z = pair.cell[2, t]
                last = triple.line[2, z] + pair.grid[at + pair.group[g, three + z]]
                step = away + here.far[three + z - h]
                if last >= low or step >= limit or step > far + NOISE:
                    continue
                score = own + last + _exact(runs, triple, active, two + y, three + z)
                if score >= wall:
                    continue
                if score >= sure:
                    enter_near(out, i, cost, step, (f, g, h), (x, y, z))
                elif step < far - NOISE or score < best:
                    far, best, found = step, score, (x, y, z)
    if far < np.inf:
        enter(asked.listing, out, i, cost, far, (f, g, h), found)
    return True
