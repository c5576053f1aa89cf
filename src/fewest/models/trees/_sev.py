"""Compiled, leaf by leaf: the negative leaf that is cheapest to enter, and the values it is entered with.

A leaf is a run of slots, one per feature its box restricts. A case is either inside a slot, or must move there from
below, from above, from another level or from a missing value; each way has one value, or none.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.compiled import entry, inner
from fewest.models.trees.slots import INSIDE, NEVER

SAME = 1e-12  # distances closer than this (relative) are ties


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
def search(  # type: ignore[no-untyped-def]
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
