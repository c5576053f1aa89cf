"""Which sets of features can turn a case at all, over whole domains: bounds over the leaves that are within reach.

A leaf is within reach of a set when every feature in which the case lies outside of it is in the set. Each tree takes
its own best leaf: the sum is a lower bound of the score, which falls as the set grows.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.search._ties import NOISE, SAME
from fewest.engine.search._work import NODE_CAP, NODES
from fewest.engine.search.domains._box_work import DEEPEST, FOUND, MANY, NONE, STOPPED
from fewest.engine.search.domains._boxes import decide
from fewest.engine.search.domains._cell_distances import CHOSEN, FREE, SHUT, stand


@inner()
def _slot_far(leaves, start, here, slot):  # type: ignore[no-untyped-def]
    """How far the nearest allowed cell of a slot is; inf where there is none."""
    f = leaves.feature[slot]
    if leaves.row[slot] < 0:
        low, high = max(np.int64(leaves.low[slot]), here.low[f]), min(np.int64(leaves.high[slot]), here.high[f])
        if low > high:
            return np.inf
        above, below = min(max(here.place[f], low), high), min(max(here.place[f] - 1, low), high)
        return min(here.far[start[f] + above], here.far[start[f] + below])
    best = np.inf
    for w in range(here.bits.shape[1]):
        bits = here.bits[f, w] & leaves.bits[leaves.row[slot], w]
        at = start[f] + w * 64
        while bits != np.uint64(0):
            if bits & np.uint64(1):
                best = min(best, here.far[at])
            bits >>= np.uint64(1)
            at += 1
    return best


@inner()
def _reach(trees, here, kept):  # type: ignore[no-untyped-def]
    """Keep the leaves that some change leads to, each with the features that have to change for it."""
    leaves, paths = trees.leaves, trees.paths
    for slot in range(leaves.feature.shape[0]):
        kept.clash[slot] = False
    n, needs = 0, 0
    for tree in range(leaves.tree.shape[0] - 1):
        kept.tree[tree] = n
        for at in range(leaves.tree[tree], leaves.tree[tree + 1]):
            leaf = trees.by_value[at]
            for e in range(paths.asked[leaf], paths.asked[leaf + 1]):
                if here.side[paths.test[e]] != paths.left[e]:
                    kept.clash[paths.of[e]] = True
            kept.start[n] = needs
            far, m = 0.0, needs
            for slot in range(leaves.slot[leaf], leaves.slot[leaf + 1]):
                if kept.clash[slot]:
                    f = leaves.feature[slot]
                    far += _slot_far(leaves, trees.start, here, slot) if here.state[f] == FREE else np.inf
                    if far == np.inf:
                        break
                    kept.needs[m] = f
                    m += 1
            if far < np.inf:
                kept.leaf[n], kept.far[n] = leaf, far
                needs = m
                n += 1
    kept.start[n] = needs
    kept.tree[leaves.tree.shape[0] - 1] = n


@inner()
def _bound(value, weight, here, kept, left, budget, limit):  # type: ignore[no-untyped-def]
    """Lower bound over all sets that hold the chosen features, none that is shut, and up to ``left`` more."""
    total = 0.0
    for tree in range(kept.tree.shape[0] - 1):
        met = False
        for k in range(kept.tree[tree], kept.tree[tree + 1]):
            n, cost = 0, 0.0
            if kept.far[k] >= limit:
                continue
            for e in range(kept.start[k], kept.start[k + 1]):
                f = kept.needs[e]
                if here.state[f] == CHOSEN:
                    continue
                n += 1 if here.state[f] == FREE else left + 1
                cost += weight[f]
            if n <= left and cost <= budget:
                total += value[kept.leaf[k]]
                met = True
                break
        if not met:
            return np.inf
    return total


@inner()
def _extend(value, here, kept, ranks, together, limit):  # type: ignore[no-untyped-def]
    """Lower bound with the chosen features alone; ``gain`` says how much one more takes off."""
    total = 0.0
    for f in range(ranks.gain.shape[0]):
        ranks.gain[f] = 0.0
        ranks.in_tree[f] = np.inf
    for tree in range(kept.tree.shape[0] - 1):
        met = 0
        for k in range(kept.tree[tree], kept.tree[tree + 1]):
            n, one, held = 0, 0, 0.0
            for e in range(kept.start[k], kept.start[k + 1]):
                f = kept.needs[e]
                if here.state[f] == CHOSEN:
                    held += here.least[f]
                else:
                    n += 1 if here.state[f] == FREE else 2
                    one = f
                    if n > 1:
                        break
            if n > 1 or kept.far[k] + together - held >= limit:
                continue
            leaf = value[kept.leaf[k]]
            if n == 0:
                total += leaf
                for m in range(met):
                    f = ranks.touched[m]
                    ranks.gain[f] += ranks.in_tree[f] - leaf
                    ranks.in_tree[f] = np.inf
                break
            if ranks.in_tree[one] == np.inf:
                ranks.in_tree[one] = leaf
                ranks.touched[met] = one
                met += 1
    return total


@inner()
def _sort(ranks, count):  # type: ignore[no-untyped-def]
    """Sort the features by what they do alone, and their weights."""
    for a in range(1, count):
        f, b = ranks.order[a], a - 1
        while b >= 0 and ranks.alone[ranks.order[b]] > ranks.alone[f]:
            ranks.order[b + 1] = ranks.order[b]
            b -= 1
        ranks.order[b + 1] = f
        weight, b = ranks.sizes[a], a - 1
        while b >= 0 and ranks.sizes[b] > weight:
            ranks.sizes[b + 1] = ranks.sizes[b]
            b -= 1
        ranks.sizes[b + 1] = weight


@inner()
def _permitted(asked, state, chosen, size, best):  # type: ignore[no-untyped-def]
    """What the chosen set costs; inf where it is not allowed, or costs more than the best so far."""
    cost = 0.0
    for k in range(size):
        cost += asked.weight[chosen[k]]
    if cost > min(asked.most, best) * (1 + SAME):
        return np.inf
    for row in range(asked.forbidden.shape[0]):
        whole = True
        for f in range(asked.forbidden.shape[1]):
            whole &= not asked.forbidden[row, f] or state[f] == CHOSEN
        if whole:
            return np.inf
    return cost


@inner()
def _limit(asked, out, i):  # type: ignore[no-untyped-def]
    """How near a set that is still wanted has to be: with weights, it may be cheaper instead."""
    if asked.listing == 0 and asked.counted and out.cost[i] < np.inf:
        return out.far[i] - NOISE
    return np.inf


@inner()
def _of_size(trees, asked, here, kept, reached, ranks, boxes, out, tally, i, size, count):  # type: ignore[no-untyped-def]
    """All sets of this size that can turn the case; False where the budget ran out."""
    value, wall = trees.leaves.value, asked.cut + asked.tolerance - asked.base
    depth, spent, together = 0, 0.0, 0.0
    ranks.position[0] = -1
    while depth >= 0:
        at = ranks.position[depth]
        if at >= 0:  # done with this one: it is shut for the others of this depth
            f = ranks.order[at]
            here.state[f] = SHUT
            spent -= asked.weight[f]
            together -= here.least[f]
        if tally[NODES] >= tally[NODE_CAP]:
            return False
        first = (ranks.position[depth - 1] if depth > 0 else -1) + 1
        at = first if at < 0 else at + 1
        last = depth == size - 1
        more = at <= count - (size - depth)
        if more and not last:
            tally[NODES] += 1
            budget = min(asked.most, out.cost[i]) * (1 + SAME) - spent
            more = _bound(value, asked.weight, here, kept, size - depth, budget, _limit(asked, out, i)) < wall
        if more and last:  # the last one: all at once
            tally[NODES] += 1
            least = _extend(value, here, kept, ranks, together, _limit(asked, out, i))
            for k in range(at, count):
                f = ranks.order[k]
                if least + ranks.gain[f] < wall:
                    here.state[f], boxes.chosen[depth] = CHOSEN, f
                    cost, fine = _permitted(asked, here.state, boxes.chosen, size, out.cost[i]), True
                    if cost < np.inf:
                        fine = decide(trees, asked, here, kept, reached, boxes, out, tally, i, size, cost)
                    here.state[f] = FREE
                    if not fine:
                        return False
        if last or not more:
            for k in range(first, count):
                here.state[ranks.order[k]] = FREE
            depth -= 1
            continue
        f = ranks.order[at]
        ranks.position[depth], boxes.chosen[depth], here.state[f] = at, f, CHOSEN
        spent += asked.weight[f]
        together += here.least[f]
        depth += 1
        ranks.position[depth] = -1
    return True


@entry
def search(trees, tests, cells, asked, here, kept, reached, ranks, boxes, out, tally, todo, first, last):  # type: ignore[no-untyped-def]
    """The cases from first to last, each from the size on that ``todo`` names; those with 0 are known."""
    value, wall = trees.leaves.value, asked.cut + asked.tolerance - asked.base
    for i in range(first, last):
        if todo[i] == 0:
            continue
        if tally[NODE_CAP] == 0:
            return
        tally[NODES] = out.nodes[i]
        stand(tests, cells, asked, here, i)
        _reach(trees, here, kept)
        count, least = 0, _extend(value, here, kept, ranks, 0.0, np.inf)
        for f in range(asked.may.shape[1]):
            if here.state[f] == FREE:
                ranks.order[count], ranks.alone[f] = f, least + ranks.gain[f]
                ranks.sizes[count] = asked.weight[f]
                count += 1
        _sort(ranks, count)
        able = _bound(value, asked.weight, here, kept, count, np.inf, np.inf) < wall
        out.outcome[i], out.lower[i] = NONE, np.inf
        lowest = 0.0
        for size in range(1, count + 1):
            lowest += ranks.sizes[size - 1]
            if size < todo[i]:
                continue
            if not able or lowest > min(asked.most, out.cost[i]) * (1 + SAME):
                break
            fine = size <= DEEPEST
            if fine:
                fine = _of_size(trees, asked, here, kept, reached, ranks, boxes, out, tally, i, size, count)
            if not fine:
                out.outcome[i], out.lower[i] = STOPPED, lowest
                out.met[i] += MANY  # others may be there
                break
        if out.cost[i] < np.inf and out.lower[i] >= out.cost[i] * (1 - SAME):
            out.outcome[i], out.lower[i] = FOUND, out.cost[i]
        elif out.outcome[i] == NONE and asked.most < np.inf and able:
            out.lower[i] = max(asked.most, lowest) if asked.counted else asked.most
        out.nodes[i] = tally[NODES]
