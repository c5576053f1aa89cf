"""Which sets of features can turn a case at all, over whole domains: bounds over the leaves that are within reach.

A leaf is within reach of a set when every feature in which the case lies outside of it is in the set. Each tree takes
its own best leaf: the sum is a lower bound of the score, which falls as the set grows.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.search._box_work import CHOSEN, DEEPEST, FOUND, FREE, MANY, NONE, SHUT, STOPPED
from fewest.engine.search._boxes import decide, least_step
from fewest.engine.search._ties import SAME
from fewest.engine.search._work import NODE_CAP, NODES
from fewest.engine.structure.walk import goes_left


@inner()
def _stand(trees, asked, room, i):  # type: ignore[no-untyped-def]
    """Where the case stands: its side of every split, the cells that are as it is, and those it may go to."""
    tests, cells = trees.tests, trees.cells
    p = asked.may.shape[1]
    words = room.bits.shape[1]
    for f in range(p):
        n = cells.start[f + 1] - cells.start[f]
        room.low[f], room.high[f], room.same_low[f], room.same_high[f] = 0, n - 1, 0, n - 1
        room.state[f] = SHUT
        for w in range(words):
            left = min(np.int64(64), n - w * 64)
            room.bits[f, w] = np.uint64(0)
            if not cells.ranged[f] and left > 0:
                room.bits[f, w] = ~np.uint64(0) if left == 64 else (np.uint64(1) << np.uint64(left)) - np.uint64(1)
    for f in range(p):  # what may be left of the cells: those that are as the case is come off below
        first, n = cells.start[f], cells.start[f + 1] - cells.start[f]
        own, way = asked.own[i, f], asked.direction[f]
        place = 0
        while place < n and cells.high[first + place] < own:
            place += 1
        room.place[f] = place
        if way != 0:
            for c in range(n):
                fits = cells.high[first + c] > own if way > 0 else cells.low[first + c] < own
                if not fits and cells.ranged[f]:
                    if way > 0:
                        room.low[f] = max(room.low[f], c + 1)
                    else:
                        room.high[f] = min(room.high[f], c - 1)
                elif not fits:
                    room.bits[f, c // 64] &= ~(np.uint64(1) << np.uint64(c % 64))
    for test in range(tests.column.shape[0]):
        f = tests.feature[test]
        z = asked.rows[i, tests.column[test]]
        side = goes_left(z, tests.threshold[test], tests.missing_left[test], tests.category[test], asked.left_levels)
        room.side[test] = side
        if f >= p:
            continue
        if room.state[f] == SHUT and asked.may[i, f]:
            room.state[f] = FREE
        way = 1 if side else 0
        if cells.ranged[f]:
            room.same_low[f] = max(room.same_low[f], tests.low[test, way])
            room.same_high[f] = min(room.same_high[f], tests.high[test, way])
    for f in range(p):
        if room.state[f] != FREE:
            continue
        if cells.ranged[f]:
            left = max(np.int64(0), room.high[f] - room.low[f] + 1)
            both = min(room.high[f], room.same_high[f]) - max(room.low[f], room.same_low[f]) + 1
            if left - max(np.int64(0), both) <= 0:
                room.state[f] = SHUT
        else:
            some = False
            for w in range(words):
                some |= room.bits[f, w] != np.uint64(0)
            if not some:
                room.state[f] = SHUT
    _drop_same(trees, room, p)
    room.state[p] = SHUT
    for f in range(p):
        room.least[f] = least_step(trees, asked, room, i, f)


@inner()
def _drop_same(trees, room, p):  # type: ignore[no-untyped-def]
    """Take the cells off that no split tells from the case, of features that are not in order."""
    tests, cells = trees.tests, trees.cells
    words = room.bits.shape[1]
    for f in range(p):
        if room.state[f] != FREE or cells.ranged[f]:
            continue
        some = False
        for w in range(words):
            same = room.bits[f, w]
            for test in range(tests.column.shape[0]):
                if tests.feature[test] == f:
                    same &= tests.bits[test, 1 if room.side[test] else 0, w]
            room.bits[f, w] &= ~same
            some |= room.bits[f, w] != np.uint64(0)
        if not some:
            room.state[f] = SHUT


@inner()
def _reach(trees, room):  # type: ignore[no-untyped-def]
    """Keep the leaves that some change leads to, each with the features that have to change for it."""
    leaves = trees.leaves
    for slot in range(leaves.feature.shape[0]):
        room.clash[slot] = False
    kept, needs = 0, 0
    for tree in range(leaves.tree.shape[0] - 1):
        room.kept_tree[tree] = kept
        for at in range(leaves.tree[tree], leaves.tree[tree + 1]):
            leaf = trees.by_value[at]
            for e in range(leaves.asked[leaf], leaves.asked[leaf + 1]):
                if room.side[leaves.test[e]] != leaves.left[e]:
                    room.clash[leaves.of[e]] = True
            room.kept_from[kept] = needs
            ok = True
            n = needs
            for slot in range(leaves.slot[leaf], leaves.slot[leaf + 1]):
                if not room.clash[slot]:
                    continue
                f = leaves.feature[slot]
                if room.state[f] != FREE:
                    ok = False
                    break
                if leaves.row[slot] < 0:
                    ok = max(leaves.low[slot], room.low[f]) <= min(leaves.high[slot], room.high[f])
                else:
                    ok = False
                    for w in range(room.bits.shape[1]):
                        ok |= (room.bits[f, w] & leaves.bits[leaves.row[slot], w]) != np.uint64(0)
                if not ok:
                    break
                room.needs[n] = f
                n += 1
            if ok:
                room.kept[kept] = leaf
                needs = n
                kept += 1
    room.kept_from[kept] = needs
    room.kept_tree[leaves.tree.shape[0] - 1] = kept


@inner()
def _bound(trees, asked, room, left, budget):  # type: ignore[no-untyped-def]
    """Lower bound over all sets that hold the chosen features, none that is shut, and up to ``left`` more."""
    total = asked.base
    room.tally[NODES] += 1
    for tree in range(room.kept_tree.shape[0] - 1):
        for k in range(room.kept_tree[tree], room.kept_tree[tree + 1]):
            n, cost, ok = 0, 0.0, True
            for e in range(room.kept_from[k], room.kept_from[k + 1]):
                f = room.needs[e]
                if room.state[f] == CHOSEN:
                    continue
                n += 1
                cost += asked.weight[f]
                if room.state[f] == SHUT or n > left or cost > budget:
                    ok = False
                    break
            if ok:
                total += trees.leaves.value[room.kept[k]]
                break
    return total


@inner()
def _extend(trees, asked, room):  # type: ignore[no-untyped-def]
    """Lower bound with the chosen features alone; ``gain`` says how much one more takes off."""
    total = asked.base
    room.tally[NODES] += 1
    for f in range(room.gain.shape[0]):
        room.gain[f] = 0.0
        room.in_tree[f] = np.inf
    for tree in range(room.kept_tree.shape[0] - 1):
        met = 0
        for k in range(room.kept_tree[tree], room.kept_tree[tree + 1]):
            n, one = 0, 0
            for e in range(room.kept_from[k], room.kept_from[k + 1]):
                f = room.needs[e]
                if room.state[f] != CHOSEN:
                    n += 1 if room.state[f] == FREE else 2
                    one = f
                    if n > 1:
                        break
            value = trees.leaves.value[room.kept[k]]
            if n == 0:
                total += value
                for m in range(met):
                    f = room.touched[m]
                    room.gain[f] += room.in_tree[f] - value
                    room.in_tree[f] = np.inf
                break
            if n == 1 and room.in_tree[one] == np.inf:
                room.in_tree[one] = value
                room.touched[met] = one
                met += 1
    return total


@inner()
def _rank(room, count):  # type: ignore[no-untyped-def]
    """Sort the first ``count`` features by what they do alone."""
    for a in range(1, count):
        f, b = room.order[a], a - 1
        while b >= 0 and room.alone[room.order[b]] > room.alone[f]:
            room.order[b + 1] = room.order[b]
            b -= 1
        room.order[b + 1] = f


@inner()
def _permitted(asked, room, size):  # type: ignore[no-untyped-def]
    """Whether the chosen set is allowed."""
    for row in range(asked.forbidden.shape[0]):
        n, held = 0, 0
        for f in range(asked.forbidden.shape[1]):
            if asked.forbidden[row, f]:
                n += 1
                held += room.state[f] == CHOSEN
        if n == held:
            return False
    return True


@inner()
def _try(trees, asked, room, out, i, size):  # type: ignore[no-untyped-def]
    """Decide the chosen set; False where the budget ran out."""
    cost = 0.0
    for k in range(size):
        cost += asked.weight[room.chosen[k]]
    if cost > min(asked.most, out.cost[i]) * (1 + SAME) or not _permitted(asked, room, size):
        return True
    return decide(trees, asked, room, out, i, size, cost)


@inner()
def _of_size(trees, asked, room, out, i, size, count):  # type: ignore[no-untyped-def]
    """All sets of this size that can turn the case; False where the budget ran out."""
    wall = asked.cut + asked.tolerance
    depth, spent = 0, 0.0
    room.position[0] = -1
    while depth >= 0:
        at = room.position[depth]
        if at >= 0:  # done with this one: it is shut for the others of this depth
            room.state[room.order[at]] = SHUT
            spent -= asked.weight[room.order[at]]
        if room.tally[NODES] >= room.tally[NODE_CAP]:
            return False
        at = (room.position[depth - 1] if depth > 0 else -1) + 1 if at < 0 else at + 1
        budget = min(asked.most, out.cost[i]) * (1 + SAME) - spent
        if at > count - (size - depth) or (size > 1 and _bound(trees, asked, room, size - depth, budget) >= wall):
            first = (room.position[depth - 1] if depth > 0 else -1) + 1
            for k in range(first, count):
                room.state[room.order[k]] = FREE
            depth -= 1
            continue
        if depth == size - 1:  # the last one: all at once
            least = _extend(trees, asked, room)
            for k in range(at, count):
                f = room.order[k]
                if least + room.gain[f] < wall:
                    room.state[f], room.chosen[depth] = CHOSEN, f
                    fine = _try(trees, asked, room, out, i, size)
                    room.state[f] = FREE
                    if not fine:
                        return False
            for k in range((room.position[depth - 1] if depth > 0 else -1) + 1, count):
                room.state[room.order[k]] = FREE
            depth -= 1
            continue
        f = room.order[at]
        room.position[depth], room.chosen[depth], room.state[f] = at, f, CHOSEN
        spent += asked.weight[f]
        depth += 1
        room.position[depth] = -1
    return True


@inner()
def _search(trees, asked, room, out, i):  # type: ignore[no-untyped-def]
    """The cheapest set of one case, the closest values among equals."""
    room.tally[NODES] = 0
    _stand(trees, asked, room, i)
    _reach(trees, room)
    p, count, wall = asked.may.shape[1], 0, asked.cut + asked.tolerance
    least = _extend(trees, asked, room)
    for f in range(p):
        if room.state[f] == FREE:
            room.order[count], room.alone[f], room.sizes[count] = f, least + room.gain[f], asked.weight[f]
            count += 1
    _rank(room, count)
    for a in range(1, count):
        weight, b = room.sizes[a], a - 1
        while b >= 0 and room.sizes[b] > weight:
            room.sizes[b + 1] = room.sizes[b]
            b -= 1
        room.sizes[b + 1] = weight
    out.outcome[i] = NONE
    out.lower[i] = np.inf
    lowest = 0.0
    for size in range(1, count + 1):
        lowest += room.sizes[size - 1]
        limit = min(asked.most, out.cost[i]) * (1 + SAME)
        if lowest > limit or _bound(trees, asked, room, count, limit) >= wall:
            break
        if size > DEEPEST or not _of_size(trees, asked, room, out, i, size, count):
            out.outcome[i], out.lower[i] = STOPPED, lowest
            out.met[i] += MANY  # others may be there
            break
    if out.cost[i] < np.inf and out.lower[i] >= out.cost[i] * (1 - SAME):
        out.outcome[i], out.lower[i] = FOUND, out.cost[i]
    elif out.outcome[i] == NONE and asked.most < np.inf and _bound(trees, asked, room, count, np.inf) < wall:
        out.lower[i] = max(asked.most, lowest) if asked.counted else asked.most
    out.nodes[i] = room.tally[NODES]


@entry
def search(trees, asked, room, out, first, last):  # type: ignore[no-untyped-def]
    """The cases from first to last, one after the other."""
    for i in range(first, last):
        if room.tally[NODE_CAP] == 0:
            return
        _search(trees, asked, room, out, i)
