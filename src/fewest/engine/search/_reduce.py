"""Tree ensemble on one hypercube -> multilinear polynomial in the bits "unit u is flipped".

A split is constant on the cube unless the start and the goal lie on different sides of it; then it tests one bit. A
leaf that needs the units R flipped and X kept adds (-1)^|Y| of its value to the monomial R + Y, for every Y within X.
Truncated at degree K the polynomial is exact for all sets of at most K units, and for no others.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search import _work as w
from fewest.engine.structure.walk import goes_left

_KEPT, _FLIPPED, _FREE = 0, 1, 2
COLUMN, TESTS, LEFT, RIGHT = range(4)  # fields of Trees.link; left is one before right
NUMBER = 2  # field of Trees.number
_SPREAD = -7046029254386353131


@inner()
def left_of(trees, node, z, levels):  # type: ignore[no-untyped-def]
    """1 where the value z goes left at a node, else 0; ``levels`` are None where trees are plain: compiled without."""
    if levels is None:
        return np.int64(z <= trees.number[node, NUMBER])
    return np.int64(goes_left(z, trees.number[node, NUMBER], trees.missing_left[node], trees.category[node], levels))


@inner()
def singles(trees, x, r, movable, sign, work, change, bends, levels):  # type: ignore[no-untyped-def]
    """Score of the start; ``change`` gets what each flip alone adds. One walk, plus one per bit met on the way.

    ``bends`` gets the trees whose path meets a bit at all: the others are the same on the whole cube.
    """
    total = trees.base
    state, path, other, link = work.ids[w.STATE], work.ids[w.KEPT_PATH], work.ids[w.TRAIL], trees.link
    for t in range(trees.root.shape[0]):
        node = np.uint64(trees.root[t])
        n, c = 0, link[node, COLUMN]
        while c >= 0:
            u = link[node, TESTS]
            is_left, goal_left = left_of(trees, node, x[c], levels), left_of(trees, node, r[c], levels)
            if goal_left != is_left and u >= 0 and movable[u] and state[u] != _KEPT:
                state[u] = _KEPT
                path[n] = u
                other[n] = link[node, RIGHT - goal_left]
                n += 1
            node = np.uint64(link[node, RIGHT - is_left])  # no branch: which way cannot be foreseen
            c = link[node, COLUMN]
        bends[t] = n > 0
        value = trees.number[node, NUMBER]
        total += value
        for j in range(n):
            u, node = path[j], np.uint64(other[j])
            state[u] = _FREE
            c = link[node, COLUMN]
            while c >= 0:
                z = r[c] if link[node, TESTS] == u else x[c]
                node = np.uint64(link[node, RIGHT - left_of(trees, node, z, levels)])
                c = link[node, COLUMN]
            change[u] += sign * (trees.number[node, NUMBER] - value)
    return total


@inner()
def collect(trees, x, r, movable, most, bends, leaves, work):  # type: ignore[no-untyped-def]
    """List the leaves that at most ``most`` flips reach, of the trees that bend.

    Returns (leaves or -1 for too many, whether any was cut).
    """
    n, top, cut = np.int64(0), np.int64(0), False
    state = work.ids[w.STATE]
    for t in range(trees.root.shape[0]):
        if work.tally[w.NODE_CAP] == 0:
            return np.int64(-1), True
        if not bends[t]:
            continue
        node = np.int64(trees.root[t])
        n_flipped, n_kept, n_trail, n_pending = 0, 0, 0, 0
        while True:
            link = trees.link[node]
            while link[COLUMN] >= 0:
                c, u = link[COLUMN], link[TESTS]
                is_left = left_of(trees, node, x[c], trees.left_levels)
                goal_left = left_of(trees, node, r[c], trees.left_levels)
                if goal_left != is_left and u >= 0 and movable[u] and state[u] != _KEPT:
                    if state[u] == _FLIPPED:
                        is_left = goal_left
                    else:
                        if n_flipped < most:
                            pending = leaves.pending[n_pending]
                            pending[0] = link[LEFT] if goal_left else link[RIGHT]
                            pending[1], pending[2], pending[3], pending[4] = u, n_flipped, n_kept, n_trail
                            n_pending += 1
                        else:
                            cut = True
                        work.ids[w.SEEN, u] = 1
                        state[u] = _KEPT
                        work.ids[w.KEPT_PATH, n_kept] = u
                        n_kept += 1
                        work.ids[w.TRAIL, n_trail] = u
                        n_trail += 1
                node = np.int64(link[LEFT] if is_left else link[RIGHT])
                link = trees.link[node]
            if n >= w.MAX_LEAVES or top + n_flipped + n_kept > w.MAX_MEMBERS:
                for j in range(n_trail):
                    state[work.ids[w.TRAIL, j]] = _FREE
                return np.int64(-1), cut
            leaves.value[n] = trees.number[node, NUMBER]
            leaves.span[0, n] = top
            leaves.span[1, n] = n_flipped
            for j in range(n_flipped):
                leaves.units[top + j] = work.ids[w.FLIPPED_PATH, j]
            top += n_flipped
            for j in range(n_kept):
                leaves.units[top + j] = work.ids[w.KEPT_PATH, j]
            top += n_kept
            n += 1
            if n_pending == 0:
                break
            n_pending -= 1
            pending = leaves.pending[n_pending]
            node, u, n_flipped, n_kept = np.int64(pending[0]), pending[1], pending[2], pending[3]
            while n_trail > pending[4]:
                n_trail -= 1
                state[work.ids[w.TRAIL, n_trail]] = _FREE
            state[u] = _FLIPPED
            work.ids[w.FLIPPED_PATH, n_flipped] = u
            n_flipped += 1
            work.ids[w.TRAIL, n_trail] = u
            n_trail += 1
        for j in range(n_trail):
            state[work.ids[w.TRAIL, j]] = _FREE
    leaves.span[0, n] = top
    return n, cut


@inner()
def slot_of(key, bits):  # type: ignore[no-untyped-def]
    """First slot of a key in a table of 2**bits (Fibonacci hashing: codes of few units differ in few bits)."""
    return ((key * _SPREAD) >> (63 - bits)) & ((1 << bits) - 1)


@inner()
def regrow(first, n_terms, bits, work):  # type: ignore[no-untyped-def]
    """Enter all terms from ``first`` on into a table of 2**bits slots."""
    work.tally[w.STAMP] += 1
    stamp = work.tally[w.STAMP]
    for i in range(first, n_terms):
        slot = slot_of(work.key[i], bits)
        while work.table[1, slot] == stamp:
            slot = (slot + 1) & ((1 << bits) - 1)
        work.table[1, slot] = stamp
        work.table[0, slot] = i


@inner()
def same_members(work, leaves, term, leaf, subset, size):  # type: ignore[no-untyped-def]
    """Whether a term is the monomial made of the leaf's flipped units and the subset of its kept ones."""
    if work.begin[term + 1] - work.begin[term] != size:
        return False
    base, n_flipped = leaves.span[0, leaf], leaves.span[1, leaf]
    for i in range(work.begin[term], work.begin[term + 1]):
        found = False
        for j in range(base, leaves.span[0, leaf + 1]):
            if work.ids[w.LOCAL, leaves.units[j]] == work.units[i]:
                place = j - base - n_flipped
                found = place < 0 or (subset >> place) & 1 == 1
                break
        if not found:
            return False
    return True


