"""Which of two sets comes first by the rule of `_ties`, and the sets kept so far; compiled."""

from __future__ import annotations

import math

from fewest.engine.numba_cache import inner
from fewest.engine.search import _work as w
from fewest.engine.search._ties import NOISE, SAME, SLACK


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
    if a != b and abs(a - b) <= SLACK * max(abs(a), abs(b)):
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
    for i in range(work.tally[w.N_IMPLIES]):
        if member[work.implies[i, 0]] and not member[work.implies[i, 1]]:
            return False
    for i in range(work.tally[w.N_BANNED]):
        whole, only = True, True
        for u in range(m):
            whole = whole and (member[u] or not work.banned[i, u])
            only = only and (work.banned[i, u] or not member[u])
        if whole and (only or i < work.tally[w.N_FORBIDDEN]):
            return False
    return True


@inner()
def offer(work, m, n_picks, far, score, cost):  # type: ignore[no-untyped-def]
    """Take the turned set ``picks[:n_picks]`` into the ranked list of cheapest sets, if it is permitted and belongs."""
    kept = work.tally[w.KEPT]
    room = work.rank.shape[1]
    cheaper = kept > 0 and cost < work.rank[w.BEST_COST, 0] * (1 - SAME)
    if kept == room and not cheaper:
        order = order_of(far, work.rank[w.KEPT_FAR, kept - 1])
        if order > 0 or (order == 0 and order_of(score, work.rank[w.KEPT_SCORE, kept - 1]) > 0):
            work.tally[w.MET] += 1
            return
    member = work.kept[room]
    for u in range(m):
        member[u] = False
    for i in range(n_picks):
        member[work.ids[w.PICKS, i]] = True
    if not permitted(work, m):
        return
    if cheaper:
        kept = 0
        work.tally[w.MET] = 0
    if kept == 0:
        work.rank[w.BEST_COST, 0] = cost
    work.tally[w.MET] += 1
    at = kept
    while at > 0:
        order = order_of(far, work.rank[w.KEPT_FAR, at - 1])
        if order == 0:
            order = order_of(score, work.rank[w.KEPT_SCORE, at - 1])
        if order > 0 or (order == 0 and not before(member, work.kept[at - 1], m)):
            break
        at -= 1
    if at == room:
        return
    kept = min(kept + 1, room)
    for i in range(kept - 1, at, -1):
        work.rank[w.KEPT_FAR, i] = work.rank[w.KEPT_FAR, i - 1]
        work.rank[w.KEPT_SCORE, i] = work.rank[w.KEPT_SCORE, i - 1]
        for u in range(m):
            work.kept[i, u] = work.kept[i - 1, u]
    work.rank[w.KEPT_FAR, at] = far
    work.rank[w.KEPT_SCORE, at] = score
    for u in range(m):
        work.kept[at, u] = member[u]
    work.tally[w.KEPT] = kept


@inner()
def too_far(work, far):  # type: ignore[no-untyped-def]
    """Whether sets at least this far cannot enter the list any more."""
    kept = work.tally[w.KEPT]
    if kept < work.rank.shape[1]:
        return False
    last = work.rank[w.KEPT_FAR, kept - 1]
    return far > last + SLACK * abs(last)


@inner()
def outranked(work, t, m, first, far, score, price):  # type: ignore[no-untyped-def]
    """Whether no set that adds free units of depth t from position ``first`` on can enter the full list.

    ``far`` and ``score`` are at most the distance and the score of any such set; ``price`` is the gain per cost of the
    last unit in that score. Where both tie with the last set kept, the unit lists decide: none comes before the list of
    all units that a set of such a score can hold.
    """
    last = work.tally[w.KEPT] - 1
    if last + 1 < work.rank.shape[1]:
        return False
    if too_far(work, far):
        return True
    least = work.rank[w.KEPT_SCORE, last]
    if far < work.rank[w.KEPT_FAR, last] or score < least:
        return False
    room = least + NOISE * (abs(work.sum[w.CONSTANT, 0]) + abs(least)) - score
    if room < 0.0:
        return True
    member = work.kept[work.rank.shape[1]]
    for u in range(m):
        member[u] = False
    for i in range(t):
        member[work.at[w.CHOSEN, i]] = True
    for i in range(first, work.at[w.N_FREE, t]):
        u = work.order[t, i]
        member[u] = work.gain[t, u] - price * work.per[w.COST, u] <= room
    return not before(member, work.kept[last], m)
