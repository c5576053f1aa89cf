"""skops files: audited as plain JSON and arrays, then handed to skops as exactly what was audited.

skops refuses types it was not asked to trust. What it cannot see is looked at here first: how a type is built, what a
tree's arrays say, what is in a booster's bytes. Object numbers are taken out of the file: skops would let a second node
with a number stand for the first, and what was checked would not be what is loaded.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fewest.errors import ModelError
from fewest.persistence._aliases import home_of
from fewest.persistence._fitted_state import check_sound, forget_threads
from fewest.persistence._readers import as_json, first_line, library, parse, read_array, refused, refusing, unpack
from fewest.persistence._sound import flaw_of_sklearn, parts_of
from fewest.persistence._types import BUILT_BY, is_listed, trusted
from fewest.persistence._xgboost_json import check_xgboost, parse_ubjson, rewritten
from fewest.persistence.boosters import rewritten as rewritten_text

INSTALL = "pip install skops"
SCHEMA = "schema.json"
OLDEST_PROTOCOL = 1
RANDOM = ("RandomStateNode", "RandomGeneratorNode")
ON_THE_LIST = "use estimators on the list (docs/models.md)"
HOW_TO_TRUST = f"{ON_THE_LIST}, or pass allow_pickle=True if you made this file yourself"

# Estimators that hold a schema, which skops rebuilds by calling constructors.
OWN_TREES = ("fewest.models.trees.", "fewest.models.rashomon.")
HOW_TO_SAVE_TREES = (
    "save it as a tree, fewest.models.trees.file.save_tree(model.tree_, 'tree.json', model.classes_), or with its "
    "references, explainer.save('credit.fewest'): both are read without running anything"
)
# What HistGradientBoosting keeps where it encodes categories by itself; such splits are not checked here.
OWN_CATEGORIES = {"functools.partial (by PartialNode)", "sklearn.utils.validation.check_array"}
HOW_TO_SAVE_CATEGORIES = (
    "let a pipeline encode the categories: make_pipeline(make_column_transformer((OrdinalEncoder(), columns), "
    'remainder="passthrough"), HistGradientBoostingClassifier())'
)
Node = dict[str, Any]
Members = dict[str, bytes]
CHECKED = "checked by fewest"


def load_skops(data: bytes, name: str, trust_all: bool = False) -> Any:
    """The model of a skops file; types beyond the list, which can run code, only if all are trusted."""
    skops = library("skops.io", f"reading {name}", INSTALL)
    members = unpack(data, name)
    schema = audited(members, name, trust_all)
    with refusing(name, "it cannot be loaded"):
        checked = _rebuilt({**members, SCHEMA: as_json(schema)})
        # skops looks at the types once more by itself; listing them costs as much as loading.
        foreign = skops.get_untrusted_types(data=checked) if trust_all else []
        try:
            model = revived(skops.loads(checked, trusted=sorted({*trusted(), *foreign})))
        except skops.exceptions.UntrustedTypesFoundException as error:
            raise not_listed(name, set(skops.get_untrusted_types(data=checked)) - set(trusted())) from error
        check_sound(model, name)
    return forget_threads(model)


def audited(members: dict[str, bytes], name: str, trust_all: bool = False, do: str = HOW_TO_TRUST) -> dict[str, Any]:
    """The plan of a skops file without object numbers, or an error: everything in it is on the list and well formed.

    Boosters of XGBoost are written anew, among the members. ``do`` is what to do about types that are not on the list.
    """
    if SCHEMA not in members:
        raise refused(name, f"it is not a skops file: it has no {SCHEMA}")
    schema = parse(members[SCHEMA], name)
    protocol = schema.get("protocol") if isinstance(schema, dict) else None
    if not isinstance(protocol, int) or isinstance(protocol, bool) or protocol < OLDEST_PROTOCOL:
        raise refused(name, f"its protocol is {protocol!r}", do="save the model with a current skops")
    foreign = set()
    with refusing(name, "it is not a whole skops file"):
        for node in nodes_of(schema):
            node["__module__"], node["__class__"] = home_of(str(node["__module__"]), str(node["__class__"]))
            loader, kind = str(node["__loader__"]), f"{node['__module__']}.{node['__class__']}"
            if loader in RANDOM:
                # Fits draw numbers, scores do not; and skops would call whatever generator the file names.
                node.clear()
                node.update(_plain_node("JsonNode", "str", content="null"))
            elif not is_listed(loader, kind):
                foreign.add(kind if loader in BUILT_BY else f"{kind} (by {loader})")
            node.pop("__id__", None)
            _check_member(node, members, name)
    # The types first: a list of names says more than what is wrong inside one of them.
    if foreign and not trust_all:
        raise not_listed(name, foreign, do)
    with refusing(name, "it is not a whole skops file"):
        for node in list(nodes_of(schema)):
            check_node(node, members, name)
    return dict(schema)


def nodes_of(schema: Any) -> Iterator[dict[str, Any]]:
    """All nodes of a plan, the root first."""
    todo = [schema]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            if "__loader__" in value or "__class__" in value or "__module__" in value:
                yield value
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)


def _check_member(node: Mapping[str, Any], members: Mapping[str, bytes], name: str) -> None:
    """Refuse a node whose bytes are missing, or are an array of objects."""
    file = node.get("file")
    if file is None:
        return
    if file not in members:
        raise refused(name, f"its member {str(file)!r} is missing")
    if node["__loader__"] == "NdArrayNode":
        read_array(members[file], name)


def not_listed(name: str, foreign: set[str], do: str = HOW_TO_TRUST) -> ModelError:
    """The error for types that are not on the list."""
    shown = ", ".join(sorted(foreign)[:5])
    if any(kind.startswith(OWN_TREES) for kind in foreign):
        do = HOW_TO_SAVE_TREES
    elif foreign == OWN_CATEGORIES:
        do = HOW_TO_SAVE_CATEGORIES
    return ModelError(
        f"{name} holds types that are not on the list of safe ones: {shown}; loading them can run code", do=do
    )


def dump_skops(model: Any) -> bytes:
    """A model as the bytes of a skops file, or an error that says why it cannot be one."""
    skops = library("skops.io", "saving a model", INSTALL)
    try:
        return bytes(skops.dumps(model))
    except Exception as error:
        raise ModelError(
            f"{type(model).__name__} cannot be written without pickle: {first_line(error)}",
            do="use scikit-learn's own estimators, XGBoost, LightGBM, or a model trained with fewest",
        ) from error


def _rebuilt(members: Mapping[str, bytes]) -> bytes:
    """A zip of the members as they were checked; not packed, for it lives a moment only."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def check_node(node: Node, members: Members, name: str) -> None:
    """Refuse a node whose content would lead native code astray; boosters are put into a form that cannot."""
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
    count, depth = (_value(state[part], members, name) for part in ("node_count", "max_depth"))
    nodes, values = (_array(state[part], members, name) for part in ("nodes", "values"))
    counts = np.asarray(classes)
    flaw: str | None
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in (width, outputs, count, depth)):
        flaw = "its sizes are not numbers"
    elif counts.shape != (outputs,) or counts.dtype.kind != "i" or outputs < 1 or (counts < 1).any():
        flaw = "its classes do not fit its outputs"
    elif count != len(nodes):
        flaw = f"it says {count} nodes and has {len(nodes)}"
    else:
        flaw = flaw_of_sklearn(nodes, values, outputs, int(counts.max()), width, depth)
    if flaw is not None:
        raise refused(name, f"a damaged tree: {flaw}")


def _check_xgboost(node: Node, members: Members, name: str) -> None:
    handle = node["content"]["content"]["handle"]
    if handle["__loader__"] != "BytearrayNode":
        raise refused(name, "its booster has no bytes")
    content = parse_ubjson(members[handle["file"]], name)
    if set(content) != {"Model", "Config"}:
        raise refused(name, "its booster is not a snapshot of XGBoost")
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
    for part in list(parts_of(model)):
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
