"""What a search node is made of: the residual polynomial, its optimistic gains, and the sets kept so far.

The bound: positive monomials are dropped, each negative one is charged wholly to its currently weakest member, and of
the (distinct) monomials of degree d charged to a unit no more count than fit into the picks left,
C(picks - 1, d - 1).
"""

from __future__ import annotations

import math

from fewest.engine.compiled import inner
from fewest.engine.search._work import (
    BEGIN,
    BEST_COST,
    BIT,
    CHOSEN,
    CONSTANT,
    COST,
    DEGREE,
    DISTANCE,
    END,
    FAR,
    KEPT,
    KEPT_FAR,
    KEPT_SCORE,
    MARK,
    MARKED,
    MAX_STACK,
    MAX_STACK_MEMBERS,
    MET,
    N_BANNED,
    N_FORBIDDEN,
    N_FREE,
    N_IMPLIES,
    PICKS,
    SPENT,
    STAMP,
)

SAME = 1e-9  # costs this close (relatively) are equal
_SLACK = 1e-11  # of distances: beyond it the rounded values differ
_NOISE = 1e-12  # of scores: what the order of a sum may change


@inner()
def rounded(value):  # type: ignore[no-untyped-def]
    """Round to 12 significant decimals."""
    size = abs(value)
    if not size > 1e-290 or size > 1e290:
        return 0.0 if size <= 1e-290 else value
    power = 11.0 - math.floor(math.log10(size))
    up, down = 10.0 ** max(power, 0.0), 10.0 ** max(-power, 0.0)
    scaled = value / down * up
    whole = math.floor(scaled)
    rest = scaled - whole
    if rest > 0.5 or (rest == 0.5 and whole % 2 == 1):
        whole += 1.0
    return whole / up * down


@inner()
def order_of(a, b):  # type: ignore[no-untyped-def]
    """-1, 0 or 1 as a is less than, equal to or more than b after rounding."""
    if a != b and abs(a - b) <= _SLACK * max(abs(a), abs(b)):
        a, b = rounded(a), rounded(b)
    return -1 if a < b else (1 if a > b else 0)


@inner()
def before(a, b, m):  # type: ignore[no-untyped-def]
    """Whether the unit list of set a comes before that of set b."""
    for u in range(m):
        if a[u] != b[u]:
            shorter = b if a[u] else a
            for v in range(u + 1, m):
                if shorter[v]:
                    return a[u]
            return not a[u]
    return False


@inner()
def permitted(work, m):  # type: ignore[no-untyped-def]
    """Whether the rules and the rejected sets let the candidate through; forbidden sets come first in ``banned``."""
    member = work.kept[work.rank.shape[1]]
    for i in range(work.tally[N_IMPLIES]):
        if member[work.implies[i, 0]] and not member[work.implies[i, 1]]:
            return False
    for i in range(work.tally[N_BANNED]):
        whole, only = True, True
        for u in range(m):
            whole = whole and (member[u] or not work.banned[i, u])
            only = only and (work.banned[i, u] or not member[u])
        if whole and (only or i < work.tally[N_FORBIDDEN]):
            return False
    return True


@inner()
def obey(work, t, m):  # type: ignore[no-untyped-def]
    """Leave out the free units of depth t that no permitted set can add; False where there is no permitted set."""
    if work.tally[N_IMPLIES] + work.tally[N_FORBIDDEN] == 0:
        return True
    work.tally[MARK] += 1
    possible, mark, chosen = work.ids[MARKED], work.tally[MARK], work.kept[work.rank.shape[1]]
    for u in range(m):
        chosen[u] = False
    for i in range(t):
        chosen[work.at[CHOSEN, i]] = True
        possible[work.at[CHOSEN, i]] = mark
    for i in range(work.at[N_FREE, t]):
        possible[work.order[t, i]] = mark
    for i in range(work.tally[N_IMPLIES]):
        if possible[work.implies[i, 1]] != mark:
            if chosen[work.implies[i, 0]]:
                return False
            possible[work.implies[i, 0]] = 0
    for i in range(work.tally[N_FORBIDDEN]):
        left, last = 0, 0
        for u in range(m):
            if work.banned[i, u] and not chosen[u]:
                left, last = left + 1, u
        if left == 0:
            return False
        if left == 1:
            possible[last] = 0
    i, n = 0, work.at[N_FREE, t]
    while i < n:
        u = work.order[t, i]
        if possible[u] == mark:
            i += 1
        else:  # behind the free ones: the root is searched again
            n -= 1
            work.order[t, i], work.order[t, n] = work.order[t, n], u
    work.at[N_FREE, t] = n
    return True


