"""Whole domains of an additive model: each feature lowers the score by itself, so sets are sums.

The *stair* of a feature holds, for a case, its values outwards from the case's own, those alone that lower the score
more than any nearer one: the least distance at which a given fall is reached is one of its steps. The nearest values
of a set are the steps of least sum that fall far enough, by branch and bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.search._ties import NOISE, SAME
from fewest.engine.search._work import NODE_CAP, NODES
from fewest.engine.search.domains._box_work import DEEPEST, FOUND, MANY, NONE, STOPPED
from fewest.engine.search.domains._nearest_sums import SumRoom, least_sum, make_room, rank
from fewest.engine.search.domains._profiles import room_near
from fewest.tables.arrays import Floats, Ints

COMBINATIONS = 200_000  # of the values of one set at most; beyond that the nearest of those that were tried


class StairValues(NamedTuple):
    """The allowed values of all features, each feature's in order."""

    start: Ints  # (p + 1,)
    number: Floats  # (values,): As in `FeatureValues`
    effect: Floats  # (values,): What the value adds to the score
    base: Floats  # (n, p): What the case's own value adds
    score: Floats  # (n,): Score of the case


class StairRoom(NamedTuple):
    """Room for one case."""

    tally: Ints
    steps: Ints  # (p,): Steps of each stair
    sums: SumRoom  # Steps are called by the place of their value; falls are below zero, and less with each step
    order: Ints  # (p,)
    position: Ints  # (DEEPEST + 1,)
    sizes: Floats  # (p,)


def make_stairs(values: StairValues) -> StairRoom:
    """Room for cases with these values."""
    p = len(values.start) - 1

    def ints(n: int) -> Ints:
        return np.zeros(n, dtype=np.int64)

    sums = make_room(len(values.number))
    return StairRoom(ints(NODE_CAP + 1), ints(p), sums, ints(p), ints(DEEPEST + 1), np.zeros(p))


@inner()
def _away(values, asked, i, f, at):  # type: ignore[no-untyped-def]
    """How far a value is from the case; inf where it may not be taken."""
    own, number, way = asked.own[i, f], values.number[at], asked.direction[f]
    if number == own or (way > 0 and not number > own) or (way < 0 and not number < own):
        return np.inf
    return abs(number - own) / asked.scale[f] if asked.measured[f] and not np.isnan(own) else 1.0


@inner()
def _climb(values, asked, room, i, f):  # type: ignore[no-untyped-def]
    """Build the stair of a feature."""
    first, last = values.start[f], values.start[f + 1]
    own = asked.own[i, f]
    measured = asked.measured[f] and not np.isnan(own)
    room.steps[f] = 0
    place = first
    while measured and place < last and values.number[place] < own:
        place += 1
    below, above, best, sums = place - 1, place, -NOISE, room.sums
    n = first
    while below >= first or above < last:
        down = own - values.number[below] if measured and below >= first else np.inf
        up = values.number[above] - own if measured and above < last else np.inf
        if below >= first and (above >= last or down <= up):
            at = below
            below -= 1
        else:
            at = above
            above += 1
        fall, far = values.effect[at] - values.base[i, f], _away(values, asked, i, f, at)
        if fall < best and far < np.inf:
            best = fall
            if n > first and far <= sums.far[n - 1] + NOISE:
                n -= 1  # not further away: only the best counts
            sums.far[n], sums.fall[n], sums.step[n] = far, fall, at - first
            n += 1
    room.steps[f] = n - first


@inner()
def _best_fall(values, room, f):  # type: ignore[no-untyped-def]
    return room.sums.fall[values.start[f] + room.steps[f] - 1]


@inner()
def _settle(values, room, out, i, chosen, size, need, within):  # type: ignore[no-untyped-def]
    """The nearest steps of a set, in ``room.sums.best``; the distance, inf where it is not less than ``within``."""
    sums = room.sums
    for s in range(size):
        f = chosen[s]
        sums.feature[s], sums.at[s], sums.steps[s] = f, values.start[f], room.steps[f]
    rank(sums, size)
    far = least_sum(sums, size, need, within, out, i, out.nodes[i] + COMBINATIONS)[0]
    if far == np.inf and within == np.inf:  # all falls are just enough, in another order of summing
        far = 0.0
        for s in range(size):
            sums.best[s] = sums.steps[s] - 1
            far += sums.far[sums.at[s] + sums.best[s]]
    return far


@inner()
def _list_near(values, asked, room, out, i, chosen, size, need, cost):  # type: ignore[no-untyped-def]
    """Enter all points of a set that get below ``need``, for the model to say."""
    sums, depth, left = room.sums, 0, out.nodes[i] + COMBINATIONS
    sums.need[0], sums.spent[0], sums.chosen[0] = need, 0.0, values.start[chosen[0]] - 1
    while depth >= 0:
        f = chosen[depth]
        sums.chosen[depth] += 1
        at = sums.chosen[depth]
        if at >= values.start[f + 1]:
            depth -= 1
            continue
        fall, far, rest = values.effect[at] - values.base[i, f], _away(values, asked, i, f, at), 0.0
        for s in range(depth + 1, size):
            rest += _best_fall(values, room, chosen[s])
        if far == np.inf or fall >= -NOISE or fall + rest >= sums.need[depth]:
            continue
        out.nodes[i] += 1
        if out.nodes[i] >= left:
            out.spilled[i] = min(out.spilled[i], cost)
            return
        if depth < size - 1:
            sums.need[depth + 1], sums.spent[depth + 1] = sums.need[depth] - fall, sums.spent[depth] + far
            depth += 1
            sums.chosen[depth] = values.start[chosen[depth]] - 1
            continue
        n = room_near(out, i, cost, sums.spent[depth] + far)
        for g in range(out.band.shape[2] if n >= 0 else 0):
            out.band[i, n, g] = -1
        for s in range(size if n >= 0 else 0):
            out.band[i, n, chosen[s]] = sums.chosen[s] - values.start[chosen[s]]


