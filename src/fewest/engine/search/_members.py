"""Branch and bound over several polynomials at once: the sets that bring a sum of non-decreasing functions of them low.

A node bounds each polynomial by itself (as `_node.gains` does) and sums the functions at these bounds. The functions
are tables over even cells: what stands at the lower end of a cell is a bound from below, at the upper end one from
above, so that what is listed holds every turned set, and the caller decides the few that only the tables let pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.search import _work as w
from fewest.engine.search._bits import place_of, size_of
from fewest.engine.search._cube import begin_cube, polynomial
from fewest.tables.arrays import Floats, Ints

MOST_UNITS = 62  # bits of a set
DONE, TOO_MANY, CAPPED = 0, 1, 2
SLOTS = 1 << 14
_SPREAD = -7046029254386353131


class Curves(NamedTuple):
    """Non-decreasing functions of the members: values at the ends of even cells."""

    low: Floats  # (members,): Where the first cell begins
    per: Floats  # (members,): Cells per unit of the member's score
    value: Floats  # (members, cells + 1)
    slack: float  # Cells that rounding of a score may be off by


class TermStack(NamedTuple):
    """Monomials of the members, those of each depth behind those of the depth before."""

    mask: Ints  # (members, most)
    weight: Floats
    begin: Ints  # (members, depth + 2)


class MemberRoom(NamedTuple):
    """Scratch space of one thread: by depth, by member and by unit."""

    constant: Floats  # (depth, members)
    lin: Floats  # (depth, members, units): What each flip adds alone
    gain: Floats  # (depth, members, units): ... and at least, with others
    order: Ints  # (depth, units): Free units
    n_free: Ints
    place: Ints
    chosen: Ints
    far: Floats
    charge: Floats  # (2, units, degrees)
    pair: Floats  # (members, units, units)
    sums: Floats  # (2, members)
    small: Floats
    helps: Floats
    ranked: Ints
    ys: Floats
    table: Ints  # (2, SLOTS)
    stamp: Ints
    n_listed: Ints  # Sets listed, and whether one of them is turned whatever the tables round off
    distance: Floats
    best: Floats  # Distance of the best set so far; whether one set is wanted; margin of the bound


def make_room(members: int, units: int, terms: int) -> tuple[TermStack, MemberRoom]:
    """Allocate the buffers of one thread."""
    depth, u = units + 2, units + 1

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    stack = TermStack(ints(members, 4 * terms), np.zeros((members, 4 * terms)), ints(members, depth + 2))
    room = MemberRoom(
        np.zeros((depth, members)), np.zeros((depth, members, u)), np.zeros((depth, members, u)), ints(depth, u),
        ints(depth), ints(depth), ints(depth), np.zeros(depth), np.zeros((2, u, 8)), np.zeros((members, u, u)),
        np.zeros((2, members)), np.zeros(u), np.zeros(u), ints(u), np.zeros(members), ints(2, SLOTS), ints(1), ints(2),
        np.zeros(u), np.zeros(3),
    )  # fmt: skip
    return stack, room


@entry
def terms_of(  # type: ignore[no-untyped-def]
    i, trees, cubes, degree, cap, leaves, work, changes, bends, masks, weights, lin
):
    """Polynomial of an ensemble on cube i, up to a degree: monomials as bits of the movable units, in their order.

    ``changes`` and ``bends`` are those of `tree_changes`. Returns (number of monomials or -1 for too many, whether none
    was cut).
    """
    begin_cube(i, changes, cubes, work, None)
    m, complete = polynomial(i, trees, cubes, degree, cap, 0.0, np.bool_(True), bends[i], leaves, work)
    n = work.at[w.END, 0]
    if m < 0 or n > masks.shape[0]:
        return np.int64(-1), False
    for u in range(m):
        lin[u] = work.lin[0, u]
    for j in range(n):
        masks[j], weights[j] = work.key[j], work.weight[j]
    return n, complete


@inner()
def at(tables, i, y, up):  # type: ignore[no-untyped-def]
    """Function of member i, from below, or from above with ``up``."""
    cell = (y - tables.low[i]) * tables.per[i] + (tables.slack if up else -tables.slack)
    last = tables.value.shape[1] - 1
    if up:
        return tables.value[i, min(max(np.int64(np.ceil(cell)), 0), last)]
    return tables.value[i, min(max(np.int64(np.floor(cell)), 0), last)]


@inner()
def gains_of(i, t, picks, free, n_free, stack, room):  # type: ignore[no-untyped-def]
    """What each free unit adds to member i at least, when ``picks`` are flipped."""
    gain, charge = room.gain[t, i], room.charge
    top = min(picks, charge.shape[2] - 1)
    for j in range(n_free):
        u = free[j]
        gain[u] = room.lin[t, i, u]
        for d in range(top + 1):
            charge[0, u, d] = 0.0
            charge[1, u, d] = 0.0
    for e in range(stack.begin[i, t], stack.begin[i, t + 1]):
        weight = stack.weight[i, e]
        if weight >= 0.0:
            continue
        rest, d = stack.mask[i, e], 0
        weakest = -1
        while rest:
            u = place_of(rest & -rest)
            rest &= rest - 1
            d += 1
            if weakest < 0 or gain[u] > gain[weakest]:
                weakest = u
        if d > picks:
            continue
        if d > top:
            gain[weakest] += weight
            continue
        fit = 1.0
        for j in range(1, d):
            fit = fit * (picks - j) / j
        before = max(charge[0, weakest, d], fit * charge[1, weakest, d])
        charge[0, weakest, d] += weight
        charge[1, weakest, d] = min(charge[1, weakest, d], weight)
        gain[weakest] += max(charge[0, weakest, d], fit * charge[1, weakest, d]) - before


@inner()
def least_sum(values, units, first, last, picks, small):  # type: ignore[no-untyped-def]
    """Sum of the ``picks`` least values of some units; ``small`` holds them in order."""
    taken = 0
    for j in range(first, last):
        value = values[units[j]]
        if taken == picks and value >= small[taken - 1]:
            continue
        k = taken if taken < picks else taken - 1
        while k > 0 and small[k - 1] > value:
            small[k] = small[k - 1]
            k -= 1
        small[k] = value
        taken = min(taken + 1, picks)
    total = 0.0
    for k in range(taken):
        total += small[k]
    return total


@inner()
def descend_all(t, place, picks, stack, room):  # type: ignore[no-untyped-def]
    """Make depth t + 1: the unit at ``place`` is flipped, those before it are kept; False where the stack is full."""
    order, flip = room.order[t], room.order[t, place]
    bit, allowed, n = np.int64(1) << flip, np.int64(0), 0
    for j in range(place + 1, room.n_free[t]):
        allowed |= np.int64(1) << order[j]
        room.order[t + 1, n] = order[j]
        n += 1
    room.n_free[t + 1] = n
    room.chosen[t + 1] = room.chosen[t] | bit
    room.far[t + 1] = room.far[t] + room.distance[flip]
    for i in range(room.constant.shape[1]):
        room.constant[t + 1, i] = room.constant[t, i] + room.lin[t, i, flip]
        for j in range(n):
            room.lin[t + 1, i, order[place + 1 + j]] = room.lin[t, i, order[place + 1 + j]]
        room.stamp[0] += 1
        stamp, out = room.stamp[0], stack.begin[i, t + 1]
        for e in range(stack.begin[i, t], stack.begin[i, t + 1]):
            mask = stack.mask[i, e] & ~bit
            if mask & ~allowed:
                continue
            size = size_of(mask)
            if size > picks:
                continue
            if size == 1:
                room.lin[t + 1, i, place_of(mask)] += stack.weight[i, e]
                continue
            slot = ((mask * _SPREAD) >> 40) & (SLOTS - 1)
            while room.table[1, slot] == stamp and stack.mask[i, room.table[0, slot]] != mask:
                slot = (slot + 1) & (SLOTS - 1)
            if room.table[1, slot] == stamp:
                stack.weight[i, room.table[0, slot]] += stack.weight[i, e]
                continue
            if out >= stack.mask.shape[1] or out - stack.begin[i, t + 1] >= SLOTS // 2:
                return False
            room.table[0, slot], room.table[1, slot] = out, stamp
            stack.mask[i, out], stack.weight[i, out] = mask, stack.weight[i, e]
            out += 1
        stack.begin[i, t + 2] = out
    return True


@inner()
def offer_set(mask, far, total, bound, tables, room, ys, out):  # type: ignore[no-untyped-def]
    """List a set that may be turned, if it can still rank first. False where there is no room left."""
    if total >= bound or far > room.best[0]:
        return True
    surely = 0.0
    for i in range(ys.shape[0]):
        surely += at(tables, i, ys[i], True)
    if surely < bound - 2.0 * room.best[2]:
        room.n_listed[1] = 1
        if room.best[1] > 0.0:  # one set is wanted: those farther than one that is surely turned rank behind it
            room.best[0] = min(room.best[0], far * (1.0 + 1e-9) + 1e-12)
    if room.n_listed[0] >= out.shape[0]:
        return False
    out[room.n_listed[0]] = mask
    room.n_listed[0] += 1
    return True


@inner()
def last_ones(t, picks, bound, tables, stack, room, out):  # type: ignore[no-untyped-def]
    """All sets that add one or two of the free units of depth t. False where there is no room left."""
    order, n, members, ys, pair = room.order[t], room.n_free[t], room.constant.shape[1], room.ys, room.pair
    if picks == 1:
        for j in range(n):
            u, total = order[j], 0.0
            for i in range(members):
                ys[i] = room.constant[t, i] + room.lin[t, i, u]
                total += at(tables, i, ys[i], False)
            mask = room.chosen[t] | (np.int64(1) << u)
            if not offer_set(mask, room.far[t] + room.distance[u], total, bound, tables, room, ys, out):
                return False
        return True
    for i in range(members):
        for j in range(n):
            for k in range(n):
                pair[i, order[j], order[k]] = 0.0
        for e in range(stack.begin[i, t], stack.begin[i, t + 1]):
            mask = stack.mask[i, e]
            if size_of(mask) == 2:
                u, v = place_of(mask & -mask), place_of(mask & (mask - 1))
                pair[i, u, v] += stack.weight[i, e]
                pair[i, v, u] = pair[i, u, v]
    for j in range(n - 1):
        u = order[j]
        for k in range(j + 1, n):
            v, total = order[k], 0.0
            far = room.far[t] + room.distance[u] + room.distance[v]
            if far > room.best[0]:
                continue
            for i in range(members):
                ys[i] = room.constant[t, i] + room.lin[t, i, u] + room.lin[t, i, v] + pair[i, u, v]
                total += at(tables, i, ys[i], False)
            mask = room.chosen[t] | (np.int64(1) << u) | (np.int64(1) << v)
            if not offer_set(mask, far, total, bound, tables, room, ys, out):
                return False
    return True


@inner()
def open_all(t, picks, bound, tables, stack, room):  # type: ignore[no-untyped-def]
    """Bound depth t; keep the units that may be among those flipped there, most helpful first. False closes it."""
    order, n, members = room.order[t], room.n_free[t], room.constant.shape[1]
    if n < picks or room.far[t] + least_sum(room.distance, order, 0, n, picks, room.small) > room.best[0]:
        return False
    total = 0.0
    for i in range(members):
        gains_of(i, t, picks, order, n, stack, room)
        room.sums[0, i] = least_sum(room.gain[t, i], order, 0, n, picks, room.small)
        room.sums[1, i] = room.small[picks - 1]
        total += at(tables, i, room.constant[t, i] + room.sums[0, i], False)
    if total >= bound:
        return False
    kept = 0
    for j in range(n):
        u, total = order[j], 0.0
        for i in range(members):
            more = max(room.gain[t, i, u] - room.sums[1, i], 0.0)  # in place of the last of the least
            total += at(tables, i, room.constant[t, i] + room.sums[0, i] + more, False)
        if total >= bound:
            continue
        k = kept
        while k > 0 and room.helps[k - 1] > total:
            room.helps[k], room.ranked[k] = room.helps[k - 1], room.ranked[k - 1]
            k -= 1
        room.helps[k], room.ranked[k] = total, u
        kept += 1
    for j in range(kept):
        order[j] = room.ranked[j]
    room.n_free[t] = kept
    return kept >= picks


@inner()
def may_lead(t, place, picks, bound, tables, room):  # type: ignore[no-untyped-def]
    """Whether flipping the unit at ``place``, with some after it, can be enough by the gains of depth t."""
    order, u, total = room.order[t], room.order[t, place], 0.0
    far = room.far[t] + room.distance[u]
    if far + least_sum(room.distance, order, place + 1, room.n_free[t], picks - 1, room.small) > room.best[0]:
        return False
    for i in range(room.constant.shape[1]):
        more = least_sum(room.gain[t, i], order, place + 1, room.n_free[t], picks - 1, room.small)
        total += at(tables, i, room.constant[t, i] + room.gain[t, i, u] + more, False)
    return total < bound


@entry
def sets_of_size(k, m, bound, cap, tables, stack, room, out):  # type: ignore[no-untyped-def]
    """List all sets of k of m units whose sum of functions is below the bound, or may be. Returns (state, nodes)."""
    room.n_free[0], room.chosen[0], room.far[0], room.n_listed[0], room.n_listed[1] = m, 0, 0.0, 0, 0
    for u in range(m):
        room.order[0, u] = u
    t, new, nodes = 0, True, 0
    while t >= 0:
        picks = k - t
        if new:
            new = False
            nodes += 1
            if picks <= 2:
                if room.n_free[t] >= picks and not last_ones(t, picks, bound, tables, stack, room, out):
                    return TOO_MANY, nodes
                t -= 1
                continue
            if not open_all(t, picks, bound, tables, stack, room):
                t -= 1
                continue
            room.place[t] = 0
        place = room.place[t]
        room.place[t] = place + 1
        if place + picks > room.n_free[t]:
            t -= 1
            continue
        if not may_lead(t, place, picks, bound, tables, room):
            continue
        if nodes >= cap:
            return CAPPED, nodes
        if not descend_all(t, place, picks - 1, stack, room):
            return TOO_MANY, nodes
        t += 1
        new = True
    return DONE, nodes
