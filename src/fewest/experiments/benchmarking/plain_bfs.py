"""The yardstick: breadth-first search with one predict_proba call per hypercube vertex, as published code does it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt


def plain_bfs(
    model: Any, query: npt.NDArray[Any], reference: npt.NDArray[Any], feature_of: npt.NDArray[Any], cap: int
) -> tuple[int | None, int]:
    """SEV of one encoded query and the vertices asked; None where the cap was reached first."""
    features = np.unique(feature_of[feature_of >= 0])
    asked = 0
    for size in range(1, len(features) + 1):
        for chosen in combinations(features, size):
            if asked >= cap:
                return None, asked
            vertex = np.where(np.isin(feature_of, chosen), reference, query)
            asked += 1
            if model.predict_proba(vertex.reshape(1, -1))[0, 1] < 0.5:
                return size, asked
    return None, asked
