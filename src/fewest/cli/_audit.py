"""Trees from files are checked before they are walked: a forged child or feature number would read foreign memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.errors import ModelError

PLAIN = (str, bytes, int, float, complex, bool, type(None), np.generic, type)


def check_trees(model: Any, name: str) -> None:
    """Refuse a model in which a tree points outside itself or outside its features.

    Parameters
    ----------
    model : object
        A loaded model; everything it holds is visited.
    name : str
        The file's name, for the message.
    """
    seen: set[int] = set()
    todo: list[tuple[Any, int | None]] = [(model, None)]
    while todo:
        thing, width = todo.pop()
        if isinstance(thing, PLAIN) or id(thing) in seen:
            continue
        seen.add(id(thing))
        if not _sound(thing, width):
            raise ModelError(f"{name} holds a damaged tree: it points outside itself", do="save the model again")
        width = getattr(thing, "n_features_in_", width)
        todo.extend((part, width) for part in _parts(thing))


def _parts(thing: Any) -> list[Any]:
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    if isinstance(thing, np.ndarray):
        return list(thing.ravel()) if thing.dtype == object else []
    return list(vars(thing).values()) if hasattr(thing, "__dict__") else []


def _sound(thing: Any, width: int | None) -> bool:
    kind = type(thing)
    if kind.__name__ == "Tree" and kind.__module__ == "sklearn.tree._tree":
        inner = thing.children_left != -1
        fits = width is None or thing.n_features <= width
        return fits and _forward(thing.children_left, thing.children_right, thing.feature, inner, thing.n_features)
    if kind.__name__ == "TreePredictor" and kind.__module__.startswith("sklearn."):
        nodes = thing.nodes
        inner = nodes["is_leaf"] == 0
        category = nodes["bitset_idx"][inner & (nodes["is_categorical"] != 0)]
        known = bool((category < len(thing.raw_left_cat_bitsets)).all())
        return known and _forward(nodes["left"], nodes["right"], nodes["feature_idx"], inner, width)
    return True


def _forward(
    left: npt.NDArray[Any], right: npt.NDArray[Any], feature: npt.NDArray[Any], inner: npt.NDArray[np.bool_],
    width: int | None,
) -> bool:  # fmt: skip
    """Whether every inner node's children come after it and exist, and its feature does."""
    here = np.flatnonzero(inner)
    for child in (left, right):
        to = child[inner].astype(np.int64)
        if (to <= here).any() or (to >= len(left)).any():
            return False
    tested = feature[inner].astype(np.int64)
    return not ((tested < 0).any() or (width is not None and (tested >= width).any()))
