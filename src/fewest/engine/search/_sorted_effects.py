"""The plain additive question, compiled: no costs, no rules, one answer per cube.

Each unit adds its own change to the score, so the k most helpful units turn the cube if any k do. What is left is to
choose, among all turning sets of that size, the one the ranking puts first; a depth-first search in order of distance
does that, cut by the gains that are still to be had and by the distance that must still be gone.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fewest.engine.numba_cache import entry
from fewest.engine.search._ties import NOISE, SAME

FOUND, NONE = 0, 1


@entry
def unit_sums(rows, order, span, coef):  # type: ignore[no-untyped-def]
    """Sum of coef * value over the columns of each unit (n, u)."""
    n, u = rows.shape[0], span.shape[0] - 1
    out = np.empty((n, u))
    for i in range(n):
        for unit in range(u):
            total = 0.0
            for k in range(span[unit], span[unit + 1]):
                c = order[k]
                total += coef[c] * rows[i, c]
            out[i, unit] = total
    return out


@entry
def solve_block(  # type: ignore[no-untyped-def]
    first, last, start, goal_sum, goal_of, order, span, coef, intercept, cut, sign, tolerance, movable, distance, limit,
    node_cap, outcome, moved, known, cost, lower, nodes, sets, few,
):  # fmt: skip
    """Answer the cubes first..last; ``sets`` and ``few`` as in `_say_alike`, where ``few`` is not negative."""
    u = span.shape[0] - 1
    change, gain, far, spare = np.empty(u), np.empty(u), np.empty(u), np.empty(u + 1)
    unit, place = np.empty(u + 1, dtype=np.int64), np.empty(u + 1, dtype=np.int64)
    pick, best = np.empty(u, dtype=np.int64), np.empty(u, dtype=np.int64)
    aid, gone, scores = np.zeros((u + 1, u + 1)), np.zeros(u + 1), np.zeros(u + 1)
    one_each = True
    for j in range(u):
        one_each = one_each and span[j + 1] - span[j] == 1
    for i in range(first, last):
        score, r, most, next_most = intercept, goal_of[i], 0.0, 0.0
        for k in range(span[u], order.shape[0]):  # columns of no unit
            score += coef[order[k]] * start[i, order[k]]
        if one_each:  # no inner loop
            for j in range(u):
                change[j] = coef[order[j]] * start[i, order[j]]
        else:
            for j in range(u):
                total = 0.0
                for k in range(span[j], span[j + 1]):
                    total += coef[order[k]] * start[i, order[k]]
                change[j] = total
        for j in range(u):
            score += change[j]
            c = sign * (goal_sum[r, j] - change[j]) if movable[i, j] else 0.0
            change[j] = c
            next_most = min(next_most, max(most, c))
            most = min(most, c)
        score = sign * (score - cut)
        nodes[i] = 1
        if score < tolerance:
            outcome[i], known[i], cost[i], lower[i] = FOUND, True, 0.0, 0.0
            continue
        if limit[i] < 1.0:
            outcome[i], lower[i] = NONE, 1.0
            continue
        if score + most < tolerance:
            outcome[i], known[i], cost[i], lower[i] = FOUND, True, 1.0, 1.0
            moved[i, _nearest_single(u, change, score, tolerance, distance, i, far)] = True
            continue
        if score + most + next_most < tolerance and limit[i] >= 2.0:
            outcome[i], known[i], cost[i], lower[i] = FOUND, True, 2.0, 2.0
            nodes[i] += _nearest_pair(u, change, score, most, tolerance, distance, i, unit, best)
            moved[i, best[0]] = True
            moved[i, best[1]] = True
            continue
        size = _size(u, change, score, tolerance, gain, spare)
        if size == 0:
            outcome[i], lower[i] = NONE, np.inf
        elif size > limit[i]:
            outcome[i], lower[i] = NONE, np.floor(limit[i]) + 1.0
        else:
            outcome[i], known[i], cost[i], lower[i] = FOUND, True, float(size), float(size)
            m = _candidates(u, change, score, tolerance, size, distance, i, gain, unit, far, spare, place)
            nodes[i] += _closest(size, m, unit, far, change, score, tolerance, node_cap, aid, gone, scores,
                                 pick, best)  # fmt: skip
            for k in range(size):
                moved[i, best[k]] = True
    if few >= 0:
        _say_alike(first, last, movable, limit, sets, few, outcome, cost, lower, nodes)


@njit(nogil=True)
def _say_alike(first, last, movable, limit, sets, few, outcome, cost, lower, nodes):  # type: ignore[no-untyped-def]
    """Nodes and bounds as `first_answers` says them; ``sets``: how many there are, by units and largest size."""
    for i in range(first, last):
        units, size = 0, cost[i]
        for j in range(movable.shape[1]):
            units += movable[i, j]
        if outcome[i] == NONE:
            whole = max(np.floor(limit[i] * (1.0 + SAME)), 0.0)
            lower[i] = np.inf if units <= whole else whole + 1.0
            size = min(float(units), whole)
            nodes[i] = 0 if size == 0 else nodes[i]
        known = sets[units, int(min(size, sets.shape[1] - 1.0))]
        if size > 0 and known <= few:
            nodes[i] = known


@njit(nogil=True, inline="always")
def _nearest_single(u, change, score, tolerance, distance, i, far):  # type: ignore[no-untyped-def]
    """The turning unit that ranks first."""
    least = np.inf
    for j in range(u):  # selections, not branches: which units turn cannot be foreseen
        far[j] = distance[i, j] if score + change[j] < tolerance else np.inf
        least = far[j] if far[j] < least else least
    chosen, reach = -1, least + NOISE * abs(least)
    for j in range(u):
        if far[j] <= reach and (chosen < 0 or change[j] < change[chosen] - NOISE * abs(change[chosen])):
            chosen = j
    return chosen


@njit(nogil=True)
def _nearest_pair(u, change, score, most, tolerance, distance, i, unit, best):  # type: ignore[no-untyped-def]
    """Write the turning pair that ranks first to ``best``; how many pairs were looked at."""
    m = 0
    for j in range(u):
        unit[m] = j
        m += change[j] < 0.0 and (score + most + change[j] < tolerance or change[j] == most)
    best_far, best_score = np.inf, np.inf
    for a in range(m):
        near, left = distance[i, unit[a]], score + change[unit[a]]
        for b in range(a + 1, m):
            after = left + change[unit[b]]
            if after < tolerance:
                far = near + distance[i, unit[b]]
                gap = NOISE * max(abs(far), abs(best_far)) if best_far < np.inf else 0.0
                tied = abs(far - best_far) <= gap and after < best_score - NOISE * abs(best_score)
                if far < best_far - gap or tied:
                    best_far, best_score = far, after
                    best[0], best[1] = unit[a], unit[b]
    return m * (m - 1) // 2


@njit(nogil=True)
def _size(u, change, score, tolerance, gain, spare):  # type: ignore[no-untyped-def]
    """How many of the most helpful units it takes, 0 where all do not suffice; their changes, sorted, in ``gain``."""
    m = 0
    for j in range(u):
        spare[m] = change[j]
        m += change[j] < 0.0
    for a in range(m):  # sorted by counting: no branch depends on the values
        rank = 0
        for b in range(m):
            rank += (spare[b] < spare[a]) | ((spare[b] == spare[a]) & (b < a))
        gain[rank] = spare[a]
    for size in range(m):
        score += gain[size]
        if score < tolerance:
            return size + 1
    return 0


@njit(nogil=True)
def _candidates(u, change, score, tolerance, size, distance, i, gain, unit, far, spare, place):  # type: ignore[no-untyped-def]
    """Units that turn the cube together with the size - 1 most helpful ones, nearest first; how many there are."""
    others = score
    for k in range(size - 1):
        others += gain[k]
    m = 0
    for j in range(u):
        place[m], spare[m] = j, distance[i, j]
        m += (change[j] < 0.0) & ((others + change[j] < tolerance) | (change[j] <= gain[size - 1]))
    for a in range(m):
        rank = 0
        for b in range(m):
            rank += (spare[b] < spare[a]) | ((spare[b] == spare[a]) & (b < a))
        unit[rank], far[rank] = place[a], spare[a]
    return m


@njit(nogil=True)
def _fill_aid(size, m, unit, change, aid, top):  # type: ignore[no-untyped-def]
    """aid[j, r]: the most that r candidates from the j-th on can add; inf where there are fewer than r."""
    count = 0
    for r in range(1, size + 1):
        aid[m, r] = np.inf
    for j in range(m - 1, -1, -1):
        g = change[unit[j]]
        if count < size or g < top[size - 1]:
            k = count if count < size else size - 1
            while k > 0 and top[k - 1] > g:
                top[k] = top[k - 1]
                k -= 1
            top[k] = g
            count = min(count + 1, size)
        total = 0.0
        for r in range(1, size + 1):
            total += top[r - 1] if r <= count else np.inf
            aid[j, r] = total


@njit(nogil=True)
def _closest(  # type: ignore[no-untyped-def]
    size, m, unit, far, change, score, tolerance, node_cap, aid, gone, scores, pick, best
):
    """Write the units of the best-ranked turning set of this size to ``best``; how many nodes that took.

    ``unit`` holds the m candidates, nearest first, ``far`` their distances.
    """
    if m == size:
        _take(unit, pick, best, size, True)
        return 0
    _fill_aid(size, m, unit, change, aid, gone)
    best_far, best_score = np.inf, np.inf
    scores[0], gone[0] = score, 0.0
    depth, visited = 0, 0
    pick[0] = 0
    while depth >= 0:
        j, left = pick[depth], size - depth
        stop = j + left > m or scores[depth] + aid[j, left] >= tolerance
        if not stop and best_far < np.inf:
            ahead = gone[depth]
            for k in range(left):
                ahead += far[j + k]
            stop = ahead > best_far * (1.0 + NOISE) or visited >= node_cap
        if stop:
            depth -= 1
            if depth >= 0:
                pick[depth] += 1
            continue
        visited += 1
        gone[depth + 1] = gone[depth] + far[j]
        scores[depth + 1] = scores[depth] + change[unit[j]]
        if left > 1:
            depth += 1
            pick[depth] = j + 1
            continue
        if scores[size] < tolerance and _before(gone[size], scores[size], pick, best_far, best_score, best, unit, size):
            best_far, best_score = gone[size], scores[size]
            _take(unit, pick, best, size, False)
        pick[depth] += 1
    return visited


@njit(nogil=True)
def _take(unit, pick, out, size, first):  # type: ignore[no-untyped-def]
    """The picked units (or the first ones) in ascending order."""
    for k in range(size):
        one, j = unit[k] if first else unit[pick[k]], k
        while j > 0 and out[j - 1] > one:
            out[j] = out[j - 1]
            j -= 1
        out[j] = one


@njit(nogil=True)
def _before(far, score, pick, best_far, best_score, best, unit, size):  # type: ignore[no-untyped-def]
    """Whether a set ranks before the best one: closer, then a lower score, then earlier units."""
    if best_far == np.inf:
        return True
    gap = NOISE * max(abs(far), abs(best_far))
    if abs(far - best_far) > gap:
        return far < best_far
    gap = NOISE * max(abs(score), abs(best_score))
    if abs(score - best_score) > gap:
        return score < best_score
    units = np.empty(size, dtype=np.int64)
    _take(unit, pick, units, size, False)
    for k in range(size):
        if units[k] != best[k]:
            return units[k] < best[k]
    return False
