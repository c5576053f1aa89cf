"""Whether a set of features can turn a case, and with which values at the least distance: branching over boxes.

A box holds some cells of each feature of the set. Each tree takes its least leaf that meets the box: the sum bounds the
score in it from below. A greedy point (tree by tree, the box shrunk to the best leaf that still meets it) usually
settles the box; else it is cut where the tree that lost most wanted it to be.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search._box_work import CHOSEN, STACK
from fewest.engine.search._ties import NOISE, SAME
from fewest.engine.search._work import NODE_CAP, NODES


@inner()
def _distance(trees, asked, i, f, cell):  # type: ignore[no-untyped-def]
    """How far a cell of a feature is from the case."""
    own = asked.own[i, f]
    if not asked.measured[f] or np.isnan(own):
        return 1.0
    at = trees.cells.start[f] + cell
    return max(trees.cells.low[at] - own, own - trees.cells.high[at], 0.0) / asked.scale[f]


@inner()
def _nearest(trees, asked, room, i, f, low, high, bits):  # type: ignore[no-untyped-def]
    """The cell of a box that is nearest to the case in one feature."""
    if not trees.cells.ranged[f]:
        for w in range(bits.shape[0]):
            if bits[w] != np.uint64(0):
                bit = 0
                while (bits[w] >> np.uint64(bit)) & np.uint64(1) == np.uint64(0):
                    bit += 1
                return np.int64(w * 64 + bit)
    above = min(max(room.place[f], low), high)
    below = min(max(room.place[f] - 1, low), high)
    nearer = _distance(trees, asked, i, f, below) < _distance(trees, asked, i, f, above)
    return below if nearer else above


@inner()
def least_step(trees, asked, room, i, f):  # type: ignore[no-untyped-def]
    """How far the nearest cell is that is not as the case is; zero where that is not known."""
    if not asked.measured[f] or np.isnan(asked.own[i, f]):
        return 1.0
    if not trees.cells.ranged[f]:
        return 0.0
    below, above = room.place[f] - 1, room.place[f]
    if room.same_low[f] <= room.same_high[f]:
        below, above = room.same_low[f] - 1, room.same_high[f] + 1
    best = np.inf
    if room.low[f] <= below:
        best = _distance(trees, asked, i, f, min(below, room.high[f]))
    if above <= room.high[f]:
        best = min(best, _distance(trees, asked, i, f, max(above, room.low[f])))
    return 0.0 if best == np.inf else best


@inner()
def _gather(trees, room, size):  # type: ignore[no-untyped-def]
    """The leaves that the chosen set can reach, with what they ask of its features."""
    leaves = trees.leaves
    n, slots = 0, 0
    for tree in range(room.kept_tree.shape[0] - 1):
        room.leaf_tree[tree] = n
        for k in range(room.kept_tree[tree], room.kept_tree[tree + 1]):
            ok = True
            for e in range(room.kept_from[k], room.kept_from[k + 1]):
                if room.state[room.needs[e]] != CHOSEN:
                    ok = False
                    break
            if ok:
                leaf = room.kept[k]
                room.leaf[n], room.leaf_slot[n] = leaf, slots
                for slot in range(leaves.slot[leaf], leaves.slot[leaf + 1]):
                    if room.state[leaves.feature[slot]] == CHOSEN:
                        room.slot[slots] = slot
                        slots += 1
                n += 1
    room.leaf_tree[room.kept_tree.shape[0] - 1] = n
    room.leaf_slot[n] = slots


@inner()
def _meets(trees, room, k, box):  # type: ignore[no-untyped-def]
    """Whether a leaf meets a box."""
    leaves = trees.leaves
    for e in range(room.leaf_slot[k], room.leaf_slot[k + 1]):
        slot = room.slot[e]
        s = room.place_of[leaves.feature[slot]]
        if leaves.row[slot] < 0:
            if max(leaves.low[slot], room.box_low[box, s]) > min(leaves.high[slot], room.box_high[box, s]):
                return False
        else:
            some = False
            for w in range(room.bits.shape[1]):
                some |= (room.box_bits[box, s, w] & leaves.bits[leaves.row[slot], w]) != np.uint64(0)
            if not some:
                return False
    return True


@inner()
def _shrink(trees, room, k, box):  # type: ignore[no-untyped-def]
    """Keep of a box what is inside a leaf."""
    leaves = trees.leaves
    for e in range(room.leaf_slot[k], room.leaf_slot[k + 1]):
        slot = room.slot[e]
        s = room.place_of[leaves.feature[slot]]
        if leaves.row[slot] < 0:
            room.box_low[box, s] = max(room.box_low[box, s], leaves.low[slot])
            room.box_high[box, s] = min(room.box_high[box, s], leaves.high[slot])
        else:
            for w in range(room.bits.shape[1]):
                room.box_bits[box, s, w] &= leaves.bits[leaves.row[slot], w]


@inner()
def _copy(room, source, target, size):  # type: ignore[no-untyped-def]
    for s in range(size):
        room.box_low[target, s], room.box_high[target, s] = room.box_low[source, s], room.box_high[source, s]
        for w in range(room.bits.shape[1]):
            room.box_bits[target, s, w] = room.box_bits[source, s, w]


@inner()
def _part(room, top, size, s, low, high):  # type: ignore[no-untyped-def]
    """Put the part of the box in hand (0) that has these cells of feature s onto the stack; the new top."""
    low, high = max(low, room.box_low[0, s]), min(high, room.box_high[0, s])
    if low > high:
        return top
    _copy(room, 0, top, size)
    room.box_low[top, s], room.box_high[top, s] = low, high
    return top + 1


@inner()
def _outside(trees, room, top, size, s, low, high, bits):  # type: ignore[no-untyped-def]
    """Put what the box in hand has outside of these cells of feature s onto the stack; the new top."""
    if trees.cells.ranged[room.chosen[s]]:
        top = _part(room, top, size, s, np.int64(0), low - 1)
        return _part(room, top, size, s, high + 1, room.box_high[0, s])
    some = False
    for w in range(room.bits.shape[1]):
        some |= (room.box_bits[0, s, w] & ~bits[w]) != np.uint64(0)
    if not some:
        return top
    _copy(room, 0, top, size)
    for w in range(room.bits.shape[1]):
        room.box_bits[top, s, w] = room.box_bits[0, s, w] & ~bits[w]
    return top + 1


@inner()
def _split_at_case(trees, room, top, size):  # type: ignore[no-untyped-def]
    """Cut the box in hand where the case is: what is as the case is comes off; the new top, -1 where it is not in."""
    for s in range(size):
        f = room.chosen[s]
        if not trees.cells.ranged[f]:
            continue
        low, high, same_low, same_high = room.box_low[0, s], room.box_high[0, s], room.same_low[f], room.same_high[f]
        if same_low <= same_high and max(low, same_low) <= min(high, same_high):
            top = _part(room, top, size, s, low, same_low - 1)
            return _part(room, top, size, s, same_high + 1, high)
        place = room.place[f]
        if low < place <= high:
            top = _part(room, top, size, s, low, place - 1)
            return _part(room, top, size, s, place, high)
    return -1


@inner()
def _split_by_distance(trees, asked, room, i, top, size):  # type: ignore[no-untyped-def]
    """Cut the box in hand so that what is nearer than the point is tried first."""
    for s in range(size):
        f, cell = room.chosen[s], room.point[s]
        if _distance(trees, asked, i, f, cell) > _distance(trees, asked, i, f, room.near[s]) + NOISE:
            if cell > room.near[s]:
                top = _part(room, top, size, s, cell, room.box_high[0, s])
                return _part(room, top, size, s, np.int64(0), cell - 1)
            top = _part(room, top, size, s, np.int64(0), cell)
            return _part(room, top, size, s, cell + 1, room.box_high[0, s])
    return top


@inner()
def _split_by_leaf(trees, room, top, size, k):  # type: ignore[no-untyped-def]
    """Cut the box in hand where a leaf ends, the part inside first."""
    leaves = trees.leaves
    for e in range(room.leaf_slot[k], room.leaf_slot[k + 1]):
        slot = room.slot[e]
        s, row = room.place_of[leaves.feature[slot]], leaves.row[slot]
        low, high = np.int64(leaves.low[slot]), np.int64(leaves.high[slot])
        before = top
        top = _outside(trees, room, top, size, s, low, high, leaves.bits[max(row, 0)])
        if top > before:
            if row < 0:
                return _part(room, top, size, s, low, high)
            _copy(room, 0, top, size)
            for w in range(room.bits.shape[1]):
                room.box_bits[top, s, w] &= leaves.bits[row, w]
            return top + 1
    return top


@inner()
def _take_off(trees, room, top, size):  # type: ignore[no-untyped-def]
    """What the box in hand has outside of the greedy one (1) goes back onto the stack."""
    for s in range(size):
        low, high = room.box_low[1, s], room.box_high[1, s]
        top = _outside(trees, room, top, size, s, low, high, room.box_bits[1, s])
        room.box_low[0, s], room.box_high[0, s] = low, high
        for w in range(room.bits.shape[1]):
            room.box_bits[0, s, w] = room.box_bits[1, s, w]
    return top


@inner()
def _note(room, points, at, size):  # type: ignore[no-untyped-def]
    for f in range(points.shape[1]):
        points[at, f] = -1
    for s in range(size):
        points[at, room.chosen[s]] = room.point[s]


@inner()
def _step(trees, asked, room, i, f, cell):  # type: ignore[no-untyped-def]
    """How far a change to this cell is at least: to stay as the case is counts as the least change there is."""
    return max(_distance(trees, asked, i, f, cell), room.least[f])


@inner()
def _approach(trees, asked, room, i, size):  # type: ignore[no-untyped-def]
    """The cells of the box in hand that are nearest to the case; how far they are together."""
    near = 0.0
    for s in range(size):
        f = room.chosen[s]
        room.near[s] = _nearest(trees, asked, room, i, f, room.box_low[0, s], room.box_high[0, s], room.box_bits[0, s])
        near += _step(trees, asked, room, i, f, room.near[s])
    return near


@inner()
def _narrow(trees, asked, room, i, size, near, limit):  # type: ignore[no-untyped-def]
    """Take cells that are too far, however near the others are, off the ends of the box in hand; False if none stay."""
    if limit == np.inf:
        return True
    for s in range(size):
        f = room.chosen[s]
        if not trees.cells.ranged[f] or not asked.measured[f] or np.isnan(asked.own[i, f]):
            continue
        room_for = limit - NOISE - (near - _step(trees, asked, room, i, f, room.near[s]))
        low, high = room.box_low[0, s], room.box_high[0, s]
        while low <= high and _distance(trees, asked, i, f, low) >= room_for:
            low += 1
        while high >= low and _distance(trees, asked, i, f, high) >= room_for:
            high -= 1
        if low > high:
            return False
        room.box_low[0, s], room.box_high[0, s] = low, high
    return True


@inner()
def decide(trees, asked, room, out, i, size, cost):  # type: ignore[no-untyped-def]
    """Find the nearest values with which the chosen set turns the case; False where the budget ran out."""
    for s in range(size):
        room.place_of[room.chosen[s]] = s
    value, wall, words = trees.leaves.value, asked.cut + asked.tolerance, room.bits.shape[1]
    if cost < out.cost[i] * (1 - SAME):
        limit = np.inf
    else:
        limit = out.far[i] if asked.listing == 0 else np.inf
    turned, together = False, 0.0
    for s in range(size):
        together += room.least[room.chosen[s]]
    if together >= limit - NOISE:
        return True
    _gather(trees, room, size)
    for s in range(size):
        f = room.chosen[s]
        room.box_low[2, s], room.box_high[2, s] = room.low[f], room.high[f]
        for w in range(words):
            room.box_bits[2, s, w] = room.bits[f, w]
    top = 3  # box 0 is the one in hand, box 1 the greedy one
    while top > 2:
        if room.tally[NODES] >= room.tally[NODE_CAP] or top + 2 * size + 2 >= STACK:
            return False
        room.tally[NODES] += 1
        top -= 1
        _copy(room, top, 0, size)
        near = _approach(trees, asked, room, i, size)
        if near >= limit - NOISE or not _narrow(trees, asked, room, i, size, near, limit):
            continue
        least = asked.base
        for tree in range(room.leaf_tree.shape[0] - 1):
            for k in range(room.leaf_tree[tree], room.leaf_tree[tree + 1]):
                if _meets(trees, room, k, 0):
                    least += value[room.leaf[k]]
                    room.wanted[tree] = k
                    break
        if least >= wall:
            continue
        cut = _split_at_case(trees, room, top, size)
        if cut >= 0:
            top = cut
            continue
        _copy(room, 0, 1, size)
        score, loss, worst = asked.base, 0.0, -1
        for tree in range(room.leaf_tree.shape[0] - 1):
            for k in range(room.wanted[tree], room.leaf_tree[tree + 1]):
                if _meets(trees, room, k, 1):
                    _shrink(trees, room, k, 1)
                    score += value[room.leaf[k]]
                    lost = value[room.leaf[k]] - value[room.leaf[room.wanted[tree]]]
                    if lost > loss or (k != room.wanted[tree] and worst < 0):
                        loss, worst = lost, room.wanted[tree]
                    break
        if score >= wall:
            if worst >= 0:
                top = _split_by_leaf(trees, room, top, size, worst)
            continue
        far = 0.0
        for s in range(size):
            f = room.chosen[s]
            room.point[s] = _nearest(
                trees, asked, room, i, f, room.box_low[1, s], room.box_high[1, s], room.box_bits[1, s]
            )
            far += _distance(trees, asked, i, f, room.point[s])
        if score >= asked.cut - asked.tolerance:
            n = out.band_count[i]
            if n < out.band.shape[1]:
                _note(room, out.band[i], n, size)
                out.band_cost[i, n], out.band_far[i, n] = cost, far
                out.band_count[i] += 1
            else:
                out.spilled[i] = min(out.spilled[i], cost)
            top = _take_off(trees, room, top, size)
            continue
        if cost < out.cost[i] * (1 - SAME):
            out.cost[i], out.far[i], out.met[i] = cost, np.inf, 0
        if far < limit - NOISE:
            limit = far
            if not turned:
                turned = True
                out.met[i] += 1
            if out.met[i] <= asked.listing:
                _note(room, out.points[i], out.met[i], size)
            if far < out.far[i] - NOISE:
                out.far[i] = far
                _note(room, out.points[i], np.int64(0), size)
        if far > near + NOISE:
            top = _split_by_distance(trees, asked, room, i, top, size)
    return True
