"""Models in the boosters' own formats and in ONNX, made to do harm; entered beside those of `hostile_models`."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import onnx
import skops.io
import xgboost
from hostile_models import HOSTILE, data, hostile, npy, value_node, zipped
from onnx import TensorProto, helper

__all__ = ["HOSTILE"]


# --- XGBoost


def booster_json() -> dict[str, Any]:
    model = xgboost.XGBClassifier(n_estimators=2, max_depth=2).fit(*data())
    return dict(json.loads(bytes(model.get_booster().save_raw("json"))))


def with_first_tree(change: Callable[[dict[str, Any]], Any]) -> bytes:
    content = booster_json()
    change(content["learner"]["gradient_booster"]["model"]["trees"][0])
    return json.dumps(content).encode()


def set_first(field: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda tree: tree[field].__setitem__(0, value)


for _file, _field, _value in (
    ("xgb-cyclic.json", "left_children", 0), ("xgb-far-child.json", "right_children", 10**6),
    ("xgb-far-feature.json", "split_indices", 10**6), ("xgb-nan.json", "split_conditions", float("nan")),
    ("xgb-text-child.json", "left_children", "1"), ("xgb-half-child.json", "left_children", 1.5),
):  # fmt: skip
    hostile(_file)(lambda mark, _field=_field, _value=_value: with_first_tree(set_first(_field, _value)))


@hostile("xgb-miscounts.json")
def miscounts(_mark: str) -> bytes:
    return with_first_tree(lambda tree: tree["tree_param"].update(num_nodes="2147483647"))


@hostile("xgb-negative-leaves.json")
def negative_leaves(_mark: str) -> bytes:
    return with_first_tree(lambda tree: tree["tree_param"].update(size_leaf_vector="-1"))


@hostile("xgb-right-parent.json")
def right_parent(_mark: str) -> bytes:
    return with_first_tree(lambda tree: tree["parents"].__setitem__(2, -16777214))


@hostile("xgb-deep.json")
def deep_json(_mark: str) -> bytes:
    return b'{"learner":' + b"[" * 200_000


@hostile("xgb-key-twice.json")
def key_twice(_mark: str) -> bytes:
    return json.dumps(booster_json()).encode()[:-1] + b', "learner": {}}'


@hostile("xgb-other-objective.json")
def other_objective(_mark: str) -> bytes:
    content = booster_json()
    content["learner"]["objective"]["name"] = "rank:pairwise"
    return json.dumps(content).encode()


def with_names(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """A booster with a feature of text, whose names of levels were changed."""
    import pandas as pd

    X, y = data()
    frame = pd.DataFrame({"a": X[:, 0], "k": pd.Categorical(np.where(X[:, 1] > 0, "up", "down"))})
    model = xgboost.XGBClassifier(n_estimators=1, max_depth=2, enable_categorical=True).fit(frame, y)
    content = json.loads(bytes(model.get_booster().save_raw("json")))
    change(content["learner"]["gradient_booster"]["model"]["cats"])
    return json.dumps(content).encode()


for _file, _where in (
    ("xgb-far-name.json", lambda names: names["enc"][1].update(offsets=[0, 2, 10**8])),
    ("xgb-far-order.json", lambda names: names.update(sorted_idx=[0, 10**8])),
    ("xgb-far-segment.json", lambda names: names.update(feature_segments=[0, 0, 10**8])),
):
    hostile(_file)(lambda mark, _where=_where: with_names(_where))


@hostile("xgb-length-lie.ubj")
def length_lie(_mark: str) -> bytes:
    return b"{L" + struct.pack(">q", 7) + b"learner[$l#L" + struct.pack(">q", 1 << 60)


@hostile("xgb-cyclic.ubj")
def cyclic_ubj(_mark: str) -> bytes:
    model = xgboost.XGBClassifier(n_estimators=1, max_depth=2).fit(*data())
    raw = bytearray(model.get_booster().save_raw("ubj"))
    at = raw.index(b"left_children") + len(b"left_children[$l#L") + 8
    raw[at : at + 4] = struct.pack(">i", 0)
    return bytes(raw)


@hostile("xgb-booster.skops")
def booster_in_skops(_mark: str) -> bytes:
    model = xgboost.XGBClassifier(n_estimators=1, max_depth=2).fit(*data())
    whole = bytearray(skops.io.dumps(model))
    at = whole.index(b"left_children") + len(b"left_children[$l#L") + 8
    whole[at : at + 4] = struct.pack(">i", 0)
    return rezipped(bytes(whole))


def rezipped(whole: bytes) -> bytes:
    """The same members with checksums that fit: the zip's own are no defence against who writes it."""
    import io
    import zipfile

    archive = zipfile.ZipFile(io.BytesIO(whole))
    members = {}
    for entry in archive.infolist():
        start = entry.header_offset + 30 + len(entry.filename) + len(entry.extra)
        members[entry.filename] = whole[start : start + entry.file_size]
    return zipped(members)


