"""Branch and bound on two conditions: the polynomial below the tolerance and the mixture at the floor. Compiled.

The search of `_branch` with a density carried along. What is different: no unit is dropped because it can never lower
the polynomial (the density may need it), and a turned set that is not dense does not end its branch.
"""

from __future__ import annotations

import math

import numpy as np

from fewest.engine.compiled import entry, inner
from fewest.engine.search._branch import CAPPED, DONE, floor_of, load_root, open_node
from fewest.engine.search._branch_costs import cheapest_cover, open_costly
from fewest.engine.search._cube import ALL, begin_cube, cheap_degree, localise, nothing, polynomial, settle, write_found
from fewest.engine.search._gaussians import carry, dense, hopeless, lay_out, sort_pairs
from fewest.engine.search._node import SAME, descend, nearest, offer, too_far
from fewest.engine.search._work import (
    BEGIN,
    BEST_COST,
    CHOSEN,
    CONSTANT,
    COST,
    DISTANCE,
    END,
    FAR,
    KEPT,
    N_FREE,
    NODES,
    PICKS,
    PLACE,
    SPENT,
)

_EASY, _HARD = 1 << 16, 1 << 22  # as in `_blocks`: monomials expanded without truncation, first and last


@inner()
def ranked_out(work, far):  # type: ignore[no-untyped-def]
    """Whether a set this far away is behind all those a full list keeps: its density need not be known."""
    return work.tally[KEPT] == work.rank.shape[1] and too_far(work, far)


@inner()
def singles(work, m, constant, tolerance, body, room):  # type: ignore[no-untyped-def]
    """All sets of one unit that meet both conditions."""
    for u in range(m):
        score, far = constant + work.lin[0, u], work.per[DISTANCE, u]
        if score < tolerance and not ranked_out(work, far) and dense(0, 1, u, u, body, room):
            work.ids[PICKS, 0] = u
            offer(work, m, 1, far, score, 1.0)


@inner()
def pairs(work, t, m, tolerance, body, room):  # type: ignore[no-untyped-def]
    """All sets that add exactly two of the free units of depth t and meet both conditions."""
    pair, order, gain, constant = work.pair, work.order[t], work.gain[t], work.sum[CONSTANT, t]
    for i in range(work.at[BEGIN, t], work.at[END, t]):
        if work.begin[i + 1] - work.begin[i] == 2:
            u, v = work.units[work.begin[i]], work.units[work.begin[i] + 1]
            pair[min(u, v), max(u, v)] += work.weight[i]
    for j in range(t):
        work.ids[PICKS, j] = work.at[CHOSEN, j]
    for i in range(work.at[N_FREE, t] - 1):
        u = order[i]
        if constant + gain[u] + gain[order[i + 1]] >= tolerance:
            break
        for j in range(i + 1, work.at[N_FREE, t]):
            v = order[j]
            if constant + gain[u] + gain[v] >= tolerance:
                break
            score = constant + work.lin[t, u] + work.lin[t, v] + pair[min(u, v), max(u, v)]
            if score < tolerance:
                far = work.sum[FAR, t] + work.per[DISTANCE, u] + work.per[DISTANCE, v]
                if not ranked_out(work, far) and dense(t, 2, u, v, body, room):
                    work.ids[PICKS, t], work.ids[PICKS, t + 1] = u, v
                    offer(work, m, t + 2, far, score, t + 2.0)
    for i in range(work.at[BEGIN, t], work.at[END, t]):
        if work.begin[i + 1] - work.begin[i] == 2:
            u, v = work.units[work.begin[i]], work.units[work.begin[i] + 1]
            pair[min(u, v), max(u, v)] = 0.0


@inner()
def by_size(work, m, k, tolerance, node_cap, body, room):  # type: ignore[no-untyped-def]
    """Rank all sets of exactly k >= 2 units that meet both conditions. CAPPED: not all were seen."""
    n_root = work.at[N_FREE, 0]
    state, t = DONE, np.int64(0)
    new = True
    while t >= 0:
        picks = k - t
        if new:
            new = False
            work.tally[NODES] += 1
            if not open_node(work, t, m, picks, tolerance) or hopeless(work, t, picks, True, body, room):
                t -= 1
                continue
            if picks == 2:
                pairs(work, t, m, tolerance, body, room)
                t -= 1
                continue
            work.at[PLACE, t] = 0
        i = work.at[PLACE, t]
        work.at[PLACE, t] = i + 1
        total = np.inf
        if i + picks <= work.at[N_FREE, t]:
            total = work.sum[CONSTANT, t]
            for j in range(i, i + picks):
                total += work.gain[t, work.order[t, j]]
        if total >= tolerance:
            t -= 1
            continue
        if work.tally[KEPT] == work.rank.shape[1]:
            far = work.sum[FAR, t] + work.per[DISTANCE, work.order[t, i]]
            if too_far(work, far + nearest(work, t, i + 1, picks - 1)):
                continue
        if work.tally[NODES] >= node_cap or not descend(work, t, i, picks - 1):
            state = CAPPED
            break
        carry(work, t, body, room)
        t += 1
        new = True
    work.at[N_FREE, 0] = n_root
    return state


