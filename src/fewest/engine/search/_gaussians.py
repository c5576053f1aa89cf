"""A Gaussian mixture on one hypercube: each component's squared distance is a quadratic polynomial of the bits.

The distances and their slopes are carried down the search, one addition per component and free unit for each flip.
Two lower bounds of a component's distance hold for all sets of q further units T (D: now, s: slopes, b: pair terms):

* D(T) = D + sum of s_u + sum of b_uv over pairs, and half the q - 1 smallest b of each unit bound the pairs;
* the distance is convex, so it lies above its tangent: D(T) >= D + sum of the tangent's slopes t_u.

In both the best T takes the q smallest terms. The mixture's log-density is increasing in every component's, so the
components' bounds together bound it from above.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search import _work as w
from fewest.engine.search._work import WorkCubes, by_unit
from fewest.engine.search.problem import Problem
from fewest.tables.arrays import Floats, Ints

_ROUNDING = 64 * 2.0**-52
_TURNS = 12


class Body(NamedTuple):
    """The mixture and the cubes' points, as the compiled search reads them.

    ``inverse`` (c, e, e) are inverse covariances, ``shift`` (c, e) their products with the means, ``largest`` (c,)
    their largest entries; ``columns`` lists the coordinates unit by unit, ``span`` (u + 1,) where each unit's begin.
    """

    constant: Floats
    mean: Floats
    inverse: Floats
    shift: Floats
    largest: Floats
    start: Floats
    goal: Floats
    columns: Ints
    span: Ints
    level: float


class Room(NamedTuple):
    """Scratch space of one search; the first axis of ``value`` and ``slope`` is the depth.

    ``square`` (c, m) are the units' own terms, ``pair`` (c, m, m) those of pairs, ``half`` (c, m, m) for each unit
    half the sum of its q smallest pair terms, ``less`` the same without positive ones. ``slack`` (1,) is what rounding
    may cost.
    """

    value: Floats
    slope: Floats
    square: Floats
    pair: Floats
    half: Floats
    less: Floats
    low: Floats
    line: Floats
    step: Floats
    small: Floats
    chosen: Ints
    share: Floats
    bend: Floats
    ahead: Floats
    tangent: Floats
    slack: Floats


class CompiledFloor(NamedTuple):
    """The mixture and the scratch space of one search: what the compiled searches are handed as ``floor``."""

    body: Body
    room: Room


def pack_body(problem: Problem) -> Body | None:
    """The mixture of a problem's floor in contiguous arrays of fixed types; None where it has none."""
    if problem.floor is None or problem.floor.bodies is None:
        return None
    bodies, mixture = problem.floor.bodies, problem.floor.bodies.mixture
    inverse = np.ascontiguousarray(mixture.root @ np.swapaxes(mixture.root, 1, 2))
    columns, span = by_unit(bodies.unit_of, problem.n_units)
    return Body(
        constant=np.ascontiguousarray(mixture.constant, dtype=np.float64),
        mean=np.ascontiguousarray(mixture.mean, dtype=np.float64),
        inverse=inverse,
        shift=np.ascontiguousarray(np.einsum("cef,cf->ce", inverse, mixture.mean)),
        largest=np.abs(inverse).max(axis=(1, 2)),
        start=np.ascontiguousarray(bodies.start, dtype=np.float64),
        goal=np.ascontiguousarray(bodies.goal, dtype=np.float64),
        columns=columns,
        span=span,
        level=float(problem.floor.level),
    )


def floor_for(body: Body | None, cubes: WorkCubes) -> CompiledFloor | None:
    """The mixture, where there is one, with scratch space for one block of cubes."""
    if body is None:
        return None
    c, e = body.mean.shape
    m = max(1, int(cubes.movable.sum(axis=1).max(initial=0)))
    room = Room(
        value=np.zeros((m + 2, c)),
        slope=np.zeros((m + 2, c, m)),
        square=np.zeros((c, m)),
        pair=np.zeros((c, m, m)),
        half=np.zeros((c, m, m)),
        less=np.zeros((c, m, m)),
        low=np.zeros(c),
        line=np.zeros(e),
        step=np.zeros(e),
        small=np.zeros(m + 1),
        chosen=np.zeros(m + 1, dtype=np.int64),
        share=np.zeros(m),
        bend=np.zeros(m),
        ahead=np.zeros(m),
        tangent=np.zeros(m),
        slack=np.zeros(1),
    )
    return CompiledFloor(body, room)


