"""The fewest features when each that changes may take any value of its domain: tree ensembles and additive models."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fewest.engine.search._run import share_out, time_for
from fewest.engine.search._work import NODE_CAP
from fewest.engine.search.domains import _box_sets, _near_sets, _stairs
from fewest.engine.search.domains._box_work import (
    DEEPEST,
    BoxAnswers,
    BoxQuestion,
    BoxTrees,
    blank_answers,
    make_room,
)
from fewest.engine.search.domains._cell_distances import make_standing
from fewest.engine.search.domains._leaf_slots import FeatureValues, lay_out
from fewest.engine.search.domains._pair_terms import make_pair_room
from fewest.engine.search.domains._profiles import NearTrees, make_near_room, score_cells
from fewest.engine.search.domains._triple_terms import make_triple_room
from fewest.engine.search.problem import Budget
from fewest.engine.structure.base import Additive, Ensemble
from fewest.tables.arrays import Bools, Floats, Ints, Ints32

# The scores of some cases with each value of a feature in place of their own: (feature, cases) -> (cases, values)
Profiles = Callable[[int, Ints], Floats]
BAND = 24  # points near the threshold that the model is asked about, per case

__all__ = ["BoxAnswers", "BoxQuestion", "FeatureValues", "TreeDomains", "ValueSums"]


class TreeDomains:
    """The domains as a tree ensemble sees them: cells between its splits."""

    strategy = "any value, branch and bound"

    def __init__(self, ensemble: Ensemble, feature_of: Ints32, values: Sequence[FeatureValues]) -> None:
        self._tests, leaves, paths, runs, walk, self.cells = lay_out(ensemble, feature_of, values)
        tree_of = np.repeat(np.arange(len(leaves.tree) - 1), np.diff(leaves.tree))
        by_value = np.lexsort((leaves.value, tree_of))
        self._trees = BoxTrees(leaves, paths, self.cells.start, self.cells.ranged, by_value)
        sizes = np.abs(leaves.value).sum() + abs(ensemble.base)
        self._near = NearTrees(walk, leaves, runs, self.cells.start, float(64 * np.finfo(float).eps * sizes))
        self.base, self.left_levels = ensemble.base, np.ascontiguousarray(ensemble.left_levels)
        self.rounding = self._near.rounding

    def solve(self, asked: BoxQuestion, budget: Budget, n_jobs: int) -> BoxAnswers:
        """The cheapest set of each case, and the nearest values with which it turns."""
        n, p = asked.may.shape
        out, todo = blank_answers(n, p, asked.listing, BAND), np.zeros(n, dtype=np.int64)

        def work_on(first: int, last: int) -> None:
            here, tally = make_standing(self._tests, self.cells, p), np.zeros(NODE_CAP + 1, dtype=np.int64)
            near, pair = make_near_room(self._near, p), make_pair_room(self._near)
            case, triple = (self._tests, self.cells, asked, here), make_triple_room(self._near, pair)
            with time_for(tally, budget.nodes, budget.deadline):
                _near_sets.search(self._near, *case, near, pair, triple, out, tally, todo, first, last)
                if todo[first:last].any():
                    room = make_room(self._trees, self._tests)
                    _box_sets.search(self._trees, *case, *room, out, tally, todo, first, last)

        share_out(work_on, n, min(n_jobs, n // 16))
        return _least(asked, out)

    def profiles(self, rows: Floats, may: Bools) -> Profiles:
        """Scores of prepared rows over the values of the features that may change (n, p)."""
        n, p = may.shape
        asked = BoxQuestion(
            rows, np.full((n, p), np.nan), may, np.zeros(p, dtype=np.int64), np.zeros(p, dtype=bool), np.ones(p),
            np.ones(p), np.zeros((0, p), dtype=bool), np.inf, 0.0, 0.0, float(self.base), self.left_levels, True, 0,
        )  # fmt: skip
        score, here = np.empty((n, int(self.cells.start[-1]) + p)), make_standing(self._tests, self.cells, p)
        score_cells(self._near, self._tests, self.cells, asked, here, make_near_room(self._near, p), score)

        def of(feature: int, cases: Ints) -> Floats:
            cells = np.arange(self.cells.start[feature], self.cells.start[feature + 1])
            values = np.repeat(cells, self.cells.last[cells] - self.cells.first[cells] + 1)
            return np.asarray(score[cases[:, None], values + feature])

        return of

    def span(self, feature: int, cell: Ints32) -> tuple[Ints, Ints]:
        """First and last value of cells of a feature."""
        at = self.cells.start[feature] + cell
        return self.cells.first[at], self.cells.last[at]


class ValueSums:
    """The domains as an additive model sees them: every value adds something to the score."""

    strategy = "any value, sorted effects"
    base, left_levels, rounding = 0.0, np.zeros((0, 1), dtype=bool), 0.0

    def __init__(self, model: Additive, feature_of: Ints32, values: Sequence[FeatureValues]) -> None:
        self._model, self._feature_of = model, feature_of
        self._start = np.cumsum([0, *(len(own.block) for own in values)]).astype(np.int64)
        self._number = np.concatenate([np.zeros(0), *(own.number for own in values)])
        self._effect = np.concatenate([np.zeros(0), *(own.block @ model.coef[own.columns] for own in values)])

    def solve(self, asked: BoxQuestion, budget: Budget, n_jobs: int) -> BoxAnswers:
        """As `TreeDomains.solve`."""
        n, p = asked.may.shape
        base = self._own(asked.rows, p)
        values = _stairs.StairValues(self._start, self._number, self._effect, base, self._model.raw(asked.rows))

        out = blank_answers(n, p, asked.listing, BAND)

        def work_on(first: int, last: int) -> None:
            room, chosen = _stairs.make_stairs(values), np.zeros(DEEPEST, dtype=np.int64)
            with time_for(room.tally, budget.nodes, budget.deadline):
                _stairs.search(values, asked, room, out, chosen, first, last)

        share_out(work_on, n, min(n_jobs, n // 16))
        return _least(asked, out)

    def _own(self, rows: Floats, p: int) -> Floats:
        """What each feature of prepared rows adds to their score (n, p)."""
        own = np.zeros((len(rows), p))
        for column, feature in enumerate(self._feature_of.tolist()):
            if feature >= 0:
                own[:, feature] += rows[:, column] * self._model.coef[column]
        return own

    def profiles(self, rows: Floats, may: Bools) -> Profiles:
        """As `TreeDomains.profiles`."""
        others = self._model.raw(rows)[:, None] - self._own(rows, may.shape[1])
        return lambda j, cases: others[cases, j, None] + self._effect[self._start[j] : self._start[j + 1]]

    def span(self, feature: int, cell: Ints32) -> tuple[Ints, Ints]:
        """As `TreeDomains.span`: every value is a cell."""
        return cell.astype(np.int64), cell.astype(np.int64)


def _least(asked: BoxQuestion, out: BoxAnswers) -> BoxAnswers:
    """Cases that the deadline kept from being begun: some feature has to change."""
    cheapest: Floats = np.where(asked.may, asked.weight, np.inf).min(axis=1, initial=np.inf)
    np.maximum(out.lower, np.where(np.isfinite(cheapest), cheapest, 0.0), out=out.lower)
    return out
