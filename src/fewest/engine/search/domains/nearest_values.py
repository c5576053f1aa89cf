"""The nearest values with which a given set of features turns a case: least largest step, then least sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fewest.engine.search.domains import _nearest_boxes, _nearest_sums
from fewest.engine.search.domains._ways import Nearest, Ways
from fewest.engine.structure.base import Additive, Ensemble
from fewest.tables.arrays import Bools, Floats, Ints32

__all__ = ["Nearest", "WayValues", "Ways"]


class WayValues:
    """The values that features may take, as a tree ensemble or an additive model sees them.

    ``blocks`` holds for each feature what its prepared columns hold for each of its values (m, d).
    """

    def __init__(self, model: Ensemble | Additive, feature_of: Ints32, blocks: Sequence[Floats]) -> None:
        self._model, self._feature_of, self._blocks = model, feature_of, blocks
        self._start = np.cumsum([0, *map(len, blocks)]).astype(np.int64)
        self.ordered = np.ones(len(blocks), dtype=bool)  # (p,): Whether splits are cuts of the values of the feature
        self._trees = self._cut(model) if isinstance(model, Ensemble) else None

    def _cut(self, model: Ensemble) -> _nearest_boxes.SplitTrees:
        """Where each split cuts the values of its feature."""
        owner = np.where(model.column >= 0, self._feature_of[model.column], -1).astype(np.int32)
        cut, left_first = np.zeros(len(owner), dtype=np.int64), np.ones(len(owner), dtype=bool)
        for j, block in enumerate(self._blocks):
            if len(block) == 0:
                continue
            for place, column in enumerate(np.flatnonzero(self._feature_of == j).tolist()):
                nodes, cells = np.flatnonzero(model.column == column), block[:, place]
                turned = len(cells) > 1 and cells[0] > cells[-1]
                rising = cells[::-1] if turned else cells
                fine = not np.isnan(cells).any() and (np.diff(rising) >= 0).all()
                if not fine or (model.category[nodes] >= 0).any():
                    self.ordered[j] &= len(nodes) == 0
                    continue
                below = np.searchsorted(rising, model.threshold[nodes], side="right")
                cut[nodes] = self._start[j] + (len(cells) - below if turned else below)
                left_first[nodes] = not turned
        return _nearest_boxes.SplitTrees(
            model.column, model.threshold, model.left, model.right, model.missing_left, model.category, model.value,
            owner, cut, left_first, model.left_levels, model.root, float(model.base),
        )  # fmt: skip

    def solve(self, ways: Ways, skip: Bools, wall: float, nodes: int) -> Nearest:
        """The nearest point below the wall for each case that is not skipped."""
        known = ~(skip | ((ways.first >= 0) & ~self.ordered).any(axis=1))
        out = Nearest(~known, np.where(ways.first >= 0, ways.last, -1), np.zeros(len(known), dtype=np.int64))
        if self._trees is not None:
            room = _nearest_boxes.make_room(self._trees, ways.first.shape[1])
            _nearest_boxes.search(self._trees, ways, room, out, wall, nodes)
        else:
            effects = self._effects(ways)
            _nearest_sums.search(effects, ways, _nearest_sums.make_room(len(effects.effect)), out, wall, nodes)
        return out._replace(found=out.found & known)

    def _effects(self, ways: Ways) -> _nearest_sums.Effects:
        assert isinstance(self._model, Additive)
        effect, rest = np.zeros(self._start[-1]), self._model.raw(ways.rows)
        for j, block in enumerate(self._blocks):
            coef = self._model.coef[self._feature_of == j]
            effect[self._start[j] : self._start[j + 1]] = block @ coef if len(block) else ()
            moving = ways.first[:, j] >= 0
            rest[moving] -= effect[ways.last[moving, j]]
        return _nearest_sums.Effects(self._start, effect, rest)
