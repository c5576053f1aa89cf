"""Arrays that native code walks or indexes by must stay inside themselves: trees of all libraries, looked at as arrays.

A forged child hangs the walk of a tree, a forged number reads foreign memory. Every library here numbers a node's
children after the node itself. Asking for that order proves, without a walk, that there is no cycle and no node that is
not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.tables.arrays import Bools

Anything = npt.NDArray[Any]
PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None), np.generic, type)
# Libraries walk down trees by recursion; no tree that was grown is nearly as deep.
MOST_DEPTH = 4096


def flaw_of_tree(left: Anything, right: Anything, feature: Anything, inner: Bools, width: int) -> str | None:
    """What is wrong with a tree's arrays; None if nothing is."""
    nodes = len(inner)
    if nodes == 0:
        return "it has no nodes"
    if any(array.shape != (nodes,) for array in (left, right, feature)):
        return "its arrays have different lengths"
    here = np.flatnonzero(inner)
    children = np.stack([left[here], right[here]]).astype(np.int64)
    if (children >= nodes).any():
        return "a node leads to one that is not there"
    if (children <= here).any():
        return "a node leads back to itself or to one before it"
    if (np.bincount(children.ravel(), minlength=nodes) > 1).any():
        return "a node has two parents"
    tested = feature[here].astype(np.int64)
    if (tested < 0).any() or (tested >= width).any():
        return "it tests a feature that is not there"
    if depth_of(children, here, nodes) > MOST_DEPTH:
        return f"it is more than {MOST_DEPTH:,} nodes deep"
    return None


def depth_of(children: Anything, parents: Anything, nodes: int) -> int:
    """Steps from a root to the node farthest below it, no more than the first power of two above the limit."""
    above, steps = np.arange(nodes), np.zeros(nodes, dtype=np.int64)
    above[children] = parents
    steps[children] = 1
    # Each round doubles how far up everybody sees; roots stand above themselves.
    for _ in range(MOST_DEPTH.bit_length()):
        if not steps[above].any():
            break
        steps, above = steps + steps[above], above[above]
    return int(steps.max())


def flaw_of_sklearn(
    nodes: Anything, values: Anything, outputs: int, classes: int, width: int, depth: int
) -> str | None:
    """What is wrong with the state of a scikit-learn tree; None if nothing is."""
    wanted = {"left_child", "right_child", "feature", "threshold"}
    if nodes.ndim != 1 or not wanted <= set(nodes.dtype.names or ()):
        return "its nodes are not those of a scikit-learn tree"
    if values.dtype != np.float64 or values.shape != (len(nodes), outputs, classes):
        return "its values do not fit its nodes"
    # Only the left child says whether a node is a leaf; a leaf's right child is not looked at.
    left, right = nodes["left_child"], nodes["right_child"]
    inner = left != -1
    if not np.isfinite(values).all() or not np.isfinite(nodes["threshold"][inner]).all():
        return "it holds a number that is not finite"
    flaw = flaw_of_tree(left, right, nodes["feature"], inner, width)
    if flaw is None and depth_of(np.stack([left[inner], right[inner]]), np.flatnonzero(inner), len(nodes)) > depth:
        return "it is deeper than it says"
    return flaw


def flaw_of_predictor(nodes: Anything, width: int) -> str | None:
    """What is wrong with a tree of HistGradientBoosting; None if nothing is."""
    wanted = {"left", "right", "feature_idx", "is_leaf", "is_categorical", "value", "num_threshold"}
    if nodes.ndim != 1 or not wanted <= set(nodes.dtype.names or ()):
        return "its nodes are not those of HistGradientBoosting"
    inner = nodes["is_leaf"] == 0
    # Models that know levels bring a function, which no file may: what is left are tests of numbers.
    if nodes["is_categorical"].any():
        return "it tests levels of a feature that has none"
    # An infinite threshold is the library's own way of splitting off missing values.
    if not np.isfinite(nodes["value"]).all() or np.isnan(nodes["num_threshold"][inner]).any():
        return "it holds a number that is not finite"
    return flaw_of_tree(nodes["left"], nodes["right"], nodes["feature_idx"], inner, width)


def is_cut(ends: Anything, parts: int, whole: int) -> bool:
    """Whether numbers cut a list of this length into this many parts, one after the other."""
    fits = 0 < len(ends) == parts + 1 and ends[0] == 0 and ends[-1] == whole
    return bool(fits and (np.diff(ends) >= 0).all())


def flaw_of_sets(level_set: Anything, count: int) -> str | None:
    """Whether tests by levels name sets that are there: numbers from -1 (none) to below count."""
    if ((level_set < -1) | (level_set >= count)).any():
        return "a test names a set of levels that is not there"
    return None


def parts_of(model: Any) -> Iterator[Any]:
    """Everything a model holds that is not a plain value, itself first."""
    seen: set[int] = set()
    todo: list[Any] = [model]
    while todo:
        thing = todo.pop()
        if isinstance(thing, PLAIN) or id(thing) in seen:
            continue
        seen.add(id(thing))
        yield thing
        todo.extend(_parts(thing))


def _parts(thing: Any) -> list[Any]:
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    if isinstance(thing, np.ndarray):
        return list(thing.ravel()) if thing.dtype == object else []
    # No attribute is asked for: a booster that is not there yet would answer with an error of its own.
    return list(vars(thing).values()) if hasattr(thing, "__dict__") else []
