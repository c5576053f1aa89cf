"""The leaves of an ensemble over the cells of whole domains: what each asks of each feature, as plain arrays.

A *cell* of a feature is a run of allowed values that no split tells apart. A *slot* is what one leaf asks of one
feature: a range of its cells, or a set of them where the splits do not follow the order of the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fewest.engine.numba_cache import entry, inner
from fewest.engine.structure.base import Ensemble
from fewest.tables.arrays import Bools, Floats, Ints, Ints32

Words = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.uint32]  # without a sign: compiled code asks of every other index whether it is negative
BITS = 64
LEAF = 2**32 - 1  # in place of a test; also a feature that is none


class FeatureValues(NamedTuple):
    """The allowed values of one feature, in order."""

    columns: Ints  # (d,): Prepared columns that belong to the feature
    block: Floats  # (m, d): What they hold for each value
    number: Floats  # (m,): The value as a number, or its rank; NaN where it has neither
    apart: bool  # Whether every value is a cell of its own: levels, which have names


class Tests(NamedTuple):
    """The different questions that splits ask."""

    column: Ints32
    threshold: Floats
    missing_left: Bools
    category: Ints32
    feature: Ints32
    low: Ints32  # (tests, 2): First cell that goes right, and left, where these are ranges
    high: Ints32  # (tests, 2): The last one
    bits: Words  # (tests, 2, words): The cells themselves where they are not


class LeafSlots(NamedTuple):
    """All leaves, tree by tree."""

    tree: Ints  # (trees + 1,): First leaf of each tree
    value: Floats  # (leaves,)
    slot: Ints  # (leaves + 1,): First slot of each leaf
    asks: Words  # (leaves,): The features that it has slots for: `bit_of` each
    feature: Counts  # (slots,), as the three that follow
    low: Ints32
    high: Ints32
    row: Ints32  # Row of ``bits``; -1 for a range
    bits: Words  # (rows, words)


class LeafPaths(NamedTuple):
    """The questions on the way to each leaf."""

    asked: Ints  # (leaves + 1,): First question on the path of each leaf
    test: Ints32  # (questions,), as the two that follow
    left: Bools  # Whether the path goes left there
    of: Ints  # Slot that the question belongs to


class Runs(NamedTuple):
    """The cells of all slots as runs: one for a range, several for a set, none where no value is allowed.

    Cells are counted through all features, with a place more after those of each: its cells begin at `zero`.
    """

    start: Counts  # (slots + 1,): First run of each slot
    span: Counts  # (runs, 2): Its first cell, and the one after its last
    zero: Ints  # (p + 1,): First cell of each feature


class WalkedTrees(NamedTuple):
    """The trees, to be walked from the root."""

    root: Counts  # (trees,)
    node: Counts  # (nodes, 4): Test, left, right and the test's feature; of leaves `LEAF`, 0, 0 and the leaf's number
    span: Counts  # (tests, 2, 2): Cells that go left, and right, as in `Runs`; where they are sets: all, or none
    ranged: Bools  # (p,): Whether they are ranges


class FeatureCells(NamedTuple):
    """The cells of all features."""

    start: Ints  # (p + 1,): First cell of each feature
    low: Floats  # (cells,): Least number in the cell
    high: Floats  # (cells,): Largest number
    first: Ints  # (cells,): Place of its first value among those of its feature
    last: Ints
    ranged: Bools  # (p,): Whether what leaves ask of the feature are ranges of cells


def lay_out(
    ensemble: Ensemble, feature_of: Ints32, values: Sequence[FeatureValues]
) -> tuple[Tests, LeafSlots, LeafPaths, Runs, WalkedTrees, FeatureCells]:
    """Cells of the features, and the leaves over them; columns of no feature belong to one that never moves."""
    p = len(values)
    inner = np.flatnonzero(ensemble.column >= 0)
    keys = np.column_stack(
        [part[inner] for part in (ensemble.column, ensemble.category, ensemble.missing_left, ensemble.threshold)]
    ).astype(np.float64)
    keys[:, 3] = np.where(keys[:, 1] >= 0, 0.0, keys[:, 3])
    unique, which = np.unique(keys, axis=0, return_inverse=True)
    test_of = np.full(len(ensemble.column), -1, dtype=np.int32)
    test_of[inner] = which.reshape(-1)
    column = unique[:, 0].astype(np.int32)
    owner = np.where(feature_of[column] >= 0, feature_of[column], p).astype(np.int32)
    tests = Tests(
        column, unique[:, 3].copy(), unique[:, 2] > 0, unique[:, 1].astype(np.int32), owner,
        np.ones((len(unique), 2), dtype=np.int32), np.zeros((len(unique), 2), dtype=np.int32),
        np.zeros((len(unique), 2, 1), dtype=np.uint64),
    )  # fmt: skip
    cells, truths = _cells(ensemble, tests, values)
    widest = max([int(cells.start[j + 1] - cells.start[j]) for j in range(p) if not cells.ranged[j]], default=1)
    tests = tests._replace(bits=np.zeros((len(unique), 2, -(-widest // BITS)), dtype=np.uint64))
    for k, truth in enumerate(truths):
        for side in (0, 1):
            inside = np.flatnonzero(truth == bool(side))
            if len(inside) and cells.ranged[owner[k]]:
                tests.low[k, side], tests.high[k, side] = inside[0], inside[-1]
            elif len(inside):
                np.bitwise_or.at(tests.bits[k, side], inside // BITS, np.uint64(1) << (inside % BITS).astype(np.uint64))
    leaves, paths, leaf_of = _leaves(ensemble, test_of, tests, np.append(cells.ranged, True), cells.start)
    asks = np.where(test_of >= 0, np.append(owner, 0)[test_of], leaf_of)
    nodes = np.column_stack([test_of, ensemble.left, ensemble.right, asks]).astype(np.int32).view(np.uint32)
    runs = _runs(leaves, cells)
    walk = WalkedTrees(ensemble.root.astype(np.uint32), nodes, _spans(tests, cells, runs.zero), cells.ranged)
    return tests, leaves, paths, runs, walk, cells


def _spans(tests: Tests, cells: FeatureCells, zero: Ints) -> Counts:
    first, count = zero[tests.feature, None], np.append(np.diff(cells.start), 0)[tests.feature, None]
    ranged = np.append(cells.ranged, True)[tests.feature, None]
    low = np.where(ranged, tests.low, 0)
    after = np.where(ranged, tests.high + 1, np.where((tests.bits != 0).any(axis=2), count, 0))
    return np.stack([first + low, first + after], axis=2)[:, ::-1].astype(np.uint32)


def _runs(leaves: LeafSlots, cells: FeatureCells) -> Runs:
    sets = leaves.row >= 0
    count = np.append(np.diff(cells.start), 0)[leaves.feature[sets]]
    inside = np.unpackbits(leaves.bits[leaves.row[sets]].astype("<u8").view(np.uint8), axis=1, bitorder="little")
    inside &= np.arange(inside.shape[1]) < count[:, None]
    steps = np.diff(inside.astype(np.int8), axis=1, prepend=0, append=0)
    of, low = np.nonzero(steps > 0)
    ranges = np.flatnonzero(~sets & (leaves.low <= leaves.high))
    slot = np.concatenate([ranges, np.flatnonzero(sets)[of]])
    span = np.column_stack([
        np.concatenate([leaves.low[ranges], low]), np.concatenate([leaves.high[ranges] + 1, np.nonzero(steps < 0)[1]]),
    ])  # fmt: skip
    order, zero = np.argsort(slot, kind="stable"), cells.start + np.arange(len(cells.start))
    start = np.searchsorted(slot[order], np.arange(len(sets) + 1)).astype(np.uint32)
    return Runs(start, (span + zero[leaves.feature[slot], None])[order].astype(np.uint32), zero)


def _cells(ensemble: Ensemble, tests: Tests, values: Sequence[FeatureValues]) -> tuple[FeatureCells, list[Bools]]:
    """Cut the values of each feature where a split does; for each test which cells go left."""
    starts, firsts, lasts, lows, highs, ranged = [0], [], [], [], [], []
    truths: list[Bools] = [np.zeros(0, dtype=bool)] * len(tests.column)
    for j, own in enumerate(values):
        mine = np.flatnonzero(tests.feature == j)
        cut = np.ones(len(own.block), dtype=bool)
        if not own.apart and len(cut):
            cut[1:] = False
            for place, column in enumerate(own.columns):
                marks = _marks(own.block[:, place], tests, mine[tests.column[mine] == column])
                cut[1:] |= marks[1:] != marks[:-1]
        first = np.flatnonzero(cut)
        last = np.append(first[1:], len(cut))[: len(first)] - 1
        starts.append(starts[-1] + len(first))
        firsts.append(first)
        lasts.append(last)
        lows.append(own.number[first])
        highs.append(own.number[last])
        place_of = {int(column): place for place, column in enumerate(own.columns)}
        in_order = True
        for k in mine.tolist():
            truths[k] = _goes_left(own.block[first, place_of[int(tests.column[k])]], ensemble, tests, k)
            in_order &= int((truths[k][1:] != truths[k][:-1]).sum()) <= 1
        ranged.append(in_order)
    none, nowhere = np.zeros(0), np.zeros(0, dtype=np.int64)
    cells = FeatureCells(
        np.array(starts, dtype=np.int64), np.concatenate([none, *lows]), np.concatenate([none, *highs]),
        np.concatenate([nowhere, *firsts]), np.concatenate([nowhere, *lasts]), np.array(ranged, dtype=bool),
    )  # fmt: skip
    return cells, truths


def _marks(cells: Floats, tests: Tests, mine: Ints) -> Floats:
    """A number for each value: values with the same one are on the same side of every split."""
    numeric = mine[tests.category[mine] < 0]
    marks = np.searchsorted(np.unique(tests.threshold[numeric]), cells, side="left").astype(np.float64)
    marks[np.isnan(cells)] = -1.0
    if len(numeric) == len(mine):
        return marks
    return np.where(np.isnan(cells), -1.0, cells)


def _goes_left(cells: Floats, ensemble: Ensemble, tests: Tests, k: int) -> Bools:
    missing = np.isnan(cells)
    row = int(tests.category[k])
    if row >= 0:
        levels = ensemble.left_levels[row]
        missing = missing | (cells < 0) | (cells >= len(levels))
        left: Bools = levels[np.where(missing, 0, cells).astype(np.int64)]
    else:
        left = cells <= tests.threshold[k]
    return np.asarray(np.where(missing, tests.missing_left[k], left), dtype=bool)


def _leaves(
    ensemble: Ensemble, test_of: Ints32, tests: Tests, ranged: Bools, start: Ints
) -> tuple[LeafSlots, LeafPaths, Ints32]:
    nodes, trees = len(ensemble.column), len(ensemble.root)
    sizes = np.zeros(2, dtype=np.int64)
    shape = (ensemble.column, ensemble.left, ensemble.right, ensemble.root)
    waiting = np.empty((nodes + 1, 2), dtype=np.int64)
    _measure(*shape, waiting, sizes)
    leaves, questions = int(sizes[0]), int(sizes[1])
    out = LeafSlots(
        np.zeros(trees + 1, dtype=np.int64), np.empty(leaves), np.zeros(leaves + 1, dtype=np.int64),
        np.zeros(leaves, dtype=np.uint64), np.empty(questions, dtype=np.uint32), np.empty(questions, dtype=np.int32),
        np.empty(questions, dtype=np.int32), np.empty(questions, dtype=np.int32),
        np.empty((questions if not ranged.all() else 1, tests.bits.shape[2]), dtype=np.uint64),
    )  # fmt: skip
    paths = LeafPaths(
        np.zeros(leaves + 1, dtype=np.int64), np.empty(questions, dtype=np.int32), np.empty(questions, dtype=bool),
        np.empty(questions, dtype=np.int64),
    )  # fmt: skip
    counts = np.append(np.diff(start), 0)
    path = np.empty((nodes + 1, 2), dtype=np.int64)
    leaf_of = np.full(nodes, -1, dtype=np.int32)
    _fill(*shape, ensemble.value, test_of, tests, ranged, counts, waiting, path, out, paths, leaf_of)
    used, rows = int(out.slot[-1]), int(out.row[: int(out.slot[-1])].max(initial=-1)) + 1
    out = out._replace(
        feature=out.feature[:used].copy(), low=out.low[:used].copy(), high=out.high[:used].copy(),
        row=out.row[:used].copy(), bits=out.bits[: max(1, rows)].copy(),
    )  # fmt: skip
    return out, paths, leaf_of


@inner(inline="always")
def bit_of(feature):  # type: ignore[no-untyped-def]
    """The bit of a feature in a word; those of some share one where there are more than 64."""
    return np.uint64(1) << (np.uint64(feature) & np.uint64(BITS - 1))


@entry
def _measure(column, left, right, root, waiting, sizes):  # type: ignore[no-untyped-def]
    """Count leaves, and the splits on the paths to all of them."""
    for tree in range(root.shape[0]):
        waiting[0, 0], waiting[0, 1] = root[tree], 0
        count = 1
        while count > 0:
            count -= 1
            node, depth = waiting[count, 0], waiting[count, 1]
            if column[node] < 0:
                sizes[0] += 1
                sizes[1] += depth
                continue
            waiting[count, 0], waiting[count, 1] = right[node], depth + 1
            waiting[count + 1, 0], waiting[count + 1, 1] = left[node], depth + 1
            count += 2


@entry
def _fill(column, left, right, root, value, test_of, tests, ranged, counts, waiting, path, out, paths, leaf_of):  # type: ignore[no-untyped-def]
    """Write the leaves from left to right: the questions on their paths, joined feature by feature into slots."""
    leaf, slots, asked, rows = 0, 0, 0, 0
    words = tests.bits.shape[2]
    for tree in range(root.shape[0]):
        waiting[0, 0], waiting[0, 1] = root[tree], 0
        count = 1
        while count > 0:
            count -= 1
            node, depth = waiting[count, 0], np.int64(abs(waiting[count, 1]))
            if depth > 0:  # which side of the split above this node is on
                path[depth - 1, 1] = 1 if waiting[count, 1] < 0 else 0
            if column[node] >= 0:
                path[depth, 0] = test_of[node]
                waiting[count, 0], waiting[count, 1] = right[node], depth + 1
                waiting[count + 1, 0], waiting[count + 1, 1] = left[node], -(depth + 1)
                count += 2
                continue
            first = slots
            for step in range(depth):
                test, side = path[step, 0], path[step, 1]
                feature = tests.feature[test]
                at = first
                while at < slots and out.feature[at] != feature:
                    at += 1
                if at == slots:
                    out.feature[at] = feature
                    out.asks[leaf] |= bit_of(feature)
                    out.low[at], out.high[at], out.row[at] = 0, counts[feature] - 1, -1
                    if not ranged[feature]:
                        out.row[at] = rows
                        out.bits[rows, :] = ~np.uint64(0)
                        rows += 1
                    slots += 1
                if ranged[feature]:
                    out.low[at] = max(out.low[at], tests.low[test, side])
                    out.high[at] = min(out.high[at], tests.high[test, side])
                else:
                    for w in range(words):
                        out.bits[out.row[at], w] &= tests.bits[test, side, w]
                paths.test[asked], paths.left[asked], paths.of[asked] = test, side == 1, at
                asked += 1
            out.value[leaf], leaf_of[node] = value[node], leaf
            leaf += 1
            out.slot[leaf], paths.asked[leaf] = slots, asked
        out.tree[tree + 1] = leaf
