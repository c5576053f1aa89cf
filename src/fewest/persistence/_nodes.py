"""Parts of a skops file that native code reads unchecked: trees and boosters, looked at before they are built."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from fewest.persistence._arrays import read_array
from fewest.persistence._lightgbm_text import rewritten as rewritten_text
from fewest.persistence._limits import refused
from fewest.persistence._sound import parts_of
from fewest.persistence._tree_arrays import flaw_of_sklearn
from fewest.persistence._ubjson import parse_ubjson
from fewest.persistence._xgboost_json import check_xgboost, rewritten

Node = dict[str, Any]
Members = dict[str, bytes]
CHECKED = "checked by fewest"


def check_node(node: Node, members: Members, name: str) -> None:
    """Refuse a node whose content would lead native code astray; boosters are put into a form that cannot.

    Parameters
    ----------
    node : mapping
        One node of a skops plan, without object numbers. That of a booster is changed: see `revived`.
    members : mapping
        Files of the archive; checked models of boosters are added.
    name : str
        For messages.
    """
    check = _CHECKS.get((str(node["__loader__"]), f"{node['__module__']}.{node['__class__']}"))
    if check is not None:
        check(node, members, name)


def _check_json(node: Node, _members: Members, name: str) -> None:
    value = json.loads(node["content"])
    if isinstance(value, dict | list):
        raise refused(name, "a plain value in it is none")


def _check_sklearn_tree(node: Node, members: Members, name: str) -> None:
    """scikit-learn believes a tree's own count of nodes and of classes."""
    width, classes, outputs = (_value(part, members, name) for part in node["__reduce__"]["args"]["content"])
    state = node["content"]["content"]
    count = _value(state["node_count"], members, name)
    nodes, values = (_array(state[part], members, name) for part in ("nodes", "values"))
    counts = np.asarray(classes)
    flaw: str | None
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in (width, outputs, count)):
        flaw = "its sizes are no numbers"
    elif counts.shape != (outputs,) or counts.dtype.kind != "i" or outputs < 1 or (counts < 1).any():
        flaw = "its classes do not fit its outputs"
    elif count != len(nodes):
        flaw = f"it says {count} nodes and has {len(nodes)}"
    else:
        flaw = flaw_of_sklearn(nodes, values, outputs, int(counts.max()), width)
    if flaw is not None:
        raise refused(name, f"a damaged tree: {flaw}")


def _check_xgboost(node: Node, members: Members, name: str) -> None:
    handle = node["content"]["content"]["handle"]
    if handle["__loader__"] != "BytearrayNode":
        raise refused(name, "its booster has no bytes")
    content = parse_ubjson(members[handle["file"]], name)
    if set(content) != {"Model", "Config"}:
        raise refused(name, "its booster is no snapshot of XGBoost")
    check_xgboost(content["Model"], name)
    file = f"checked-{len(members)}.bin"
    members[file] = rewritten(content["Model"])
    parts = {
        "handle": _plain_node("JsonNode", "str", content="null"),
        CHECKED: _plain_node("BytesNode", "bytes", file=file),
    }
    keys = [_plain_node("TypeNode", "str") for _ in parts]
    node["content"] = _plain_node(
        "DictNode", "dict", content=parts, key_types=_plain_node("ListNode", "list", content=keys)
    )


def _plain_node(loader: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"__class__": kind, "__module__": "builtins", "__loader__": loader, **more}


def revived(model: Any) -> Any:
    """The model with its boosters of XGBoost read from their checked JSON.

    skops would hand XGBoost a snapshot of its memory, which XGBoost believes; that is left out of the plan.
    """
    for part in parts_of(model):
        kind = type(part)
        # Of this class alone: every one of them was checked, and no other can bring bytes under this name.
        if (kind.__module__, kind.__name__) == ("xgboost.core", "Booster"):
            text = vars(part).pop(CHECKED)
            kind.__init__(part)
            part.load_model(bytearray(text))
    return model


def _check_lightgbm(node: Node, members: Members, name: str) -> None:
    state = node["content"]["content"]
    # The library looks under both names.
    if "_handle" not in state or "handle" in state:
        raise refused(name, "its booster has no text")
    text = _value(state["_handle"], members, name)
    if not isinstance(text, str):
        raise refused(name, "its booster has no text")
    state["_handle"] = _plain_node("JsonNode", "str", content=json.dumps(rewritten_text(text, name)))


def _value(node: Node, members: Members, name: str) -> Any:
    """A plain value or a small array of a node."""
    if node["__loader__"] == "JsonNode":
        return json.loads(node["content"])
    return _array(node, members, name)


def _array(node: Node, members: Members, name: str) -> Any:
    if node["__loader__"] != "NdArrayNode" or node.get("type") != "numpy":
        raise refused(name, "an array in it is none")
    return read_array(members[node["file"]], name)


_CHECKS: dict[tuple[str, str], Callable[[Node, Members, str], None]] = {
    ("JsonNode", "builtins.str"): _check_json,
    ("TreeNode", "sklearn.tree._tree.Tree"): _check_sklearn_tree,
    ("ObjectNode", "xgboost.core.Booster"): _check_xgboost,
    ("ObjectNode", "lightgbm.basic.Booster"): _check_lightgbm,
}
