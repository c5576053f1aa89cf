"""What the search over whole domains is asked, works with and answers: plain arrays under names."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fewest.engine.search._leaf_slots import FeatureCells, LeafSlots, Tests, Words
from fewest.engine.search._work import NODE_CAP
from fewest.tables.arrays import Bools, Floats, Ints, Ints32

STACK = 4096  # boxes that wait at most
DEEPEST = 24  # features of a set at most
MANY = 1 << 30  # sets, where a search was stopped before it met all
FREE, CHOSEN, SHUT = 0, 1, 2
FOUND, NONE, STOPPED = 0, 1, 2


class BoxQuestion(NamedTuple):
    """n cases, and what is wanted of each."""

    rows: Floats  # (n, d): Prepared rows
    own: Floats  # (n, p): Their values as numbers or ranks; NaN where missing, or without order
    may: Bools  # (n, p): Features that may change
    direction: Ints  # (p,): 1 where only up, -1 where only down, else 0
    measured: Bools  # (p,): Whether distances are counted in steps of ``scale``; else every change is one step
    scale: Floats  # (p,)
    weight: Floats  # (p,)
    forbidden: Bools  # (f, p): Sets that may not all change
    most: float  # Largest cost
    cut: float
    tolerance: float
    base: float
    left_levels: Bools
    counted: bool  # Whether all weights are one
    listing: int  # Sets wanted beside the best


class BoxTrees(NamedTuple):
    """The ensemble over the cells."""

    tests: Tests
    leaves: LeafSlots
    cells: FeatureCells
    by_value: Ints  # Leaves of each tree, the least value first


class BoxAnswers(NamedTuple):
    """One entry per case."""

    outcome: npt.NDArray[np.int8]
    cost: Floats
    far: Floats
    lower: Floats  # No set that costs less turns the case
    nodes: Ints
    points: Ints32  # (n, 1 + listing, p): Cell of each changed feature, -1 elsewhere; the best, then all listed
    met: Ints  # Sets that turn the case at this cost, as far as they were met
    band: Ints32  # (n, r, p): Points so near the threshold that the model itself has to say
    band_cost: Floats  # (n, r)
    band_far: Floats
    band_count: Ints
    spilled: Floats  # (n,): Least cost at which there was no room for such a point; inf where there was


class BoxRoom(NamedTuple):
    """Room for one case."""

    tally: Ints
    side: Bools  # (tests,)
    clash: Bools  # (slots,)
    kept: Ints  # (leaves,)
    kept_tree: Ints  # (trees + 1,)
    kept_from: Ints  # (leaves + 1,)
    needs: Ints32  # (slots,)
    state: npt.NDArray[np.int8]  # (p + 1,)
    low: Ints  # (p,), as the three that follow: cells allowed, and cells that are as the case is
    high: Ints
    same_low: Ints
    same_high: Ints
    place: Ints  # (p,): First cell that is not below the case
    least: Floats  # (p,): How far a change is at least
    bits: Words  # (p, words): Cells allowed
    order: Ints  # (p,)
    alone: Floats  # (p,)
    gain: Floats  # (p,)
    in_tree: Floats  # (p,)
    touched: Ints  # (p,)
    position: Ints  # (DEEPEST + 1,)
    chosen: Ints  # (DEEPEST,)
    place_of: Ints  # (p + 1,): Place of a chosen feature among the chosen
    leaf_tree: Ints  # (trees + 1,): The leaves that a set can reach
    leaf: Ints
    leaf_slot: Ints
    slot: Ints
    box_low: Ints  # (STACK, DEEPEST)
    box_high: Ints
    box_bits: Words  # (STACK, DEEPEST, words)
    point: Ints  # (DEEPEST,)
    near: Ints
    wanted: Ints  # (trees,)
    sizes: Floats  # (p,): Weights of the features that may change, ascending


def make_room(trees: BoxTrees, p: int) -> BoxRoom:
    """Room for cases of p features."""
    leaves, slots, count = len(trees.leaves.value), len(trees.leaves.feature), len(trees.leaves.tree) - 1
    words = trees.tests.bits.shape[2]

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    return BoxRoom(
        ints(NODE_CAP + 1), np.zeros(len(trees.tests.column), dtype=bool), np.zeros(slots, dtype=bool), ints(leaves),
        ints(count + 1), ints(leaves + 1), np.zeros(slots, dtype=np.int32), np.zeros(p + 1, dtype=np.int8), ints(p),
        ints(p), ints(p), ints(p), ints(p), np.zeros(p), np.zeros((p, words), dtype=np.uint64), ints(p), np.zeros(p),
        np.zeros(p), np.zeros(p), ints(p), ints(DEEPEST + 1), ints(DEEPEST), ints(p + 1), ints(count + 1), ints(leaves),
        ints(leaves + 1), ints(slots), ints(STACK, DEEPEST), ints(STACK, DEEPEST),
        np.zeros((STACK, DEEPEST, words), dtype=np.uint64), ints(DEEPEST), ints(DEEPEST), ints(count), np.zeros(p),
    )  # fmt: skip


def blank_answers(n: int, p: int, listing: int, room: int) -> BoxAnswers:
    """Nothing known of n cases."""
    return BoxAnswers(
        np.full(n, STOPPED, dtype=np.int8), np.full(n, np.inf), np.full(n, np.inf), np.zeros(n),
        np.zeros(n, dtype=np.int64), np.full((n, 1 + listing, p), -1, dtype=np.int32), np.zeros(n, dtype=np.int64),
        np.full((n, room, p), -1, dtype=np.int32), np.full((n, room), np.inf), np.full((n, room), np.inf),
        np.zeros(n, dtype=np.int64), np.full(n, np.inf),
    )  # fmt: skip
