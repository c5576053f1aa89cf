"""Whether a set of features can turn a case, and with which values at the least distance: branching over boxes.

A box holds some cells of each feature of the set. Each tree takes its least leaf that meets the box: the sum bounds the
score in it from below. A greedy point (tree by tree, the box shrunk to the best leaf that still meets it) usually
settles the box; else it is cut where the tree that lost most wanted it to be.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search._ties import NOISE, SAME
from fewest.engine.search._work import NODE_CAP, NODES
from fewest.engine.search.domains._box_work import STACK
from fewest.engine.search.domains._cell_distances import CHOSEN
from fewest.engine.search.domains._profiles import room_near


@inner()
def _nearest(far, ranged, place, first, boxes, box, s):  # type: ignore[no-untyped-def]
    """The cell of a box that is nearest to the case in one feature; one that is as the case is, where there is such."""
    if ranged:
        low, high = boxes.low[box, s], boxes.high[box, s]
        above = min(max(place, low), high)
        below = min(max(place - 1, low), high)
        apart = far[first + above] < np.inf
        return below if far[first + below] == np.inf or (apart and far[first + below] < far[first + above]) else above
    best, cell = np.inf, np.int64(-1)
    for w in range(boxes.bits.shape[2]):
        bits = boxes.bits[box, s, w]
        at = np.int64(w * 64)
        while bits != np.uint64(0):
            if bits & np.uint64(1) and far[first + at] < best:
                best, cell = far[first + at], at
            bits >>= np.uint64(1)
            at += 1
    return cell


@inner()
def _gather(leaves, kept, reached, state, least, together, limit):  # type: ignore[no-untyped-def]
    """The leaves that the chosen set can reach, with what they ask of its features; trees, and the sum of the others.

    Leaves that are too far are left out.
    """
    n, slots, trees, constant = 0, 0, 0, 0.0
    for tree in range(kept.tree.shape[0] - 1):
        reached.tree[trees] = n
        met, one, begun = 0, -1, slots
        for k in range(kept.tree[tree], kept.tree[tree + 1]):
            ok, held = True, 0.0
            for e in range(kept.start[k], kept.start[k + 1]):
                f = kept.needs[e]
                if state[f] != CHOSEN:
                    ok = False
                    break
                held += least[f]
            if not ok:
                continue
            met += 1
            one = kept.leaf[k]
            if kept.far[k] + together - held >= limit:
                continue
            reached.leaf[n], reached.start[n] = one, slots
            for slot in range(leaves.slot[one], leaves.slot[one + 1]):
                if state[leaves.feature[slot]] == CHOSEN:
                    reached.slot[slots] = slot
                    slots += 1
            n += 1
        if met == 1:
            constant += leaves.value[one]
            n, slots = reached.tree[trees], begun
        else:
            trees += 1
    reached.tree[trees] = n
    reached.start[n] = slots
    return trees, constant


@inner()
def _meets(leaves, reached, boxes, k, box):  # type: ignore[no-untyped-def]
    """Whether a leaf meets a box."""
    for e in range(reached.start[k], reached.start[k + 1]):
        slot = reached.slot[e]
        s = boxes.place[leaves.feature[slot]]
        if leaves.row[slot] < 0:
            if max(leaves.low[slot], boxes.low[box, s]) > min(leaves.high[slot], boxes.high[box, s]):
                return False
        else:
            some = False
            for w in range(boxes.bits.shape[2]):
                some |= (boxes.bits[box, s, w] & leaves.bits[leaves.row[slot], w]) != np.uint64(0)
            if not some:
                return False
    return True


@inner()
def _shrink(leaves, reached, boxes, k):  # type: ignore[no-untyped-def]
    """Keep of the greedy box (1) what is inside a leaf."""
    for e in range(reached.start[k], reached.start[k + 1]):
        slot = reached.slot[e]
        s = boxes.place[leaves.feature[slot]]
        if leaves.row[slot] < 0:
            boxes.low[1, s] = max(boxes.low[1, s], leaves.low[slot])
            boxes.high[1, s] = min(boxes.high[1, s], leaves.high[slot])
        else:
            for w in range(boxes.bits.shape[2]):
                boxes.bits[1, s, w] &= leaves.bits[leaves.row[slot], w]


@inner()
def _copy(boxes, source, target, size):  # type: ignore[no-untyped-def]
    for s in range(size):
        boxes.low[target, s], boxes.high[target, s] = boxes.low[source, s], boxes.high[source, s]
        for w in range(boxes.bits.shape[2]):
            boxes.bits[target, s, w] = boxes.bits[source, s, w]


@inner()
def _part(boxes, top, size, s, low, high):  # type: ignore[no-untyped-def]
    """Put the part of the box in hand (0) that has these cells of feature s onto the stack; the new top."""
    low, high = max(low, boxes.low[0, s]), min(high, boxes.high[0, s])
    if low > high:
        return top
    _copy(boxes, 0, top, size)
    boxes.low[top, s], boxes.high[top, s] = low, high
    return top + 1


@inner()
def _outside(ranged, boxes, top, size, s, low, high, bits):  # type: ignore[no-untyped-def]
    """Put what the box in hand has outside of these cells of feature s onto the stack; the new top."""
    if ranged:
        top = _part(boxes, top, size, s, np.int64(0), low - 1)
        return _part(boxes, top, size, s, high + 1, boxes.high[0, s])
    some = False
    for w in range(boxes.bits.shape[2]):
        some |= (boxes.bits[0, s, w] & ~bits[w]) != np.uint64(0)
    if not some:
        return top
    _copy(boxes, 0, top, size)
    for w in range(boxes.bits.shape[2]):
        boxes.bits[top, s, w] &= ~bits[w]
    return top + 1


@inner()
def _split_at_case(ranged, here, boxes, top, size):  # type: ignore[no-untyped-def]
    """Cut the box in hand where the case is: what is as the case is comes off; the new top, -1 where it is not in."""
    for s in range(size):
        f = boxes.chosen[s]
        if not ranged[f]:
            continue
        low, high, same_low, same_high = boxes.low[0, s], boxes.high[0, s], here.same_low[f], here.same_high[f]
        if same_low <= same_high and max(low, same_low) <= min(high, same_high):
            top = _part(boxes, top, size, s, low, same_low - 1)
            return _part(boxes, top, size, s, same_high + 1, high)
        place = here.place[f]
        if low < place <= high:
            top = _part(boxes, top, size, s, low, place - 1)
            return _part(boxes, top, size, s, place, high)
    return -1


@inner()
def _split_by_distance(start, ranged, far, boxes, top, size):  # type: ignore[no-untyped-def]
    """Cut the box in hand so that what is nearer than the point is tried first."""
    for s in range(size):
        f, cell = boxes.chosen[s], boxes.point[s]
        away = far[start[f] + cell]
        if away <= far[start[f] + boxes.near[s]] + NOISE:
            continue
        if not ranged[f]:
            for part in range(2):
                _copy(boxes, 0, top, size)
                for c in range(start[f + 1] - start[f]):
                    if (far[start[f] + c] < away) == (part == 0):
                        boxes.bits[top, s, c // 64] &= ~(np.uint64(1) << np.uint64(c % 64))
                top += 1
            return top
        if cell > boxes.near[s]:
            top = _part(boxes, top, size, s, cell, boxes.high[0, s])
            return _part(boxes, top, size, s, np.int64(0), cell - 1)
        top = _part(boxes, top, size, s, np.int64(0), cell)
        return _part(boxes, top, size, s, cell + 1, boxes.high[0, s])
    return top


@inner()
def _split_by_leaf(leaves, reached, boxes, top, size, k):  # type: ignore[no-untyped-def]
    """Cut the box in hand where a leaf ends, the part inside first."""
    for e in range(reached.start[k], reached.start[k + 1]):
        slot = reached.slot[e]
        s, row = boxes.place[leaves.feature[slot]], leaves.row[slot]
        low, high = np.int64(leaves.low[slot]), np.int64(leaves.high[slot])
        before = top
        top = _outside(row < 0, boxes, top, size, s, low, high, leaves.bits[max(row, 0)])
        if top > before:
            if row < 0:
                return _part(boxes, top, size, s, low, high)
            _copy(boxes, 0, top, size)
            for w in range(boxes.bits.shape[2]):
                boxes.bits[top, s, w] &= leaves.bits[row, w]
            return top + 1
    return top


@inner()
def _take_off(ranged, boxes, top, size):  # type: ignore[no-untyped-def]
    """What the box in hand has outside of the greedy one (1) goes back onto the stack."""
    for s in range(size):
        low, high = boxes.low[1, s], boxes.high[1, s]
        top = _outside(ranged[boxes.chosen[s]], boxes, top, size, s, low, high, boxes.bits[1, s])
        boxes.low[0, s], boxes.high[0, s] = low, high
        for w in range(boxes.bits.shape[2]):
            boxes.bits[0, s, w] = boxes.bits[1, s, w]
    return top


@inner()
def _note(boxes, points, at, size):  # type: ignore[no-untyped-def]
    for f in range(points.shape[1]):
        points[at, f] = -1
    for s in range(size):
        points[at, boxes.chosen[s]] = boxes.point[s]


@inner()
def _step(far, least):  # type: ignore[no-untyped-def]
    """How far a change to a cell is at least: to stay as the case is counts as the least change there is."""
    return far if far < np.inf else least


@inner()
def _approach(start, ranged, here, boxes, size):  # type: ignore[no-untyped-def]
    """The cells of the box in hand that are nearest to the case; how far they are together."""
    near = 0.0
    for s in range(size):
        f = boxes.chosen[s]
        boxes.near[s] = _nearest(here.far, ranged[f], here.place[f], start[f], boxes, 0, s)
        near += _step(here.far[start[f] + boxes.near[s]], here.least[f])
    return near


@inner()
def _narrow(start, ranged, here, boxes, size, near, limit):  # type: ignore[no-untyped-def]
    """Take cells that are too far, however near the others are, off the ends of the box in hand; False if none stay."""
    if limit == np.inf:
        return True
    for s in range(size):
        f = boxes.chosen[s]
        if not ranged[f]:
            continue
        room_for = limit - NOISE - (near - _step(here.far[start[f] + boxes.near[s]], here.least[f]))
        low, high = boxes.low[0, s], boxes.high[0, s]
        while low <= high and here.far[start[f] + low] >= room_for:
            low += 1
        while high >= low and here.far[start[f] + high] >= room_for:
            high -= 1
        if low > high:
            return False
        boxes.low[0, s], boxes.high[0, s] = low, high
    return True


@inner()
def _least_sum(leaves, reached, boxes, trees):  # type: ignore[no-untyped-def]
    """The sum of the least leaves that meet the box in hand; inf where a tree has none that is near enough."""
    total = 0.0
    for tree in range(trees):
        met = False
        for k in range(reached.tree[tree], reached.tree[tree + 1]):
            if _meets(leaves, reached, boxes, k, 0):
                total += leaves.value[reached.leaf[k]]
                reached.wanted[tree] = k
                met = True
                break
        if not met:
            return np.inf
    return total


@inner()
def _greedy(leaves, reached, boxes, trees):  # type: ignore[no-untyped-def]
    """Shrink the greedy box to one leaf of each tree; their sum, and the wanted leaf that was missed most (or -1)."""
    total, loss, worst = 0.0, 0.0, np.int64(-1)
    for tree in range(trees):
        wanted, met = reached.wanted[tree], False
        for k in range(wanted, reached.tree[tree + 1]):
            if _meets(leaves, reached, boxes, k, 1):
                _shrink(leaves, reached, boxes, k)
                total += leaves.value[reached.leaf[k]]
                lost = leaves.value[reached.leaf[k]] - leaves.value[reached.leaf[wanted]]
                if lost > loss or (k != wanted and worst < 0):
                    loss, worst = lost, wanted
                met = True
                break
        if not met:
            return np.inf, wanted
    return total, worst


@inner()
def decide(trees, asked, here, kept, reached, boxes, out, tally, i, size, cost):  # type: ignore[no-untyped-def]
    """Find the nearest values with which the chosen set turns the case; False where the budget ran out."""
    leaves, start, ranged = trees.leaves, trees.start, trees.ranged
    together, limit, turned = 0.0, np.inf, False
    for s in range(size):
        f = boxes.chosen[s]
        boxes.place[f] = s
        together += here.least[f]
        boxes.low[2, s], boxes.high[2, s] = here.low[f], here.high[f]
        for w in range(boxes.bits.shape[2]):
            boxes.bits[2, s, w] = here.bits[f, w]
    if cost >= out.cost[i] * (1 - SAME) and asked.listing == 0:
        limit = out.far[i]
    if together >= limit - NOISE:
        return True
    count, constant = _gather(leaves, kept, reached, here.state, here.least, together, limit - NOISE)
    sure, wall = (
        asked.cut - asked.tolerance - asked.base - constant,
        asked.cut + asked.tolerance - asked.base - constant,
    )
    top = 3  # box 0 is the one in hand, box 1 the greedy one
    while top > 2:
        if tally[NODES] >= tally[NODE_CAP] or top + 2 * size + 2 >= STACK:
            return False
        tally[NODES] += 1
        top -= 1
        _copy(boxes, top, 0, size)
        near = _approach(start, ranged, here, boxes, size)
        if near >= limit - NOISE or not _narrow(start, ranged, here, boxes, size, near, limit):
            continue
        if _least_sum(leaves, reached, boxes, count) >= wall:
            continue
        cut = _split_at_case(ranged, here, boxes, top, size)
        if cut >= 0:
            top = cut
            continue
        _copy(boxes, 0, 1, size)
        score, worst = _greedy(leaves, reached, boxes, count)
        if score >= wall:
            if worst >= 0:
                top = _split_by_leaf(leaves, reached, boxes, top, size, worst)
            continue
        far = 0.0
        for s in range(size):
            f = boxes.chosen[s]
            boxes.point[s] = _nearest(here.far, ranged[f], here.place[f], start[f], boxes, 1, s)
            far += here.far[start[f] + boxes.point[s]]
        if score >= sure:
            n = room_near(out, i, cost, far)
            if n >= 0:
                _note(boxes, out.band[i], n, size)
            top = _take_off(ranged, boxes, top, size)
            continue
        if cost < out.cost[i] * (1 - SAME):
            out.cost[i], out.far[i], out.met[i] = cost, np.inf, 0
        if far < limit - NOISE:
            limit = far
            if not turned:
                turned = True
                out.met[i] += 1
            if out.met[i] <= asked.listing:
                _note(boxes, out.points[i], out.met[i], size)
            if far < out.far[i] - NOISE:
                out.far[i] = far
                _note(boxes, out.points[i], np.int64(0), size)
        if far > near + NOISE:
            top = _split_by_distance(start, ranged, here.far, boxes, top, size)
    return True
