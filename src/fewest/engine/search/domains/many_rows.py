"""Many rows that a case may be led to, at once: for each the least size of a set, and how far it leads at least."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fewest.engine.search._run import share_out, time_for
from fewest.engine.search._work import NODE_CAP
from fewest.engine.search.domains import _row_bounds
from fewest.engine.search.domains._box_work import BoxQuestion
from fewest.engine.search.domains._cell_distances import make_standing
from fewest.engine.search.domains._leaf_slots import FeatureValues, lay_out
from fewest.engine.search.domains._pair_terms import make_pair_room
from fewest.engine.search.domains._profiles import NearTrees, make_near_room
from fewest.engine.search.domains._row_bounds import RowCells
from fewest.engine.search.domains._triple_terms import make_triple_room
from fewest.engine.structure.base import Additive, Ensemble
from fewest.tables.arrays import Bools, Floats, Ints, Ints32
from fewest.tables.closeness import Distances

ROUNDING = 64 * np.finfo(float).eps


class RowBounds(NamedTuple):
    """What is proved of n cases and m rows."""

    size: Ints  # (n,): No row takes fewer features; 0 where nothing is known
    steps: Floats  # (n, m): How far sets of this size lead at least; inf where the row takes more features


class TreeRows:
    """The rows as a tree ensemble sees them: cells between its splits."""

    def __init__(self, ensemble: Ensemble, feature_of: Ints32, rows: Floats, p: int) -> None:
        coded = [_values(rows, np.flatnonzero(feature_of == j)) for j in range(p)]
        self._tests, leaves, _, runs, walk, self._cells = lay_out(ensemble, feature_of, [own for own, _ in coded])
        start = self._cells.start
        self._cell = np.zeros((len(rows), p), dtype=np.int32)
        for j, (_, place) in enumerate(coded):
            self._cell[:, j] = np.searchsorted(self._cells.first[start[j] : start[j + 1]], place, side="right") - 1
        sizes = np.abs(leaves.value).sum() + abs(ensemble.base)
        self._trees = NearTrees(walk, leaves, runs, start, float(ROUNDING * sizes))
        self._ensemble = ensemble

    def bounds(self, prepared: Floats, far: Distances, deadline: float, n_jobs: int) -> RowBounds:
        """What is proved of cases (n, d) that differ this far from the rows."""
        (n, _), (m, p) = prepared.shape, self._cell.shape
        rows, asked = _row_cells(far, self._cell), _question(self._ensemble, prepared, p)

        def look(out: RowBounds, tally: Ints, first: int, last: int) -> None:
            here, near = make_standing(self._tests, self._cells, p), make_near_room(self._trees, p)
            pair = make_pair_room(self._trees)
            triple = make_triple_room(self._trees, pair)
            _row_bounds.tree_rows(
                self._trees, self._tests, self._cells, asked, rows, here, near, pair, triple, np.empty((m, p)),
                out.size, out.steps, tally, first, last,
            )  # fmt: skip

        return _share(look, n, m, deadline, n_jobs)


class SummedRows:
    """The rows as an additive model sees them: each value adds something to the score."""

    def __init__(self, model: Additive, feature_of: Ints32, rows: Floats, p: int) -> None:
        self._model, self._feature_of, self._p = model, feature_of, p
        self._effect = self._effects(rows)

    def _effects(self, rows: Floats) -> Floats:
        out = np.zeros((len(rows), self._p))
        for column, feature in enumerate(self._feature_of.tolist()):
            if feature >= 0:
                out[:, feature] += rows[:, column] * self._model.coef[column]
        return out

    def bounds(self, prepared: Floats, far: Distances, deadline: float, n_jobs: int) -> RowBounds:
        """As `TreeRows.bounds`."""
        model, own, m = self._model, self._effects(prepared), len(self._effect)
        raw = model.raw(prepared)
        sizes = np.abs(self._effect).max(axis=0, initial=0.0).sum() + np.abs(own).sum(axis=1) + np.abs(raw)
        need = model.reading.cut + model.reading.tolerance + ROUNDING * sizes - raw
        rows = _row_cells(far, np.zeros((0, 0), dtype=np.int32))

        def look(out: RowBounds, tally: Ints, first: int, last: int) -> None:
            order, place = np.empty(self._p, dtype=np.int64), np.empty(self._p + 1, dtype=np.int64)
            _row_bounds.sum_rows(
                rows, self._effect, own, need, order, place, np.empty(self._p), np.empty((m, self._p)), out.size,
                out.steps, tally, first, last,
            )  # fmt: skip

        return _share(look, len(prepared), m, deadline, n_jobs)


def _share(look: Callable[..., None], n: int, m: int, deadline: float, n_jobs: int) -> RowBounds:
    out = RowBounds(np.full(n, _row_bounds.UNKNOWN, dtype=np.int64), np.zeros((n, m)))

    def work_on(first: int, last: int) -> None:
        tally = np.zeros(NODE_CAP + 1, dtype=np.int64)
        with time_for(tally, 1, deadline):
            look(out, tally, first, last)

    share_out(work_on, n, min(n_jobs, n // 16))
    return out


def _row_cells(far: Distances, cell: Ints32) -> RowCells:
    (own, number), (own_code, code), (number_of, code_of) = far.numbers, far.codes, far.owner
    return RowCells(cell, own, number, number_of, far.scale, own_code, code, code_of)


def _values(rows: Floats, columns: Ints) -> tuple[FeatureValues, Ints]:
    """The different values that rows have in the columns of a feature, in order, and the place of each row's."""
    block = np.ascontiguousarray(rows[:, columns]) + 0.0  # no -0.0
    block[np.isnan(block)] = np.nan
    bits = np.ascontiguousarray(block).view(np.int64)
    _, first, place = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    values = block[first]
    order = np.lexsort(values.T[::-1]) if len(columns) else np.arange(len(values))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    number = np.arange(len(order), dtype=np.float64)
    return FeatureValues(columns, np.ascontiguousarray(values[order]), number, len(columns) != 1), rank[place.ravel()]


def _question(ensemble: Ensemble, prepared: Floats, p: int) -> BoxQuestion:
    """What `stand` and the bounds read of a question: all features may go anywhere, and one step leads there."""
    n, anywhere = len(prepared), np.zeros(p, dtype=bool)
    may: Bools = np.ones((n, p), dtype=bool)
    return BoxQuestion(
        np.ascontiguousarray(prepared), np.full((n, p), np.nan), may, np.zeros(p, dtype=np.int64), anywhere,
        np.ones(p), np.ones(p), np.zeros((0, p), dtype=bool), np.inf, float(ensemble.reading.cut),
        float(ensemble.reading.tolerance), float(ensemble.base), np.ascontiguousarray(ensemble.left_levels), True, 0,
    )  # fmt: skip