@inner()
def affordable(work, t, limit):  # type: ignore[no-untyped-def]
    """How many of the free units of depth t fit under the limit, at most."""
    least = np.inf
    for i in range(work.at[N_FREE, t]):
        least = min(least, work.per[COST, work.order[t, i]])
    n = work.at[N_FREE, t]
    return min(n, math.floor((limit - work.sum[SPENT, t]) / least * (1 + SAME))) if math.isfinite(limit) else n


@inner()
def open_by_cost(work, t, m, top, tolerance, body, room):  # type: ignore[no-untyped-def]
    """Offer the set of depth t, then keep what is affordable there; False closes the node."""
    before = work.tally[KEPT]
    turned = work.sum[CONSTANT, t] < tolerance and work.sum[SPENT, t] <= top
    if t > 0 and turned and dense(t, 0, 0, 0, body, room):
        for j in range(t):
            work.ids[PICKS, j] = work.at[CHOSEN, j]
        offer(work, m, t, work.sum[FAR, t], work.sum[CONSTANT, t], work.sum[SPENT, t])
        if work.tally[KEPT] != before:  # supersets cost more
            return False
    if not open_costly(work, t, top):
        return False
    return not hopeless(work, t, max(1, affordable(work, t, top)), False, body, room)


@inner()
def by_cost(work, m, tolerance, limit, node_cap, body, room):  # type: ignore[no-untyped-def]
    """Rank the sets of least cost, at most ``limit``, that meet both conditions. CAPPED: not all were seen."""
    t = np.int64(0)
    work.at[PLACE, 0] = -1
    while t >= 0:
        top = min(limit, work.rank[BEST_COST, 0] if work.tally[KEPT] > 0 else np.inf)
        top += SAME * abs(top) if math.isfinite(top) else 0.0
        if work.at[PLACE, t] < 0:
            work.at[PLACE, t] = 0
            if work.tally[NODES] >= node_cap:
                return CAPPED
            work.tally[NODES] += 1
            if not open_by_cost(work, t, m, top, tolerance, body, room):
                t -= 1
                continue
            if t + 1 >= work.lin.shape[0]:
                return CAPPED
        i = work.at[PLACE, t]
        work.at[PLACE, t] = i + 1
        if i >= work.at[N_FREE, t] or not work.sum[SPENT, t] + cheapest_cover(work, t, i, tolerance) <= top:
            t -= 1
            continue
        if work.sum[SPENT, t] + work.per[COST, work.order[t, i]] > top:
            continue
        if not descend(work, t, i, m):
            return CAPPED
        carry(work, t, body, room)
        t += 1
        work.at[PLACE, t] = -1
    return DONE


@inner()
def search_sizes(i, first, m, k, last, complete, cubes, work, out, body, room):  # type: ignore[no-untyped-def]
    """Search sizes k..last of the loaded root. Returns (answered, next size)."""
    n = work.at[N_FREE, 0]
    if complete:
        if n == 0 or floor_of(work, n) >= cubes.tolerance or hopeless(work, np.int64(0), n, False, body, room):
            nothing(i, np.inf, out)
            return True, k
        last = min(last, n)
    state = DONE
    while k <= last:
        state = CAPPED
        if k + 2 <= work.lin.shape[0]:
            state = by_size(work, m, k, cubes.tolerance, cubes.node_cap, body, room)
        if state == CAPPED or work.tally[KEPT] > 0:
            break
        k += 1
    if work.tally[KEPT] > 0:
        settle(i, first, m, state == DONE, cubes, work, out)
    elif state == CAPPED:
        out.lower[i] = k
        out.retry[i] = True
    elif complete and k > n:
        nothing(i, np.inf, out)
    elif k > cubes.limit[i] + 1e-9:
        nothing(i, float(k), out)
    else:
        return False, k
    return True, k


