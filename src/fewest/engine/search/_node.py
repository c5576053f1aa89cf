"""What a search node is made of: the residual polynomial, its optimistic gains, and the sets kept so far.

The bound: positive monomials are dropped, each negative one is charged wholly to its currently weakest member, and of
the (distinct) monomials of degree d charged to a unit no more count than fit into the picks left,
C(picks - 1, d - 1).
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search import _work as w


@inner()
def obey(work, t, m):  # type: ignore[no-untyped-def]
    """Leave out the free units of depth t that no permitted set can add; False where there is no permitted set."""
    if work.tally[w.N_IMPLIES] + work.tally[w.N_FORBIDDEN] == 0:
        return True
    work.tally[w.MARK] += 1
    possible, mark, chosen = work.ids[w.MARKED], work.tally[w.MARK], work.kept[work.rank.shape[1]]
    for u in range(m):
        chosen[u] = False
    for i in range(t):
        chosen[work.at[w.CHOSEN, i]] = True
        possible[work.at[w.CHOSEN, i]] = mark
    for i in range(work.at[w.N_FREE, t]):
        possible[work.order[t, i]] = mark
    for i in range(work.tally[w.N_IMPLIES]):
        if possible[work.implies[i, 1]] != mark:
            if chosen[work.implies[i, 0]]:
                return False
            possible[work.implies[i, 0]] = 0
    for i in range(work.tally[w.N_FORBIDDEN]):
        left, last = 0, 0
        for u in range(m):
            if work.banned[i, u] and not chosen[u]:
                left, last = left + 1, u
        if left == 0:
            return False
        if left == 1:
            possible[last] = 0
    i, n = 0, work.at[w.N_FREE, t]
    while i < n:
        u = work.order[t, i]
        if possible[u] == mark:
            i += 1
        else:  # behind the free ones: the root is searched again
            n -= 1
            work.order[t, i], work.order[t, n] = work.order[t, n], u
    work.at[w.N_FREE, t] = n
    return True


@inner()
def nearest(work, t, first, picks):  # type: ignore[no-untyped-def]
    """Sum of the ``picks`` smallest distances among the free units of depth t from position ``first`` on."""
    total, taken = 0.0, 0
    small = work.charge[0, 0]  # scratch: overwritten by every use
    for i in range(first, work.at[w.N_FREE, t]):
        far = work.per[w.DISTANCE, work.order[t, i]]
        if taken == picks and far >= small[taken - 1]:
            continue
        j = taken if taken < picks else taken - 1
        while j > 0 and small[j - 1] > far:
            small[j] = small[j - 1]
            j -= 1
        small[j] = far
        taken = min(taken + 1, picks)
    for j in range(taken):
        total += small[j]
    return total


@inner()
def gains(work, t, picks):  # type: ignore[no-untyped-def]
    """Fill ``gain[t]`` (by local id): a lower bound on what each free unit adds when at most ``picks`` are flipped."""
    gain, top = work.gain[t], min(picks, work.charge.shape[2] - 1, work.tally[w.DEGREE])
    for i in range(work.at[w.N_FREE, t]):
        u = work.order[t, i]
        gain[u] = work.lin[t, u]
        for d in range(top + 1):
            work.charge[0, u, d] = 0.0
            work.charge[1, u, d] = 0.0
    for i in range(work.at[w.BEGIN, t], work.at[w.END, t]):
        weight = work.weight[i]
        if weight >= 0.0:
            continue
        first, last = work.begin[i], work.begin[i + 1]
        d = last - first
        if d > picks:
            continue
        weakest = work.units[first]
        for j in range(first + 1, last):
            if gain[work.units[j]] > gain[weakest]:
                weakest = work.units[j]
        if d >= work.charge.shape[2]:
            gain[weakest] += weight
            continue
        fit = 1.0
        for j in range(1, d):
            fit = fit * (picks - j) / j
        before_ = max(work.charge[0, weakest, d], fit * work.charge[1, weakest, d])
        work.charge[0, weakest, d] += weight
        work.charge[1, weakest, d] = min(work.charge[1, weakest, d], weight)
        gain[weakest] += max(work.charge[0, weakest, d], fit * work.charge[1, weakest, d]) - before_


@inner()
def sort_free(work, t, by_ratio):  # type: ignore[no-untyped-def]
    """Order the free units of depth t by gain, or by gain per cost; most helpful first."""
    order, gain, n = work.order[t], work.gain[t], work.at[w.N_FREE, t]
    step = 1
    while step < n // 3:
        step = 3 * step + 1
    while step > 0:
        for i in range(step, n):
            u = order[i]
            value = gain[u] / work.per[w.COST, u] if by_ratio else gain[u]
            j = i
            while j >= step:
                v = order[j - step]
                other = gain[v] / work.per[w.COST, v] if by_ratio else gain[v]
                if not (other > value or (other == value and v > u)):
                    break
                order[j] = v
                j -= step
            order[j] = u
        step //= 3


@inner()
def flip(work, t, place):  # type: ignore[no-untyped-def]
    """Begin depth t + 1: the unit at ``place`` is flipped, those before it are kept.

    Returns the bits that monomials may have there and at depth t: all where keys are not bits of units.
    """
    flipped, child = work.order[t, place], t + 1
    bits = work.ids[w.BIT, flipped]
    work.tally[w.MARK] += 1
    mark = work.tally[w.MARK]
    n = 0
    for i in range(place + 1, work.at[w.N_FREE, t]):
        u = work.order[t, i]
        work.order[child, n] = u
        work.lin[child, u] = work.lin[t, u]
        work.ids[w.MARKED, u] = mark
        bits |= work.ids[w.BIT, u]
        n += 1
    work.at[w.N_FREE, child] = n
    work.sum[w.CONSTANT, child] = work.sum[w.CONSTANT, t] + work.lin[t, flipped]
    work.sum[w.SPENT, child] = work.sum[w.SPENT, t] + work.per[w.COST, flipped]
    work.sum[w.FAR, child] = work.sum[w.FAR, t] + work.per[w.DISTANCE, flipped]
    work.at[w.CHOSEN, t] = flipped
    return bits if work.ids[w.BIT, work.ids.shape[1] - 1] == 1 else np.int64(-1)


@inner()
def descend(work, t, place, picks):  # type: ignore[no-untyped-def]
    """Make depth t + 1: the unit at ``place`` is flipped, those before it are kept, ``picks`` flips remain.

    Returns False when the stack is full. Equal residual monomials are netted.
    """
    bits, child = flip(work, t, place), t + 1
    flipped, mark = work.at[w.CHOSEN, t], work.tally[w.MARK]
    begin = work.at[w.END, t]
    out, top = begin, work.begin[begin]
    for i in range(work.at[w.BEGIN, t], work.at[w.END, t]):
        if work.key[i] & ~bits:
            continue
        first, last = work.begin[i], work.begin[i + 1]
        if last - first > picks + 1:
            continue
        if out + 1 >= w.MAX_STACK or top + last - first > w.MAX_STACK_MEMBERS:
            return False
        at = top
        free = True
        for j in range(first, last):
            u = work.units[j]
            if u == flipped:
                continue
            if work.ids[w.MARKED, u] != mark:
                free = False
                break
            work.units[at] = u
            at += 1
        size = at - top
        if not free or size > picks:
            continue
        if size == 1:
            work.lin[child, work.units[top]] += work.weight[i]
            continue
        work.weight[out] = work.weight[i]
        work.key[out] = work.key[i] ^ (work.ids[w.BIT, flipped] if size < last - first else 0)
        out += 1
        top = at
        work.begin[out] = top
    work.at[w.BEGIN, child] = begin
    work.at[w.END, child] = out
    net(work, child)
    return True


@inner()
def alike(work, a, b):  # type: ignore[no-untyped-def]
    """Whether two monomials have the same members (in any order)."""
    if work.begin[a + 1] - work.begin[a] != work.begin[b + 1] - work.begin[b]:
        return False
    for i in range(work.begin[a], work.begin[a + 1]):
        found = False
        for j in range(work.begin[b], work.begin[b + 1]):
            found = found or work.units[i] == work.units[j]
        if not found:
            return False
    return True


@inner()
def net(work, t):  # type: ignore[no-untyped-def]
    """Add up equal monomials of depth t. Not only for speed: what `gains` counts must be distinct monomials."""
    exact = work.ids[w.BIT, work.ids.shape[1] - 1] == 1
    begin, end = work.at[w.BEGIN, t], work.at[w.END, t]
    bits = 6
    while (1 << bits) < 2 * (end - begin):
        bits += 1
    work.tally[w.STAMP] += 1
    stamp = work.tally[w.STAMP]
    out, top = begin, work.begin[begin]
    for i in range(begin, end):
        key = work.key[i]
        slot = ((key * -7046029254386353131) >> (63 - bits)) & ((1 << bits) - 1)
        term = -1
        while work.table[1, slot] == stamp:
            if work.key[work.table[0, slot]] == key and (exact or alike(work, work.table[0, slot], i)):
                term = work.table[0, slot]
                break
            slot = (slot + 1) & ((1 << bits) - 1)
        if term >= 0:
            work.weight[term] += work.weight[i]
            continue
        work.table[1, slot] = stamp
        work.table[0, slot] = out
        first, last = work.begin[i], work.begin[i + 1]
        work.key[out] = key
        work.weight[out] = work.weight[i]
        for j in range(first, last):
            work.units[top] = work.units[j]
            top += 1
        out += 1
        work.begin[out] = top
    work.at[w.END, t] = out
