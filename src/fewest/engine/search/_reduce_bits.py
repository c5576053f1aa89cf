"""The reduction of `_reduce` where units are few: what a leaf needs flipped, and kept, are the bits of one word each.

What two flips together add is summed in a table of its own, ``work.two``: most cubes that one flip does not turn are
turned by two, and need no polynomial.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search import _work as w
from fewest.engine.search._bits import place_of, size_of
from fewest.engine.search._ranks import offer, too_far
from fewest.engine.search._reduce import COLUMN, NUMBER, RIGHT, TESTS, left_of, regrow, slot_of


@inner()
def collect_bits(trees, x, r, movable, most, bends, leaves, work, levels):  # type: ignore[no-untyped-def]
    """List the leaves that at most ``most`` flips reach, of the trees that bend; as `collect` does."""
    n, cut, seen, may = np.int64(0), False, np.int64(0), np.int64(0)
    waiting, bits, link = leaves.waiting, leaves.bits, trees.link
    for u in range(movable.shape[0]):
        if movable[u]:
            may |= np.int64(1) << u
    for t in range(trees.root.shape[0]):
        if not bends[t]:
            continue
        if work.tally[w.NODE_CAP] == 0:
            return np.int64(-1), True
        node, flipped, kept, left, n_waiting = np.uint64(trees.root[t]), np.int64(0), np.int64(0), most, 0
        while True:
            c = link[node, COLUMN]
            while c >= 0:
                u = link[node, TESTS]
                is_left, goal_left = left_of(trees, node, x[c], levels), left_of(trees, node, r[c], levels)
                if goal_left != is_left and u >= 0:
                    bit = (np.int64(1) << u) & may & ~kept
                    if bit & flipped:
                        is_left = goal_left
                    elif bit:
                        if left > 0:
                            waiting[n_waiting, 0] = link[node, RIGHT - goal_left]
                            waiting[n_waiting, 1], waiting[n_waiting, 2] = flipped | bit, kept
                            n_waiting += 1
                        else:
                            cut = True
                        kept |= bit
                node = np.uint64(link[node, RIGHT - is_left])
                c = link[node, COLUMN]
            if n >= w.MAX_LEAVES:
                return np.int64(-1), cut
            leaves.value[n], bits[0, n], bits[1, n] = trees.number[node, NUMBER], flipped, kept
            seen |= kept
            n += 1
            if n_waiting == 0:
                break
            n_waiting -= 1
            node, flipped, kept = np.uint64(waiting[n_waiting, 0]), waiting[n_waiting, 1], waiting[n_waiting, 2]
            left = most - size_of(flipped)
    while seen:
        work.ids[w.SEEN, place_of(seen)] = 1
        seen &= seen - 1
    return n, cut


@inner()
def sum_pairs(n_leaves, n_units, sign, leaves, work):  # type: ignore[no-untyped-def]
    """What two flips together add to what each adds alone, into ``work.two`` (by unit, in either order)."""
    two = work.two
    for u in range(n_units):
        for v in range(n_units):
            two[u, v] = 0.0
    for leaf in range(n_leaves):
        flipped, kept, value = leaves.bits[0, leaf], leaves.bits[1, leaf], sign * leaves.value[leaf]
        if flipped == 0:
            while kept:
                u = place_of(kept)
                kept &= kept - 1
                others = kept
                while others:
                    two[u, place_of(others)] += value
                    others &= others - 1
            continue
        u, second = place_of(flipped), flipped & (flipped - 1)
        if second == 0:
            while kept:
                two[u, place_of(kept)] -= value
                kept &= kept - 1
        elif second & (second - 1) == 0:
            two[u, place_of(second)] += value


@inner()
def rank_pairs(work, m, constant, tolerance):  # type: ignore[no-untyped-def]
    """Rank all turned sets of two units."""
    two, lin, unit = work.two, work.lin[0], work.ids[w.UNIT]
    for a in range(m):
        u, base = unit[a], constant + lin[a]
        for b in range(a + 1, m):
            v = unit[b]
            score = base + lin[b] + (two[u, v] + two[v, u])
            if score < tolerance:
                far = work.per[w.DISTANCE, a] + work.per[w.DISTANCE, b]
                if not too_far(work, far):
                    work.ids[w.PICKS, 0], work.ids[w.PICKS, 1] = a, b
                    offer(work, m, 2, far, score, 2.0)


@inner()
def take_pairs(work, m):  # type: ignore[no-untyped-def]
    """Begin the polynomial with the pairs (keys are by unit). Returns how many there are."""
    n, two, unit = 0, work.two, work.ids[w.UNIT]
    work.begin[0] = 0
    for a in range(m):
        u = unit[a]
        for b in range(a + 1, m):
            v = unit[b]
            weight = two[u, v] + two[v, u]
            if weight != 0.0:
                work.weight[n], work.units[2 * n], work.units[2 * n + 1] = weight, a, b
                n += 1
                work.begin[n] = 2 * n
    return np.int64(n)


@inner()
def expand_bits(n_leaves, m, most, sign, leaves, work):  # type: ignore[no-untyped-def]
    """Sum the leaves into terms of degree <= ``most``, the pairs in ``work.two`` first; as `expand` does."""
    n = take_pairs(work, m)
    first, top, cut, bits = n, 2 * n, False, np.int64(10)
    work.tally[w.STAMP] += 1
    stamp, grow = work.tally[w.STAMP], leaves.grow
    for leaf in range(n_leaves):
        flipped, kept = leaves.bits[0, leaf], leaves.bits[1, leaf]
        if size_of(flipped | kept) < 3:
            continue
        if work.tally[w.NODE_CAP] == 0:
            return np.int64(-1), True
        grow[0, 0], grow[2, 0] = flipped, size_of(flipped)
        grown, rest = 1, kept
        while rest:
            bit = rest & -rest
            rest ^= bit
            for e in range(grown):
                if grow[2, e] >= most:
                    cut = True
                    continue
                if grown >= w.EXPANSION:
                    return np.int64(-1), True
                grow[0, grown], grow[2, grown] = grow[0, e] | bit, grow[2, e] + 1
                grown += 1
        value, n_flipped = sign * leaves.value[leaf], grow[2, 0]
        for e in range(grown):
            size, key = grow[2, e], grow[0, e]
            if size < 3:
                continue
            signed = -value if (size - n_flipped) & 1 else value
            slot = slot_of(key, bits)
            while work.table[1, slot] == stamp and work.key[work.table[0, slot]] != key:
                slot = (slot + 1) & ((1 << bits) - 1)
            if work.table[1, slot] == stamp:
                work.weight[work.table[0, slot]] += signed
                continue
            if n >= w.MAX_TERMS or top + size > w.MAX_MEMBERS:
                return np.int64(-1), True
            work.table[1, slot], work.table[0, slot] = stamp, n
            work.weight[n], work.key[n] = signed, key
            top += size
            n += 1
            work.begin[n] = top
            if 2 * (n - first) > (1 << bits) and (1 << bits) < w.TABLE:
                bits += 1
                regrow(first, n, bits, work)
                stamp = work.tally[w.STAMP]
    number(first, n, work)
    work.tally[w.N_TERMS] = n
    return n, cut


@inner()
def number(first, n, work):  # type: ignore[no-untyped-def]
    """Members and keys of the terms, those from ``first`` on with keys by unit, in the numbering of this cube."""
    for i in range(n):
        at = work.begin[i]
        if i >= first:
            key = work.key[i]
            while key:
                work.units[at] = work.ids[w.LOCAL, place_of(key)]
                at += 1
                key &= key - 1
        key = 0
        for j in range(work.begin[i], work.begin[i + 1]):
            key |= work.ids[w.BIT, work.units[j]]
        work.key[i] = key
