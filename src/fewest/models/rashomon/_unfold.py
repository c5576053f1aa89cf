"""From the splits a backend names to the members of the set: exactly those trees whose objective is within the bound.

Rows are counted and objectives added up here, in whole rows; what a backend rounds does not matter any more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fewest.errors import ModelError
from fewest.models.rashomon import _options
from fewest.models.rashomon._process import SMALLER, Grown

Masks = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]

MOST_OPTIONS = 50_000_000
SAME = 1e-10  # objectives closer than this (relative) are the same: sums of decimals are rounded


class Patterns(NamedTuple):
    """Distinct rows of a binary table as masks (bit c is column c), with the rows of either label (m, 2)."""

    mask: Masks
    weight: Counts


class Members(NamedTuple):
    """All trees: ``leaf[start[t]:start[t + 1]]`` are the places of tree t, from left to right.

    Places are what the other arrays describe, each once.
    """

    start: Counts
    leaf: npt.NDArray[np.int32]
    needs: Masks
    forbids: Masks
    counts: Counts


def as_patterns(bits: npt.NDArray[np.uint8], positive: npt.NDArray[np.bool_]) -> Patterns:
    """Collapse a binary table.

    Examples
    --------
    >>> as_patterns(np.array([[1, 0], [0, 1], [1, 0]]), np.array([True, False, False]))
    Patterns(mask=array([1, 2], dtype=uint64), weight=array([[1, 1], [1, 0]]))
    """
    mask = np.zeros(len(bits), dtype=np.uint64)
    for column in range(bits.shape[1]):
        mask |= bits[:, column].astype(np.uint64) << np.uint64(column)
    distinct, place = np.unique(mask, return_inverse=True)
    weight = np.zeros((len(distinct), 2), dtype=np.int64)
    np.add.at(weight, (place, positive.astype(np.int64)), 1)
    return Patterns(distinct, weight)


def unfold(grown: Grown, patterns: Patterns, price: float, bound: float, max_trees: int) -> Members:
    """All trees made of the splits whose objective, in rows, is at most ``1 + bound`` times the least.

    Parameters
    ----------
    grown : Grown
    patterns : Patterns
        Of the training rows.
    price : float
        Rows that a leaf costs.
    bound : float
    max_trees : int
    """
    needs, forbids = _options.paths(grown.parent, grown.column)
    place_of, firsts = _places(needs, forbids)
    needs, forbids = needs[firsts], forbids[firsts]
    counts = np.asarray(_options.count_rows(needs, forbids, *patterns))
    positive = decisions(counts)
    rows, errors = counts.sum(axis=1)[place_of], counts.min(axis=1)[place_of]
    best = _options.cheapest(grown.parent, rows, errors, price)
    limit = (best[0, 0] + price * best[0, 1]) * (1 + bound) * (1 + SAME)
    budget = _options.budgets(grown.parent, rows, best, price, limit)
    room = min(MOST_OPTIONS, 16 * max_trees + 1_000_000)
    options, begin, count = _options.list_options(
        grown.parent, errors, positive[place_of], budget, price, max_trees, room
    )
    if count < 0 or count > max_trees:
        raise too_large(grown.counted if count < 0 else int(count), max_trees, exact=count >= 0)
    start, leaf = _options.write_trees(options, begin, place_of)
    used, leaf = np.unique(leaf, return_inverse=True)
    return Members(start, leaf.astype(np.int32), needs[used], forbids[used], counts[used])


def decisions(counts: Counts) -> npt.NDArray[np.bool_]:
    """Whether leaves with so many rows of either label decide positive: by majority, and where it is a tie.

    Examples
    --------
    >>> decisions(np.array([[3, 2], [2, 2]])).tolist()
    [False, True]
    """
    return np.asarray(counts[:, 1] >= counts[:, 0])


def too_large(count: int, max_trees: int, exact: bool) -> ModelError:
    """The error for a set that is not unfolded."""
    size = f"{count:,} trees" if exact else f"up to {count:,} trees"
    return ModelError(
        f"the Rashomon set has {size}, more than max_trees = {max_trees:,}", do=f"{SMALLER}; or raise max_trees"
    )


def _places(needs: Masks, forbids: Masks) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Place of each node, and one node of each place: nodes reached by the same tests in any order are one place."""
    order = np.lexsort((forbids, needs))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(needs[order]) != 0) | (np.diff(forbids[order]) != 0)
    place_of = np.empty(len(order), dtype=np.int64)
    place_of[order] = np.cumsum(new) - 1
    return place_of, order[new]
