"""Compiled: the negative leaf that is cheapest to enter, and the values it is entered with.

A leaf is a run of slots, one per feature its box restricts. A case is either inside a slot, or must move there from
below, from above, from another level or from a missing value; each way has one value, or none.

`search_leaf_by_leaf` takes any weights and forbidden sets. `search_all_leaves`, where every feature costs one, counts
in the bits of a word: the thresholds of a feature cut its values into cells, and for every cell one word says which
leaves a case in it is outside of, so that one pass over the features counts for 64 leaves together. `at_least[k]` holds
the leaves that are missed by more than k features.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.models.trees._slots import INSIDE, NEVER

SAME = 1e-12  # distances closer than this (relative) are ties
MAX_COUNT = 8  # counts beyond this are compared leaf by leaf
BLOCK = 256  # rows taken together, so that cells are found and leaves counted for several rows per instruction

# A de Bruijn sequence: multiplied by a power of two, its top six bits name the power.
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.zeros(64, dtype=np.int64)
for _power in range(64):
    _PLACE[((int(_SEQUENCE) << _power) & (2**64 - 1)) >> 58] = _power


@entry
def apply(codes, feature, threshold, left, right, missing_left, level_set, levels_left):  # type: ignore[no-untyped-def]
    """Leaf that each row of codes falls into (n,)."""
    out = np.empty(len(codes), dtype=np.int32)
    for i in range(len(codes)):
        node = 0
        while feature[node] >= 0:
            value = codes[i, feature[node]]
            if np.isnan(value):
                goes_left = missing_left[node]
            elif level_set[node] >= 0:
                goes_left = levels_left[level_set[node], int(value)]
            else:
                goes_left = value <= threshold[node]
            node = left[node] if goes_left else right[node]
        out[i] = node
    return out


@inner
def landing(value, slot, slots):  # type: ignore[no-untyped-def]
    """Where a code must go to be inside a slot: (0, code) it is there, (1, new code) it moves, (2, code) it cannot."""
    if value != value:
        if slots.missing_inside[slot]:
            return 0, value
        new = slots.from_missing[slot]
    elif slots.table[slot] >= 0:
        code = slots.target[slots.table[slot], int(value)]
        if code == INSIDE:
            return 0, value
        new = np.nan if code == NEVER else float(code)
    elif value <= slots.low[slot]:
        new = slots.from_below[slot]
    elif value > slots.high[slot]:
        new = slots.from_above[slot]
    else:
        return 0, value
    return (2 if new != new else 1), new


@inner
def distance(value, new, numeric, inverse_scale):  # type: ignore[no-untyped-def]
    """How far a move goes: standard deviations of a number, one step for anything else."""
    if numeric and value == value:
        return abs(value - new) * inverse_scale
    return 1.0


@inner
def price(codes, i, leaf, slots, numeric, inverse_scale, weight, moved):  # type: ignore[no-untyped-def]
    """Cost, distance and number of moved features for entering a leaf; an infinite cost where that is not possible."""
    cost, far, count = 0.0, 0.0, 0
    for slot in range(slots.start[leaf], slots.start[leaf + 1]):
        j = slots.feature[slot]
        value = codes[i, j]
        way, new = landing(value, slot, slots)
        if way == 1:
            cost += weight[j]
            far += distance(value, new, numeric[j], inverse_scale[j])
            moved[count] = j
            count += 1
        elif way == 2:
            return np.inf, np.inf, 0
    return cost, far, count


@inner
def _forbidden(moved, count, sets, sets_from):  # type: ignore[no-untyped-def]
    """Whether the moved features contain a set that may not move together."""
    for s in range(len(sets_from) - 1):
        held = 0
        for k in range(sets_from[s], sets_from[s + 1]):
            for m in range(count):
                held += moved[m] == sets[k]
        if held == sets_from[s + 1] - sets_from[s]:
            return True
    return False


@inner
def ranks_before(cost, far, moved, count, best_cost, best_far, best_moved, best_count):  # type: ignore[no-untyped-def]
    """Cheaper, then closer, then first in column order."""
    if cost != best_cost:
        return cost < best_cost
    if best_far == np.inf or abs(far - best_far) > SAME * max(1.0, far):
        return far < best_far
    for m in range(min(count, best_count)):
        if moved[m] != best_moved[m]:
            return moved[m] < best_moved[m]
    return count < best_count


@entry
def search_leaf_by_leaf(  # type: ignore[no-untyped-def]
    codes, slots, numeric, inverse_scale, weight, sets, sets_from, first, last, best_leaf, best_cost
):
    """The best leaf of the rows first..last, leaf by leaf; -1 and inf where no leaf can be entered."""
    moved = np.empty(max(1, len(slots.feature)), dtype=np.int32)
    kept = np.empty(max(1, len(slots.feature)), dtype=np.int32)
    for i in range(first, last):
        leaf_kept, cost_kept, far_kept, count_kept = -1, np.inf, np.inf, 0
        for leaf in range(len(slots.start) - 1):
            cost, far, count = price(codes, i, leaf, slots, numeric, inverse_scale, weight, moved)
            if cost == np.inf or not ranks_before(cost, far, moved, count, cost_kept, far_kept, kept, count_kept):
                continue
            if not _forbidden(moved, count, sets, sets_from):
                leaf_kept, cost_kept, far_kept, count_kept = leaf, cost, far, count
                kept[:count] = moved[:count]
        best_leaf[i] = leaf_kept
        best_cost[i] = cost_kept


@entry
def costs(codes, slots, numeric, inverse_scale, weight, sets, sets_from):  # type: ignore[no-untyped-def]
    """Cost of entering every leaf (n, leaves); inf where it cannot be entered."""
    out = np.empty((len(codes), len(slots.start) - 1))
    moved = np.empty(max(1, len(slots.feature)), dtype=np.int32)
    for i in range(len(codes)):
        for leaf in range(len(slots.start) - 1):
            cost, _, count = price(codes, i, leaf, slots, numeric, inverse_scale, weight, moved)
            out[i, leaf] = np.inf if _forbidden(moved, count, sets, sets_from) else cost
    return out


@entry
def turn(codes, leaf_of, slots, numeric, inverse_scale, after, moved, far):  # type: ignore[no-untyped-def]
    """Write the codes after entering ``leaf_of``, the features moved, and the largest move of a number."""
    for i in range(len(codes)):
        leaf = leaf_of[i]
        far[i] = 0.0
        if leaf < 0:
            continue
        for slot in range(slots.start[leaf], slots.start[leaf + 1]):
            j = slots.feature[slot]
            value = codes[i, j]
            way, new = landing(value, slot, slots)
            if way == 1:
                after[i, j] = new
                moved[i, j] = True
                if numeric[j]:
                    far[i] = max(far[i], distance(value, new, True, inverse_scale[j]))


@entry
def mark_cells(values, mine, leaf_of, slots, outside, never):  # type: ignore[no-untyped-def]
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
    """Least number above one of features that misses a leaf, and the leaves it is least for; MAX_COUNT + 1 beyond."""
    for level in range(MAX_COUNT + 1):
        at_least[level] = 0
    for k in range(len(words.tested)):
        missed = words.outside[cells[k, i], word]
        for level in range(MAX_COUNT, 0, -1):
            at_least[level] |= at_least[level - 1] & missed
        at_least[0] |= missed
    for level in range(2, MAX_COUNT + 1):
        if alive & ~at_least[level]:
            return float(level), alive & ~at_least[level]
    return float(MAX_COUNT + 1), alive


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
def search_all_leaves(  # type: ignore[no-untyped-def]
    codes, slots, numeric, inverse_scale, weight, words, first, last, best_leaf, best_cost
):
    """The best leaf of the rows first..last; -1 and inf where no leaf can be entered. Every feature costs one."""
    f, w = len(words.tested), len(words.leaves)
    moved, kept = np.empty(max(1, f), dtype=np.int32), np.empty(max(1, f), dtype=np.int32)
    at_least = np.zeros(MAX_COUNT + 1, dtype=np.uint64)
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
