"""A neutral tree as arrays in a file; checked when it comes back, for compiled code walks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fewest.errors import DataError
from fewest.models.trees.file import from_dict
from fewest.models.trees.tree import Tree
from fewest.persistence._arrays import array_bytes, read_array
from fewest.persistence._limits import SAVE_AGAIN, refused, refusing
from fewest.persistence._sound import check_sound
from fewest.tables.schema import Schema

DTYPES = {
    "feature": np.int32, "threshold": np.float64, "left": np.int32, "right": np.int32, "missing_left": np.bool_,
    "level_set": np.int32, "levels_left": np.bool_, "positive": np.bool_, "score": np.float64, "counts": np.int64,
}  # fmt: skip


def tree_members(tree: Tree, prefix: str) -> dict[str, bytes]:
    """The arrays of a tree under names that begin alike.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewest.models.trees import Leaf, Split
    >>> schema = Schema.infer(pd.DataFrame({"age": [20, 40]}))
    >>> tree = Tree.build(schema, Split("age", 30.5, Leaf(True), Leaf(False)))
    >>> members = tree_members(tree, "model")
    >>> tree_from_members(members, "model", schema, "m.fewest").describe(0)
    'age <= 30.5'
    """
    return {
        f"{prefix}.tree.{part}.npy": array_bytes(np.ascontiguousarray(getattr(tree, part), dtype=kind))
        for part, kind in DTYPES.items()
    }


def tree_from_members(members: Mapping[str, bytes], prefix: str, schema: Schema, name: str) -> Tree:
    """The tree that `tree_members` was given."""
    arrays = {part: read_array(members[f"{prefix}.tree.{part}.npy"], name) for part in DTYPES}
    if any(arrays[part].dtype != kind for part, kind in DTYPES.items()):
        raise refused(name, "a damaged tree: its arrays have other types")
    tree = Tree(schema, **arrays)
    check_sound(tree, name)
    if arrays["counts"].shape != (tree.n_nodes, 2):
        raise refused(name, "a damaged tree: its arrays have different lengths")
    return tree


def is_tree(content: Any) -> bool:
    """Whether the content of a JSON file is a tree of ours.

    Examples
    --------
    >>> is_tree({"kind": "tree", "format": 1}), is_tree({"learner": {}})
    (True, False)
    """
    return isinstance(content, dict) and content.get("kind") == "tree"


def tree_model(content: Mapping[str, Any], name: str) -> Any:
    """The classifier of a tree that `fewest train topt` or `fewest.models.trees.file.save_tree` wrote."""
    from fewest.models.trees import LoadedTreeClassifier

    with refusing(name, "it is not a whole tree"):
        try:
            tree = from_dict(content)
            check_sound(tree, name)
            return LoadedTreeClassifier.of(tree, [str(label) for label in content["names"]])
        except DataError as error:
            raise refused(name, error.message, do=error.do or SAVE_AGAIN) from error