# --- LightGBM


def model_text() -> str:
    X, y = data()
    settings: dict[str, Any] = {"n_estimators": 2, "num_leaves": 4, "min_child_samples": 2, "verbose": -1}
    model = lightgbm.LGBMClassifier(**settings).fit(X, y)
    return str(model.booster_.model_to_string())


def with_line(key: str, change: Callable[[str], str]) -> bytes:
    """The text with the first line of a key changed; sizes of trees are left out, as old versions did."""
    text = model_text()
    kept = [line for line in text.split("\n") if not line.startswith("tree_sizes=")]
    at = next(number for number, line in enumerate(kept) if line.startswith(f"{key}="))
    kept[at] = f"{key}={change(kept[at].partition('=')[2])}"
    return "\n".join(kept).encode()


for _file, _key, _new in (
    ("lgb-near-child.txt", "left_child", "3 2 -1"),
    ("lgb-negative.txt", "num_leaves", "-5"), ("lgb-many.txt", "num_leaves", "2000000000"),
    ("lgb-cyclic.txt", "left_child", "0 2 -1"), ("lgb-far-child.txt", "right_child", "-2 -3 -99999"),
    ("lgb-far-feature.txt", "split_feature", "0 1 99999"), ("lgb-sets.txt", "num_cat", "2"),
    ("lgb-nan.txt", "leaf_value", "nan 0 0 0"), ("lgb-features.txt", "max_feature_idx", "-2"),
):  # fmt: skip
    hostile(_file)(lambda mark, _key=_key, _new=_new: with_line(_key, lambda _: _new))


@hostile("lgb-sizes.txt")
def tree_sizes(_mark: str) -> bytes:
    lines = model_text().split("\n")
    return "\n".join("tree_sizes=1 99999999" if line.startswith("tree_sizes=") else line for line in lines).encode()


@hostile("lgb-no-number.txt")
def no_number(_mark: str) -> bytes:
    return model_text().replace("leaf_count=", "leaf_count=p", 1).encode()


@hostile("lgb-booster.skops")
def lightgbm_in_skops(_mark: str) -> bytes:
    from hostile_models import members_of, nodes_in

    X, y = data()
    members = members_of(lightgbm.LGBMClassifier(n_estimators=1, num_leaves=4, verbose=-1).fit(X, y))
    schema = json.loads(members["schema.json"])
    booster = next(part for part in nodes_in(schema) if part["__module__"] == "lightgbm.basic")
    booster["content"]["content"]["_handle"] = value_node(with_line("num_leaves", lambda _: "-5").decode())
    return zipped({**members, "schema.json": json.dumps(schema).encode()})


# --- ONNX


