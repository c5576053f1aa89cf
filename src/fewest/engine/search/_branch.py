"""Branch and bound over a multilinear polynomial: the cheapest sets of bits that bring it below the tolerance.

Sets of size exactly k are searched for k = 1, 2, ...; `_branch_costs` has the search where units have costs. The
children of a node come by optimistic gain and each excludes its predecessors, so one failing window ends the loop.
Under a ``floor`` (else None: compiled without) sets have to be dense as well: then no unit is dropped because it can
never lower the polynomial, and a turned set that is not dense does not end its branch.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search import _work as w
from fewest.engine.search._bits import place_of
from fewest.engine.search._gaussians import carry, dense, hopeless
from fewest.engine.search._node import descend, flip, gains, nearest, obey, sort_free
from fewest.engine.search._ranks import offer, outranked, too_far
from fewest.engine.search._set_off import STALLED, tighten

DONE, CAPPED = np.int64(0), np.int64(1)


@inner()
def lives(work, i, dead):  # type: ignore[no-untyped-def]
    """Whether all members of a monomial are alive; ``dead`` has the bits of those that are not."""
    if work.ids[w.BIT, work.ids.shape[1] - 1] == 1:
        return work.key[i] & dead == 0
    whole = 1
    for j in range(work.begin[i], work.begin[i + 1]):
        whole &= work.ids[w.ALIVE, work.units[j]]
    return whole == 1


@inner()
def load_root(work, m, constant, loose):  # type: ignore[no-untyped-def]
    """Make depth 0 of the polynomial, without the units whose flip can never lower it (kept when ``loose``).

    A cheapest set holds no such unit: without it the set is cheaper and not worse. That argument needs every subset of
    a permitted set to be permitted, hence ``loose`` with implications, rejected sets or a floor.
    """
    alive, potential, n_terms, dead = work.ids[w.ALIVE], work.gain[0], work.tally[w.N_TERMS], np.int64(0)
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
            if lives(work, i, dead):
                for j in range(work.begin[i], work.begin[i + 1]):
                    potential[work.units[j]] += work.weight[i]
        for u in range(m):
            if alive[u] and potential[u] >= 0.0:
                alive[u] = 0
                dead |= work.ids[w.BIT, u]
                changed = True
    n = 0
    for u in range(m):
        if alive[u]:
            work.order[0, n] = u
            n += 1
    work.at[w.N_FREE, 0] = n
    work.sum[w.CONSTANT, 0], work.sum[w.SPENT, 0], work.sum[w.FAR, 0] = constant, 0.0, 0.0
    out, top, degree, first = 0, 0, 1, 0
    for i in range(n_terms):
        last = work.begin[i + 1]
        if work.weight[i] != 0.0 and lives(work, i, dead):
            degree = max(degree, last - first)
            for j in range(first, last):
                work.units[top] = work.units[j]
                top += 1
            work.weight[out] = work.weight[i]
            work.key[out] = work.key[i]
            out += 1
            work.begin[out] = top
        first = last
    work.at[w.BEGIN, 0], work.at[w.END, 0] = 0, out
    work.tally[w.DEGREE] = degree


@inner()
def floor_of(work, picks):  # type: ignore[no-untyped-def]
    """Lower bound of the polynomial over all sets of at most ``picks`` units, at depth 0."""
    gains(work, np.int64(0), picks)
    sort_free(work, np.int64(0), np.bool_(False))
    total = work.sum[w.CONSTANT, 0]
    for i in range(min(picks, work.at[w.N_FREE, 0])):
        total += min(0.0, work.gain[0, work.order[0, i]])
    return total


@inner()
def keep_useful(work, t, picks, tolerance):  # type: ignore[no-untyped-def]
    """Sort the free units of depth t and keep those that may be among the ``picks`` flipped there; how many."""
    sort_free(work, t, np.bool_(False))
    order, gain = work.order[t], work.gain[t]
    total = work.sum[w.CONSTANT, t]
    for i in range(picks - 1):
        total += gain[order[i]]
    n = picks - 1
    while n < work.at[w.N_FREE, t] and total + gain[order[n]] < tolerance:
        n += 1
    work.at[w.N_FREE, t] = n
    return n


@inner()
def open_node(work, t, m, picks, tolerance):  # type: ignore[no-untyped-def]
    """Bound depth t; keep only the units that may be among the ``picks`` flipped there. False closes the node."""
    if not obey(work, t, m) or work.at[w.N_FREE, t] < picks:
        return False
    gains(work, t, picks)
    if keep_useful(work, t, picks, tolerance) < picks:
        return False
    if picks > 2 and work.tally[w.NODES] > STALLED:
        tighten(work, t, picks)
        if keep_useful(work, t, picks, tolerance) < picks:
            return False
    if work.tally[w.KEPT] < work.rank.shape[1]:
        return True
    total, last = work.sum[w.CONSTANT, t], 0.0
    for i in range(picks):
        last = work.gain[t, work.order[t, i]]
        total += last
    far = work.sum[w.FAR, t] + nearest(work, t, np.int64(0), picks)
    return not outranked(work, t, m, np.int64(0), far, total, last)


@inner()
def last_pairs(work, t, m, tolerance, floor):  # type: ignore[no-untyped-def]
    """All turned sets, at the floor, that add exactly two of the free units of depth t."""
    pair, order, gain, constant = work.pair, work.order[t], work.gain[t], work.sum[w.CONSTANT, t]
    for i in range(work.at[w.BEGIN, t], work.at[w.END, t]):
        if work.begin[i + 1] - work.begin[i] == 2:
            u, v = work.units[work.begin[i]], work.units[work.begin[i] + 1]
            pair[min(u, v), max(u, v)] += work.weight[i]
    for j in range(t):
        work.ids[w.PICKS, j] = work.at[w.CHOSEN, j]
    for i in range(work.at[w.N_FREE, t] - 1):
        u = order[i]
        best = constant + gain[u] + gain[order[i + 1]]
        if best >= tolerance:
            break
        if work.tally[w.KEPT] == work.rank.shape[1]:
            far = work.sum[w.FAR, t] + nearest(work, t, np.int64(i), np.int64(2))
            if outranked(work, t, m, np.int64(i), far, best, gain[order[i + 1]]):
                break
        for j in range(i + 1, work.at[w.N_FREE, t]):
            v = order[j]
            if constant + gain[u] + gain[v] >= tolerance:
                break
            score = constant + work.lin[t, u] + work.lin[t, v] + pair[min(u, v), max(u, v)]
            if score < tolerance:
                far = work.sum[w.FAR, t] + work.per[w.DISTANCE, u] + work.per[w.DISTANCE, v]
                if floor is not None and (too_far(work, far) or not dense(t, 2, u, v, floor.body, floor.room)):
                    continue
                work.ids[w.PICKS, t], work.ids[w.PICKS, t + 1] = u, v
                offer(work, m, t + 2, far, score, t + 2.0)
    for i in range(work.at[w.BEGIN, t], work.at[w.END, t]):
        if work.begin[i + 1] - work.begin[i] == 2:
            u, v = work.units[work.begin[i]], work.units[work.begin[i] + 1]
            pair[min(u, v), max(u, v)] = 0.0


@inner()
def pairs_below(work, t, place, m, tolerance):  # type: ignore[no-untyped-def]
    """All turned sets that add the unit at ``place`` of depth t and exactly two after it, where units are bits.

    There are fewer pairs than monomials, so these are only summed: no bound, no order.
    """
    pair, bits, child = work.pair, flip(work, t, place), t + 1
    if not obey(work, child, m):
        return
    others, lin, order = ~work.ids[w.BIT, work.at[w.CHOSEN, t]], work.lin[child], work.order[child]
    for i in range(work.at[w.BEGIN, t], work.at[w.END, t]):
        key = work.key[i]
        if key & ~bits:
            continue
        key &= others
        rest = key & (key - 1)
        if rest == 0:
            lin[place_of(key)] += work.weight[i]
        elif rest & (rest - 1) == 0:
            u, v = place_of(key), place_of(rest)
            pair[u, v] += work.weight[i]
            pair[v, u] = pair[u, v]
    for j in range(child):
        work.ids[w.PICKS, j] = work.at[w.CHOSEN, j]
    for i in range(work.at[w.N_FREE, child] - 1):
        u = order[i]
        base, far_u = work.sum[w.CONSTANT, child] + lin[u], work.sum[w.FAR, child] + work.per[w.DISTANCE, u]
        for j in range(i + 1, work.at[w.N_FREE, child]):
            v = order[j]
            score = base + lin[v] + pair[u, v]
            if score < tolerance and not too_far(work, far_u + work.per[w.DISTANCE, v]):
                work.ids[w.PICKS, child], work.ids[w.PICKS, child + 1] = u, v
                offer(work, m, child + 2, far_u + work.per[w.DISTANCE, v], score, child + 2.0)
    for u in range(m):
        for v in range(m):
            pair[u, v] = 0.0


@inner()
def by_size(work, m, k, tolerance, floor):  # type: ignore[no-untyped-def]
    """Rank all turned sets of exactly k >= 2 units that are at the floor. CAPPED: not all were seen."""
    n_root, few = work.at[w.N_FREE, 0], m <= w.MOST_BITS
    state, t = DONE, np.int64(0)
    new = True
    while t >= 0:
        picks = k - t
        if new:
            new = False
            work.tally[w.NODES] += 1
            opened = open_node(work, t, m, picks, tolerance)
            if floor is not None:
                opened = opened and not hopeless(work, t, picks, True, floor.body, floor.room)
            if not opened:
                t -= 1
                continue
            if picks == 2:
                last_pairs(work, t, m, tolerance, floor)
                t -= 1
                continue
            work.at[w.PLACE, t] = 0
        i = work.at[w.PLACE, t]
        work.at[w.PLACE, t] = i + 1
        total = np.inf
        if i + picks <= work.at[w.N_FREE, t]:
            total = work.sum[w.CONSTANT, t]
            for j in range(i, i + picks):
                total += work.gain[t, work.order[t, j]]
        if total >= tolerance:
            t -= 1
            continue
        if work.tally[w.KEPT] == work.rank.shape[1]:
            far = work.sum[w.FAR, t] + nearest(work, t, i, picks)
            if outranked(work, t, m, i, far, total, work.gain[t, work.order[t, i + picks - 1]]):
                t -= 1
                continue
            far = work.sum[w.FAR, t] + work.per[w.DISTANCE, work.order[t, i]]
            if too_far(work, far + nearest(work, t, i + 1, picks - 1)):
                continue
        if work.tally[w.NODES] >= work.tally[w.NODE_CAP]:
            state = CAPPED
            break
        if floor is None and few and picks == 3:
            work.tally[w.NODES] += 1
            pairs_below(work, t, i, m, tolerance)
            continue
        if not descend(work, t, i, picks - 1):
            state = CAPPED
            break
        if floor is not None:
            carry(work, t, floor.body, floor.room)
        t += 1
        new = True
    work.at[w.N_FREE, 0] = n_root
    return state
