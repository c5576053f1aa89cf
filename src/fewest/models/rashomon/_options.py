"""Compiled: the trees within the bound, out of the splits that a backend names.

A node's options are its subtrees: a leaf, or a split with one option of either child. Each is a row of whole numbers
(rows misclassified, leaves, split or -1, left option, right option), so that objectives are compared exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.engine.compiled import entry, inner

ERRORS, LEAVES, SPLIT, LEFT, RIGHT = range(5)


@entry
def paths(parent: Any, column: Any) -> Any:  # pragma: no cover - compiled
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
def count_rows(needs: Any, forbids: Any, patterns: Any, weights: Any) -> Any:  # pragma: no cover - compiled
    """Rows of either label at each place (places, 2)."""
    out = np.zeros((len(needs), 2), dtype=np.int64)
    for place in range(len(needs)):
        for x in range(len(patterns)):
            if needs[place] & ~patterns[x] == 0 and forbids[place] & patterns[x] == 0:
                out[place, 0] += weights[x, 0]
                out[place, 1] += weights[x, 1]
    return out


@entry
def cheapest(parent: Any, rows: Any, errors: Any, price: float) -> Any:  # pragma: no cover - compiled
    """Errors and leaves of each node's best subtree (nodes, 2). Splits with an empty side are none."""
    best = np.ones((len(errors), 2), dtype=np.int64)
    best[:, 0] = errors
    for s in range(len(parent) - 1, -1, -1):
        node, left, right = parent[s], 2 * s + 1, 2 * s + 2
        wrong, leaves = best[left, 0] + best[right, 0], best[left, 1] + best[right, 1]
        if rows[left] and rows[right] and wrong + price * leaves < best[node, 0] + price * best[node, 1]:
            best[node, 0], best[node, 1] = wrong, leaves
    return best


@entry
def budgets(parent: Any, rows: Any, best: Any, price: float, limit: float) -> Any:  # pragma: no cover - compiled
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
def _pairs(
    s: int, positive: Any, begin: Any, end: Any, options: Any, price: float, budget: float, out: Any, used: int
) -> Any:  # pragma: no cover - compiled
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
def _node_options(
    node: int, first: int, last: int, errors: Any, positive: Any, begin: Any, end: Any, options: Any, price: float,
    budget: float, out: Any,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
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
def list_options(
    parent: Any, errors: Any, positive: Any, budget: Any, price: float, most: int, room: int
) -> Any:  # pragma: no cover - compiled
    """All options, those of the root last, each node's by objective; where these begin; how many the root has.

    The number is -1 where the other nodes alone have more than ``room``; beyond ``most``, the root's are counted only.
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
        if node == 0 and count > most:
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
def write_trees(options: Any, begin: int, place_of: Any) -> Any:  # pragma: no cover - compiled
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