def graph(nodes: list[Any], constants: list[Any] | None = None) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 3])]
    outputs = [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2])]
    made = helper.make_graph(nodes, "g", inputs, outputs, constants or [])
    imports = [helper.make_opsetid("", 14), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(made, opset_imports=imports, ir_version=8)


def weights(values: int = 6, dims: tuple[int, ...] = (3, 2)) -> Any:
    return helper.make_tensor("W", TensorProto.FLOAT, dims, np.zeros(values, dtype=np.float32).tobytes(), raw=True)


def linear() -> onnx.ModelProto:
    """An honest model: what the others are changed from."""
    nodes = [helper.make_node("MatMul", ["X", "W"], ["Z"]), helper.make_node("Softmax", ["Z"], ["probabilities"])]
    return graph(nodes, [weights()])


@hostile("external.onnx")
def external(_mark: str) -> bytes:
    model = linear()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../etc/passwd")
    return bytes(model.SerializeToString())


@hostile("giant.onnx")
def giant(_mark: str) -> bytes:
    model = linear()
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend([10**6, 10**6])
    return bytes(model.SerializeToString())


@hostile("negative-size.onnx")
def negative_size(_mark: str) -> bytes:
    model = linear()
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend([-3, -2])
    return bytes(model.SerializeToString())


def inner_graph() -> Any:
    value = helper.make_tensor_value_info("o", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node("Identity", ["X"], ["o"])], "inner", [], [value])


@hostile("loop.onnx")
def loop(_mark: str) -> bytes:
    node = helper.make_node("Loop", ["", "", "X"], ["probabilities"], body=inner_graph())
    return bytes(graph([node]).SerializeToString())


@hostile("graph-inside.onnx")
def graph_inside(_mark: str) -> bytes:
    node = helper.make_node("Identity", ["X"], ["probabilities"], body=inner_graph())
    return bytes(graph([node]).SerializeToString())


@hostile("custom-domain.onnx")
def custom_domain(_mark: str) -> bytes:
    model = linear()
    model.opset_import.append(helper.make_opsetid("com.evil", 1))
    model.graph.node[0].domain = "com.evil"
    return bytes(model.SerializeToString())


@hostile("functions.onnx")
def functions(_mark: str) -> bytes:
    model = linear()
    body = [helper.make_node("Identity", ["a"], ["b"])]
    model.functions.append(helper.make_function("", "Softmax", ["a"], ["b"], body, [helper.make_opsetid("", 14)]))
    return bytes(model.SerializeToString())


@hostile("blown-up.onnx")
def blown_up(_mark: str) -> bytes:
    nodes = [
        helper.make_node("ConstantOfShape", ["S"], ["C"]),
        helper.make_node("MatMul", ["X", "C"], ["probabilities"]),
    ]
    size = helper.make_tensor("S", TensorProto.INT64, (2,), [3, 10**12])
    return bytes(graph(nodes, [size]).SerializeToString())


@hostile("constants-alone.onnx")
def constants_alone(_mark: str) -> bytes:
    column = helper.make_tensor("C", TensorProto.FLOAT, (100_000, 1), np.zeros(100_000, np.float32).tobytes(), raw=True)
    row = helper.make_tensor("R", TensorProto.FLOAT, (1, 100_000), np.zeros(100_000, np.float32).tobytes(), raw=True)
    nodes = [helper.make_node("Add", ["C", "R"], ["B"]), helper.make_node("MatMul", ["X", "B"], ["probabilities"])]
    return bytes(graph(nodes, [column, row]).SerializeToString())


@hostile("cut-off.onnx")
def cut_off(_mark: str) -> bytes:
    return bytes(linear().SerializeToString())[:-20]


def ensemble(**changes: Any) -> bytes:
    """A stump; the changes are to its attributes."""
    parts: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "class_treeids": [0, 0],
        "class_nodeids": [1, 2], "class_ids": [0, 1], "class_weights": [1.0, 1.0], "classlabels_int64s": [0, 1],
        **changes,
    }  # fmt: skip
    node = helper.make_node(
        "TreeEnsembleClassifier", ["X"], ["label", "probabilities"], domain="ai.onnx.ml", **parts
    )  # fmt: skip
    return bytes(graph([node]).SerializeToString())


