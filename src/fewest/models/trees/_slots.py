"""Slots: how each restricted feature of a negative leaf is entered, under the constraints, as plain arrays.

Words: for every cell of every tested feature, which negative leaves a case in it is outside of, 64 to a word.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.constraints import AtMost, Constraint, Constraints, Forbidden, Immutable, OneOf, Only, Range
from fewest.errors import ModelError, UsageError
from fewest.models.trees.leaf_boxes import Interval, Levels, Side, Value, boxes, nearest_inside
from fewest.models.trees.tree import Tree, decode_feature
from fewest.tables.arrays import Bools, Floats, Ints, Ints32

INSIDE, NEVER = -2, -1  # targets of a level that is in the box, and of one that cannot get there
BITS = 64
Masks = npt.NDArray[np.uint64]


class Slots(NamedTuple):
    """One slot per negative leaf and feature its box restricts, in the order the compiled search takes them."""

    start: Ints32  # (leaves + 1,): first slot of each leaf
    feature: Ints32  # (slots,), as are all that follow but the last
    low: Floats  # a number is inside when low < value <= high
    high: Floats
    missing_inside: Bools
    from_below: Floats  # value a case takes when it comes from there; NaN where it may not, or no typed value exists
    from_above: Floats
    from_missing: Floats
    table: Ints32  # row of ``target`` for features with levels, -1 for numbers
    target: Ints32  # (rows, width): for each code it is inside (-2), cannot enter (-1), or the code it takes


class Slot(NamedTuple):
    """How one feature of one leaf is entered; ``levels`` is its row of targets, None for numbers."""

    feature: int
    low: float
    high: float
    missing_inside: bool
    from_below: float
    from_above: float
    from_missing: float
    levels: Ints32 | None


def lay_out(tree: Tree, typical: Floats, value: Value, constraints: Constraints) -> tuple[Ints32, Slots]:
    """Nodes of the negative leaves, and their slots; constraints that a leaf cannot keep are refused."""
    constraints.check(tree.schema)
    for item in constraints:
        if not isinstance(item, AtMost | Forbidden | Immutable | OneOf | Only | Range):
            raise UsageError(
                f"{type(item).__name__} cannot be kept with the leaves of a tree: a leaf fixes only what it tests",
                do="use references.single or clusters with this constraint",
            )
    leaves: list[int] = []
    start = [0]
    slots: list[Slot] = []
    for node, box in boxes(tree):
        if not tree.positive[node]:
            leaves.append(node)
            slots += [_slot(constraints, tree, j, box[j], float(typical[node, j]), value) for j in sorted(box)]
            start.append(len(slots))
    width = 1 + max((len(tree.schema.features[j].levels) for j in tree.used.tolist()), default=0)
    rows = [slot.levels for slot in slots if slot.levels is not None]
    target = np.full((len(rows), width), NEVER, dtype=np.int32)
    for row, levels in zip(target, rows, strict=True):
        row[: len(levels)] = levels
    leveled = np.array([slot.levels is not None for slot in slots], dtype=bool)
    table = np.where(leveled, np.cumsum(leveled) - 1, -1).astype(np.int32)
    kinds = {"feature": np.int32, "missing_inside": bool}
    arrays = {
        name: np.array([getattr(slot, name) for slot in slots], dtype=kinds.get(name, float))
        for name in Slot._fields[:-1]
    }
    first = np.array(start, dtype=np.int32)
    return np.array(leaves, dtype=np.int32), Slots(start=first, table=table, target=target, **arrays)


def _slot(constraints: Constraints, tree: Tree, j: int, side: Side, centre: float, value: Value) -> Slot:
    feature = tree.schema.features[j]
    rules = [item for item in constraints if item.features() == (feature.name,) and not isinstance(item, Forbidden)]
    if isinstance(side, Levels):
        levels, from_missing = _level_targets(rules, tree, j, side, centre)
        return Slot(j, np.nan, np.nan, side.missing, np.nan, np.nan, from_missing, levels)
    if not feature.is_numeric:
        raise ModelError(f'the tree tests "{feature.name}", which has no typed value to move to', do="drop the feature")
    if any(isinstance(item, Immutable) for item in rules):
        return Slot(j, side.low, side.high, side.missing, np.nan, np.nan, np.nan, None)
    ranges = [item for item in rules if isinstance(item, Range)]
    # A range includes its lower end, the box does not.
    lows = (float(np.nextafter(item.low, -np.inf)) for item in ranges)
    room = Interval(max([side.low, *lows]), min([side.high, *(item.high for item in ranges)]))
    sets = [{float(level) for level in item.levels} for item in rules if isinstance(item, OneOf)]
    allowed = sorted(set.intersection(*sets)) if sets else None
    only = {item.direction for item in rules if isinstance(item, Only)}

    def enter(target: float) -> float:
        return nearest_inside(feature, room, target, allowed)

    middle = enter(centre if np.isfinite(centre) else side.low)
    below, above = (enter(side.low), enter(side.high)) if value == "nearest" else (middle, middle)
    return Slot(
        j, side.low, side.high, side.missing,
        np.nan if "down" in only else below, np.nan if "up" in only else above, np.nan if only else middle, None,
    )  # fmt: skip


def _level_targets(rules: list[Constraint], tree: Tree, j: int, side: Levels, centre: float) -> tuple[Ints32, float]:
    """For each code the level it takes to get inside, and the level a missing value takes."""
    feature = tree.schema.features[j]
    count = len(feature.levels)
    may = _permitted(rules, tree, j)
    inside = np.flatnonzero(side.inside[:count])
    goals = []
    for code in range(count + 2):  # the last two: a level that is not known, and a missing one
        open_to = inside[may[code, inside]]
        if len(open_to) == 0:
            goals.append(NEVER)
        elif feature.ordered and code < count:
            goals.append(int(open_to[np.argmin(np.abs(open_to - code))]))
        else:
            goals.append(int(centre) if centre in open_to else int(open_to[0]))
    levels = np.where(side.inside, INSIDE, goals[: count + 1]).astype(np.int32)
    return levels, np.nan if goals[-1] == NEVER else float(goals[-1])


def _permitted(rules: list[Constraint], tree: Tree, j: int) -> Bools:
    """Whether a case with one code may take another: (levels + 2, levels), by asking the constraints themselves."""
    feature = tree.schema.features[j]
    count = len(feature.levels)
    out = np.ones((count + 2, count), dtype=bool)
    if not rules:
        return out
    start = pd.DataFrame(decode_feature(feature, np.repeat(np.arange(count + 2), count)))
    goal = pd.DataFrame(decode_feature(feature, np.tile(np.arange(count), count + 2)))
    for item in rules:
        mask = item.permits(tree.schema, start, goal)
        if mask is not None:
            out &= mask.reshape(count + 2, count)
    return out


class Words(NamedTuple):
    """Tables of the search over all leaves at once, in the order it takes them.

    Cell c of a number holds the values above c edges; features with levels have a cell per code. A *way* is an edge of
    a number and the leaves on either side that begin there.
    """

    tested: Ints32  # (f,): features that some negative leaf restricts
    is_number: Bools  # (f,)
    edge_from: Ints32  # (f + 1,): first edge of each
    edges: Floats
    cell_from: Ints32  # (f + 1,): first cell of each
    outside: Masks  # (cells, words): leaves that a case in the cell is outside of
    never: Masks  # (cells, words): leaves that it cannot enter at all
    leaves: Masks  # (words,): all leaves
    way_from: Ints32  # (f + 1,): first way of each feature
    way_edge: Floats  # (ways,), as are all that follow but the last
    way_above: Floats  # value a case below the edge takes to get just above it
    way_below: Floats  # value a case above it takes to get below
    leaves_above: Masks  # leaves that are entered so; for up to 64 leaves
    leaves_below: Masks
    closed: bool  # whether some leaf cannot be entered from some cell

    @classmethod
    def build(cls, tree: Tree, slots: Slots) -> Words:
        """Ask every slot about one value of every cell."""
        from fewest.models.trees._kernels import mark_cells

        count = len(slots.start) - 1
        tested = np.unique(slots.feature).astype(np.int32)
        words = max(1, -(-count // BITS))
        leaf_of = np.repeat(np.arange(count), np.diff(slots.start))
        edges: list[Floats] = []
        outside: list[Masks] = []
        never: list[Masks] = []
        for j in tested.tolist():
            mine = np.flatnonzero(slots.feature == j)
            cuts, values = _cells(tree, slots, j, mine)
            edges.append(cuts)
            missed, closed = np.zeros((2, len(values), words), dtype=np.uint64)
            mark_cells(values, mine, leaf_of, slots, missed, closed)
            outside.append(missed)
            never.append(closed)
        bits = np.arange(words * BITS) < count
        leaves = np.bitwise_or.reduce(bits.reshape(words, BITS) * (np.uint64(1) << np.arange(BITS, dtype=np.uint64)), 1)
        lost = np.concatenate([*never, np.zeros((0, words), dtype=np.uint64)])
        return cls(
            tested,
            np.array([tree.schema.features[j].is_numeric for j in tested.tolist()], dtype=bool),
            np.cumsum([0, *map(len, edges)]).astype(np.int32),
            np.concatenate([*edges, np.empty(0)]),
            np.cumsum([0, *map(len, outside)]).astype(np.int32),
            np.concatenate([*outside, np.zeros((0, words), dtype=np.uint64)]),
            lost,
            leaves.astype(np.uint64),
            *_ways(tree, slots, tested, leaf_of),
            bool(lost.any()),
        )


def _ways(
    tree: Tree, slots: Slots, tested: Ints32, leaf_of: Ints
) -> tuple[Ints32, Floats, Floats, Floats, Masks, Masks]:
    """The ways into the leaves by one number, grouped by edge and value; none where the leaves need several words.

    Ways up and down across the same edge stand side by side: a case takes one or the other.
    """
    first, rows = [0], []
    for j in tested.tolist():
        ways: dict[float, tuple[dict[float, int], dict[float, int]]] = {}  # edge -> value -> leaves, above and below
        if tree.schema.features[j].is_numeric and len(slots.start) - 1 <= BITS:
            for slot in np.flatnonzero(slots.feature == j).tolist():
                up, down = (slots.low[slot], slots.from_below[slot]), (slots.high[slot], slots.from_above[slot])
                for side, (edge, value) in enumerate((up, down)):
                    if np.isfinite(edge) and np.isfinite(value):
                        leaves = ways.setdefault(float(edge), ({}, {}))[side]
                        leaves[float(value)] = leaves.get(float(value), 0) | 1 << int(leaf_of[slot])
        for edge in sorted(ways):
            pairs = zip_longest(*(leaves.items() for leaves in ways[edge]), fillvalue=(edge, 0))
            rows += [(edge, up, down, over, under) for (up, over), (down, under) in pairs]
        first.append(len(rows))
    table = list(zip(*rows, strict=True)) or [()] * 5
    edge, above, below = (np.array(column, dtype=float) for column in table[:3])
    leaves_above, leaves_below = (np.array(column, dtype=np.uint64) for column in table[3:])
    return np.array(first, dtype=np.int32), edge, above, below, leaves_above, leaves_below


def _cells(tree: Tree, slots: Slots, j: int, mine: Ints) -> tuple[Floats, Floats]:
    """Cuts between the cells of a feature, and one value of each cell, the missing one last."""
    feature = tree.schema.features[j]
    if not feature.is_numeric:
        return np.empty(0), np.append(np.arange(len(feature.levels) + 1, dtype=float), np.nan)
    ends = np.concatenate([slots.low[mine], slots.high[mine]])
    cuts = np.unique(ends[np.isfinite(ends)])
    # A value that equals a cut belongs to the cell below it.
    return cuts, np.concatenate([cuts, [np.inf], [np.nan]])
