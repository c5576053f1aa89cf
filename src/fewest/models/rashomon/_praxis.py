"""PRAXIS (tree-praxis): the splits of all near-optimal trees, read off its AND/OR graph.

Runs inside `_child`, hence without anything of this package. PRAXIS counts in whole rows: it rounds the price of a
leaf, ``regularization * n``, to an integer. Here the price is rounded down, so that no tree looks dearer than it is,
and the budget comes from the exact objective of a tree that looks best. That names a few splits too many, and none too
few; the exact bound is applied when they are unfolded.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

PACKAGE, CORE = "praxis", "_core"
MANY_ROWS = 20_000


def grow(
    core: Any, bits: npt.NDArray[np.uint8], positive: npt.NDArray[np.bool_], regularization: float, bound: float,
    depth: int, most: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int]:  # fmt: skip
    """Splits that near-optimal trees make: see `_child`."""
    times, price, hidden = rounded_price(len(bits), regularization)
    model = core.PRAXIS()
    settings = {
        "X": np.repeat(bits, times, axis=0),
        "y": np.repeat(positive, times).astype(np.int32),
        "lambda_reg": price / (len(bits) * times),
        "depth_budget": depth,
        "key_mode": "exact",
        # With so much lookahead its estimate of a subtree is the exact optimum.
        "lookahead_k": depth - 1,
        "majority_leaf_only": True,
    }
    model.fit(**settings, rashomon_mult=0.0)
    best = model.get_min_objective() + hidden * len(model.get_tree_paths(0)[0])
    model = core.PRAXIS()
    model.fit(**settings, root_budget=math.floor(best * (1 + bound) * (1 + 1e-9)))
    count = int(model.count_trees())
    if count > most:
        return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32), count
    graph = model.export_andor_graph()
    rows = [(s.parent_trie_id, s.feature, s.left_trie_id, s.right_trie_id) for s in graph.split_nodes]
    parent, column, left, right = np.array(rows, dtype=np.int32).reshape(-1, 4).T
    node_of = np.zeros(2 * len(rows) + 1, dtype=np.int32)
    node_of[left] = 2 * np.arange(len(rows)) + 1
    node_of[right] = 2 * np.arange(len(rows)) + 2
    node_of[graph.root_trie_id] = 0
    return node_of[parent], column, count


def rounded_price(n: int, regularization: float) -> tuple[int, int, float]:
    """How often to repeat the rows, the price of a leaf in whole rows, and by how much the exact price is above it.

    Few rows are repeated where that makes the price whole, or more nearly so.

    Examples
    --------
    >>> rounded_price(8000, 0.01)
    (1, 80, 0.0)
    >>> rounded_price(250, 0.01)
    (2, 5, 0.0)
    """
    best = (1, 0, math.inf)
    for times in range(1, max(1, MANY_ROWS // n) + 1):
        exact = regularization * n * times
        price = math.floor(exact + 1e-9)
        above = max(0.0, round(exact - price, 9))
        if price > 0 and above / times < best[2] / best[0]:
            best = (times, price, above)
    if best[1] == 0:
        raise ValueError(f"with regularization {regularization:g} a leaf costs less than one of {n} rows")
    return best
