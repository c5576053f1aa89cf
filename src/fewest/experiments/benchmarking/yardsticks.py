"""The yardsticks: one predict_proba call per hypercube vertex, as published code does it, and the paper's SEV-T."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt


def plain_bfs(
    model: Any, query: npt.NDArray[Any], reference: npt.NDArray[Any], feature_of: npt.NDArray[Any], cap: int
) -> tuple[int | None, int]:
    """Breadth-first SEV of one encoded query and the vertices asked; None where the cap was reached first."""
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


def negative_paths(tree: Any, positive: Any) -> dict[str, list[str]]:
    """Algorithm 2: for every inner node, named by the turns that lead to it, the paths below it to negative leaves."""
    found: list[str] = []
    nodes = [(0, "")]
    while nodes:
        node, path = nodes.pop()
        if tree.children_left[node] >= 0:
            nodes.append((int(tree.children_left[node]), path + "L"))
            nodes.append((int(tree.children_right[node]), path + "R"))
        elif not positive[node]:
            found.append(path)
    paths = defaultdict(list)
    for path in found:
        for i in range(len(path)):
            paths[path[:i]].append(path[i:])
    return paths


def plain_sev_t(tree: Any, paths: dict[str, list[str]], case: Any) -> int | None:
    """Algorithm 3 for one case: the least number of features that a path to a negative leaf changes.

    Read as it must be meant: the count starts at infinity, not at zero, and a feature that has changed counts once.
    """
    decision_path, nodes = "", [0]
    while tree.children_left[nodes[-1]] >= 0:
        node = nodes[-1]
        left = case[tree.feature[node]] <= tree.threshold[node]
        decision_path += "L" if left else "R"
        nodes.append(int(tree.children_left[node] if left else tree.children_right[node]))
    best = None
    for depth, node in enumerate(nodes[:-1]):
        for path in paths.get(decision_path[:depth], ()):
            if path[0] == decision_path[depth]:
                continue
            count = _changes(tree, node, path, case)
            if best is None or count < best:
                best = count
            if best == 1:
                return 1
    return best


def _changes(tree: Any, node: int, path: str, case: Any) -> int:
    """Distinct features whose condition on the path the case does not meet."""
    changed = set()
    for turn in path:
        feature = int(tree.feature[node])
        left = case[feature] <= tree.threshold[node]
        if left != (turn == "L"):
            changed.add(feature)
        node = int(tree.children_left[node] if turn == "L" else tree.children_right[node])
    return len(changed)
