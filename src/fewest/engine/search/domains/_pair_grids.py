"""Two features together, over whole domains: the exact score on the grid of their cells.

The score with two features changed is the sum of their profiles and of the terms of `_pair_terms`. Each term is a
rectangle of the grid; few cells differ in them, so the grid has a row and a column for a group of cells.
"""

from __future__ import annotations

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search._ties import NOISE, SAME
from fewest.engine.search.domains._leaf_slots import bit_of
from fewest.engine.search.domains._profiles import enter, enter_near, slot_of


@inner()
def _gather(trees, near, pair, a, b):  # type: ignore[no-untyped-def]
    """The leaves that ask about both features and for which no other has to change; how many."""
    leaves, f, g, n = trees.leaves, near.order[a], near.order[b], 0
    both = bit_of(f) | bit_of(g)
    for inside in range(1, 4):
        k = pair.two_head[a, b] if inside == 3 else pair.one_head[f if inside == 1 else g]
        while k >= 0:
            if pair.asks[k] & both == both:
                leaf = near.leaf[k]
                pair.slots[n, 0], pair.slots[n, 1] = slot_of(leaves, leaf, f), slot_of(leaves, leaf, g)
                pair.inside[n], pair.terms[n] = inside, pair.worth[k]
                n += pair.slots[n, 0] >= 0 and pair.slots[n, 1] >= 0
            k = pair.next[k]
    return n


@inner(inline="always")
def _group(runs, slots, edge, group, first, last):  # type: ignore[no-untyped-def]
    """Put the cells of a feature that no slot tells apart into groups; how many."""
    for c in range(first, last):
        edge[c] = False
    for k in range(slots.shape[0]):
        for run in range(runs.start[slots[k]], runs.start[slots[k] + 1]):
            edge[runs.span[run, 0]], edge[runs.span[run, 1]] = True, True
    n = 0
    for c in range(first, last):
        n += c > first and edge[c]
        group[c] = n
    return n + 1


@inner(inline="always")
def _fill(runs, pair, rows, columns, n, grid, wide):  # type: ignore[no-untyped-def]
    """Add what the leaves add to the grid, as differences; a feature that need not change for a leaf is outside."""
    for k in range(n):
        one, two, inside, worth = pair.slots[k, 0], pair.slots[k, 1], pair.inside[k], pair.terms[k]
        for other in range(runs.start[two], runs.start[two + 1] if inside == 2 else 0):
            grid[columns[runs.span[other, 0]]] -= worth
            grid[columns[runs.span[other, 1] - 1] + 1] += worth
        for run in range(runs.start[one], runs.start[one + 1]):
            top, end = wide * rows[runs.span[run, 0]], wide * (rows[runs.span[run, 1] - 1] + 1)
            if inside == 1:
                grid[top] -= worth
                grid[end] += worth
            for other in range(runs.start[two], runs.start[two + 1]):
                left, right = columns[runs.span[other, 0]], columns[runs.span[other, 1] - 1] + 1
                grid[top + left] += worth
                grid[top + right] -= worth
                grid[end + left] -= worth
                grid[end + right] += worth


@inner()
def sketch_grid(trees, near, pair, a, b, at):  # type: ignore[no-untyped-def]
    """Draw what the features at two places in the order add together, from ``at`` on; where it ends, -1 if too far.

    Rows are left as differences, for `finish_row`; how many there are comes second.
    """
    f, g, n = near.order[a], near.order[b], _gather(trees, near, pair, a, b)
    row_of, column_of, zero = pair.group[g], pair.group[f], trees.runs.zero
    rows = _group(trees.runs, pair.slots[:n, 0], pair.edge[g], row_of, zero[f], zero[f + 1] - 1)
    columns = _group(trees.runs, pair.slots[:n, 1], pair.edge[f], column_of, zero[g], zero[g + 1] - 1)
    wide, end = columns + 1, at + (rows + 1) * (columns + 1)
    if end > pair.grid.shape[0]:
        return np.int64(-1), rows
    pair.at[a, b], pair.wide[a, b], grid = at, wide, pair.grid[at:end]
    for c in range(grid.shape[0]):
        grid[c] = 0.0
    _fill(trees.runs, pair, row_of, column_of, n, grid, wide)
    for c in range(wide, rows * wide):
        grid[c] += grid[c - wide]
    return end, rows