@inner()
def offer(work, m, n_picks, far, score, cost):  # type: ignore[no-untyped-def]
    """Take the turned set ``picks[:n_picks]`` into the ranked list of cheapest sets, if it is permitted and belongs."""
    kept = work.tally[KEPT]
    room = work.rank.shape[1]
    cheaper = kept > 0 and cost < work.rank[BEST_COST, 0] * (1 - SAME)
    if kept == room and not cheaper:
        order = order_of(far, work.rank[KEPT_FAR, kept - 1])
        if order > 0 or (order == 0 and order_of(score, work.rank[KEPT_SCORE, kept - 1]) > 0):
            work.tally[MET] += 1
            return
    member = work.kept[room]
    for u in range(m):
        member[u] = False
    for i in range(n_picks):
        member[work.ids[PICKS, i]] = True
    if not permitted(work, m):
        return
    if cheaper:
        kept = 0
        work.tally[MET] = 0
    if kept == 0:
        work.rank[BEST_COST, 0] = cost
    work.tally[MET] += 1
    at = kept
    while at > 0:
        order = order_of(far, work.rank[KEPT_FAR, at - 1])
        if order == 0:
            order = order_of(score, work.rank[KEPT_SCORE, at - 1])
        if order > 0 or (order == 0 and not before(member, work.kept[at - 1], m)):
            break
        at -= 1
    if at == room:
        return
    kept = min(kept + 1, room)
    for i in range(kept - 1, at, -1):
        work.rank[KEPT_FAR, i] = work.rank[KEPT_FAR, i - 1]
        work.rank[KEPT_SCORE, i] = work.rank[KEPT_SCORE, i - 1]
        for u in range(m):
            work.kept[i, u] = work.kept[i - 1, u]
    work.rank[KEPT_FAR, at] = far
    work.rank[KEPT_SCORE, at] = score
    for u in range(m):
        work.kept[at, u] = member[u]
    work.tally[KEPT] = kept


@inner()
def too_far(work, far):  # type: ignore[no-untyped-def]
    """Whether sets at least this far cannot enter the list any more."""
    kept = work.tally[KEPT]
    if kept < work.rank.shape[1]:
        return False
    last = work.rank[KEPT_FAR, kept - 1]
    return far > last + _SLACK * abs(last)


@inner()
def outranked(work, t, m, first, far, score, price):  # type: ignore[no-untyped-def]
    """Whether no set that adds free units of depth t from position ``first`` on can enter the full list.

    ``far`` and ``score`` are at most the distance and the score of any such set; ``price`` is the gain per cost of the
    last unit in that score. Where both tie with the last set kept, the unit lists decide: none comes before the list of
    all units that a set of such a score can hold.
    """
    last = work.tally[KEPT] - 1
    if last + 1 < work.rank.shape[1]:
        return False
    if too_far(work, far):
        return True
    least = work.rank[KEPT_SCORE, last]
    if far < work.rank[KEPT_FAR, last] or score < least:
        return False
    room = least + _NOISE * (abs(work.sum[CONSTANT, 0]) + abs(least)) - score
    if room < 0.0:
        return True
    member = work.kept[work.rank.shape[1]]
    for u in range(m):
        member[u] = False
    for i in range(t):
        member[work.at[CHOSEN, i]] = True
    for i in range(first, work.at[N_FREE, t]):
        u = work.order[t, i]
        member[u] = work.gain[t, u] - price * work.per[COST, u] <= room
    return not before(member, work.kept[last], m)


