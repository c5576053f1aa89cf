"""Branch and bound over a multilinear polynomial: the cheapest sets of bits that bring it below the tolerance.

Counting units, sets of size exactly k are searched for k = 1, 2, ...; with costs, depth first under an incumbent. The
children of a node come by optimistic gain and each excludes its predecessors, so one failing window ends the loop.
"""

from __future__ import annotations

import math

import numpy as np

from fewest.compiled import inner
from fewest.search._node import SAME, descend, gains, nearest, offer, sort_free, too_far
from fewest.search._work import (
    ALIVE,
    BEGIN,
    BEST_COST,
    CHOSEN,
    CONSTANT,
    COST,
    DEGREE,
    DISTANCE,
    END,
    FAR,
    KEPT,
    N_FREE,
    N_TERMS,
    NODES,
    PICKS,
    PLACE,
    SPENT,
)

DONE, CAPPED = np.int64(0), np.int64(1)


@inner()
def load_root(work, m, constant, loose):  # type: ignore[no-untyped-def]
    """Make depth 0 of the polynomial, without the units whose flip can never lower it (kept when ``loose``).

    A cheapest set holds no such unit: without it the set is cheaper and not worse. That argument needs every subset of
    a permitted set to be permitted, hence ``loose`` with implications or rejected sets.
    """
    alive, potential, n_terms = work.ids[ALIVE], work.gain[0], work.tally[N_TERMS]
    for u in range(m):
        alive[u] = 1
    changed = not loose
    while changed:
        changed = False
        for u in range(m):
            potential[u] = work.lin[0, u]
        for i in range(n_terms):
            if work.weight[i] >= 0.0:
                continue
            whole = 1
            for j in range(work.begin[i], work.begin[i + 1]):
                whole &= alive[work.units[j]]
            if whole:
                for j in range(work.begin[i], work.begin[i + 1]):
                    potential[work.units[j]] += work.weight[i]
        for u in range(m):
            if alive[u] and potential[u] >= 0.0:
                alive[u] = 0
                changed = True
    n = 0
    for u in range(m):
        if alive[u]:
            work.order[0, n] = u
            n += 1
    work.at[N_FREE, 0] = n
    work.sum[CONSTANT, 0], work.sum[SPENT, 0], work.sum[FAR, 0] = constant, 0.0, 0.0
    out, top, degree, first = 0, 0, 1, 0
    for i in range(n_terms):
        last = work.begin[i + 1]
        whole = 1 if work.weight[i] != 0.0 else 0
        for j in range(first, last):
            whole &= alive[work.units[j]]
        if whole:
            degree = max(degree, last - first)
            for j in range(first, last):
                work.units[top] = work.units[j]
                top += 1
            work.weight[out] = work.weight[i]
            work.key[out] = work.key[i]
            out += 1
            work.begin[out] = top
        first = last
    work.at[BEGIN, 0], work.at[END, 0] = 0, out
    work.tally[DEGREE] = degree


@inner()
def floor_of(work, picks):  # type: ignore[no-untyped-def]
    """Lower bound of the polynomial over all sets of at most ``picks`` units, at depth 0."""
    gains(work, np.int64(0), picks)
    sort_free(work, np.int64(0), np.bool_(False))
    total = work.sum[CONSTANT, 0]
    for i in range(min(picks, work.at[N_FREE, 0])):
        total += min(0.0, work.gain[0, work.order[0, i]])
    return total


@inner()
def open_node(work, t, picks, tolerance):  # type: ignore[no-untyped-def]
    """Bound depth t; keep only the units that may be among the ``picks`` flipped there. False closes the node."""
    if work.at[N_FREE, t] < picks:
        return False
    gains(work, t, picks)
    sort_free(work, t, np.bool_(False))
    order, gain = work.order[t], work.gain[t]
    total = work.sum[CONSTANT, t]
    for i in range(picks - 1):
        total += gain[order[i]]
    n = picks - 1
    while n < work.at[N_FREE, t] and total + gain[order[n]] < tolerance:
        n += 1
    work.at[N_FREE, t] = n
    if n < picks:
        return False
    return not (
        work.tally[KEPT] == work.rank.shape[1]
        and too_far(work, work.sum[FAR, t] + nearest(work, t, np.int64(0), picks))
    )


