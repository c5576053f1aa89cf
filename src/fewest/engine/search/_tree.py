"""Compiled steps of the network's tree search: what becomes of a bounded sub-cube.

A node's bound is ``constant + sum of effects`` over the free units moved. It is pruned, or split by its strongest moved
free unit, or, when few of its sets pass the bound, its sets are listed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

PRUNED, LISTED, SPLIT = range(3)
SMALL = 2  # bounding a node costs as much as scoring one set per free unit, so nodes of so few moves are not split


@njit(cache=True, nogil=True)
def plan(offset, constants, effects, threshold, most, few, cap, kind, sets, passes, children, room, others):  # type: ignore[no-untyped-def]
    """Decide what becomes of each node, and count its sets that pass (up to cap + 1).

    For nodes that may be split also: which free units get a child (``passes``, as ``effects``), how many children, how
    many free units they have, and how many the child has that moves none of the stronger ones (0: it is not needed).
    """
    for i in range(constants.shape[0]):
        own = effects[offset[i] : offset[i + 1]]
        allowance = threshold[i] - constants[i]
        if own.shape[0] < most:
            kind[i] = PRUNED
            continue
        order = np.sort(own)
        passing = count_passing(order, most, allowance, max(cap + 1, own.shape[0] ** 2 if most <= SMALL else 0))
        sets[i] = passing
        kind[i] = PRUNED if passing == 0 else LISTED if passing <= cap or most <= SMALL else SPLIT
        if (passing > few or kind[i] == SPLIT) and most > SMALL:
            half = mark_children(own, most, allowance, passes[offset[i] : offset[i + 1]])
            for t in range(half):
                if passes[offset[i] + t]:
                    children[i] += 1
                    room[i] += own.shape[0] - t - 1
            if own.shape[0] - half >= most and passes[offset[i] + half]:
                others[i] = own.shape[0] - half


@njit(cache=True, nogil=True)
def mark_children(own, most, allowance, passes):  # type: ignore[no-untyped-def]
    """Mark the stronger units that a set below the allowance may begin with; returns how many units are stronger.

    The mark behind them says whether such a set may do without any of them.
    """
    n = own.shape[0]
    half = stronger(n, most)
    best = np.full(most, np.inf)  # the lowest effects among the units behind, ascending
    for t in range(n - 1, -1, -1):
        if t == half - 1 and half < n:
            passes[half] = best.sum() < allowance
        if t < half:
            passes[t] = own[t] + best[: most - 1].sum() < allowance
        value = np.float64(own[t])
        for place in range(most):
            if value < best[place]:
                value, best[place] = best[place], value
    return half


@njit(cache=True, nogil=True)
def stronger(count, most):  # type: ignore[no-untyped-def]
    """How many of the free units get a child of their own; sets without any of them stay together."""
    return min((count + 2) // 3, count - most + 1)


@njit(cache=True, nogil=True)
def count_passing(order, most, allowance, cap):  # type: ignore[no-untyped-def]
    """How many ``most``-subsets of the ascending values sum to less than the allowance; stops at cap."""
    n = order.shape[0]
    ahead = np.zeros(n + 1, dtype=np.float64)
    for t in range(n):
        ahead[t + 1] = ahead[t] + order[t]
    place = np.zeros(most, dtype=np.int64)
    total = np.zeros(most + 1, dtype=np.float64)
    depth, count = 0, 0
    while depth >= 0:
        t, left = place[depth], most - depth
        if t + left > n or total[depth] + ahead[t + left] - ahead[t] >= allowance:
            depth -= 1
            continue
        place[depth] = t + 1
        if left == 1:
            count += 1
            if count >= cap:
                return count
        else:
            total[depth + 1] = total[depth] + order[t]
            depth += 1
            place[depth] = t + 1
    return count


@njit(cache=True, nogil=True)
def split(kind, cubes, units, free, offset, most, passes, new_cubes, new_units, new_free, new_offset):  # type: ignore[no-untyped-def]
    """Children of the nodes to split: unit t moved, the stronger ones fixed, the weaker ones free."""
    at, end = 0, 0
    new_offset[0] = 0
    for i in range(kind.shape[0]):
        if kind[i] != SPLIT:
            continue
        names = free[offset[i] : offset[i + 1]]
        for t in range(stronger(names.shape[0], most)):
            if passes[offset[i] + t]:
                new_cubes[at] = cubes[i]
                new_units[at, : units.shape[1]] = units[i]
                new_units[at, units.shape[1]] = names[t]
                new_free[end : end + names.shape[0] - t - 1] = names[t + 1 :]
                end += names.shape[0] - t - 1
                at += 1
                new_offset[at] = end


@njit(cache=True, nogil=True)
def list_sets(start, kind, nodes, bounds, threshold, most, steps, base, exact_first, out_cubes, out_units, few):  # type: ignore[no-untyped-def]
    """List the passing sets of LISTED nodes from ``start`` on while there is room; returns (next node, sets listed).

    ``nodes`` and ``bounds`` are the arrays of `Nodes` and `Bounds`. A node with more than ``few`` sets becomes SPLIT.
    """
    cubes, units, free, offset = nodes
    constants, effects, bases, weights = bounds
    moved = units.shape[1]
    sums = np.empty((most, base.shape[1]), dtype=np.float32)
    at = 0
    for i in range(start, kind.shape[0]):
        if kind[i] != LISTED:
            continue
        own, names = effects[offset[i] : offset[i + 1]], free[offset[i] : offset[i + 1]]
        room = few if most > SMALL else own.shape[0] ** most
        if at + room > out_cubes.shape[0]:
            return i, at
        sums[0] = base[cubes[i]]
        for t in range(moved):
            for j in range(base.shape[1]):
                sums[0, j] += steps[cubes[i], units[i, t], j]
        order = np.argsort(own)
        weight = weights[i] if exact_first else weights[i, :0]
        count = list_node(
            own[order], names[order], threshold[i] - constants[i], threshold[i] - bases[i], weight, steps[cubes[i]],
            sums, most, out_units[at : at + room, moved:],
        )  # fmt: skip
        if count > room:
            kind[i] = SPLIT
            continue
        out_cubes[at : at + count] = cubes[i]
        out_units[at : at + count, :moved] = units[i]
        at += count
    return kind.shape[0], at


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def list_node(effects, names, allowance, level, weight, steps, sums, most, out):  # type: ignore[no-untyped-def]
    """List the sets of a node (effects ascending) whose effects stay below the allowance; len(out) + 1: too many.

    With a ``weight`` (relu) a set must also pass the tighter bound that relaxes only the layers after the first:
    weight . relu(first pre-activation) below the level. ``sums[0]`` is the node's own first pre-activation.
    """
    n, width = effects.shape[0], weight.shape[0]
    ahead = np.zeros(n + 1, dtype=np.float64)
    for t in range(n):
        ahead[t + 1] = ahead[t] + effects[t]
    place, total = np.zeros(most, dtype=np.int64), np.zeros(most + 1, dtype=np.float64)
    depth, at = 0, 0
    while depth >= 0:
        t, left = place[depth], most - depth
        if t + left > n or total[depth] + ahead[t + left] - ahead[t] >= allowance:
            depth -= 1
            continue
        place[depth] = t + 1
        step = steps[names[t]]
        if left > 1:
            total[depth + 1] = total[depth] + effects[t]
            for j in range(width):
                sums[depth + 1, j] = sums[depth, j] + step[j]
            depth += 1
            place[depth] = t + 1
            continue
        value = np.float32(0)
        for j in range(width):
            value += weight[j] * max(sums[depth, j] + step[j], np.float32(0))
        if width > 0 and value >= level:
            continue
        if at == out.shape[0]:
            return at + 1
        for p in range(most):
            out[at, p] = names[place[p] - 1]
        at += 1
    return at
