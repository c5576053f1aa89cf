"""Model files made to do harm: each kind of attack once, small, and live where there is something to run.

A live one writes the file it is given as ``mark`` if anything of it runs.
"""

from __future__ import annotations

import io
import json
import pickle
import stat
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import skops.io
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

Members = dict[str, bytes]
Maker = Callable[[str], bytes]
HOSTILE: dict[str, Maker] = {}


def hostile(name: str) -> Callable[[Maker], Maker]:
    """Enter a maker of bytes under the name of the file it makes."""

    def enter(make: Maker) -> Maker:
        assert name not in HOSTILE
        HOSTILE[name] = make
        return make

    return enter


def write_all(folder: Path, mark: Path) -> list[Path]:
    """All files, written into a folder."""
    paths = []
    for name, make in HOSTILE.items():
        path = folder / name
        path.write_bytes(make(str(mark)))
        paths.append(path)
    return paths


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (self.path, "w"))


def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def members_of(model: Any) -> Members:
    """Members of an honest skops file."""
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def zipped(members: Mapping[str, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def npy(array: np.ndarray, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


def nodes_in(schema: Any) -> list[dict[str, Any]]:
    found, todo = [], [schema]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            found += [value] if "__loader__" in value else []
            todo += list(value.values())
        elif isinstance(value, list):
            todo += value
    return found


# --- pickles, under their own and under other endings


for _ending in ("pkl", "pickle", "joblib", "skops", "onnx", "json", "ubj", "txt", "fewest"):
    hostile(f"pickle.{_ending}")(lambda mark: pickle.dumps(Trap(mark)))


# --- skops files that build what they should not


def tampered(change: Callable[[dict[str, Any]], None], model: Any = None) -> bytes:
    """A skops file whose plan was changed."""
    members = members_of(model if model is not None else LogisticRegression().fit(*data()))
    schema = json.loads(members["schema.json"])
    change(schema)
    return zipped({**members, "schema.json": json.dumps(schema).encode()})


def value_node(value: Any) -> dict[str, Any]:
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(value)}


def node(loader: str, kind: str, **more: Any) -> dict[str, Any]:
    module, _, name = kind.rpartition(".")
    return {"__class__": name, "__module__": module, "__loader__": loader, **more}


def tuple_node(*values: Any) -> dict[str, Any]:
    return node("TupleNode", "builtins.tuple", content=[value_node(value) for value in values])


def with_attribute(part: dict[str, Any]) -> bytes:
    """An honest classifier with another value of one attribute."""
    return tampered(lambda schema: schema["content"]["content"].update(n_iter_=part))


def retold(data: bytes, **changes: Any) -> bytes:
    """A skops file whose plan says something else of itself."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    return zipped({**members, "schema.json": json.dumps({**json.loads(members["schema.json"]), **changes}).encode()})


@hostile("constructor.skops")
def constructor(mark: str) -> bytes:
    return with_attribute(node("ConstructorFromReduceNode", "_io.FileIO", content=tuple_node(mark, "w")))


@hostile("trusted-type-by-constructor.skops")
def constructor_of_trusted(mark: str) -> bytes:
    arguments = tuple_node(None, [], mark)
    return with_attribute(node("ConstructorFromReduceNode", "xgboost.core.Booster", content=arguments))


@hostile("function.skops")
def function(_mark: str) -> bytes:
    return with_attribute(node("FunctionNode", "posix.system"))


@hostile("type.skops")
def type_node(_mark: str) -> bytes:
    return with_attribute(node("TypeNode", "subprocess.Popen"))


@hostile("partial.skops")
def partial(mark: str) -> bytes:
    content = {
        "func": node("TypeNode", "_io.FileIO"), "args": tuple_node(mark, "w"),
        "kwds": node("DictNode", "builtins.dict", content={}, key_types=node("ListNode", "builtins.list", content=[])),
        "namespace": value_node(None),
    }  # fmt: skip
    return with_attribute(node("PartialNode", "functools.partial", content=content))


@hostile("operator.skops")
def operator(mark: str) -> bytes:
    return with_attribute(node("OperatorFuncNode", "operator.call", attrs=tuple_node(mark)))


@hostile("method.skops")
def method(_mark: str) -> bytes:
    inner = node("ObjectNode", "sklearn.linear_model._logistic.LogisticRegression")
    content = {"func": "fit", "obj": inner}
    return with_attribute(node("MethodNode", "sklearn.linear_model._logistic.LogisticRegression", content=content))


@hostile("list-of-another-class.skops")
def odd_list(mark: str) -> bytes:
    return with_attribute(node("ListNode", "_io.FileIO", content=[value_node(mark)]))


@hostile("cached.skops")
def cached(_mark: str) -> bytes:
    return with_attribute(node("CachedNode", "builtins.str", __id__=1))


@hostile("foreign-object.skops")
def foreign_object(_mark: str) -> bytes:
    return with_attribute(node("ObjectNode", "http.server.HTTPServer", content=value_node(None)))


@hostile("reads-files.skops")
def reads_files(_mark: str) -> bytes:
    return with_attribute(node("ObjectNode", "sklearn.feature_extraction.text.CountVectorizer"))


@hostile("old-protocol.skops")
def old_protocol(_mark: str) -> bytes:
    return tampered(lambda schema: schema.update(protocol=0))


@hostile("protocol-of-the-future.skops")
def future_protocol(_mark: str) -> bytes:
    return tampered(lambda schema: schema.update(protocol=999))


@hostile("array-of-pickles.skops")
def array_of_pickles(mark: str) -> bytes:
    members = members_of(LogisticRegression().fit(*data()))
    name = next(name for name in members if name.endswith(".npy"))
    return zipped({**members, name: npy(np.array([Trap(mark)], dtype=object), allow_pickle=True)})


@hostile("giant-array.skops")
def giant_array(_mark: str) -> bytes:
    members = members_of(LogisticRegression().fit(*data()))
    name = next(name for name in members if name.endswith(".npy"))
    header = str({"descr": "<f8", "fortran_order": False, "shape": (10**12,)}).encode().ljust(118) + b"\n"
    return zipped({**members, name: b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header})


@hostile("missing-member.skops")
def missing_member(_mark: str) -> bytes:
    members = members_of(LogisticRegression().fit(*data()))
    return zipped({"schema.json": members["schema.json"]})


@hostile("deep.skops")
def deep(_mark: str) -> bytes:
    return zipped({"schema.json": b'{"a":' * 100_000 + b"1" + b"}" * 100_000})


@hostile("nested.skops")
def nested(_mark: str) -> bytes:
    part = value_node(1)
    for _ in range(150):
        part = node("ListNode", "builtins.list", content=[part])
    return with_attribute(part)


# --- zip files


@hostile("bomb.skops")
def bomb(_mark: str) -> bytes:
    return zipped({"schema.json": b" " * (1 << 28)}, zipfile.ZIP_DEFLATED)


@hostile("many-members.skops")
def many_members(_mark: str) -> bytes:
    entry = b"PK\x01\x02" + struct.pack("<6H3I5H2I", 20, 20, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    count = 300_000
    end = b"PK\x05\x06" + struct.pack("<4H2IH", 0, 0, count & 0xFFFF, count & 0xFFFF, count * len(entry), 0, 0)
    return entry * count + end


@hostile("larger-than-it-is.skops")
def lying_size(_mark: str) -> bytes:
    whole = bytearray(zipped({"schema.json": b"{}"}))
    at = whole.index(b"PK\x01\x02")
    whole[at + 24 : at + 28] = struct.pack("<I", 0xFFFFFFF0)
    return bytes(whole)


for _number, _name in enumerate(("../../evil.npy", "/tmp/evil.npy", "..\\evil.npy", "folder/x.npy", "nul.npy")):
    hostile(f"name-{_number}.skops")(
        lambda mark, _name=_name: zipped({"schema.json": b"{}", _name: b"x"}).replace(b"nul.npy", b"n\x00l.npy")
    )


@hostile("twice.skops")
def twice(_mark: str) -> bytes:
    members = members_of(LogisticRegression().fit(*data()))
    whole = zipped({**members, "schema.jsoX": members["schema.json"]})
    return whole.replace(b"schema.jsoX", b"schema.json")


@hostile("link.skops")
def link(_mark: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        entry = zipfile.ZipInfo("schema.json")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    return buffer.getvalue()


@hostile("encrypted.skops")
def encrypted(_mark: str) -> bytes:
    whole = bytearray(zipped(members_of(LogisticRegression().fit(*data()))))
    at = whole.index(b"PK\x01\x02")
    whole[at + 8] |= 1
    return bytes(whole)


@hostile("truncated.skops")
def truncated(_mark: str) -> bytes:
    return zipped(members_of(LogisticRegression().fit(*data())))[:-200]


# --- trees that lead astray


def with_tree(change: Callable[[dict[str, Any]], None], also: Callable[[dict[str, Any]], None] | None = None) -> bytes:
    """A skops file of a tree whose arrays, or whose plan, were changed."""
    members = members_of(DecisionTreeClassifier(max_depth=3).fit(*data()))
    schema = json.loads(members["schema.json"])
    tree = next(part for part in nodes_in(schema) if part["__loader__"] == "TreeNode")
    state = tree["content"]["content"]
    arrays = {part: np.load(io.BytesIO(members[state[part]["file"]])) for part in ("nodes", "values")}
    change(arrays)
    for part, array in arrays.items():
        members[state[part]["file"]] = npy(array)
    if also is not None:
        also(tree)
    return zipped({**members, "schema.json": json.dumps(schema).encode()})


def put(field: str, value: float) -> Callable[[dict[str, Any]], None]:
    return lambda arrays: arrays["nodes"][field].__setitem__(0, value)


for _file, _field, _value in (
    ("cyclic-tree.skops", "left_child", 0), ("far-child.skops", "right_child", 10**9),
    ("negative-child.skops", "right_child", -7), ("far-feature.skops", "feature", 10**6),
    ("negative-feature.skops", "feature", -9), ("nan-threshold.skops", "threshold", np.nan),
):  # fmt: skip
    hostile(_file)(lambda mark, _field=_field, _value=_value: with_tree(put(_field, _value)))


@hostile("tree-that-miscounts.skops")
def miscounting(_mark: str) -> bytes:
    def lie(tree: dict[str, Any]) -> None:
        tree["content"]["content"]["node_count"] = value_node(10**6)

    return with_tree(lambda arrays: None, lie)


@hostile("tree-of-many-outputs.skops")
def many_outputs(_mark: str) -> bytes:
    def lie(tree: dict[str, Any]) -> None:
        tree["__reduce__"]["args"]["content"][2] = value_node(10**6)

    return with_tree(lambda arrays: None, lie)


@hostile("tree-without-values.skops")
def without_values(_mark: str) -> bytes:
    return with_tree(lambda arrays: arrays.update(values=arrays["values"][:1]))


def hist_gradient(field: str, value: int) -> bytes:
    model = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5).fit(*data())
    model._predictors[0][0].nodes[field][0] = value
    return skops.io.dumps(model)


for _file, _field, _value in (
    ("hist-cyclic.skops", "right", 0), ("hist-far-child.skops", "left", 10**6),
    ("hist-far-feature.skops", "feature_idx", 77), ("hist-levels.skops", "is_categorical", 1),
):  # fmt: skip
    hostile(_file)(lambda mark, _field=_field, _value=_value: hist_gradient(_field, _value))


@hostile("boosting-of-other-shape.skops")
def other_shape(_mark: str) -> bytes:
    model = GradientBoostingClassifier(n_estimators=2, max_depth=2).fit(*data())
    model.estimators_ = np.repeat(model.estimators_, 50, axis=1)
    return skops.io.dumps(model)


# --- other things that native code believes


@hostile("support-vectors.skops")
def support_vectors(_mark: str) -> bytes:
    model = SVC().fit(*data())
    model._n_support = np.array([10**6, 10**6], dtype=np.int32)
    return skops.io.dumps(model)


@hostile("rare-levels.skops")
def rare_levels(_mark: str) -> bytes:
    rows = np.array([["a"], ["a"], ["b"], ["c"]] * 9)
    model = make_pipeline(OneHotEncoder(min_frequency=15), LogisticRegression()).fit(rows, [0, 0, 1, 1] * 9)
    model[0]._default_to_infrequent_mappings = [np.array([0, 10**6, 1])]
    return skops.io.dumps(model)


@hostile("spline.skops")
def spline(_mark: str) -> bytes:
    X, y = data()
    model = make_pipeline(SplineTransformer(degree=1), LogisticRegression()).fit(X, y)
    model[0].bsplines_[0].k = 10**6
    return skops.io.dumps(model)
