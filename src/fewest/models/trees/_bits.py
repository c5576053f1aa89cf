"""Compiled, all leaves at once: which negative leaves need the fewest features, counted in the bits of a word.

The thresholds of a feature cut its values into cells. For every cell one word says which leaves a case in it is
outside of, so that one pass over the features counts for 64 leaves together: `at_least[k]` holds the leaves that are
missed by more than k features.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.compiled import entry, inner
from fewest.models.trees._sev import SAME, landing, price, ranks_before

MOST = 8  # counts beyond this are compared leaf by leaf
BLOCK = 256  # rows taken together, so that cells are found and leaves counted for several rows per instruction

# A de Bruijn sequence: multiplied by a power of two, its top six bits name the power.
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.zeros(64, dtype=np.int64)
for _power in range(64):
    _PLACE[((int(_SEQUENCE) << _power) & (2**64 - 1)) >> 58] = _power


@entry
def mark(values, mine, leaf_of, slots, outside, never):  # type: ignore[no-untyped-def]
    """Set the bits of the leaves that a value of each cell is outside of, and of those it cannot enter."""
    for cell in range(len(values)):
        for slot in mine:
            way = landing(values[cell], slot, slots)[0]
            word, bit = leaf_of[slot] // 64, np.uint64(1) << np.uint64(leaf_of[slot] % 64)
            if way > 0:
                outside[cell, word] |= bit
            if way > 1:
                never[cell, word] |= bit


@inner
def _find_cells(codes, first, last, words, cells):  # type: ignore[no-untyped-def]
    """Cell of every tested feature for a block of rows (f, rows), the last one for missing values; whether any is."""
    missing = False
    for k in range(len(words.tested)):
        column, out = codes[first:last, words.tested[k]], cells[k]
        begin, lost = words.cell_from[k], words.cell_from[k + 1] - 1
        if words.is_number[k]:
            out[: len(column)] = begin
            for e in range(words.edge_from[k], words.edge_from[k + 1]):
                edge = words.edges[e]
                for i in range(len(column)):  # no branch on the value: nothing to mispredict
                    out[i] += np.int32(column[i] > edge)
        else:
            for i in range(len(column)):
                out[i] = begin + np.int32(column[i]) if column[i] == column[i] else lost
        gaps = 0
        for i in range(len(column)):
            gaps += column[i] != column[i]
            out[i] = out[i] if column[i] == column[i] else lost
        missing |= gaps > 0
    return missing


@inner
def _count(rows, word, words, cells, alive, one, two):  # type: ignore[no-untyped-def]
    """For each row the leaves of a word that can be entered, and those missed by at least one and two features."""
    for i in range(rows):
        alive[i], one[i], two[i] = words.leaves[word], 0, 0
    for k in range(len(words.tested)):
        for i in range(rows):
            missed = words.outside[cells[k, i], word]
            two[i] |= one[i] & missed
            one[i] |= missed
    if words.closed:
        for k in range(len(words.tested)):
            for i in range(rows):
                alive[i] &= ~words.never[cells[k, i], word]


@inner
def _beyond_one(cells, i, word, alive, words, at_least):  # type: ignore[no-untyped-def]
    """Least number above one of features that misses a leaf, and the leaves it is least for; MOST + 1 if beyond."""
    for level in range(MOST + 1):
        at_least[level] = 0
    for k in range(len(words.tested)):
        missed = words.outside[cells[k, i], word]
        for level in range(MOST, 0, -1):
            at_least[level] |= at_least[level - 1] & missed
        at_least[0] |= missed
    for level in range(2, MOST + 1):
        if alive & ~at_least[level]:
            return float(level), alive & ~at_least[level]
    return float(MOST + 1), alive


@inner
def lowest(word):  # type: ignore[no-untyped-def]
    """Position of the lowest bit."""
    return _PLACE[((word & (~word + np.uint64(1))) * _SEQUENCE) >> np.uint64(58)]


@inner
def _closest_singles(  # type: ignore[no-untyped-def]
    codes, first, last, cells, alive, two, words, inverse_scale, single, here, there, near, leaves_near
):
    """Among the leaves of one word that a single feature misses, the closest: by feature, way by way, for a block.

    ``near`` and ``leaves_near`` get the distance and the leaves at it; the other buffers are for one feature.
    """
    rows = last - first
    for i in range(rows):
        near[i], leaves_near[i] = np.inf, 0
    for k in range(len(words.tested)):
        column, cell, unit = codes[first:last, words.tested[k]], cells[k], inverse_scale[words.tested[k]]
        for i in range(rows):
            single[i] = words.outside[cell[i], 0] & alive[i] & ~two[i]
            here[i] = np.inf if words.is_number[k] or single[i] == 0 else 1.0
            there[i] = 0 if words.is_number[k] else single[i]
        for way in range(words.way_from[k], words.way_from[k + 1]):
            edge, above, below = words.way_edge[way], words.way_above[way], words.way_below[way]
            leaves_above, leaves_below = words.leaves_above[way], words.leaves_below[way]
            for i in range(rows):  # selects, no branches: several rows per instruction
                value, best, leaves = column[i], here[i], there[i]
                up = value <= edge
                hits = single[i] & (leaves_above if up else leaves_below)
                far = abs(value - (above if up else below)) * unit
                far = far if hits != 0 else np.inf
                slack = SAME * max(1.0, far)
                nearer = best - far > slack
                level = (far - best <= slack) & (hits != 0)
                leaves |= hits if level else np.uint64(0)
                there[i] = hits if nearer else leaves
                here[i] = far if nearer else best
        for i in range(rows):
            nearer = near[i] - here[i] > SAME * max(1.0, here[i])
            leaves_near[i] = there[i] if nearer else leaves_near[i]
            near[i] = here[i] if nearer else near[i]


@inner
def _settle(  # type: ignore[no-untyped-def]
    codes, i, cells, place, alive, one, two, words, slots, numeric, inverse_scale, weight, moved, kept, at_least
):
    """The best leaf of one row and its cost, the leaves that need the fewest features compared one by one."""
    leaf_kept, cost_kept, far_kept, count_kept = -1, np.inf, np.inf, 0
    for word in range(len(words.leaves)):
        left = alive[word, place]
        if left == 0:
            continue
        fewest = 0.0 if left & ~one[word, place] else 1.0
        if fewest == 0.0:
            left &= ~one[word, place]
        elif left & ~two[word, place]:
            left &= ~two[word, place]
        else:
            fewest, left = _beyond_one(cells, place, word, left, words, at_least)
        while left and fewest <= cost_kept:
            leaf = 64 * word + lowest(left)
            left &= left - np.uint64(1)
            cost, far, count = price(codes, i, leaf, slots, numeric, inverse_scale, weight, moved)
            if ranks_before(cost, far, moved, count, cost_kept, far_kept, kept, count_kept):
                leaf_kept, cost_kept, far_kept, count_kept = leaf, cost, far, count
                for m in range(count):
                    kept[m] = moved[m]
    return leaf_kept, cost_kept


@entry
def search(  # type: ignore[no-untyped-def]
    codes, slots, numeric, inverse_scale, weight, words, first, last, best_leaf, best_cost
):
    """The best leaf of the rows first..last; -1 and inf where no leaf can be entered. Every feature costs one."""
    f, w = len(words.tested), len(words.leaves)
    moved, kept = np.empty(max(1, f), dtype=np.int32), np.empty(max(1, f), dtype=np.int32)
    at_least = np.zeros(MOST + 1, dtype=np.uint64)
    cells = np.empty((f, BLOCK), dtype=np.int32)
    alive, one = np.empty((w, BLOCK), dtype=np.uint64), np.empty((w, BLOCK), dtype=np.uint64)
    two = np.empty((w, BLOCK), dtype=np.uint64)
    here, near = np.empty(BLOCK), np.empty(BLOCK)
    there, leaves_near = np.empty(BLOCK, dtype=np.uint64), np.empty(BLOCK, dtype=np.uint64)
    single = np.empty(BLOCK, dtype=np.uint64)
    for begin in range(first, last, BLOCK):
        end = min(begin + BLOCK, last)
        missing = _find_cells(codes, begin, end, words, cells)
        for word in range(w):
            _count(end - begin, word, words, cells, alive[word], one[word], two[word])
        together = w == 1 and not missing
        if together:
            _closest_singles(
                codes, begin, end, cells, alive[0], two[0], words, inverse_scale, single, here, there, near,
                leaves_near,
            )  # fmt: skip
        for i in range(begin, end):
            k = i - begin
            if together and alive[0, k] & one[0, k] == alive[0, k] and leaves_near[k]:
                best_leaf[i], best_cost[i] = lowest(leaves_near[k]), 1.0
            else:
                best_leaf[i], best_cost[i] = _settle(
                    codes, i, cells, k, alive, one, two, words, slots, numeric, inverse_scale, weight, moved, kept,
                    at_least,
                )  # fmt: skip
