"""A tighter bound for searches that take many nodes: negative monomials are set off against positive ones within them.

A monomial is at least as large as any that contains it. So a positive weight on M pays for as much negative weight on
M and one unit more, and what is left of both is still a lower bound of the polynomial: `gains` then charges less.
Ensembles of deep trees are full of such pairs: a leaf that needs units kept adds its value with alternating signs.
"""

from __future__ import annotations

from fewest.engine.numba_cache import inner
from fewest.engine.search import _work as w
from fewest.engine.search._node import gains

STALLED = 64  # nodes spent on a cube before this bound is worth its cost
_SPREAD = -7046029254386353131


@inner()
def tighten(work, t, picks):  # type: ignore[no-untyped-def]
    """Fill ``gain[t]`` anew, from less negative weight; the polynomial itself stays as it is."""
    begin, end = work.at[w.BEGIN, t], work.at[w.END, t]
    if 2 * end - begin > w.MAX_STACK:
        return
    for i in range(begin, end):  # behind the last depth there is room
        work.weight[end + i - begin] = work.weight[i]
    set_off(work, t, picks)
    gains(work, t, picks)
    for i in range(begin, end):
        work.weight[i] = work.weight[end + i - begin]


@inner()
def set_off(work, t, picks):  # type: ignore[no-untyped-def]
    """Lower the weights of depth t in place: positive ones by what they pay for, negative ones to what is not paid.

    Negative monomials with a unit that is not free have no weight.
    """
    begin, end = work.at[w.BEGIN, t], work.at[w.END, t]
    bits = 6
    while (1 << bits) < 2 * (end - begin):
        bits += 1
    work.tally[w.STAMP] += 1
    work.tally[w.MARK] += 1
    stamp, mark, last_slot = work.tally[w.STAMP], work.tally[w.MARK], (1 << bits) - 1
    for i in range(work.at[w.N_FREE, t]):
        work.ids[w.MARKED, work.order[t, i]] = mark
    for i in range(begin, end):
        if work.weight[i] > 0.0 and work.begin[i + 1] - work.begin[i] < picks:
            slot = ((work.key[i] * _SPREAD) >> (63 - bits)) & last_slot
            while work.table[1, slot] == stamp:
                slot = (slot + 1) & last_slot
            work.table[1, slot] = stamp
            work.table[0, slot] = i
    for i in range(begin, end):
        if work.weight[i] >= 0.0:
            continue
        first, last = work.begin[i], work.begin[i + 1]
        for j in range(first, last):
            if work.ids[w.MARKED, work.units[j]] != mark:
                work.weight[i] = 0.0
                break
        for j in range(first, last if 2 < last - first <= picks else first):
            if work.weight[i] >= 0.0:
                break
            key = work.key[i] ^ work.ids[w.BIT, work.units[j]]
            slot = ((key * _SPREAD) >> (63 - bits)) & last_slot
            while work.table[1, slot] == stamp:
                other = work.table[0, slot]
                if work.key[other] == key:
                    # Keys of more units than bits are not unique: count what the two have in common.
                    common, size = 0, work.begin[other + 1] - work.begin[other]
                    for a in range(work.begin[other], work.begin[other + 1]):
                        for b in range(first, last):
                            common += work.units[a] == work.units[b]
                    if common == size:
                        paid = min(work.weight[other], -work.weight[i])
                        work.weight[other] -= paid
                        work.weight[i] += paid
                        break
                slot = (slot + 1) & last_slot
