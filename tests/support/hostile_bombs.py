"""Small files that would cost much, deep trees and arrays that grow; and trees where nobody looks for them."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from hostile_boosters import booster_json, ensemble, graph, model_text
from hostile_models import data, hostile
from onnx import TensorProto, helper

DEEP = 6000

# --- LightGBM: a tree in the header, where LightGBM finds it first


def parts_of_text() -> tuple[str, str, str]:
    """Header without sizes, the first tree, and what follows the trees."""
    head, _, rest = model_text().partition("\n\nTree=")
    body, _, tail = rest.partition("\nend of trees")
    kept = "\n".join(line for line in head.split("\n") if not line.startswith("tree_sizes="))
    return kept, "Tree=" + body.split("\nTree=")[0].rstrip("\n"), tail


def changed(tree: str, changes: Mapping[str, str]) -> str:
    lines = [line.partition("=") for line in tree.split("\n")]
    return "\n".join(f"{key}={changes.get(key, value)}" for key, _, value in lines)


FAR = {"left_child": "100000000 100000000 100000000", "right_child": "100000000 100000000 100000000"}
CYCLE = {"left_child": "0 0 0", "right_child": "0 0 0"}


def hidden(changes: Mapping[str, str], sized: bool) -> bytes:
    head, tree, tail = parts_of_text()
    trees = f"{changed(tree, changes)}\n\n{tree}\n\n"
    sizes = f"\ntree_sizes={len(trees)}" if sized else ""
    return f"{head}{sizes}\n{trees}end of trees{tail}".encode()


for _name, _changes, _sized in (
    ("header-cycle", CYCLE, False), ("header-far", FAR, False), ("sizes-cycle", CYCLE, True), ("sizes-far", FAR, True),
    ("sizes-other", {"leaf_value": "9 9 9 9"}, True),
):  # fmt: skip
    hostile(f"lgb-{_name}.txt")(lambda mark, _changes=_changes, _sized=_sized: hidden(_changes, _sized))


@hostile("lgb-unknown-line.txt")
def unknown_line(_mark: str) -> bytes:
    return model_text().replace("label_index=0", "label_index=0\nlinear_tree=1", 1).encode()


@hostile("lgb-classes-of-objective.txt")
def classes_of_objective(_mark: str) -> bytes:
    return model_text().replace("objective=binary sigmoid:1", "objective=multiclass num_class:900", 1).encode()


@hostile("lgb-deep-tree.txt")
def deep_text(_mark: str) -> bytes:
    head, _, tail = parts_of_text()
    inner, leaves = range(DEEP), range(DEEP + 1)
    lists: dict[str, list[Any]] = {
        "split_feature": [0 for _ in inner], "split_gain": [1 for _ in inner], "threshold": [-at for at in inner],
        "decision_type": [2 for _ in inner], "left_child": [~at for at in inner],
        "right_child": [*range(1, DEEP), ~DEEP], "leaf_value": [0.1 for _ in leaves],
    }  # fmt: skip
    lines = "\n".join(f"{key}={' '.join(map(str, values))}" for key, values in lists.items())
    return f"{head}\n\nTree=0\nnum_leaves={DEEP + 1}\nnum_cat=0\n{lines}\nshrinkage=1\n\n\nend of trees{tail}".encode()


# --- XGBoost


def chain(tree: dict[str, Any], depth: int) -> dict[str, Any]:
    """Make a tree a chain: inner nodes have even numbers, each with a leaf beside the next one."""
    count = 2 * depth + 1
    left, right, parents = [-1] * count, [-1] * count, [2**31 - 1] + [0] * (count - 1)
    for at in range(0, 2 * depth, 2):
        left[at], right[at], parents[at + 1], parents[at + 2] = at + 1, at + 2, at, at
    zeros, flat = [0] * count, [0.0] * count
    tree.update(
        left_children=left, right_children=right, parents=parents, split_indices=zeros, split_type=zeros,
        default_left=zeros, split_conditions=flat, base_weights=flat, loss_changes=flat, sum_hessian=[1.0] * count,
        categories=[], categories_nodes=[], categories_segments=[], categories_sizes=[],
    )  # fmt: skip
    tree["tree_param"]["num_nodes"] = str(count)
    return tree


@hostile("xgb-deep-tree.json")
def deep_tree(_mark: str) -> bytes:
    content = booster_json()
    chain(content["learner"]["gradient_booster"]["model"]["trees"][0], DEEP)
    return json.dumps(content).encode()


def with_levels(nodes: int, level: int) -> bytes:
    """A chain of tests by levels, each of one level with this number."""
    X, y = data()
    table = pd.DataFrame({"a": X[:, 0], "k": pd.Categorical(np.where(X[:, 1] > 0, "up", "down"))})
    model = xgboost.XGBClassifier(n_estimators=1, max_depth=1, enable_categorical=True).fit(table, y)
    content = json.loads(bytes(model.get_booster().save_raw("json")))
    tree = chain(content["learner"]["gradient_booster"]["model"]["trees"][0], nodes)
    inner = list(range(0, 2 * nodes, 2))
    by_level = [int(at in set(inner)) for at in range(2 * nodes + 1)]
    tree.update(
        split_indices=by_level, split_type=by_level, categories=[level] * nodes, categories_nodes=inner,
        categories_segments=list(range(nodes)), categories_sizes=[1] * nodes,
    )  # fmt: skip
    return json.dumps(content).encode()


hostile("xgb-many-level-bits.json")(lambda mark: with_levels(3000, (1 << 20) - 1))


# --- JSON


@hostile("many-values.skops")
def many_values(_mark: str) -> bytes:
    body = b'{"protocol":2,"a":[' + b"{}," * (30 << 20) + b"{}]}"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("schema.json", body)
        archive.writestr("pad.bin", os.urandom(len(body) // 98))
    return buffer.getvalue()


@hostile("many-values.ubj")
def many_ubjson_values(_mark: str) -> bytes:
    return b"{U\x01a[" + b"{}" * (20 << 20) + b"]}"


# --- ONNX


def ints(name: str, values: list[int]) -> Any:
    return helper.make_tensor(name, TensorProto.INT64, (len(values),), values)


def widened(width: int, products: int) -> bytes:
    """A column copied, multiplied with itself to a square, and the square with itself again and again."""
    nodes = [
        helper.make_node("Gather", ["X", "columns"], ["wide"], axis=1),
        helper.make_node("Transpose", ["wide"], ["tall"], perm=[1, 0]),
        helper.make_node("MatMul", ["tall", "wide"], ["square0"]),
        *(helper.make_node("MatMul", [f"square{at}", "square0"], [f"square{at + 1}"]) for at in range(products)),
        helper.make_node("ReduceSum", [f"square{products}"], ["sum"], keepdims=1),
        helper.make_node("Concat", ["sum", "sum"], ["probabilities"], axis=1),
    ]
    return bytes(graph(nodes, [ints("columns", [0] * width)]).SerializeToString())


hostile("outer-product.onnx")(lambda mark: widened(60_000, 0))
hostile("many-products.onnx")(lambda mark: widened(1500, 400))


@hostile("rows-times-rows.onnx")
def rows_times_rows(_mark: str) -> bytes:
    nodes = [
        helper.make_node("Transpose", ["X"], ["across"], perm=[1, 0]),
        helper.make_node("MatMul", ["X", "across"], ["pairs"]),
        helper.make_node("ReduceMax", ["pairs"], ["largest"], axes=[1], keepdims=1),
        helper.make_node("Concat", ["largest", "largest"], ["probabilities"], axis=1),
    ]
    return bytes(graph(nodes).SerializeToString())


def chain_of_nodes(depth: int) -> dict[str, Any]:
    inner, leaf = list(range(0, 2 * depth, 2)), list(range(1, 2 * depth + 1, 2))
    count = 2 * depth + 1
    by = {at: (at + 1, at + 2) for at in inner}
    return {
        "nodes_treeids": [0] * count, "nodes_nodeids": list(range(count)), "nodes_featureids": [0] * count,
        "nodes_modes": ["BRANCH_LEQ" if at in by else "LEAF" for at in range(count)],
        "nodes_values": [float(at) for at in range(count)],
        "nodes_truenodeids": [by.get(at, (0, 0))[0] for at in range(count)],
        "nodes_falsenodeids": [by.get(at, (0, 0))[1] for at in range(count)],
        "class_nodeids": leaf[:2],
    }  # fmt: skip


ENSEMBLES: dict[str, Callable[[], dict[str, Any]]] = {
    "deep": lambda: chain_of_nodes(DEEP),
    "base-too-short": lambda: {"base_values": [0.1]},
    "base-too-long": lambda: {"base_values": [0.1] * 1000},
    "tracks": lambda: {"nodes_missing_value_tracks_true": [1]},
    "rates": lambda: {"nodes_hitrates": [1.0]},
    "modes": lambda: {"nodes_modes": ["BRANCH_MEMBER", "LEAF", "LEAF"]},
}
for _name, _make in ENSEMBLES.items():
    hostile(f"ensemble-{_name}.onnx")(lambda mark, _make=_make: ensemble(**_make()))


@hostile("more-scores-than-labels.onnx")
def more_scores(_mark: str) -> bytes:
    node = helper.make_node(
        "LinearClassifier", ["X"], ["label", "probabilities"], domain="ai.onnx.ml", multi_class=1,
        coefficients=[1.0] * 300, intercepts=[0.0] * 100, classlabels_ints=[0, 1], post_transform="SOFTMAX",
    )  # fmt: skip
    return bytes(graph([node]).SerializeToString())
