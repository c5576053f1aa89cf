"""Compiled: the trees within the bound, out of the splits that the search names, and SEV-T of many trees at once.

A node's options are its subtrees: a leaf, or a split with one option of either child. Each is a row of whole numbers
(rows misclassified, leaves, split or -1, left option, right option), so that objectives are compared exactly.

Trees that test the same columns see the same few distinct rows: the rows are collapsed once per such group, and a tree
then looks at its group's patterns only. All sums are whole numbers, so that no order of work changes them.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import entry, inner

ERRORS, LEAVES, SPLIT, LEFT, RIGHT = range(5)


@entry
def paths(parent, column):  # type: ignore[no-untyped-def]
    """Masks of the columns that must be 1, and that must be 0, to be at each node."""
    needs = np.zeros(2 * len(parent) + 1, dtype=np.uint64)
    forbids = np.zeros_like(needs)
    for s in range(len(parent)):
        bit = np.uint64(1) << np.uint64(column[s])
        for child in (2 * s + 1, 2 * s + 2):
            needs[child], forbids[child] = needs[parent[s]], forbids[parent[s]]
        needs[2 * s + 1] |= bit
        forbids[2 * s + 2] |= bit
    return needs, forbids


@entry
def count_rows(needs, forbids, patterns, weights):  # type: ignore[no-untyped-def]
    """Rows of either label at each place (places, 2)."""
    out = np.zeros((len(needs), 2), dtype=np.int64)
    for place in range(len(needs)):
        for x in range(len(patterns)):
            if needs[place] & ~patterns[x] == 0 and forbids[place] & patterns[x] == 0:
                out[place, 0] += weights[x, 0]
                out[place, 1] += weights[x, 1]
    return out


@entry
def cheapest(parent, rows, errors, price):  # type: ignore[no-untyped-def]
    """Errors and leaves of each node's best subtree (nodes, 2). Splits with an empty side do not count."""
    best = np.ones((len(errors), 2), dtype=np.int64)
    best[:, 0] = errors
    for s in range(len(parent) - 1, -1, -1):
        node, left, right = parent[s], 2 * s + 1, 2 * s + 2
        wrong, leaves = best[left, 0] + best[right, 0], best[left, 1] + best[right, 1]
        if rows[left] and rows[right] and wrong + price * leaves < best[node, 0] + price * best[node, 1]:
            best[node, 0], best[node, 1] = wrong, leaves
    return best


@entry
def budgets(parent, rows, best, price, limit):  # type: ignore[no-untyped-def]
    """The most a subtree of each node may cost, its surroundings being the best there are."""
    out = np.full(len(best), -1.0)
    out[0] = limit
    for s in range(len(parent)):
        left, right = 2 * s + 1, 2 * s + 2
        if rows[left] and rows[right]:
            out[left] = out[parent[s]] - best[right, 0] - price * best[right, 1]
            out[right] = out[parent[s]] - best[left, 0] - price * best[left, 1]
    return out


@inner
def _pairs(s, positive, begin, end, options, price, budget, out, used):  # type: ignore[no-untyped-def]
    """Count the options a split adds to its node and, where there is room, write them."""
    left, right = 2 * s + 1, 2 * s + 2
    for i in range(begin[left], end[left]):
        for j in range(begin[right], end[right]):
            wrong = options[i, ERRORS] + options[j, ERRORS]
            leaves = options[i, LEAVES] + options[j, LEAVES]
            if wrong + price * leaves > budget:
                break
            if leaves == 2 and positive[left] == positive[right]:
                continue  # trivial: one leaf in its place decides the same
            if used < len(out):
                out[used, ERRORS], out[used, LEAVES] = wrong, leaves
                out[used, SPLIT], out[used, LEFT], out[used, RIGHT] = s, i, j
            used += 1
    return used


@inner
def _node_options(node, first, last, errors, positive, begin, end, options, price, budget, out):  # type: ignore[no-untyped-def]
    """Count a node's options and, where there is room, write them."""
    used = 0
    if errors[node] + price <= budget:
        if len(out):
            out[0, ERRORS], out[0, LEAVES], out[0, SPLIT], out[0, LEFT], out[0, RIGHT] = errors[node], 1, -1, -1, -1
        used = 1
    for s in range(first, last):
        used = _pairs(s, positive, begin, end, options, price, budget, out, used)
    return used


@entry
def list_options(parent, errors, positive, budget, price, max_trees, room):  # type: ignore[no-untyped-def]
    """All options, those of the root last, each node's by objective; where these begin; how many the root has.

    The number is -1 where the other nodes alone have more than ``room``; beyond ``max_trees`` they are counted only.
    """
    nodes = len(errors)
    first, last = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    for s in range(len(parent)):
        if last[parent[s]] == 0:
            first[parent[s]] = s
        last[parent[s]] = s + 1
    begin, end = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    options = np.empty((1024, 5), dtype=np.int32)
    none = np.empty((0, 5), dtype=np.int32)
    used = 0
    for node in range(nodes - 1, -1, -1):
        begin[node] = end[node] = used
        if budget[node] < 0:
            continue
        place = (node, first[node], last[node], errors, positive, begin, end, options, price, budget[node])
        count = _node_options(*place, none)
        if node == 0 and count > max_trees:
            return options[:0], 0, count
        if node > 0 and used + count > room:
            return options[:0], 0, -1
        found = np.empty((count, 5), dtype=np.int32)
        _node_options(*place, found)
        if used + count > len(options):
            wider = np.empty((max(2 * len(options), used + count), 5), dtype=np.int32)
            wider[:used] = options[:used]
            options = wider
        order = np.argsort(found[:, ERRORS] + price * found[:, LEAVES], kind="mergesort")
        for k in range(count):
            options[used + k] = found[order[k]]
        used += count
        end[node] = used
    return options[:used], begin[0], end[0] - begin[0]


