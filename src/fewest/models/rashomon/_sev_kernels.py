"""Compiled: accuracy and SEV-T of many trees on the same rows.

Trees that test the same columns see the same few distinct rows: the rows are collapsed once per such group, and a tree
then looks at its group's patterns only. All sums are whole numbers, so that no order of work changes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.engine.compiled import entry, inner

WRONG, DECIDED, ONES, TOTAL, UNREACHED = range(5)


@entry
def columns_used(start: Any, leaf: Any, needs: Any, forbids: Any) -> Any:  # pragma: no cover - compiled
    """Mask of the columns each tree tests."""
    out = np.zeros(len(start) - 1, dtype=np.uint64)
    for t in range(len(out)):
        for k in range(start[t], start[t + 1]):
            out[t] |= needs[leaf[k]] | forbids[leaf[k]]
    return out


@entry
def closed(needs: Any, forbids: Any, mask_of: Any, cells: Any, cells_from: Any) -> Any:  # pragma: no cover - compiled
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
def _collapse(patterns: Any, weights: Any, used: Any, slot: Any, found: Any, rows: Any) -> Any:  # pragma: no cover
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
def _fewest_changes(
    pattern: Any, run: Any, needs: Any, forbids: Any, positive: Any, shut: Any, owner: Any, mask_of: Any
) -> Any:  # pragma: no cover - compiled
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
def score_trees(
    trees: Any, used: Any, first: int, last: int, start: Any, leaf: Any, needs: Any, forbids: Any, positive: Any,
    shut: Any, owner: Any, mask_of: Any, patterns: Any, weights: Any, out: Any,
) -> None:  # pragma: no cover - compiled  # fmt: skip
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
