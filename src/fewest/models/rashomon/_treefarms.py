"""TreeFARMS (treefarms): the splits of all near-optimal trees, read off its model set.

Runs inside `_child`, hence without anything of this package. TreeFARMS works in single precision: the bound is
widened by more than that loses, and the exact one is applied when the splits are unfolded.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

PACKAGE, CORE = "treefarms", "libgosdt"


def grow(
    core: Any, bits: npt.NDArray[np.uint8], positive: npt.NDArray[np.bool_], regularization: float, bound: float,
    depth: int, most: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int]:  # fmt: skip
    """Splits that near-optimal trees make: see `_child`."""
    settings = {
        "regularization": regularization,
        "allow_small_reg": True,
        "rashomon": True,
        "rashomon_bound_multiplier": (1 + bound) * (1 + 1e-5) - 1,
        "depth_budget": depth + 1,  # counts levels, not edges
        # Its own rule for trivial splits also drops trees that have none.
        "rashomon_ignore_trivial_extensions": False,
        "verbose": False,
        "worker_limit": 1,
    }
    core.configure(json.dumps(settings))
    models = json.loads(core.fit(as_csv(bits, positive)))
    storage, roots = models["storage"], models["available_metric_values"]["metric_pointers"]
    count = sum(int(storage[root]["count"]) for root in roots)
    if count > most:
        return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32), count
    parent, column = merged(storage, roots)
    return parent, column, count


def as_csv(bits: npt.NDArray[np.uint8], positive: npt.NDArray[np.bool_]) -> str:
    """The table as TreeFARMS reads it: labels last.

    Examples
    --------
    >>> as_csv(np.array([[1, 0]], dtype=np.uint8), np.array([True]))
    'c0,c1,label\\n1,0,1\\n'
    """
    header = ",".join([*(f"c{c}" for c in range(bits.shape[1])), "label"])
    table = np.column_stack([bits, positive]).astype(int)
    return "\n".join([header, *(",".join(map(str, row)) for row in table.tolist()), ""])


def merged(storage: Any, roots: list[int]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Splits by path: model sets that a tree can have at the same place are one node.

    Examples
    --------
    >>> leaf = {"mapping": {}}
    >>> merged([leaf, {"mapping": {"4": [[0, 2]]}}, {"mapping": {"1": [[0, 0]]}}], [1])
    (array([0, 2], dtype=int32), array([4, 1], dtype=int32))
    """
    parent: list[int] = []
    column: list[int] = []
    stack: list[tuple[int, frozenset[int]]] = [(0, frozenset(roots))]
    while stack:
        node, models = stack.pop()
        sides: dict[int, tuple[set[int], set[int]]] = {}
        for model in models:
            for feature, pairs in storage[model]["mapping"].items():
                left, right = sides.setdefault(int(feature), (set(), set()))
                left.update(pair[0] for pair in pairs)
                right.update(pair[1] for pair in pairs)
        for feature in sorted(sides):
            split = len(parent)
            parent.append(node)
            column.append(feature)
            for side, inner in enumerate(sides[feature]):
                stack.append((2 * split + 1 + side, frozenset(inner)))
    return np.array(parent, dtype=np.int32), np.array(column, dtype=np.int32)
