"""ONNX files, checked before a runtime sees them: known operators, everything inside the file, no damaged tree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fewest.persistence._readers import library, refused, refusing
from fewest.persistence._sound import MOST_DEPTH

# onnx's numbers of types -> numpy's.
DTYPES = {1: np.float32, 6: np.int32, 7: np.int64, 8: np.str_, 9: np.bool_, 11: np.float64}
TEXT = 8
ML = "ai.onnx.ml"
PLAIN_OPERATORS = """
Abs Add And ArgMax Cast Clip Concat Div Elu Equal Exp Flatten Gather Gemm Greater Identity IsNaN LeakyRelu Less Log Mul
MatMul Max Min Neg Not Or Pow Reciprocal ReduceMax ReduceMean ReduceSum ReduceSumSquare Relu Reshape Selu Sigmoid Slice
Softmax Sqrt Squeeze Sub Sum Tanh Transpose Unsqueeze Where
"""
ML_OPERATORS = """
ArrayFeatureExtractor Binarizer CategoryMapper FeatureVectorizer Imputer LabelEncoder LinearClassifier LinearRegressor
Normalizer OneHotEncoder Scaler TreeEnsembleClassifier TreeEnsembleRegressor ZipMap
"""
OPERATORS = {"": frozenset(PLAIN_OPERATORS.split()), ML: frozenset(ML_OPERATORS.split())}
MOST_NODES = 1000
MODES = (b"LEAF", b"BRANCH_LEQ", b"BRANCH_LT", b"BRANCH_GTE", b"BRANCH_GT", b"BRANCH_EQ", b"BRANCH_NEQ")
MOST_DIMENSIONS = 3
# onnx's numbers of types -> bytes: float, uint8, int8, int32, int64, bool, double.
SIZES = {1: 4, 2: 1, 3: 1, 6: 4, 7: 8, 9: 1, 11: 8}


def check_onnx(data: bytes, name: str) -> Any:
    """The parsed model of a file's bytes, or an error that names the file."""
    # The runtime is asked for as well: at once, not after the audit.
    for needed in ("onnxruntime", "onnx"):
        onnx = library(needed, f"reading {name}", "pip install onnx onnxruntime")
    model = onnx.ModelProto()
    with refusing(name, "it is not an ONNX model"):
        model.ParseFromString(data)
        if not model.graph.node or not model.opset_import:
            raise refused(name, "it is not an ONNX model")
    if model.functions or model.training_info:
        raise refused(name, "it brings functions of its own")
    strange = {entry.domain for entry in model.opset_import} - {"", "ai.onnx", ML}
    if strange:
        raise refused(name, f"it needs operators of {sorted(strange)[0]!r}")
    _check_tensors(model.graph, name)
    _check_nodes(model.graph, name)
    _check_inputs(model.graph, name)
    return model


def _check_tensors(graph: Any, name: str) -> None:
    """Every array is in the file, of a plain type, and as long as it says."""
    if graph.sparse_initializer:
        raise refused(name, "it has sparse arrays")
    attributes = [attribute.t for node in graph.node for attribute in node.attribute if attribute.HasField("t")]
    for tensor in (*graph.initializer, *attributes):
        if tensor.data_location or tensor.external_data:
            raise refused(name, "it takes an array from another file")
        dims = list(tensor.dims)
        if len(dims) > MOST_DIMENSIONS or any(size < 0 for size in dims):
            raise refused(name, "an array in it has an impossible shape")
        count = math.prod(dims)
        if count != _held(tensor):
            raise refused(name, f"an array in it says {count:,} values and has {_held(tensor):,}")


def _held(tensor: Any) -> int:
    """How many values an array really has."""
    if tensor.data_type == TEXT:
        return len(tensor.string_data)
    size = SIZES.get(tensor.data_type)
    if size is None:
        return -1
    if tensor.raw_data:
        return len(tensor.raw_data) // size if len(tensor.raw_data) % size == 0 else -1
    return len(tensor.float_data) + len(tensor.int32_data) + len(tensor.int64_data) + len(tensor.double_data)


def _check_nodes(graph: Any, name: str) -> None:
    """Known operators only, no graphs inside them, and none that works on constants alone."""
    if len(graph.node) > MOST_NODES:
        raise refused(name, f"it has {len(graph.node):,} operators")
    moving = {entry.name for entry in graph.input} - {tensor.name for tensor in graph.initializer}
    known = moving | {tensor.name for tensor in graph.initializer} | {""}
    for node in graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if node.op_type not in OPERATORS.get(domain, ()):
            raise refused(name, f"its operator {domain or 'onnx'}.{node.op_type} is not on the list")
        if any(entry.HasField("g") or entry.graphs or entry.ref_attr_name for entry in node.attribute):
            raise refused(name, f"its operator {node.op_type} holds a graph")
        if not set(node.input) <= known:
            raise refused(name, "an operator in it comes before what it needs")
        # Arrays that only constants feed can be blown up to any size while the model is prepared.
        if not moving & set(node.input):
            raise refused(name, f"its operator {node.op_type} works on constants alone")
        if known & set(node.output) - {""}:
            raise refused(name, "a value in it is made twice")
        moving |= set(node.output)
        known |= set(node.output)


def inputs_of(graph: Any) -> list[Any]:
    constants = {tensor.name for tensor in graph.initializer}
    return [entry for entry in graph.input if entry.name not in constants]