@inner()
def last_pairs(work, t, m, tolerance):  # type: ignore[no-untyped-def]
    """All turned sets that add exactly two of the free units of depth t."""
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
                work.ids[PICKS, t], work.ids[PICKS, t + 1] = u, v
                offer(work, m, t + 2, work.sum[FAR, t] + work.per[DISTANCE, u] + work.per[DISTANCE, v], score, t + 2.0)
    for i in range(work.at[BEGIN, t], work.at[END, t]):
        if work.begin[i + 1] - work.begin[i] == 2:
            u, v = work.units[work.begin[i]], work.units[work.begin[i] + 1]
            pair[min(u, v), max(u, v)] = 0.0


@inner()
def by_size(work, m, k, tolerance, node_cap):  # type: ignore[no-untyped-def]
    """Rank all turned sets of exactly k >= 2 units. CAPPED: not all were seen."""
    n_root = work.at[N_FREE, 0]
    state, t = DONE, np.int64(0)
    new = True
    while t >= 0:
        picks = k - t
        if new:
            new = False
            work.tally[NODES] += 1
            if not open_node(work, t, picks, tolerance):
                t -= 1
                continue
            if picks == 2:
                last_pairs(work, t, m, tolerance)
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
        t += 1
        new = True
    work.at[N_FREE, 0] = n_root
    return state


@inner()
def cheapest_cover(work, t, first, tolerance):  # type: ignore[no-untyped-def]
    """Fractional knapsack: least cost at which the gains from position ``first`` on can cover what is missing."""
    need, cost = work.sum[CONSTANT, t] - tolerance, 0.0
    for i in range(first, work.at[N_FREE, t]):
        if need <= 0.0:
            break
        u = work.order[t, i]
        gain = -work.gain[t, u]
        if gain <= 0.0:
            break
        if gain >= need:
            return cost + work.per[COST, u] * need / gain
        need -= gain
        cost += work.per[COST, u]
    return cost if need <= 0.0 else np.inf


@inner()
def open_costly(work, t, limit):  # type: ignore[no-untyped-def]
    """Keep the free units of depth t that are affordable, in knapsack order; False closes the node."""
    n, least = 0, np.inf
    for i in range(work.at[N_FREE, t]):
        u = work.order[t, i]
        if work.sum[SPENT, t] + work.per[COST, u] <= limit:
            work.order[t, n] = u
            least = min(least, work.per[COST, u])
            n += 1
    work.at[N_FREE, t] = n
    if n == 0:
        return False
    picks = min(n, math.floor((limit - work.sum[SPENT, t]) / least * (1 + SAME))) if math.isfinite(limit) else n
    gains(work, t, max(picks, 1))
    sort_free(work, t, np.bool_(True))
    return True


@inner()
def by_cost(work, m, tolerance, limit, node_cap, loose):  # type: ignore[no-untyped-def]
    """Rank the turned sets of least cost, at most ``limit``; the root is loaded. CAPPED: not all were seen."""
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
            met = work.tally[KEPT]
            if work.sum[CONSTANT, t] < tolerance and work.sum[SPENT, t] <= top:
                for j in range(t):
                    work.ids[PICKS, j] = work.at[CHOSEN, j]
                offer(work, m, t, work.sum[FAR, t], work.sum[CONSTANT, t], work.sum[SPENT, t])
                # Supersets cost more; they matter only where the set itself may not be permitted.
                if not loose or work.tally[KEPT] != met:
                    t -= 1
                    continue
            if not open_costly(work, t, top):
                t -= 1
                continue
            if t + 1 >= work.lin.shape[0]:
                return CAPPED
        i = work.at[PLACE, t]
        work.at[PLACE, t] = i + 1
        if i >= work.at[N_FREE, t]:
            t -= 1
            continue
        bound = work.sum[SPENT, t] + cheapest_cover(work, t, i, tolerance)
        if not bound <= top:
            t -= 1
            continue
        u = work.order[t, i]
        if work.sum[SPENT, t] + work.per[COST, u] > top:
            continue
        if work.tally[KEPT] == work.rank.shape[1]:
            floor = max(bound, work.sum[SPENT, t] + work.per[COST, u])
            if floor >= work.rank[BEST_COST, 0] * (1 - SAME) and too_far(
                work, work.sum[FAR, t] + work.per[DISTANCE, u]
            ):
                continue
        if not descend(work, t, i, m):
            return CAPPED
        t += 1
        work.at[PLACE, t] = -1
    return DONE
