"""Many rows as references: how few features a case has to take over from each of them at least, and how far they lead.

Rows share values, so the score with one feature changed is looked up in the feature's profile, and with two on the grid
of both; three are bounded by what their trees can add, and tried where they pass. The rest is searched row by row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.search._ties import SLACK
from fewest.engine.search._work import NODE_CAP
from fewest.engine.search.domains._cell_distances import stand
from fewest.engine.search.domains._pair_grids import draw_grid
from fewest.engine.search.domains._pair_terms import lowest_pair, mark_pairs
from fewest.engine.search.domains._profiles import draw_profiles, find_leaves, rank_features, score_with
from fewest.engine.search.domains._triple_terms import lowest_triple, mark_triples
from fewest.tables.arrays import Floats, Ints, Ints32

UNKNOWN = 0  # size of cases that were not looked at
TRIED = 20_000  # sets of three that are tried on the trees, per case


class RowCells(NamedTuple):
    """The rows beside the cases, to be measured and looked up."""

    cell: Ints32  # (m, p): Cell of each row's value, for trees
    own: Floats  # (n, c): Numbers of the cases
    number: Floats  # (m, c)
    number_of: Ints  # (c,): Feature of each column
    scale: Floats  # (c,)
    own_code: Ints32  # (n, k): Levels of the cases
    code: Ints32  # (m, k)
    code_of: Ints  # (k,)


@inner()
def _measure(rows, i, step):  # type: ignore[no-untyped-def]
    """How far each feature of each row is from the case, as `Distances.between` has it."""
    largest = np.finfo(np.float64).max
    for r in range(step.shape[0]):
        for f in range(step.shape[1]):
            step[r, f] = 0.0
        for c in range(rows.scale.shape[0]):
            a, b, f = rows.own[i, c], rows.number[r, c], rows.number_of[c]
            if a == b or (np.isnan(a) and np.isnan(b)):
                continue
            away = 1.0 if np.isnan(a) or np.isnan(b) else min(abs(a - b) / rows.scale[c], largest)
            step[r, f] = max(step[r, f], away)
        for c in range(rows.code.shape[1]):
            if rows.own_code[i, c] != rows.code[r, c]:
                f = rows.code_of[c]
                step[r, f] = max(step[r, f], 1.0)


@inner()
def _ones(start, near, rows, step, steps, wall, count):  # type: ignore[no-untyped-def]
    """Rows of which one feature may be enough, each with its least step; whether there are any."""
    some = False
    for a in range(count):
        f = near.order[a]
        if near.best[f] >= wall:
            break
        zero = start[f] + f
        for r in range(step.shape[0]):
            if step[r, f] > 0.0 and step[r, f] < steps[r] and near.score[zero + rows.cell[r, f]] < wall:
                steps[r] = step[r, f]
                some = True
    return some


@inner()
def _added(trees, near, pair, a, b, x, y):  # type: ignore[no-untyped-def]
    """What two features, by their places in the order, add together in these cells beyond what each adds alone."""
    f, g = near.order[a], near.order[b]
    row = pair.at[a, b] + pair.wide[a, b] * pair.group[g, trees.start[f] + f + x]
    return pair.grid[row + pair.group[f, trees.start[g] + g + y]]


@inner()
def _pair_rows(trees, near, pair, rows, step, steps, wall, base, a, b, best):  # type: ignore[no-untyped-def]
    """Note how far two features lead in the rows in which they may be enough; the least step so far."""
    f, g, drawn = near.order[a], near.order[b], False
    one, two = trees.start[f] + f, trees.start[g] + g
    for r in range(step.shape[0]):
        if step[r, f] == 0.0 or step[r, g] == 0.0:
            continue
        away = step[r, f] + step[r, g]
        if away >= steps[r]:
            continue
        x, y = rows.cell[r, f], rows.cell[r, g]
        score = near.score[one + x] + near.score[two + y] - base
        if score + max(pair.fall[g, one + x], pair.fall[f, two + y]) >= wall:
            continue
        if away <= best:
            if not drawn:
                draw_grid(trees, near, pair, a, b, np.int64(0))
                drawn = True
            if score + _added(trees, near, pair, a, b, x, y) >= wall:
                continue
            best = away
        steps[r] = away
    return best


@inner()
def _twos(trees, here, near, pair, rows, step, steps, wall, base, count):  # type: ignore[no-untyped-def]
    """Rows of which two features may be enough; whether there are any that are."""
    find_leaves(trees.walk, here.side, here.state, near, 2, np.inf)
    mark_pairs(trees, here, near, pair, count, wall + base, np.inf)
    best = np.inf
    for b in range(1, count):
        for a in range(b):
            if lowest_pair(near, pair, near.order[a], near.order[b], base) < wall:
                best = _pair_rows(trees, near, pair, rows, step, steps, wall, base, a, b, best)
    return best < np.inf


@inner()
def _threes(trees, tests, here, near, pair, triple, rows, step, steps, asked, base, count):  # type: ignore[no-untyped-def]
    """Rows of which three features may be enough, the nearest of them tried; whether there are any."""
    some, best, tried, line = False, np.inf, 0, asked.cut + asked.tolerance + trees.rounding
    for c in range(2, count):
        for b in range(1, c):
            for a in range(b):
                if lowest_triple(triple, a, b, c, base) >= line:
                    continue
                f, g, h = near.order[a], near.order[b], near.order[c]
                one, two, three = trees.start[f] + f, trees.start[g] + g, trees.start[h] + h
                wall = line + 2 * base - triple.fall[a, b, c]
                for r in range(step.shape[0]):
                    if step[r, f] == 0.0 or step[r, g] == 0.0 or step[r, h] == 0.0:
                        continue
                    away = step[r, f] + step[r, g] + step[r, h]
                    if away >= steps[r]:
                        continue
                    x, y, z = rows.cell[r, f], rows.cell[r, g], rows.cell[r, h]
                    score = near.score[one + x] + near.score[two + y] + near.score[three + z]
                    if score + triple.dip[a, b] + triple.dip[a, c] + triple.dip[b, c] >= wall:
                        continue
                    score += _added(trees, near, pair, a, b, x, y) + _added(trees, near, pair, a, c, x, z)
                    if score + _added(trees, near, pair, b, c, y, z) >= wall:
                        continue
                    if away <= best and tried < TRIED:
                        tried += 1
                        if score_with(trees, tests, here.side, asked.base, (f, g, h), (x, y, z)) >= line:
                            continue
                        best = away
                    steps[r] = away
                    some = True
    return some


@entry
def tree_rows(trees, tests, cells, asked, rows, here, near, pair, triple, step, size, steps, tally, first, last):  # type: ignore[no-untyped-def]
    """For the cases from first to last the least size, and how far sets of this size lead in each row at least.

    inf where the row needs more; size `UNKNOWN` where there was no time.
    """
    for i in range(first, last):
        if tally[NODE_CAP] == 0:
            return
        stand(tests, cells, asked, here, i)
        base = draw_profiles(trees, here.side, here.state, near, asked.base)
        count = rank_features(trees.start, asked.weight, here, near)
        wall = asked.cut + asked.tolerance + trees.rounding
        _measure(rows, i, step)
        for r in range(step.shape[0]):
            steps[i, r] = np.inf
        size[i] = 1
        if _ones(trees.start, near, rows, step, steps[i], wall, count):
            continue
        size[i] = 2
        if count > pair.at.shape[0]:
            steps[i, :] = 0.0
            continue
        if _twos(trees, here, near, pair, rows, step, steps[i], wall, base, count):
            continue
        size[i] = 3
        if count > triple.dip.shape[0] or not mark_triples(trees, here, near, pair, triple, count, base, np.inf):
            steps[i, :] = 0.0
            continue
        steps[i, :] = np.inf
        if not _threes(trees, tests, here, near, pair, triple, rows, step, steps[i], asked, base, count):
            size[i] = 4
            steps[i, :] = 0.0


@inner()
def _sort_gains(gain, away, order):  # type: ignore[no-untyped-def]
    """Sort the features of one row that help, the most helpful first; how many there are."""
    count = 0
    for f in range(gain.shape[0]):
        if away[f] > 0.0 and gain[f] < 0.0:
            a = count
            while a > 0 and gain[order[a - 1]] > gain[f]:
                order[a] = order[a - 1]
                a -= 1
            order[a] = f
            count += 1
    return count


@inner()
def _nearest_sum(gain, away, order, count, size, need, limit, place):  # type: ignore[no-untyped-def]
    """The least distance of ``size`` features that help enough together; the limit where it is not below that."""
    depth, total, far, best = 0, 0.0, 0.0, limit
    place[0] = -1
    while depth >= 0:
        at = place[depth]
        if at >= 0:
            total -= gain[order[at]]
            far -= away[order[at]]
            at += 1
        else:
            at = place[depth - 1] + 1 if depth > 0 else np.int64(0)
        most = total
        for k in range(at, min(count, at + size - depth)):
            most += gain[order[k]]
        if at > count - (size - depth) or most >= need:
            depth -= 1
            continue
        place[depth] = at
        total += gain[order[at]]
        far += away[order[at]]
        if far >= best:
            continue
        if depth == size - 1:
            if total < need:
                best = far
            continue
        depth += 1
        place[depth] = -1
    return best


@entry
def sum_rows(rows, effect, own, need, order, place, gain, step, size, steps, tally, first, last):  # type: ignore[no-untyped-def]
    """As `tree_rows`, for models that add what each feature's value is worth (n, p) and (m, p); ``need`` (n,)."""
    for i in range(first, last):
        if tally[NODE_CAP] == 0:
            return
        _measure(rows, i, step)
        least = step.shape[1] + 1
        for r in range(step.shape[0]):
            for f in range(step.shape[1]):
                gain[f] = effect[r, f] - own[i, f]
            count, total, k = _sort_gains(gain, step[r], order), 0.0, 0
            while k < min(count, least) and total >= need[i]:
                total += gain[order[k]]
                k += 1
            steps[i, r] = k if total < need[i] else np.inf
            if total < need[i]:
                least = min(least, k)
        size[i], best = least, np.inf
        for r in range(step.shape[0]):
            if steps[i, r] > least:
                steps[i, r] = np.inf
                continue
            for f in range(step.shape[1]):
                gain[f] = effect[r, f] - own[i, f]
            count = _sort_gains(gain, step[r], order)
            steps[i, r] = _nearest_sum(gain, step[r], order, count, least, need[i], best + SLACK, place)
            best = min(best, steps[i, r])
