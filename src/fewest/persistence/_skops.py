"""skops files: audited as plain JSON and arrays, then handed to skops as exactly what was audited.

skops refuses types it was not told to trust. What it cannot see is looked at here first: how a type is built, what a
tree's arrays say, what is in a booster's bytes. Object numbers are taken out of the file: skops would let a second node
with a number stand for the first, and what was checked would not be what is loaded.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from fewest.errors import MissingExtraError, ModelError
from fewest.persistence._archive import unpack
from fewest.persistence._arrays import read_array
from fewest.persistence._json import as_json, parse
from fewest.persistence._limits import first_line, refused, refusing
from fewest.persistence._moved import home_of
from fewest.persistence._nodes import check_node, revived
from fewest.persistence._sound import check_sound
from fewest.persistence._types import BUILT_BY, is_listed, trusted

SCHEMA = "schema.json"
OLDEST_PROTOCOL = 1
ON_THE_LIST = "use estimators on the list (docs/models.md)"
HOW_TO_TRUST = f"{ON_THE_LIST}, or pass allow_pickle=True if you made this file yourself"

# Estimators that hold a schema, which skops rebuilds by calling constructors.
OWN_TREES = ("fewest.models.trees.", "fewest.models.rashomon.")
HOW_TO_SAVE_TREES = (
    "save it as a tree, fewest.models.trees.file.save_tree(model.tree_, 'tree.json', model.classes_), or with its "
    "references, explainer.save('credit.fewest'): both are read without running anything"
)


def load_skops(data: bytes, name: str, trust_all: bool = False) -> Any:
    """The model of a skops file.

    Parameters
    ----------
    data : bytes
        The bytes of the file.
    name : str
        For messages.
    trust_all : bool
        Whether types beyond the list may be loaded. They can run code.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    >>> load_skops(dump_skops(model), "m.skops").predict([[2.0]]).tolist()
    [1]
    """
    skops = find_skops(f"reading {name}")
    members = unpack(data, name)
    schema = audited(members, name, trust_all)
    with refusing(name, "it cannot be loaded"):
        checked = _rebuilt({**members, SCHEMA: as_json(schema)})
        foreign = set(skops.get_untrusted_types(data=checked)) - set(trusted())
        if foreign and not trust_all:
            raise not_listed(name, foreign)
        model = revived(skops.loads(checked, trusted=sorted({*trusted(), *foreign})))
        check_sound(model, name)
    return model


def audited(members: dict[str, bytes], name: str, trust_all: bool = False, do: str = HOW_TO_TRUST) -> dict[str, Any]:
    """The plan of a skops file without object numbers, or an error: everything in it is on the list and well formed.

    Boosters of XGBoost are written anew, among the members. ``do`` is what to do about types that are not on the list.
    """
    if SCHEMA not in members:
        raise refused(name, f"it is no skops file: it has no {SCHEMA}")
    schema = parse(members[SCHEMA], name)
    protocol = schema.get("protocol") if isinstance(schema, dict) else None
    if not isinstance(protocol, int) or isinstance(protocol, bool) or protocol < OLDEST_PROTOCOL:
        raise refused(name, f"its protocol is {protocol!r}", do="save the model with a current skops")
    foreign = set()
    with refusing(name, "it is no whole skops file"):
        for node in nodes_of(schema):
            node["__module__"], node["__class__"] = home_of(str(node["__module__"]), str(node["__class__"]))
            loader, kind = str(node["__loader__"]), f"{node['__module__']}.{node['__class__']}"
            if not is_listed(loader, kind):
                foreign.add(kind if loader in BUILT_BY else f"{kind} (by {loader})")
            node.pop("__id__", None)
            _check_member(node, members, name)
    # The types first: a list of names says more than what is wrong inside one of them.
    if foreign and not trust_all:
        raise not_listed(name, foreign, do)
    with refusing(name, "it is no whole skops file"):
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
    own = any(kind.startswith(OWN_TREES) for kind in foreign)
    return ModelError(
        f"{name} holds types that are not on the list of safe ones: {shown}; loading them can run code",
        do=HOW_TO_SAVE_TREES if own else do,
    )


def dump_skops(model: Any) -> bytes:
    """A model as the bytes of a skops file, or an error that says why it cannot be one."""
    skops = find_skops("saving a model")
    try:
        return bytes(skops.dumps(model))
    except Exception as error:
        raise ModelError(
            f"{type(model).__name__} cannot be written without pickle: {first_line(error)}",
            do="use scikit-learn's own estimators, XGBoost, LightGBM, or a model trained with fewest",
        ) from error


def find_skops(what: str) -> Any:
    """skops.io, or an error that says how to install it."""
    try:
        import skops.io
    except ImportError as error:
        raise MissingExtraError(f"{what} needs skops", do="pip install skops") from error
    return skops.io


def _rebuilt(members: Mapping[str, bytes]) -> bytes:
    """A zip of the members as they were checked; not packed, for it lives a moment only."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()