@entry
def write_trees(options, begin, place_of):  # type: ignore[no-untyped-def]
    """First leaf of each tree (trees + 1,), and the places of all leaves, each tree's from left to right."""
    trees = len(options) - begin
    start = np.zeros(trees + 1, dtype=np.int64)
    for t in range(trees):
        start[t + 1] = start[t] + options[begin + t, LEAVES]
    leaf = np.empty(start[-1], dtype=np.int32)
    stack = np.empty((64, 2), dtype=np.int64)
    for t in range(trees):
        at, depth = start[t], 1
        stack[0, 0], stack[0, 1] = 0, begin + t
        while depth:
            depth -= 1
            node, option = stack[depth, 0], stack[depth, 1]
            split = options[option, SPLIT]
            if split < 0:
                leaf[at] = place_of[node]
                at += 1
                continue
            stack[depth, 0], stack[depth, 1] = 2 * split + 2, options[option, RIGHT]
            stack[depth + 1, 0], stack[depth + 1, 1] = 2 * split + 1, options[option, LEFT]
            depth += 2
    return start, leaf


WRONG, DECIDED, ONES, TOTAL, UNREACHED = range(5)


@entry
def columns_used(start, leaf, needs, forbids):  # type: ignore[no-untyped-def]
    """Mask of the columns each tree tests."""
    out = np.zeros(len(start) - 1, dtype=np.uint64)
    for t in range(len(out)):
        for k in range(start[t], start[t + 1]):
            out[t] |= needs[leaf[k]] | forbids[leaf[k]]
    return out


@entry
def closed(needs, forbids, mask_of, cells, cells_from):  # type: ignore[no-untyped-def]
    """Columns of the features that no value can bring into each leaf.

    ``mask_of[j]`` are the columns of feature j, ``cells[cells_from[j]:cells_from[j + 1]]`` what values make of them.
    """
    out = np.zeros(len(needs), dtype=np.uint64)
    for place in range(len(needs)):
        for j in range(len(mask_of)):
            want, avoid = needs[place] & mask_of[j], forbids[place] & mask_of[j]
            if want | avoid == 0:
                continue
            is_open = False
            for c in range(cells_from[j], cells_from[j + 1]):
                is_open |= want & ~cells[c] == 0 and avoid & cells[c] == 0
            if not is_open:
                out[place] |= mask_of[j]
    return out


@inner
def _collapse(patterns, weights, used, slot, found, rows):  # type: ignore[no-untyped-def]
    """Distinct patterns in the columns used, with the rows of either label; returns how many.

    ``slot`` is a hash table, a power of two long and at least twice as long as the patterns; it is left cleared.
    """
    count, last = 0, np.uint64(len(slot) - 1)
    for x in range(len(patterns)):
        pattern = patterns[x] & used
        at = (pattern * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)) & last
        while slot[at] >= 0 and found[slot[at]] != pattern:
            at = (at + np.uint64(1)) & last
        if slot[at] < 0:
            slot[at] = count
            found[count] = pattern
            rows[count, 0] = rows[count, 1] = 0
            count += 1
        rows[slot[at], 0] += weights[x, 0]
        rows[slot[at], 1] += weights[x, 1]
    slot[:] = -1
    return count


@inner
def _fewest_changes(pattern, run, needs, forbids, positive, shut, owner, mask_of):  # type: ignore[no-untyped-def]
    """Features to change until some negative leaf of the run is entered; -1 where none can be."""
    best = -1
    for place in run:
        if positive[place]:
            continue
        off = (needs[place] & ~pattern) | (forbids[place] & pattern)
        if off & shut[place] != 0:
            continue
        changes = 0
        column = 0
        while off != 0 and (best < 0 or changes < best):
            while (off >> np.uint64(column)) & np.uint64(1) == 0:
                column += 1
            off &= ~mask_of[owner[column]]
            changes += 1
        if best < 0 or changes < best:
            best = changes
    return best


@entry
def score_trees(  # type: ignore[no-untyped-def]
    trees, used, first, last, start, leaf, needs, forbids, positive, shut, owner, mask_of, patterns, weights, out
):
    """Score trees[first:last], which are in order of the columns they use; ``out`` (trees, 5) gets the sums."""
    size = 4
    while size < 2 * len(patterns):
        size *= 2
    slot = np.full(size, -1, dtype=np.int64)
    found = np.empty(len(patterns), dtype=np.uint64)
    rows = np.empty((len(patterns), 2), dtype=np.int64)
    count = 0
    for k in range(first, last):
        t = trees[k]
        if k == first or used[t] != used[trees[k - 1]]:
            count = _collapse(patterns, weights, used[t], slot, found, rows)
        run = leaf[start[t] : start[t + 1]]
        for x in range(count):
            here = run[0]
            for place in run:
                if needs[place] & ~found[x] == 0 and forbids[place] & found[x] == 0:
                    here = place
                    break
            if not positive[here]:
                out[t, WRONG] += rows[x, 1]
                continue
            out[t, WRONG] += rows[x, 0]
            cases = rows[x, 0] + rows[x, 1]
            changes = _fewest_changes(found[x], run, needs, forbids, positive, shut, owner, mask_of)
            out[t, DECIDED] += cases
            if changes < 0:
                out[t, UNREACHED] += cases
            else:
                out[t, TOTAL] += cases * changes
                out[t, ONES] += cases * (changes == 1)