@inner()
def finish_row(grid, first, wide):  # type: ignore[no-untyped-def]
    """Sum up one row of a grid."""
    for c in range(first + 1, first + wide):
        grid[c] += grid[c - 1]


@inner()
def draw_grid(trees, near, pair, a, b, at):  # type: ignore[no-untyped-def]
    """As `sketch_grid`, with all rows finished; where it ends."""
    end, rows = sketch_grid(trees, near, pair, a, b, at)
    for r in range(rows if end >= 0 else 0):
        finish_row(pair.grid, at + r * pair.wide[a, b], pair.wide[a, b])
    return end


@inner()
def list_cells(trees, far, near, pair, way, f, beside, room_for):  # type: ignore[no-untyped-def]
    """List the nearest of all cells of f that are the same beside other features, where it is near enough; how many.

    ``pair.edge`` says what is the same beside others, and the profile.
    """
    first, n, best, cell = trees.start[f], 0, np.inf, pair.cell[way]
    for c in range(trees.start[f + 1] - first):
        cut = near.edge[first + f + c]
        for g in beside:
            cut |= pair.edge[g, first + f + c]
        if cut:
            n += best < room_for
            best = np.inf
        if far[first + c] < best:
            best = far[first + c]
            if best < room_for:
                cell[n] = c
    return n + (best < room_for)


@inner(inline="always")
def _keep_low(trees, near, pair, way, n, f, g, most):  # type: ignore[no-untyped-def]
    """Keep the cells of f in the list that may be low enough beside g; how many."""
    kept, zero = 0, trees.start[f] + f
    for k in range(n):
        c = pair.cell[way, k]
        if near.score[zero + c] + pair.fall[g, zero + c] < most:
            pair.cell[way, kept] = c
            kept += 1
    return kept


@inner()
def try_pair(trees, asked, here, near, pair, out, i, a, b, base, limit):  # type: ignore[no-untyped-def]
    """Enter the nearest cells of two features that turn the case, and those that only the model can decide.

    None that are not nearer than ``limit``: leaves further away were not looked at.
    """
    f, g = near.order[a], near.order[b]
    cost = asked.weight[f] + asked.weight[g]
    if asked.listing == 0 and cost >= out.cost[i] * (1 - SAME):
        limit = min(limit, out.far[i] - NOISE)
    sure, wall = asked.cut - asked.tolerance - trees.rounding, asked.cut + asked.tolerance + trees.rounding
    sketch_grid(trees, near, pair, a, b, np.int64(0))
    rows = list_cells(trees, here.far, near, pair, 0, f, (g,), limit - here.least[g])
    rows = _keep_low(trees, near, pair, 0, rows, f, g, wall + base - near.best[g])
    columns = list_cells(trees, here.far, near, pair, 1, g, (f,), limit - here.least[f])
    columns = _keep_low(trees, near, pair, 1, columns, g, f, wall + base - near.best[f])
    far, best, cell, other, done = np.inf, np.inf, -1, -1, -1
    one, two = trees.start[f] + f, trees.start[g] + g
    for r in range(rows):
        x = pair.cell[0, r]
        row, own, first = pair.wide[a, b] * pair.group[g, one + x], near.score[one + x] - base, here.far[one + x - f]
        if row > done:
            finish_row(pair.grid, row, pair.wide[a, b])
            done = row
        for c in range(columns):
            y = pair.cell[1, c]
            score, away = (
                own + near.score[two + y] + pair.grid[row + pair.group[f, two + y]],
                first + here.far[two + y - g],
            )
            if score >= wall or away >= limit:
                continue
            if score >= sure:
                enter_near(out, i, cost, away, (f, g, -1), (x, y, -1))
            elif away < far - NOISE or (away <= far + NOISE and score < best):
                far, best, cell, other = away, score, x, y
    if cell >= 0:
        enter(asked.listing, out, i, cost, far, (f, g, -1), (cell, other, -1))