@inner()
def expand(n_leaves, m, most, sign, leaves, work):  # type: ignore[no-untyped-def]
    """Sum the leaves into terms of degree <= ``most`` (local ids; constants and slopes are already known).

    Returns (number of terms or -1 for too many, whether any term was cut).
    """
    cut, n, top, bits = False, np.int64(0), np.int64(0), np.int64(10)
    work.begin[0] = 0
    work.tally[w.STAMP] += 1
    stamp = work.tally[w.STAMP]
    for leaf in range(n_leaves):
        start, n_flipped = leaves.span[0, leaf], leaves.span[1, leaf]
        n_kept = leaves.span[0, leaf + 1] - start - n_flipped
        if n_flipped > most:
            cut = True
            continue
        if n_kept > 60 or work.tally[w.NODE_CAP] == 0:
            return np.int64(-1), True
        key = 0
        for j in range(start, start + n_flipped):
            key ^= work.ids[w.CODE, leaves.units[j]]
        leaves.grow[0, 0], leaves.grow[1, 0], leaves.grow[2, 0] = key, 0, n_flipped
        grown = 1
        for j in range(n_kept):
            code = work.ids[w.CODE, leaves.units[start + n_flipped + j]]
            for e in range(grown):
                if leaves.grow[2, e] >= most:
                    cut = True
                    continue
                if grown >= w.EXPANSION:
                    return np.int64(-1), True
                leaves.grow[0, grown] = leaves.grow[0, e] ^ code
                leaves.grow[1, grown] = leaves.grow[1, e] | (1 << j)
                leaves.grow[2, grown] = leaves.grow[2, e] + 1
                grown += 1
        value = sign * leaves.value[leaf]
        for e in range(grown):
            size = leaves.grow[2, e]
            if size < 2:
                continue
            signed = -value if (size - n_flipped) & 1 else value
            key = leaves.grow[0, e]
            slot = slot_of(key, bits)
            term = -1
            while work.table[1, slot] == stamp:
                at = work.table[0, slot]
                if work.key[at] == key and (m <= 64 or same_members(work, leaves, at, leaf, leaves.grow[1, e], size)):
                    term = at
                    break
                slot = (slot + 1) & ((1 << bits) - 1)
            if term >= 0:
                work.weight[term] += signed
                continue
            if n >= w.MAX_TERMS or top + size > w.MAX_MEMBERS:
                return np.int64(-1), True
            work.table[1, slot] = stamp
            work.table[0, slot] = n
            work.weight[n] = signed
            work.key[n] = key
            for j in range(start, start + n_flipped):
                work.units[top] = work.ids[w.LOCAL, leaves.units[j]]
                top += 1
            for j in range(n_kept):
                if (leaves.grow[1, e] >> j) & 1:
                    work.units[top] = work.ids[w.LOCAL, leaves.units[start + n_flipped + j]]
                    top += 1
            n += 1
            work.begin[n] = top
            if 2 * n > (1 << bits) and (1 << bits) < w.TABLE:
                bits += 1
                regrow(0, n, bits, work)
                stamp = work.tally[w.STAMP]
    work.tally[w.N_TERMS] = n
    return n, cut


@inner()
def score_of(trees, x, r, flipped):  # type: ignore[no-untyped-def]
    """Score of one vertex, by walking; ``flipped`` is by unit."""
    total = trees.base
    for t in range(trees.root.shape[0]):
        node = np.int64(trees.root[t])
        while trees.link[node, COLUMN] >= 0:
            c, u = trees.link[node, COLUMN], trees.link[node, TESTS]
            z = r[c] if u >= 0 and flipped[u] != 0 else x[c]
            node = np.int64(trees.link[node, RIGHT - left_of(trees, node, z, trees.left_levels)])
        total += trees.number[node, NUMBER]
    return total
