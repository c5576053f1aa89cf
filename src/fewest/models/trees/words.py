"""Words: for every cell of every tested feature, which negative leaves a case in it is outside of, 64 to a word."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fewest.models.trees.slots import Slots
from fewest.models.trees.tree import Bools, Floats, Ints, Tree

BITS = 64
Masks = npt.NDArray[np.uint64]


class Words(NamedTuple):
    """Tables of the search over all leaves at once, in the order it takes them.

    Attributes
    ----------
    tested : (f,) int32
        Features that some negative leaf restricts.
    is_number : (f,) bool
    edge_from, cell_from : (f + 1,) int32
        First edge and first cell of each.
    edges : float64
        Cuts of the numbers: cell c holds the values above c edges. Features with levels have a cell per code.
    outside, never : (cells, words) uint64
        Leaves that a case in the cell is outside of; leaves that it cannot enter at all.
    leaves : (words,) uint64
        All leaves.
    way_from : (f + 1,) int32
        First way of each feature. A way is an edge of a number and the leaves on either side that begin there.
    way_edge, way_above, way_below : (ways,) float64
        The edge, the value a case below it takes to get just above, and the one a case above it takes to get below.
    leaves_above, leaves_below : (ways,) uint64
        Leaves that are entered so; for at most 64 leaves.
    closed : bool
        Whether some leaf cannot be entered from some cell.
    """

    tested: Ints
    is_number: Bools
    edge_from: Ints
    edges: Floats
    cell_from: Ints
    outside: Masks
    never: Masks
    leaves: Masks
    way_from: Ints
    way_edge: Floats
    way_above: Floats
    way_below: Floats
    leaves_above: Masks
    leaves_below: Masks
    closed: bool

    @classmethod
    def build(cls, tree: Tree, slots: Slots) -> Words:
        """Ask every slot about one value of every cell."""
        from fewest.models.trees._bits import mark

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
            mark(values, mine, leaf_of, slots, missed, closed)
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
    tree: Tree, slots: Slots, tested: Ints, leaf_of: npt.NDArray[np.int64]
) -> tuple[Ints, Floats, Floats, Floats, Masks, Masks]:
    """The ways into the leaves by one number, grouped by edge and value; none where the leaves need several words."""
    first, rows = [0], []
    for j in tested.tolist():
        above: dict[tuple[float, float], int] = {}
        below: dict[tuple[float, float], int] = {}
        if tree.schema.features[j].is_numeric and len(slots.start) - 1 <= BITS:
            for slot in np.flatnonzero(slots.feature == j).tolist():
                bit = 1 << int(leaf_of[slot])
                for ways, edge, value in (
                    (above, slots.low[slot], slots.from_below[slot]),
                    (below, slots.high[slot], slots.from_above[slot]),
                ):
                    if np.isfinite(edge) and np.isfinite(value):
                        ways[float(edge), float(value)] = ways.get((float(edge), float(value)), 0) | bit
        rows += _paired(above, below)
        first.append(len(rows))
    edge, up, down, over, under = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return (
        np.array(first, dtype=np.int32), np.array(edge, dtype=float), np.array(up, dtype=float),
        np.array(down, dtype=float), np.array(over, dtype=np.uint64), np.array(under, dtype=np.uint64),
    )  # fmt: skip


def _paired(
    above: dict[tuple[float, float], int], below: dict[tuple[float, float], int]
) -> list[tuple[float, float, float, int, int]]:
    """Ways up and down across the same edge, side by side: a case takes one or the other."""
    out = []
    for edge in sorted({edge for edge, _ in above} | {edge for edge, _ in below}):
        ups = [(value, mask) for (at, value), mask in above.items() if at == edge]
        downs = [(value, mask) for (at, value), mask in below.items() if at == edge]
        for k in range(max(len(ups), len(downs))):
            up, over = ups[k] if k < len(ups) else (edge, 0)
            down, under = downs[k] if k < len(downs) else (edge, 0)
            out.append((edge, up, down, over, under))
    return out


def _cells(tree: Tree, slots: Slots, j: int, mine: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Cuts between the cells of a feature, and one value of each cell, the missing one last."""
    feature = tree.schema.features[j]
    if not feature.is_numeric:
        return np.empty(0), np.append(np.arange(len(feature.levels) + 1, dtype=float), np.nan)
    ends = np.concatenate([slots.low[mine], slots.high[mine]])
    cuts = np.unique(ends[np.isfinite(ends)])
    # A value that equals a cut belongs to the cell below it.
    return cuts, np.concatenate([cuts, [np.inf], [np.nan]])