for _file, _changes in (
    ("tree-cyclic.onnx", {"nodes_truenodeids": [0, 0, 0]}),
    ("tree-far-child.onnx", {"nodes_falsenodeids": [99, 0, 0]}),
    ("tree-far-feature.onnx", {"nodes_featureids": [10**6, 0, 0]}),
    ("tree-far-class.onnx", {"class_ids": [0, 10**6]}),
    ("tree-lengths.onnx", {"nodes_values": [0.5]}),
):
    hostile(_file)(lambda mark, _changes=_changes: ensemble(**_changes))


@hostile("coefficients.onnx")
def coefficients(_mark: str) -> bytes:
    node = helper.make_node(
        "LinearClassifier", ["X"], ["label", "probabilities"], domain="ai.onnx.ml", coefficients=[1.0],
        intercepts=[0.0, 0.0], classlabels_ints=[0, 1],
    )  # fmt: skip
    return bytes(graph([node]).SerializeToString())


# --- explainers


def explainer_members() -> dict[str, bytes]:
    """Members of an honest explainer on a tree of ours."""
    import io
    import zipfile

    import pandas as pd

    import fewest as fw
    from fewest.models.trees import CARTClassifier
    from fewest.persistence.explainers import as_bytes

    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    decision = fw.Decision(CARTClassifier().fit(frame, y))
    whole = as_bytes(fw.Explainer(decision, fw.references.leaves(decision, frame, y)))
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def resealed(members: dict[str, bytes], **manifest: Any) -> bytes:
    """The members with a manifest that fits them: a checksum is no defence against who writes the file."""
    import hashlib

    rest = {name: content for name, content in members.items() if name != "manifest.json"}
    listed = {name: {"bytes": len(c), "sha256": hashlib.sha256(c).hexdigest()} for name, c in rest.items()}
    said = {**json.loads(members["manifest.json"]), "members": listed, **manifest}
    return zipped({"manifest.json": json.dumps(said).encode(), **rest})


@hostile("checksum-lie.fewest")
def checksum_lie(_mark: str) -> bytes:
    members = explainer_members()
    return zipped({**members, "explainer.json": members["explainer.json"] + b" "})


@hostile("future.fewest")
def future(_mark: str) -> bytes:
    return resealed(explainer_members(), format=99)


@hostile("unlisted.fewest")
def unlisted(_mark: str) -> bytes:
    return zipped({**explainer_members(), "more.npy": b"x"})


@hostile("no-manifest.fewest")
def no_manifest(_mark: str) -> bytes:
    return zipped({name: content for name, content in explainer_members().items() if name != "manifest.json"})


@hostile("deep.fewest")
def deep_settings(_mark: str) -> bytes:
    return resealed({**explainer_members(), "explainer.json": b"[" * 100_000})


@hostile("cyclic.fewest")
def cyclic_tree(_mark: str) -> bytes:
    import io

    members = explainer_members()
    left = np.load(io.BytesIO(members["model.tree.left.npy"]))
    left[0] = 0
    return resealed({**members, "model.tree.left.npy": npy(left)})


@hostile("pickled-array.fewest")
def pickled_array(mark: str) -> bytes:
    from hostile_models import Trap

    trap = npy(np.array([Trap(mark)], dtype=object), allow_pickle=True)
    return resealed({**explainer_members(), "model.tree.score.npy": trap})


@hostile("unknown-model.fewest")
def unknown_model(_mark: str) -> bytes:
    members = explainer_members()
    content = json.loads(members["explainer.json"])
    content["model"].update({"kind": "trained", "class": "os.system"})
    return resealed({**members, "explainer.json": json.dumps(content).encode()})
