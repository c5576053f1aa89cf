"""A neutral tree as a JSON file: plain values under a version, nothing that runs when it is read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewest.errors import DataError, FewestError
from fewest.models.trees.tree import Leaf, Split, Tree
from fewest.tables.files import write_text
from fewest.tables.saved_schema import plain, schema_from_json, schema_to_json

FORMAT = 1


def as_dict(tree: Tree, names: Sequence[Any] = ("negative", "positive")) -> dict[str, Any]:
    """A tree as plain values; ``names`` is what the negative and the positive decision are called."""
    return {
        "format": FORMAT,
        "kind": "tree",
        "names": [str(name) for name in names],
        **schema_to_json(tree.schema),
        "tree": _node(tree.nested()),
    }


def from_dict(content: Any) -> Tree:
    """The tree that `as_dict` was given."""
    try:
        if content["format"] != FORMAT or content["kind"] != "tree":
            raise DataError(f"format {content['format']} of a {content['kind']} is unknown", do="use a newer fewest")
        schema = schema_from_json(content["features"], content["dtypes"])
        return Tree.build(schema, _read_node(content["tree"]))
    except FewestError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise DataError(f"this is not a saved tree: {what}", do="save the tree again") from error


def save_tree(tree: Tree, path: str | Path, names: Sequence[Any] = ("negative", "positive")) -> None:
    """Write a tree as JSON."""
    write_text(path, json.dumps(as_dict(tree, names), indent=1, allow_nan=False) + "\n")


def load_tree(path: str | Path) -> Tree:
    """Read a tree that `save_tree` wrote."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}", do="check the path") from error
    try:
        return from_dict(content)
    except FewestError as error:
        raise DataError(f"{path}: {error.message}", do=error.do) from error


def _node(node: Split | Leaf) -> dict[str, Any]:
    if isinstance(node, Leaf):
        counts = {"negatives": node.negatives, "positives": node.positives}
        return {"positive": node.positive, "score": node.chance, **counts}
    if isinstance(node.test, frozenset):
        test: Any = {"levels": sorted((plain(level) for level in node.test), key=lambda level: (str(level),))}
    else:
        # A test that nothing fails has no number: null.
        test = {"at_most": plain(float(node.test))}
    return {
        "feature": node.feature, **test, "missing": "yes" if node.missing_left else "no",
        "unknown": "yes" if node.unknown_left else "no", "yes": _node(node.left), "no": _node(node.right),
    }  # fmt: skip


def _read_node(content: dict[str, Any]) -> Split | Leaf:
    if "feature" not in content:
        return Leaf(bool(content["positive"]), content["score"], int(content["negatives"]), int(content["positives"]))
    if "levels" in content:
        test: float | frozenset[Any] = frozenset(content["levels"])
    else:
        test = math.inf if content["at_most"] is None else float(content["at_most"])
    return Split(
        content["feature"], test, _read_node(content["yes"]), _read_node(content["no"]),
        content["missing"] == "yes", content["unknown"] == "yes",
    )  # fmt: skip
