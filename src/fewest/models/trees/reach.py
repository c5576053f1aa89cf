"""Reach: how the negative leaves of a tree can be entered, and the exact SEV-T of any number of cases (Section 4.2).

For every (case, negative leaf) the number of distinct original features outside the leaf's box is counted; the least
one is SEV-T. What the paper stores per node (paths to negative leaves, Algorithm 2) is merged per feature beforehand,
so that a feature tested twice counts once and no contradictory path is offered.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fewest.constraints import Constraints, Forbidden
from fewest.models.trees._slots import INSIDE, NEVER, Slots, Words, lay_out
from fewest.models.trees.leaf_boxes import Value
from fewest.models.trees.tree import Tree, decode_feature
from fewest.tables.arrays import Bools, Floats, Ints, Ints32

THREAD_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Reach:
    """The negative leaves of a tree as slots: one per leaf and feature its box restricts.

    Attributes
    ----------
    tree : Tree
    leaf : (leaves,) int32
        Node of each negative leaf.
    slots : Slots
    weight : (features,) float64
    forbidden : tuple of int32 arrays
        Features that may not all move.
    max_cost : float
        Largest cost allowed.
    """

    tree: Tree
    leaf: Ints32
    slots: Slots
    weight: Floats
    forbidden: tuple[Ints32, ...] = ()
    max_cost: float = np.inf

    @classmethod
    def build(
        cls,
        tree: Tree,
        typical: Floats | None = None,
        value: Value = "nearest",
        constraints: Constraints | None = None,
        weight: Floats | None = None,
    ) -> Reach:
        """Lay the negative leaves of a collapsed tree out.

        ``typical`` (nodes, features) are typical codes of each leaf's rows: what ``median`` and ``mean`` enter with,
        and what a missing value and a level become. With the value ``nearest`` a case takes the one in the box next to
        its own. Constraints may be Immutable, Only, Range, OneOf, Forbidden and AtMost; ``weight`` is (features,).
        """
        schema, kept = tree.schema, constraints or Constraints()
        centre = np.full((tree.n_nodes, len(schema)), np.nan) if typical is None else typical
        leaf, slots = lay_out(tree, centre, value, kept)
        groups = (np.array([schema.index(name) for name in item.names], dtype=np.int32) for item in kept.of(Forbidden))
        return cls(tree, leaf, slots, np.ones(len(schema)) if weight is None else weight, tuple(groups), kept.most)

    def only(self, offered: Bools) -> Reach:
        """The same leaves under the same numbers, of which only the ``offered`` ones (leaves,) can be entered."""
        slots = self.slots
        shut = ~np.repeat(offered, np.diff(slots.start))
        target = slots.target.copy()
        rows = slots.table[shut & (slots.table >= 0)]
        target[rows] = np.where(target[rows] == INSIDE, INSIDE, NEVER)
        names = ("from_below", "from_above", "from_missing")
        ways = {name: np.where(shut, np.nan, getattr(slots, name)) for name in names}
        return replace(self, slots=slots._replace(target=target, **ways))

    @property
    def _scales(self) -> tuple[Bools, Floats]:
        features = self.tree.schema.features
        return np.array([f.is_numeric for f in features]), np.array([1.0 / f.scale for f in features])

    @cached_property
    def _words(self) -> Words:
        return Words.build(self.tree, self.slots)

    @property
    def _sets(self) -> tuple[Ints32, Ints32]:
        ends = np.cumsum([0, *(len(group) for group in self.forbidden)]).astype(np.int32)
        return (np.concatenate(self.forbidden) if self.forbidden else np.empty(0, dtype=np.int32)), ends

    def search(self, codes: Floats, n_jobs: int = 1) -> tuple[Ints32, Floats]:
        """The cheapest leaf of each row of codes, the closest among equals, and its cost: -1 and inf where none.

        The answer of a row does not depend on the others, nor on the number of threads.
        """
        from fewest.models.trees import _kernels

        n = len(codes)
        leaf, cost = np.empty(n, dtype=np.int32), np.empty(n)
        shared = (np.asfortranarray(codes), self.slots, *self._scales, self.weight)
        words = self._words

        def part(first: int, last: int) -> None:
            if self.forbidden or (self.weight != 1).any():
                _kernels.search_leaf_by_leaf(*shared, *self._sets, first, last, leaf, cost)
            else:
                _kernels.search_all_leaves(*shared, words, first, last, leaf, cost)

        step = max(THREAD_ROWS, -(-n // max(1, n_jobs)))
        spans = [(first, min(first + step, n)) for first in range(0, n, step)]
        if len(spans) <= 1 or n_jobs <= 1:
            part(0, n)
        else:
            with ThreadPoolExecutor(n_jobs) as pool:
                list(pool.map(lambda span: part(*span), spans))
        return leaf, cost

    def costs(self, codes: Floats) -> Floats:
        """Cost of entering every negative leaf (n, leaves); inf where it cannot be entered."""
        from fewest.models.trees import _kernels

        return np.asarray(_kernels.costs(np.asfortranarray(codes), self.slots, *self._scales, self.weight, *self._sets))

    def turn(self, codes: Floats, leaf_of: Ints32) -> tuple[Floats, Bools, Floats]:
        """Codes of the rows inside their leaf, the features moved (n, p), and the largest move of a number (n,)."""
        from fewest.models.trees import _kernels

        after, moved, far = codes.copy(), np.zeros(codes.shape, dtype=bool), np.empty(len(codes))
        _kernels.turn(codes, leaf_of, self.slots, *self._scales, after, moved, far)
        return after, moved, far

    def entered(self, frame: pd.DataFrame, leaf_of: Ints32) -> pd.DataFrame:
        """Raw rows with the values they enter their leaves with."""
        after, moved, _ = self.turn(self.tree.encode(frame), leaf_of)
        return self.turned(frame, after, moved)

    def turned(self, frame: pd.DataFrame, after: Floats, moved: Bools) -> pd.DataFrame:
        """Typed raw rows with the moved features' new values written in."""
        out = {name: frame[name].array for name in frame.columns}
        for j in np.flatnonzero(moved.any(axis=0)).tolist():
            feature = self.tree.schema.features[j]
            rows = np.flatnonzero(moved[:, j])
            for column, cells in decode_feature(feature, after[rows, j]).items():
                out[column] = _written(out[column], rows, cells)
        return pd.DataFrame(out, index=frame.index, copy=False)


def _written(cells: Any, rows: Ints, new: Any) -> Any:
    """A copy of a column with some cells replaced; a whole-number column that gets a fraction becomes float."""
    if pd.api.types.is_integer_dtype(cells.dtype):
        if (np.asarray(new, dtype=float) % 1 != 0).any():
            cells = cells.astype(float)
        else:
            new = np.asarray(new, dtype=float).astype(np.int64)
    elif pd.api.types.is_bool_dtype(cells.dtype):
        new = np.asarray(new, dtype=bool)
    out = cells.copy()
    out[rows] = new
    return out
