"""Additive models without costs or rules: the sorted changes give the least number of flips at once.

What remains is the choice among the sets of that size: a small depth-first search in the sorted order.
"""

from __future__ import annotations

import math

import numpy as np

from fewest.search._node import order_of
from fewest.search._work import entry, inner

FOUND, NONE = 0, 1


@inner()
def helpful(i, changes, cubes, units, drop):  # type: ignore[no-untyped-def]
    """List the movable units that lower the score, most helpful first. Returns how many."""
    n = 0
    for u in range(cubes.movable.shape[1]):
        change = changes[i, u]
        if change < 0.0 and cubes.movable[i, u]:
            j = n
            while j > 0 and drop[j - 1] > change:
                drop[j] = drop[j - 1]
                units[j] = units[j - 1]
                j -= 1
            drop[j] = change
            units[j] = u
            n += 1
    return n


@inner()
def best_single(i, changes, constant, cubes):  # type: ignore[no-untyped-def]
    """The best-ranked unit that turns the cube alone; -1 where there is none."""
    best, best_far, best_score = -1, np.inf, 0.0
    for u in range(cubes.movable.shape[1]):
        score = constant + changes[i, u]
        if score < cubes.tolerance and cubes.movable[i, u]:
            far = cubes.distance[i, u]
            order = order_of(far, best_far) if best >= 0 else -1
            if order == 0:
                order = order_of(score, best_score)
            if order < 0:
                best, best_far, best_score = u, far, score
    return best


@inner()
def earlier(picks, best, units, k):  # type: ignore[no-untyped-def]
    """Whether the unit list of the set at positions ``picks`` comes before that of ``best`` (both of size k)."""
    least = units.shape[0]
    first = False
    for a in range(k):
        mine, theirs = units[picks[a]], units[best[a]]
        in_best, in_mine = False, False
        for b in range(k):
            in_best = in_best or units[best[b]] == mine
            in_mine = in_mine or units[picks[b]] == theirs
        if not in_best and mine < least:
            least, first = mine, True
        if not in_mine and theirs < least:
            least, first = theirs, False
    return first


@inner()
def best_of_size(i, k, n, constant, cubes, units, drop, near, picks, best):  # type: ignore[no-untyped-def]
    """The best-ranked turned set of size k, as positions in ``best``. Returns (nodes, whether all were seen)."""
    tolerance, far_row = cubes.tolerance, cubes.distance[i]
    for a in range(n):  # the k - 1 smallest distances, summed below
        far = far_row[units[a]]
        b = min(a, k - 1)
        while b > 0 and near[b - 1] > far:
            near[b] = near[b - 1]
            b -= 1
        near[b] = far
    for a in range(1, k - 1):
        near[a] += near[a - 1]
    have, best_far, best_score, nodes = False, 0.0, 0.0, 0
    depth, place = 0, 0
    while True:
        left = k - depth
        score, far = constant, 0.0
        for a in range(depth):
            score += drop[picks[a]]
            far += far_row[units[picks[a]]]
        reach = score
        for a in range(place, min(place + left, n)):
            reach += drop[a]
        if place + left > n or reach >= tolerance:
            if depth == 0:
                return nodes, True
            depth -= 1
            place = picks[depth] + 1
            continue
        score += drop[place]
        far += far_row[units[place]]
        floor = far + (near[left - 2] if left > 1 else 0.0)
        if have and floor > best_far + 1e-11 * abs(best_far):
            place += 1
            continue
        nodes += 1
        if have and nodes > cubes.node_cap:
            return nodes, False
        picks[depth] = place
        place += 1
        if left > 1:
            depth += 1
            continue
        order = order_of(far, best_far) if have else -1
        if order == 0:
            order = order_of(score, best_score)
        if order < 0 or (order == 0 and earlier(picks, best, units, k)):
            have, best_far, best_score = True, far, score
            for a in range(k):
                best[a] = picks[a]


@entry
def plain_block(first, last, changes, constants, cubes, out):  # type: ignore[no-untyped-def]
    """Answer cubes first..last - 1 of a problem without costs, rules, rejected or listed sets."""
    u = cubes.movable.shape[1]
    units, picks, best = np.zeros(u, np.int64), np.zeros(u, np.int64), np.zeros(u, np.int64)
    drop, near = np.zeros(u), np.zeros(u)
    for i in range(first, last):
        if constants[i] >= cubes.tolerance and cubes.limit[i] >= 1.0:
            single = best_single(i, changes, constants[i], cubes)
            if single >= 0:
                out.outcome[i], out.known[i], out.complete[i] = FOUND, True, True
                out.cost[i] = out.lower[i] = 1.0
                out.moved[i, single] = True
                continue
        n = helpful(i, changes, cubes, units, drop)
        k, score = 0, constants[i]
        while k < n and score >= cubes.tolerance:
            score += drop[k]
            k += 1
        out.complete[i] = True
        if score >= cubes.tolerance or k > cubes.limit[i] + 1e-9:
            out.outcome[i] = NONE
            out.lower[i] = np.inf if score >= cubes.tolerance else max(0.0, math.floor(cubes.limit[i] + 1e-9) + 1.0)
            continue
        out.outcome[i], out.known[i] = FOUND, True
        out.cost[i] = out.lower[i] = k
        if k > 0:
            out.nodes[i], out.complete[i] = best_of_size(i, k, n, constants[i], cubes, units, drop, near, picks, best)
        for a in range(k):
            out.moved[i, units[best[a]]] = True