@inner()
def lay_out(i, m, cubes, work, body, room):  # type: ignore[no-untyped-def]
    """Distances at the start of cube i, what each flip adds, and what each pair of flips adds beyond that."""
    z, r = body.start[i], body.goal[cubes.goal_of[i]]
    reach = 0.0
    for a in range(z.shape[0]):
        room.step[a] = r[a] - z[a]
        reach += abs(z[a]) + abs(r[a])
    room.slack[0] = 1e-9 * (1.0 + abs(body.level))
    for c in range(body.constant.shape[0]):
        line, inverse = room.line, body.inverse[c]
        size = reach
        for a in range(z.shape[0]):
            line[a] = -body.shift[c, a]
            size += abs(body.mean[c, a])
        room.slack[0] = max(room.slack[0], _ROUNDING * size * size * body.largest[c])
        for a in range(z.shape[0]):
            if z[a] != 0.0:
                across = inverse[a]
                for b in range(z.shape[0]):
                    line[b] += z[a] * across[b]
        far = 0.0
        for a in range(z.shape[0]):
            far += (z[a] - body.mean[c, a]) * line[a]
        room.value[0, c] = far
        for u in range(m):
            room.slope[0, c, u] = 0.0
            for place in range(body.span[work.ids[w.UNIT, u]], body.span[work.ids[w.UNIT, u] + 1]):
                a = body.columns[place]
                room.slope[0, c, u] += 2.0 * room.step[a] * line[a]
        _pair_up(m, c, work, body, room)


@inner()
def _pair_up(m, c, work, body, room):  # type: ignore[no-untyped-def]
    """Products of the units' steps in the metric of component c."""
    inverse = body.inverse[c]
    for u in range(m):
        for v in range(u, m):
            total = 0.0
            for one in range(body.span[work.ids[w.UNIT, u]], body.span[work.ids[w.UNIT, u] + 1]):
                a = body.columns[one]
                if room.step[a] != 0.0:
                    for other in range(body.span[work.ids[w.UNIT, v]], body.span[work.ids[w.UNIT, v] + 1]):
                        b = body.columns[other]
                        total += room.step[a] * inverse[a, b] * room.step[b]
            if u == v:
                room.square[c, u] = total
                room.slope[0, c, u] += total
            room.pair[c, u, v] = 0.0 if u == v else 2.0 * total
            room.pair[c, v, u] = room.pair[c, u, v]


@inner()
def sort_pairs(m, body, room):  # type: ignore[no-untyped-def]
    """For every component and unit, half the sums of its smallest pair terms."""
    for c in range(body.constant.shape[0]):
        for u in range(m):
            n = 0
            for v in range(m):
                if v != u:
                    at = n
                    while at > 0 and room.small[at - 1] > room.pair[c, u, v]:
                        room.small[at] = room.small[at - 1]
                        at -= 1
                    room.small[at] = room.pair[c, u, v]
                    n += 1
            room.half[c, u, 0] = room.less[c, u, 0] = 0.0
            for q in range(n):
                room.half[c, u, q + 1] = room.half[c, u, q] + 0.5 * room.small[q]
                room.less[c, u, q + 1] = room.less[c, u, q] + 0.5 * min(0.0, room.small[q])


@inner()
def carry(work, t, body, room):  # type: ignore[no-untyped-def]
    """Distances and slopes of depth t + 1, after the unit chosen at depth t was flipped."""
    flip = work.at[w.CHOSEN, t]
    child = t + 1
    for c in range(body.constant.shape[0]):
        room.value[child, c] = room.value[t, c] + room.slope[t, c, flip]
        line, before, after = room.pair[c, flip], room.slope[t, c], room.slope[child, c]
        for i in range(work.at[w.N_FREE, child]):
            u = work.order[child, i]
            after[u] = before[u] + line[u]


@inner()
def reaches(far, body, room):  # type: ignore[no-untyped-def]
    """Whether components at these squared distances (c,) add up to the floor, rounding granted."""
    level = body.level - room.slack[0]
    top = -np.inf
    for c in range(body.constant.shape[0]):
        top = max(top, body.constant[c] - 0.5 * far[c])
    if top >= level:
        return True
    if top + math.log(float(body.constant.shape[0])) < level:
        return False
    total = 0.0
    for c in range(body.constant.shape[0]):
        total += math.exp(body.constant[c] - 0.5 * far[c] - top)
    return top + math.log(total) >= level


