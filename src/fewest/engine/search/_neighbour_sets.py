"""Compiled search over sets of units whose vertex has other nearest rows: distances are sums, so sub-cubes bound them.

A node keeps the training rows that can still be among the nearest, with their distances; what the units that may still
move add to each distance lies between the sums of its smallest and of its largest steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.structure.nearest_rows import least, signed_mean
from fewest.tables.arrays import Floats, Ints

DONE, TOO_MANY, CAPPED = 0, 1, 2


class NearestRows(NamedTuple):
    """The training rows, as the kernels take them."""

    columns: Floats  # (d, n): The rows, column by column
    v: Floats  # (n,): Value less the cut
    size: float  # Largest sum of a row's columns to the power
    k: int
    power: float
    weighted: bool
    rounding: float
    sign: float
    tolerance: float


class NeighbourRoom(NamedTuple):
    """Scratch space of one thread: of one cube, and by depth."""

    base: Floats  # (n,): Distance of each row from the start
    steps: Floats  # (units, n): What moving a unit adds to it
    low: Floats  # (sizes, units + 1, n): Sum of the smallest steps of the units from a place on, by how many
    high: Floats
    kept: Ints  # (depth, n): Rows of a node
    far: Floats  # (depth, n): ... and their distances
    ends: Floats  # (2, n)
    heap: Floats
    place: Ints  # (depth,)
    n_kept: Ints  # (depth,): How many rows a node has
    length: Floats  # (depth,): Summed distance of the units moved


def make_room(n: int, units: int, k: int, sizes: int) -> NeighbourRoom:
    """Allocate the scratch space for n rows, sets of up to ``sizes`` units and k neighbours."""
    depth = sizes + 1
    return NeighbourRoom(
        base=np.zeros(n),
        steps=np.zeros((units, n)),
        low=np.zeros((sizes + 1, units + 1, n)),
        high=np.zeros((sizes + 1, units + 1, n)),
        kept=np.zeros((depth, n), dtype=np.int64),
        far=np.zeros((depth, n)),
        ends=np.zeros((2, n)),
        heap=np.zeros(k + 2),
        place=np.zeros(depth, dtype=np.int64),
        n_kept=np.zeros(depth, dtype=np.int64),
        length=np.zeros(depth),
    )


@inner
def part(difference, power):  # type: ignore[no-untyped-def]
    """What a column adds to a distance."""
    if power == 2.0:
        return difference * difference
    return abs(difference) if power == 1.0 else abs(difference) ** power


@inner
def place_cube(x, goal, unit_of, movable, rows, base, steps):  # type: ignore[no-untyped-def]
    """Distances of the rows from the start, and what each movable unit adds to them; the slack of all on the cube."""
    n, size = rows.columns.shape[1], 0.0
    base[:] = 0.0
    steps[:] = 0.0
    for c in range(x.shape[0]):
        unit, values = unit_of[c], rows.columns[c]
        here = x[c]
        size += part(here, rows.power)
        for i in range(n):
            base[i] += part(here - values[i], rows.power)
        if unit >= 0 and movable[unit] and goal[c] != here:
            there, step = goal[c], steps[unit]
            size += part(there, rows.power)
            for i in range(n):
                step[i] += part(there - values[i], rows.power) - part(here - values[i], rows.power)
    return rows.rounding * (1e-100 + rows.size + size)


@entry
def open_cube(cube, cubes, rows, room):  # type: ignore[no-untyped-def]
    """Lay out a cube; its slack, and its movable units, those that change distances most first."""
    start, goal, goal_of, unit_of, movable = cubes
    slack = place_cube(start[cube], goal[goal_of[cube]], unit_of, movable[cube], rows, room.base, room.steps)
    units = np.flatnonzero(movable[cube])
    strength = np.array([-np.abs(room.steps[unit]).sum() for unit in units])
    return slack, units[np.argsort(strength, kind="mergesort")]


@entry
def scores_of(vertices, moved, cubes, rows, room):  # type: ignore[no-untyped-def]
    """Signed scores of vertices, given by cube numbers and units moved (v, u); those of one cube stand together."""
    start, goal, goal_of, unit_of, movable = cubes
    n = room.base.shape[0]
    out, every, last, slack = np.empty(vertices.shape[0]), np.arange(n), -1, 0.0
    for j in range(vertices.shape[0]):
        cube = vertices[j]
        if cube != last:
            slack = place_cube(start[cube], goal[goal_of[cube]], unit_of, movable[cube], rows, room.base, room.steps)
            last = cube
        far = room.ends[0]
        far[:] = room.base
        for unit in range(moved.shape[1]):
            if moved[j, unit]:
                for i in range(n):
                    far[i] += room.steps[unit, i]
        out[j] = signed_mean(far, n, rows.v, every, rows.sign, rows.k, rows.power, rows.weighted, slack, room.heap)
    return out


@inner
def sum_steps(units, size, room):  # type: ignore[no-untyped-def]
    """Fill ``low`` and ``high``: sums of the r smallest and largest steps of the units from p on, r up to ``size``."""
    n, m = room.base.shape[0], units.shape[0]
    for r in range(size + 1):
        room.low[r, m] = np.inf if r else 0.0
        room.high[r, m] = -np.inf if r else 0.0
    for p in range(m - 1, -1, -1):
        room.low[0, p] = 0.0
        room.high[0, p] = 0.0
        step = room.steps[units[p]]
        for r in range(1, size + 1):
            low, without, with_it = room.low[r, p], room.low[r, p + 1], room.low[r - 1, p + 1]
            for i in range(n):  # either this unit is one of the smallest, or all of them are behind it
                low[i] = min(without[i], with_it[i] + step[i])
            high, without, with_it = room.high[r, p], room.high[r, p + 1], room.high[r - 1, p + 1]
            for i in range(n):
                high[i] = max(without[i], with_it[i] + step[i])


@inner
def least_score(t, below, above, slack, rows, room):  # type: ignore[no-untyped-def]
    """The least score of the node at depth t, its distances growing by ``below`` to ``above``; far rows are let go."""
    n, kept, far = room.n_kept[t], room.kept[t], room.far[t]
    low, high = room.ends[0], room.ends[1]
    for i in range(n):
        low[i] = far[i] + below[kept[i]]
        high[i] = far[i] + above[kept[i]]
    score, reach = least(
        low, high, False, n, rows.v, kept, rows.sign, rows.k, rows.power, rows.weighted, slack, slack, room.heap
    )  # fmt: skip
    count = 0
    for i in range(n):
        if low[i] - slack <= reach:
            kept[count], far[count] = kept[i], far[i]
            count += 1
    room.n_kept[t] = count
    return score


@inner
def begin(room):  # type: ignore[no-untyped-def]
    """The whole cube at depth 0, with all rows."""
    n = room.base.shape[0]
    for i in range(n):
        room.kept[0, i] = i
        room.far[0, i] = room.base[i]
    room.n_kept[0], room.place[0], room.length[0] = n, 0, 0.0


@entry
def may_turn(units, slack, rows, room):  # type: ignore[no-untyped-def]
    """Whether any set of these units may turn the cube."""
    below, above = room.low[0, 0], room.high[0, 0]
    below[:] = 0.0
    above[:] = 0.0
    for unit in units:
        for i in range(room.base.shape[0]):
            below[i] += min(room.steps[unit, i], 0.0)
            above[i] += max(room.steps[unit, i], 0.0)
    begin(room)
    return least_score(0, below, above, slack, rows, room) < rows.tolerance


@entry
def sets_of_size(size, units, near, one, slack, spent, tally, cap_at, rows, room, out):  # type: ignore[no-untyped-def]
    """List the sets of ``size`` units that may be turned, as places in ``units``: (state, nodes, how many).

    ``near`` has the distance of each of the units; where ``one`` set is wanted, those that are farther than a listed
    one are left out. ``tally[cap_at]`` nodes may be spent, ``spent`` of them are; another thread may set it to zero.
    """
    m, best, nodes, count, t = units.shape[0], np.inf, 1, 0, 0
    sum_steps(units, size, room)
    begin(room)
    if least_score(0, room.low[size, 0], room.high[size, 0], slack, rows, room) >= rows.tolerance:
        return DONE, nodes, 0
    while t >= 0:
        p, left, n = room.place[t], size - t, room.n_kept[t]
        if p + left > m:
            t -= 1
            continue
        room.place[t] = p + 1
        length = room.length[t] + near[p]
        if one and length > best:
            continue
        nodes += 1
        if spent + nodes > tally[cap_at]:
            return CAPPED, nodes, count
        step, kept = room.steps[units[p]], room.kept[t]
        far = room.ends[0] if left == 1 else room.far[t + 1]
        for i in range(n):
            far[i] = room.far[t, i] + step[kept[i]]
        if left > 1:
            room.kept[t + 1, :n] = kept[:n]
            room.n_kept[t + 1], room.place[t + 1], room.length[t + 1] = n, p + 1, length
            below, above = room.low[left - 1, p + 1], room.high[left - 1, p + 1]
            if least_score(t + 1, below, above, slack, rows, room) < rows.tolerance:
                t += 1
            continue
        score, _ = least(
            far, far, True, n, rows.v, kept, rows.sign, rows.k, rows.power, rows.weighted, slack, slack, room.heap
        )  # fmt: skip
        if score < rows.tolerance:
            if count == out.shape[0]:
                return TOO_MANY, nodes, count
            for at in range(size):
                out[count, at] = room.place[at] - 1
            count += 1
            best = min(best, length * (1.0 + 1e-10) + 1e-300)
    return DONE, nodes, count
