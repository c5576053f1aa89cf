"""The nearest values of a given set of features that turn a case, for tree ensembles: best first over boxes of values.

Each feature has a *way*: its values from the one next to the case's to the one shown. A box holds a piece of every way;
its corner next to the case is the best it can offer, the sum of the least leaves that meet it the lowest score. Boxes
are taken in the order of their corners, so the first corner that turns the case is the nearest point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.search.domains._ways import WAYS, Nearest, Ways, far_of
from fewest.engine.structure.walk import goes_left
from fewest.tables.arrays import Bools, Floats, Ints, Ints32

HEAP = 8192  # boxes that wait at most
DEEP = 512  # splits on a path at most


class SplitTrees(NamedTuple):
    """An ensemble whose splits on numbers are cuts of their ways."""

    column: Ints32  # (nodes,), as all that follow but for three
    threshold: Floats
    left: Ints32
    right: Ints32
    missing_left: Bools
    category: Ints32
    value: Floats
    feature: Ints32  # Whose column it is; -1: nobody's
    cut: Ints  # Values of the feature before this place are on one side
    left_first: Bools  # Whether that side is the left one
    left_levels: Bools  # (sets, levels)
    root: Ints32  # (trees,)
    base: float


class WayRoom(NamedTuple):
    """Room for one case."""

    tree: Ints  # (trees + 1,): Leaves that are within reach, tree by tree, the least value first
    value: Floats  # (leaves,)
    low: Ints  # (leaves, WAYS): Steps of each way that lead there
    high: Ints
    waiting: Ints  # (DEEP,)
    waiting_low: Ints  # (DEEP, WAYS)
    waiting_high: Ints
    heap: Ints  # (HEAP,): Boxes in the order of a heap
    most: Floats  # (HEAP,): Largest step of the corner of each box
    total: Floats  # (HEAP,): Sum of its steps
    box_low: Ints  # (HEAP, WAYS)
    box_high: Ints
    here_low: Ints  # (WAYS,)
    here_high: Ints
    slot_of: Ints  # (p,)
    feature: Ints  # (WAYS,)


def make_room(trees: SplitTrees, p: int) -> WayRoom:
    """Room for cases of p features."""

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    leaves = int((trees.column < 0).sum()) + 1
    return WayRoom(
        ints(len(trees.root) + 1), np.zeros(leaves), ints(leaves, WAYS), ints(leaves, WAYS), ints(DEEP),
        ints(DEEP, WAYS), ints(DEEP, WAYS), ints(HEAP), np.zeros(HEAP), np.zeros(HEAP), ints(HEAP, WAYS),
        ints(HEAP, WAYS), ints(WAYS), ints(WAYS), ints(p), ints(WAYS),
    )  # fmt: skip


@inner()
def _sides(trees, ways, room, i, node, s):  # type: ignore[no-untyped-def]
    """Steps of a way that a split sends left, and right, of those at hand."""
    f = room.feature[s]
    first, cut, last = ways.first[i, f], trees.cut[node], abs(ways.last[i, f] - ways.first[i, f])
    if ways.last[i, f] >= first:
        near_low, near_high, far_low, far_high = np.int64(0), cut - first - 1, cut - first, last
        near_left = trees.left_first[node]
    else:
        near_low, near_high, far_low, far_high = np.int64(0), first - cut, first - cut + 1, last
        near_left = not trees.left_first[node]
    near_high, far_low = min(near_high, room.here_high[s]), max(far_low, room.here_low[s])
    near_low, far_high = max(near_low, room.here_low[s]), min(far_high, room.here_high[s])
    if near_left:
        return near_low, near_high, far_low, far_high
    return far_low, far_high, near_low, near_high


@inner()
def _reach(trees, ways, room, i, size):  # type: ignore[no-untyped-def]
    """The leaves that the ways lead to; what the trees add that do not ask for them, NaN where one is too deep."""
    base, n, kept = trees.base, 0, 0
    for tree in range(trees.root.shape[0]):
        begin, top = n, 1
        room.waiting[0] = trees.root[tree]
        for s in range(size):
            f = room.feature[s]
            room.waiting_low[0, s], room.waiting_high[0, s] = 0, abs(ways.last[i, f] - ways.first[i, f])
        while top > 0:
            top -= 1
            node = room.waiting[top]
            for s in range(size):
                room.here_low[s], room.here_high[s] = room.waiting_low[top, s], room.waiting_high[top, s]
            while trees.column[node] >= 0:
                f = trees.feature[node]
                slot = room.slot_of[f] if f >= 0 else np.int64(-1)
                if slot < 0:
                    z = ways.rows[i, trees.column[node]]
                    is_left = goes_left(
                        z, trees.threshold[node], trees.missing_left[node], trees.category[node], trees.left_levels
                    )
                    node = trees.left[node] if is_left else trees.right[node]
                    continue
                a, b, c, d = _sides(trees, ways, room, i, node, slot)
                if a <= b and c <= d:
                    if top + 1 >= DEEP:
                        return np.nan
                    room.waiting[top] = trees.right[node]
                    for other in range(size):
                        room.waiting_low[top, other] = room.here_low[other]
                        room.waiting_high[top, other] = room.here_high[other]
                    room.waiting_low[top, slot], room.waiting_high[top, slot] = c, d
                    top += 1
                    room.here_low[slot], room.here_high[slot] = a, b
                node = trees.left[node] if a <= b else trees.right[node]
            at = n
            while at > begin and room.value[at - 1] > trees.value[node]:
                room.value[at] = room.value[at - 1]
                for s in range(size):
                    room.low[at, s], room.high[at, s] = room.low[at - 1, s], room.high[at - 1, s]
                at -= 1
            room.value[at] = trees.value[node]
            for s in range(size):
                room.low[at, s], room.high[at, s] = room.here_low[s], room.here_high[s]
            n += 1
        if n == begin + 1:
            base += room.value[begin]
            n = begin
        else:
            room.tree[kept] = begin
            kept += 1
    room.tree[kept] = n
    for tree in range(kept, trees.root.shape[0]):
        room.tree[tree + 1] = n
    return base


@inner()
def _nearer(room, a, b):  # type: ignore[no-untyped-def]
    """Whether the corner of box a comes before that of box b."""
    if room.most[a] != room.most[b]:
        return room.most[a] < room.most[b]
    return room.total[a] < room.total[b]


@inner()
def _push(ways, room, i, size, waiting, box):  # type: ignore[no-untyped-def]
    """Put a box among those that wait."""
    most, total = 0.0, 0.0
    for s in range(size):
        far = far_of(ways, i, room.feature[s], room.box_low[box, s])
        most, total = max(most, far), total + far
    room.most[box], room.total[box] = most, total
    at = waiting
    while at > 0 and _nearer(room, box, room.heap[(at - 1) // 2]):
        room.heap[at] = room.heap[(at - 1) // 2]
        at = (at - 1) // 2
    room.heap[at] = box


@inner()
def _pop(room, waiting):  # type: ignore[no-untyped-def]
    """The box with the nearest corner, of ``waiting``; the others stay a heap."""
    best, moved, at = room.heap[0], room.heap[waiting - 1], 0
    while 2 * at + 1 < waiting - 1:
        child = 2 * at + 1
        if child + 1 < waiting - 1 and _nearer(room, room.heap[child + 1], room.heap[child]):
            child += 1
        if not _nearer(room, room.heap[child], moved):
            break
        room.heap[at] = room.heap[child]
        at = child
    room.heap[at] = moved
    return best


@inner()
def _look(room, box, size, base):  # type: ignore[no-untyped-def]
    """Lower bound of a box, score of its corner, and the leaf that the corner misses most; -1 where it misses none."""
    least, score, loss, worst = base, base, 0.0, -1
    for tree in range(room.tree.shape[0] - 1):
        wanted = -1
        for leaf in range(room.tree[tree], room.tree[tree + 1]):
            meets, holds = True, True
            for s in range(size):
                low, high = room.low[leaf, s], room.high[leaf, s]
                if low > room.box_high[box, s] or high < room.box_low[box, s]:
                    meets = False
                    break
                holds &= low <= room.box_low[box, s]
            if meets and wanted < 0:
                wanted = leaf
                least += room.value[leaf]
            if meets and holds:
                score += room.value[leaf]
                lost = room.value[leaf] - room.value[wanted]
                if lost > loss:
                    loss, worst = lost, wanted
                break
    return least, score, worst


@inner()
def _nearest(trees, ways, room, out, i, wall, nodes):  # type: ignore[no-untyped-def]
    """The nearest point of one case."""
    size = 0
    for f in range(ways.first.shape[1]):
        room.slot_of[f] = -1
        if ways.first[i, f] >= 0:
            if size >= WAYS:
                return
            room.slot_of[f], room.feature[size] = size, f
            size += 1
    base = _reach(trees, ways, room, i, size)
    if size == 0 or np.isnan(base):
        return
    for s in range(size):
        f = room.feature[s]
        room.box_low[0, s], room.box_high[0, s] = 0, abs(ways.last[i, f] - ways.first[i, f])
    _push(ways, room, i, size, 0, 0)
    waiting, used = 1, 1
    while waiting > 0 and out.nodes[i] < nodes:
        box = _pop(room, waiting)
        waiting -= 1
        out.nodes[i] += 1
        least, score, worst = _look(room, box, size, base)
        if least >= wall:
            continue
        if score < wall:
            out.found[i] = True
            for s in range(size):
                f = room.feature[s]
                out.place[i, f] = ways.first[i, f] + (
                    room.box_low[box, s] if ways.last[i, f] >= ways.first[i, f] else -room.box_low[box, s]
                )
            return
        if worst < 0 or used >= HEAP:
            return
        cut = 0
        while room.low[worst, cut] <= room.box_low[box, cut]:
            cut += 1
        for s in range(size):
            room.box_low[used, s], room.box_high[used, s] = room.box_low[box, s], room.box_high[box, s]
        room.box_low[used, cut], room.box_high[box, cut] = room.low[worst, cut], room.low[worst, cut] - 1
        _push(ways, room, i, size, waiting, box)
        _push(ways, room, i, size, waiting + 1, used)
        waiting, used = waiting + 2, used + 1


@entry
def search(trees: SplitTrees, ways: Ways, room: WayRoom, out: Nearest, wall: float, nodes: int) -> None:
    """All cases, one after the other."""
    for i in range(ways.first.shape[0]):
        if not out.found[i]:
            _nearest(trees, ways, room, out, i, wall, nodes)