@inner()
def dense(t, n, one, other, body, room):  # type: ignore[no-untyped-def]
    """Whether depth t with n more flips (none, ``one``, or ``one`` and ``other``) is at the floor."""
    for c in range(body.constant.shape[0]):
        far = room.value[t, c]
        if n > 0:
            far += room.slope[t, c, one]
        if n > 1:
            far += room.slope[t, c, other] + room.pair[c, one, other]
        room.low[c] = far
    return reaches(room.low, body, room)


@inner()
def least(work, t, picks, exactly, term, room):  # type: ignore[no-untyped-def]
    """Sum of the ``picks`` smallest terms of free units (of negative ones only, unless ``exactly``).

    ``room.chosen`` gets the units they belong to; returns the sum and how many there are.
    """
    small, chosen = room.small, room.chosen
    n = 0
    for i in range(work.at[w.N_FREE, t]):
        u = work.order[t, i]
        value = term[u]
        if (n == picks and value >= small[n - 1]) or not (exactly or value < 0.0):
            continue
        at = n if n < picks else n - 1
        while at > 0 and small[at - 1] > value:
            small[at] = small[at - 1]
            chosen[at] = chosen[at - 1]
            at -= 1
        small[at] = value
        chosen[at] = u
        n = min(n + 1, picks)
    total = 0.0
    for i in range(n):
        total += small[i]
    return total, n


@inner()
def by_tangents(work, t, c, picks, exactly, enough, room):  # type: ignore[no-untyped-def]
    """Lower bound of component c's distance by tangents, each at a point nearer to the least distance (Frank-Wolfe).

    At shares s of the free units the tangent's slopes are g = now + Hs, with H the pair terms; all sets lie above it,
    and the best of them takes the smallest slopes. The next point lies between s and that set.
    """
    free, share, bend, slope = work.at[w.N_FREE, t], room.share, room.bend, room.tangent
    for i in range(free):
        u = work.order[t, i]
        share[u] = bend[u] = 0.0
        slope[u] = room.slope[t, c, u] - room.square[c, u]
    best = -np.inf
    for turn in range(_TURNS):
        total, n = least(work, t, picks, exactly, slope, room)
        curve = 0.0
        for i in range(free):
            u = work.order[t, i]
            curve += share[u] * bend[u]
        best = max(best, room.value[t, c] + total - 0.5 * curve)
        if turn + 1 == _TURNS or best >= enough:
            break
        # From s to the set just taken: how far pays, how it bends.
        drop = total
        for i in range(free):
            u = work.order[t, i]
            drop -= slope[u] * share[u]
            room.ahead[u] = 0.0
        for i in range(n):
            v = room.chosen[i]
            for j in range(free):
                u = work.order[t, j]
                room.ahead[u] += room.pair[c, v, u]
            room.ahead[v] += 2.0 * room.square[c, v]
        steep = curve
        for i in range(n):
            steep += room.ahead[room.chosen[i]] - 2.0 * bend[room.chosen[i]]
        if drop >= 0.0 or steep <= 0.0:
            break
        pace = min(1.0, -drop / steep)
        for i in range(free):
            u = work.order[t, i]
            share[u] *= 1.0 - pace
            slope[u] += pace * (room.ahead[u] - bend[u])
            bend[u] += pace * (room.ahead[u] - bend[u])
        for i in range(n):
            share[room.chosen[i]] += pace
    return best


@inner()
def hopeless(work, t, picks, exactly, body, room):  # type: ignore[no-untyped-def]
    """Whether no set of ``picks`` further free units (at most this many unless ``exactly``) can reach the floor."""
    table = room.half if exactly else room.less
    level = body.level - room.slack[0]
    spare = math.log(float(body.constant.shape[0]))  # components this much below the floor do not add up to it
    for c in range(body.constant.shape[0]):
        slope, term = room.slope[t, c], room.tangent
        for i in range(work.at[w.N_FREE, t]):
            u = work.order[t, i]
            term[u] = slope[u] + table[c, u, picks - 1]
        low = max(0.0, room.value[t, c] + least(work, t, picks, exactly, term, room)[0])  # no distance is negative
        if body.constant[c] - 0.5 * low >= level and picks > 1:
            enough = 2.0 * (body.constant[c] - level + spare)
            low = max(low, by_tangents(work, t, c, picks, exactly, enough, room))
        if body.constant[c] - 0.5 * low >= level:
            return False
        room.low[c] = low
    return not reaches(room.low, body, room)