def _check_inputs(graph: Any, name: str) -> None:
    """One table of numbers, or columns."""
    inputs = inputs_of(graph)
    for entry in inputs:
        kind, shape = entry.type.tensor_type.elem_type, entry.type.tensor_type.shape.dim
        fits = entry.type.WhichOneof("value") == "tensor_type" and kind in DTYPES and len(shape) == 2
        if not fits or shape[1].dim_value < 1 or (len(inputs) > 1 and shape[1].dim_value != 1):
            why = f'its input "{entry.name}" is neither a column nor a table'
            raise refused(name, why, do="convert it with skl2onnx")
    if not inputs or not graph.output:
        raise refused(name, "it has no inputs or no outputs")


def flaw_of_node(node: Any, width: int) -> str | None:
    """What is wrong with an operator that indexes its input unchecked; None if nothing is."""
    parts = {entry.name: entry for entry in node.attribute}
    if node.op_type in ("LinearClassifier", "LinearRegressor"):
        rows = len(parts["intercepts"].floats) if "intercepts" in parts else 0
        rows = rows or (parts["targets"].i if "targets" in parts else 1)
        labels = max(
            (len(entry.ints) + len(entry.strings) for part, entry in parts.items() if "label" in part), default=0
        )
        if labels and labels != max(rows, min(labels, 2)):
            return "its labels do not fit its scores"
        return None if len(parts["coefficients"].floats) == rows * width else "its coefficients do not fit its columns"
    if node.op_type in ("TreeEnsembleClassifier", "TreeEnsembleRegressor"):
        return _flaw_of_trees(parts, width)
    return None


def _flaw_of_trees(parts: Mapping[str, Any], width: int) -> str | None:
    ints = {
        part: np.array(parts[f"nodes_{part}"].ints, dtype=np.int64)
        for part in ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    }
    modes = np.array(parts["nodes_modes"].strings)
    nodes = len(modes)
    values = np.array(parts["nodes_values"].floats)
    if nodes == 0 or any(len(array) != nodes for array in (*ints.values(), values)):
        return "its arrays have different lengths"
    if any(part.endswith("_as_tensor") for part in parts):
        return "its numbers are tensors, which are not read"
    lists = [len(entry.ints) + len(entry.floats) for part, entry in parts.items() if part.startswith("nodes_")]
    if not set(lists) <= {0, nodes} or not np.isin(modes, MODES).all():
        return "its nodes have lists of other lengths, or tests of another kind"
    inner = modes != b"LEAF"
    tested = ints["featureids"][inner]
    if (tested < 0).any() or (tested >= width).any():
        return "it tests a feature that is not there"
    if not np.isfinite(values).all():
        return "it holds a number that is not finite"
    place = {key: at for at, key in enumerate(zip(ints["treeids"].tolist(), ints["nodeids"].tolist(), strict=True))}
    if len(place) != nodes:
        return "a node comes twice"
    return _flaw_of_links(ints, inner, place) or _flaw_of_leaves(parts, inner, place)


def _flaw_of_links(ints: Mapping[str, Any], inner: Any, place: Mapping[tuple[int, int], int]) -> str | None:
    """Every node is below the one root of its tree; ONNX asks for no order, so the parents are followed up."""
    parent = np.arange(len(inner))
    for side in ("truenodeids", "falsenodeids"):
        for at in np.flatnonzero(inner).tolist():
            child = place.get((int(ints["treeids"][at]), int(ints[side][at])))
            if child is None:
                return "a node leads to one that is not there"
            if parent[child] != child or child == at:
                return "a node has two parents, or is its own"
            parent[child] = at
    top = parent
    # As far up as a tree may be deep: a node that is not below a root by then is in a circle, or too deep.
    for _ in range(MOST_DEPTH.bit_length() - 1):
        top = top[top]
    roots = np.flatnonzero(parent == np.arange(len(parent)))
    if not np.isin(top, roots).all() or len(np.unique(ints["treeids"])) != len(roots):
        return "a node leads back to itself or to one before it, or is too deep"
    return None


def _flaw_of_leaves(parts: Mapping[str, Any], inner: Any, place: Mapping[tuple[int, int], int]) -> str | None:
    kind = "class" if "class_ids" in parts else "target"
    ids, trees, nodes = (
        np.array(parts[f"{kind}_{part}"].ints, dtype=np.int64) for part in ("ids", "treeids", "nodeids")
    )
    weights = np.array(parts[f"{kind}_weights"].floats)
    if kind == "class":
        named = [entry for part, entry in parts.items() if part.startswith("classlabels")]
        outputs = max(len(entry.ints) + len(entry.strings) for entry in named)
    else:
        outputs = int(parts["n_targets"].i)
    if not len(ids) == len(trees) == len(nodes) == len(weights) or not np.isfinite(weights).all():
        return "its leaf values do not fit together"
    if ((ids < 0) | (ids >= outputs)).any():
        return "a leaf votes for a class that is not there"
    base = len(parts["base_values"].floats) if "base_values" in parts else 0
    # Two classes whose leaves all vote for one of them are kept as one number.
    if base not in (0, outputs) and not (base == 1 and outputs == 2 and len(np.unique(ids)) == 1):
        return f"it begins with {base} values and has {outputs} outputs"
    places = [place.get(key, -1) for key in zip(trees.tolist(), nodes.tolist(), strict=True)]
    if -1 in places or inner[places].any():
        return "a leaf value belongs to no leaf"
    return None