@inner()
def search_costs(i, first, m, complete, cubes, work, out, body, room):  # type: ignore[no-untyped-def]
    """Search the loaded root by cost."""
    n = work.at[N_FREE, 0]
    if n == 0 or (complete and floor_of(work, n) >= cubes.tolerance):
        nothing(i, np.inf, out)
        return
    state = by_cost(work, m, cubes.tolerance, cubes.limit[i], cubes.node_cap, body, room)
    if state == CAPPED:
        out.retry[i] = True
        if work.tally[KEPT] > 0:
            write_found(i, first, m, cubes, work, out)
    elif work.tally[KEPT] > 0:
        settle(i, first, m, np.bool_(True), cubes, work, out)
    else:
        nothing(i, cubes.limit[i], out)


@inner()
def begin(i, first, changes, constant, cubes, work, out, body, room):  # type: ignore[no-untyped-def]
    """Set the cube up and try single units. Returns (whether it is answered, units)."""
    begin_cube(i, changes, cubes, work)
    m = localise(i, cubes, np.bool_(True), work)
    lay_out(i, m, cubes, work, body, room)
    if cubes.cost.shape[0] == 0:
        if cubes.limit[i] + 1e-9 >= 1:
            singles(work, m, constant, cubes.tolerance, body, room)
        if work.tally[KEPT] > 0:
            settle(i, first, m, np.bool_(True), cubes, work, out)
            return True, m
        if cubes.limit[i] + 1e-9 < 2:
            nothing(i, math.floor(cubes.limit[i] + 1e-9) + 1.0, out)
            return True, m
    sort_pairs(m, body, room)
    return False, m


@entry
def additive_by_size(first, last, changes, constants, cubes, work, out, body, room):  # type: ignore[no-untyped-def]
    """Answer cubes first..last - 1 of a polynomial of degree one."""
    for i in range(first, last):
        answered, m = begin(i, first, changes, constants[i], cubes, work, out, body, room)
        if not answered:
            load_root(work, m, constants[i], np.bool_(True))
            most = math.floor(min(cubes.limit[i] + 1e-9, 1e9))
            search_sizes(i, first, m, np.int64(2), most, np.bool_(True), cubes, work, out, body, room)
        out.nodes[i] = work.tally[NODES]


@entry
def additive_by_cost(first, last, changes, constants, cubes, work, out, body, room):  # type: ignore[no-untyped-def]
    """Answer cubes first..last - 1 of a polynomial of degree one where units have costs."""
    for i in range(first, last):
        _, m = begin(i, first, changes, constants[i], cubes, work, out, body, room)
        load_root(work, m, constants[i], np.bool_(True))
        search_costs(i, first, m, np.bool_(True), cubes, work, out, body, room)
        out.nodes[i] = work.tally[NODES]


@entry
def trees_by_size(  # type: ignore[no-untyped-def]
    first, last, changes, constants, bends, trees, cubes, leaves, work, out, body, room
):
    """Answer cubes first..last - 1 of an ensemble: take in more of the polynomial until the cube is answered."""
    for i in range(first, last):
        answered, m = begin(i, first, changes, constants[i], cubes, work, out, body, room)
        most_wanted = math.floor(min(cubes.limit[i] + 1e-9, 1e9))
        k = np.int64(2)
        for stage in range(0 if cubes.small_trees else 1, 4):
            degree = ALL
            if stage == 1 or stage == 2:
                degree = 3 if stage == 1 else 6
            if answered or degree < k:
                continue
            cap = _EASY if stage == 0 else _HARD
            m, complete = polynomial(i, trees, cubes, degree, cap, constants[i], np.bool_(True), bends[i], leaves, work)
            if m >= 0:
                answered, k = search_sizes(
                    i, first, m, k, min(most_wanted, degree), complete, cubes, work, out, body, room
                )
        if not answered:
            out.lower[i] = k
            out.retry[i] = True
        out.nodes[i] = work.tally[NODES]


@entry
def trees_by_cost(  # type: ignore[no-untyped-def]
    first, last, changes, constants, bends, trees, cubes, leaves, work, out, body, room
):
    """Answer cubes first..last - 1 of an ensemble where units have costs."""
    for i in range(first, last):
        begin(i, first, changes, constants[i], cubes, work, out, body, room)
        degree = cheap_degree(i, cubes, cubes.limit[i])
        m, complete = polynomial(i, trees, cubes, degree, _HARD, constants[i], np.bool_(True), bends[i], leaves, work)
        if m >= 0:
            search_costs(i, first, m, complete, cubes, work, out, body, room)
        else:
            out.retry[i] = True
        out.nodes[i] = work.tally[NODES]