@inner()
def _try(values, asked, room, out, i, chosen, size, need, near):  # type: ignore[no-untyped-def]
    """Enter the chosen set where it is allowed and as good as the best so far; where ``near``, only if it is better."""
    cost = 0.0
    for s in range(size):
        cost += asked.weight[chosen[s]]
    if cost > min(asked.most, out.cost[i]) * (1 + SAME):
        return
    for row in range(asked.forbidden.shape[0]):
        whole = True
        for f in range(asked.forbidden.shape[1]):
            if asked.forbidden[row, f]:
                inside = False
                for s in range(size):
                    inside |= chosen[s] == f
                whole &= inside
        if whole:
            return
    if near:
        if cost < out.cost[i] * (1 - SAME):
            _list_near(values, asked, room, out, i, chosen, size, need, cost)
        return
    if cost < out.cost[i] * (1 - SAME):
        out.cost[i], out.far[i], out.met[i] = cost, np.inf, 0
    within = out.far[i] if asked.listing == 0 else np.inf
    far = _settle(values, room, out, i, chosen, size, need, within)
    out.met[i] += 1
    for at in (np.int64(0), out.met[i]):
        if (at == 0 and far < out.far[i] - NOISE) or 0 < at <= asked.listing:
            for f in range(out.points.shape[2]):
                out.points[i, at, f] = -1
            for s in range(size):
                out.points[i, at, room.sums.feature[s]] = room.sums.step[room.sums.at[s] + room.sums.best[s]]
    out.far[i] = min(out.far[i], far)


@inner()
def _of_size(values, asked, room, out, i, chosen, size, count, need, near):  # type: ignore[no-untyped-def]
    """All sets of this size that fall below ``need``; False where the budget ran out."""
    depth, fallen = 0, 0.0
    room.position[0] = -1
    while depth >= 0:
        at = room.position[depth]
        if at >= 0:
            fallen -= _best_fall(values, room, room.order[at])
            at += 1
        else:
            at = room.position[depth - 1] + 1 if depth > 0 else np.int64(0)
        room.tally[NODES] += 1
        if room.tally[NODES] >= room.tally[NODE_CAP]:
            return False
        best = fallen
        for k in range(at, min(count, at + size - depth)):  # the strongest that are left
            best += _best_fall(values, room, room.order[k])
        if at > count - (size - depth) or best >= need:
            depth -= 1
            continue
        room.position[depth], chosen[depth] = at, room.order[at]
        fallen += _best_fall(values, room, room.order[at])
        if depth == size - 1:
            _try(values, asked, room, out, i, chosen, size, need, near)
            continue
        depth += 1
        room.position[depth] = -1
    return True


@inner()
def _rank_stairs(values, asked, room, i):  # type: ignore[no-untyped-def]
    """Build the stairs, and sort the features by how far they fall, and their weights; how many there are."""
    count = 0
    for f in range(asked.may.shape[1]):
        if asked.may[i, f]:
            _climb(values, asked, room, i, f)
            if room.steps[f] > 0:
                a = count
                while a > 0 and _best_fall(values, room, room.order[a - 1]) > _best_fall(values, room, f):
                    room.order[a] = room.order[a - 1]
                    a -= 1
                room.order[a] = f
                b = count
                while b > 0 and room.sizes[b - 1] > asked.weight[f]:
                    room.sizes[b] = room.sizes[b - 1]
                    b -= 1
                room.sizes[b] = asked.weight[f]
                count += 1
    return count


@inner()
def _search(values, asked, room, out, i, chosen, near):  # type: ignore[no-untyped-def]
    """The cheapest set of one case; where ``near``, what only the model can decide and would be cheaper."""
    room.tally[NODES] = 0
    need = asked.cut + (asked.tolerance if near else -asked.tolerance) - values.score[i]
    count, all_falls, lowest, stopped = _rank_stairs(values, asked, room, i), 0.0, 0.0, False
    for k in range(count):
        all_falls += _best_fall(values, room, room.order[k])
    for size in range(1, count + 1):
        lowest += room.sizes[size - 1]
        if lowest > min(asked.most, out.cost[i]) * (1 + SAME) or all_falls >= need:
            break
        if size > DEEPEST or not _of_size(values, asked, room, out, i, chosen, size, count, need, near):
            stopped = True
            break
    out.nodes[i] += room.tally[NODES]
    if near:
        if stopped:
            out.spilled[i] = min(out.spilled[i], lowest)
        return
    out.outcome[i], out.lower[i] = STOPPED if stopped else NONE, lowest if stopped else np.inf
    if stopped:
        out.met[i] += MANY  # others may be there
    if out.cost[i] < np.inf and out.lower[i] >= out.cost[i] * (1 - SAME):
        out.outcome[i], out.lower[i] = FOUND, out.cost[i]
    elif out.outcome[i] == NONE and asked.most < np.inf and all_falls < need:
        out.lower[i] = max(asked.most, lowest) if asked.counted else asked.most


@entry
def search(values, asked, room, out, chosen, first, last):  # type: ignore[no-untyped-def]
    """The cases from first to last: what surely turns them, then what is cheaper and only the model can decide."""
    for i in range(first, last):
        if room.tally[NODE_CAP] == 0:
            return
        _search(values, asked, room, out, i, chosen, False)
        _search(values, asked, room, out, i, chosen, True)