@inner()
def nearest(work, t, first, picks):  # type: ignore[no-untyped-def]
    """Sum of the ``picks`` smallest distances among the free units of depth t from position ``first`` on."""
    total, taken = 0.0, 0
    small = work.charge[0, 0]  # scratch: overwritten by every use
    for i in range(first, work.at[N_FREE, t]):
        far = work.per[DISTANCE, work.order[t, i]]
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
    gain, top = work.gain[t], min(picks, work.charge.shape[2] - 1, work.tally[DEGREE])
    for i in range(work.at[N_FREE, t]):
        u = work.order[t, i]
        gain[u] = work.lin[t, u]
        for d in range(top + 1):
            work.charge[0, u, d] = 0.0
            work.charge[1, u, d] = 0.0
    for i in range(work.at[BEGIN, t], work.at[END, t]):
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
    order, gain, n = work.order[t], work.gain[t], work.at[N_FREE, t]
    step = 1
    while step < n // 3:
        step = 3 * step + 1
    while step > 0:
        for i in range(step, n):
            u = order[i]
            value = gain[u] / work.per[COST, u] if by_ratio else gain[u]
            j = i
            while j >= step:
                v = order[j - step]
                other = gain[v] / work.per[COST, v] if by_ratio else gain[v]
                if not (other > value or (other == value and v > u)):
                    break
                order[j] = v
                j -= step
            order[j] = u
        step //= 3


@inner()
def descend(work, t, place, picks):  # type: ignore[no-untyped-def]
    """Make depth t + 1: the unit at ``place`` is flipped, those before it are kept, ``picks`` flips remain.

    Returns False when the stack is full. Equal residual monomials are netted.
    """
    flip = work.order[t, place]
    child = t + 1
    work.tally[MARK] += 1
    mark = work.tally[MARK]
    n = 0
    for i in range(place + 1, work.at[N_FREE, t]):
        u = work.order[t, i]
        work.order[child, n] = u
        work.lin[child, u] = work.lin[t, u]
        work.ids[MARKED, u] = mark
        n += 1
    work.at[N_FREE, child] = n
    work.sum[CONSTANT, child] = work.sum[CONSTANT, t] + work.lin[t, flip]
    work.sum[SPENT, child] = work.sum[SPENT, t] + work.per[COST, flip]
    work.sum[FAR, child] = work.sum[FAR, t] + work.per[DISTANCE, flip]
    work.at[CHOSEN, t] = flip
    begin = work.at[END, t]
    out, top = begin, work.begin[begin]
    for i in range(work.at[BEGIN, t], work.at[END, t]):
        first, last = work.begin[i], work.begin[i + 1]
        if last - first > picks + 1:
            continue
        if out + 1 >= MAX_STACK or top + last - first > MAX_STACK_MEMBERS:
            return False
        at = top
        free = True
        for j in range(first, last):
            u = work.units[j]
            if u == flip:
                continue
            if work.ids[MARKED, u] != mark:
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
        work.key[out] = work.key[i] ^ (work.ids[BIT, flip] if size < last - first else 0)
        out += 1
        top = at
        work.begin[out] = top
    work.at[BEGIN, child] = begin
    work.at[END, child] = out
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
    exact = work.ids[BIT, work.ids.shape[1] - 1] == 1
    begin, end = work.at[BEGIN, t], work.at[END, t]
    bits = 6
    while (1 << bits) < 2 * (end - begin):
        bits += 1
    work.tally[STAMP] += 1
    stamp = work.tally[STAMP]
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
    work.at[END, t] = out
