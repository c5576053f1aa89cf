"""What the search over whole domains is asked, works with and answers: plain arrays under names."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fewest.engine.search.domains._leaf_slots import LeafPaths, LeafSlots, Tests, Words
from fewest.tables.arrays import Bools, Floats, Ints, Ints32

STACK = 4096  # boxes that wait at most
DEEPEST = 24  # features of a set at most
MANY = 1 << 30  # sets, where a search was stopped before it met all
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

    leaves: LeafSlots
    paths: LeafPaths
    start: Ints  # (p + 1,): First cell of each feature
    ranged: Bools  # (p,): Whether what leaves ask of the feature are ranges of cells
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


class Kept(NamedTuple):
    """The leaves that some change of one case leads to, tree by tree, the least value first."""

    clash: Bools  # (slots,)
    leaf: Ints  # (leaves,)
    tree: Ints  # (trees + 1,)
    start: Ints  # (leaves + 1,): First of the features that have to change for it
    needs: Ints32  # (slots,)
    far: Floats  # (leaves,): How far they have to


class Reached(NamedTuple):
    """Those of them that one set leads to, of the trees in which there is more than one."""

    tree: Ints  # (trees + 1,)
    leaf: Ints  # (leaves,)
    start: Ints  # (leaves + 1,): First of what it asks of the set's features
    slot: Ints  # (slots,)
    wanted: Ints  # (trees,): The least leaf that meets a box


class Order(NamedTuple):
    """The order in which sets are tried."""

    order: Ints  # (p,)
    alone: Floats  # (p,)
    sizes: Floats  # (p,): Weights of the features that may change, ascending
    gain: Floats  # (p,)
    in_tree: Floats  # (p,)
    touched: Ints  # (p,)
    position: Ints  # (DEEPEST + 1,)


class Boxes(NamedTuple):
    """Cells of the features of one set: the box in hand, the greedy one, and those that wait."""

    chosen: Ints  # (DEEPEST,): The features
    place: Ints  # (p + 1,): Where a feature is among them
    low: Ints  # (STACK, DEEPEST)
    high: Ints
    bits: Words  # (STACK, DEEPEST, words)
    point: Ints  # (DEEPEST,)
    near: Ints


def make_room(trees: BoxTrees, tests: Tests) -> tuple[Kept, Reached, Order, Boxes]:
    """Room for one case."""
    leaves, slots, count = len(trees.leaves.value), len(trees.leaves.feature), len(trees.leaves.tree) - 1
    p, words = len(trees.ranged), tests.bits.shape[2]

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    kept = Kept(
        np.zeros(slots, dtype=bool), ints(leaves), ints(count + 1), ints(leaves + 1), np.zeros(slots, dtype=np.int32),
        np.zeros(leaves),
    )  # fmt: skip
    reached = Reached(ints(count + 1), ints(leaves), ints(leaves + 1), ints(slots), ints(count))
    order = Order(ints(p), np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p), ints(p), ints(DEEPEST + 1))
    boxes = Boxes(
        ints(DEEPEST), ints(p + 1), ints(STACK, DEEPEST), ints(STACK, DEEPEST),
        np.zeros((STACK, DEEPEST, words), dtype=np.uint64), ints(DEEPEST), ints(DEEPEST),
    )  # fmt: skip
    return kept, reached, order, boxes


def blank_answers(n: int, p: int, listing: int, room: int) -> BoxAnswers:
    """Nothing known of n cases."""
    return BoxAnswers(
        np.full(n, STOPPED, dtype=np.int8), np.full(n, np.inf), np.full(n, np.inf), np.zeros(n),
        np.zeros(n, dtype=np.int64), np.full((n, 1 + listing, p), -1, dtype=np.int32), np.zeros(n, dtype=np.int64),
        np.full((n, room, p), -1, dtype=np.int32), np.full((n, room), np.inf), np.full((n, room), np.inf),
        np.zeros(n, dtype=np.int64), np.full(n, np.inf),
    )  # fmt: skip
