"""ONNX models as classifiers: checked before a runtime sees them, then raw tables in, chances out, through onnxruntime.

An ONNX file can name other files, other libraries' operators, loops, and arrays of any size. None of that is needed by
a classifier of tables, so none of it is allowed: known operators only, everything inside the file, no damaged tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError
from fewest.persistence._readers import library, refused, refusing

# onnx's numbers of types -> numpy's.
DTYPES = {1: np.float32, 6: np.int32, 7: np.int64, 8: np.str_, 9: np.bool_, 11: np.float64}
TEXT = 8
INDEXING = ("LinearClassifier", "LinearRegressor", "TreeEnsembleClassifier", "TreeEnsembleRegressor")
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
MOST_NODES = 10_000
MOST_DIMENSIONS = 3
# onnx's numbers of types -> bytes: float, uint8, int8, int32, int64, bool, double.
SIZES = {1: 4, 2: 1, 3: 1, 6: 4, 7: 8, 9: 1, 11: 8}


class OnnxClassifier:
    """A classifier from an ONNX file; its inside is not read, so searches ask for its scores.

    Attributes
    ----------
    classes_ : (k,) array
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str
        Only where the model takes one input per column.
    """

    def __init__(self, data: bytes, name: str = "model.onnx") -> None:
        model = check_onnx(data, name)
        self._inputs = {
            entry.name: (entry.type.tensor_type.elem_type, int(entry.type.tensor_type.shape.dim[1].dim_value))
            for entry in _inputs_of(model.graph)
        }
        self.n_features_in_ = sum(width for _, width in self._inputs.values())
        if len(self._inputs) > 1:
            self.feature_names_in_ = np.array(list(self._inputs), dtype=object)
        with refusing(name, "onnxruntime does not take it"):
            _check_widths(model, self._blank(), name)
            self._output, labels = _output(model, name)
            self._data = _ending_in(model, len(model.graph.node), self._output)
            self._session: Any = None
            width = _width(model, len(model.graph.node), self._output, self._blank())
        if labels is not None and len(labels) != max(2, width):
            raise refused(name, f"it has {len(labels)} classes and {width} scores")
        self.classes_ = np.arange(max(2, width)) if labels is None else labels

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def data(self) -> bytes:
        """The model as it is run: what leads to the chances, and no more."""
        return self._data

    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """Chances of the classes (n, k), in the model's own precision."""
        scores = self._run(self._feed(X))
        return np.column_stack([1 - scores[:, 0], scores[:, 0]]) if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of each row (n,)."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    def _run(self, feed: Mapping[str, Any]) -> npt.NDArray[Any]:
        if self._session is None:
            self._session = _session(self._data)
        scores = np.asarray(self._session.run([self._output], dict(feed))[0])
        return scores[:, None] if scores.ndim == 1 else scores

    def _blank(self) -> dict[str, Any]:
        """One row of nothing in particular."""
        return {
            entry: np.array([[""] * width], dtype=object) if kind == TEXT else np.zeros((1, width), dtype=DTYPES[kind])
            for entry, (kind, width) in self._inputs.items()
        }

    def _feed(self, X: Any) -> dict[str, Any]:
        table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        if table.shape[1] != self.n_features_in_:
            raise DataError(
                f"the rows have {table.shape[1]} columns, the model takes {self.n_features_in_}",
                do="pass a table with the columns of training",
            )
        if len(self._inputs) == 1:
            ((entry, (kind, _)),) = self._inputs.items()
            return {entry: _column(table, kind)}
        by_name = set(self._inputs) <= set(table.columns)
        columns = list(self._inputs) if by_name else list(table.columns)
        return {
            entry: _column(table[[column]], kind)
            for (entry, (kind, _)), column in zip(self._inputs.items(), columns, strict=True)
        }


def _column(table: pd.DataFrame, kind: int) -> npt.NDArray[Any]:
    if kind == TEXT:
        return np.asarray(table.to_numpy(dtype=object).astype(str).astype(object))
    return np.ascontiguousarray(table.to_numpy(dtype=DTYPES[kind]))


def _session(data: bytes) -> Any:
    """A session on one thread: scores are then the same on every machine."""
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _check_widths(model: Any, blank: Mapping[str, Any], name: str) -> None:
    """Operators that index their input are held against its width, found by running what comes before them."""
    widths = {entry: values.shape[1] for entry, values in blank.items()}
    for at, node in enumerate(model.graph.node):
        if node.op_type not in INDEXING:
            continue
        before = node.input[0]
        if before not in widths:
            widths[before] = _width(model, at, before, blank)
        flaw = flaw_of_node(node, widths[before])
        if flaw is not None:
            raise refused(name, f"a damaged {node.op_type}: {flaw}")


def _width(model: Any, count: int, output: str, blank: Mapping[str, Any]) -> int:
    """Columns of a value, found by running what leads to it."""
    values = np.asarray(_session(_ending_in(model, count, output, lenient=True)).run([output], dict(blank))[0])
    return 1 if values.ndim == 1 else int(values.shape[-1])


def _ending_in(model: Any, count: int, output: str, lenient: bool = False) -> bytes:
    """The model cut off after its first operators, with one output; a lenient one takes levels it does not know."""
    onnx = import_module("onnx")
    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    kept = [node for node in model.graph.node[:count] if node.op_type != "ZipMap"]
    del cut.graph.node[:], cut.graph.output[:], cut.graph.value_info[:], cut.metadata_props[:]
    cut.graph.node.extend(kept)
    for node in cut.graph.node:
        if lenient and node.op_type == "OneHotEncoder":
            others = [entry for entry in node.attribute if entry.name != "zeros"]
            del node.attribute[:]
            node.attribute.extend([*others, onnx.helper.make_attribute("zeros", 1)])
    cut.graph.output.extend([onnx.ValueInfoProto(name=output)])
    return bytes(cut.SerializeToString())


def _output(model: Any, name: str) -> tuple[str, npt.NDArray[Any] | None]:
    """The value that holds the chances, and the names of the classes where the model says them."""
    maker = {output: node for node in model.graph.node for output in node.output}
    for entry in model.graph.output:
        node = maker.get(entry.name)
        if node is not None and node.op_type == "ZipMap":
            return node.input[0], _labels(model, node)
    floats = [entry.name for entry in model.graph.output if _maybe_chances(entry.type)]
    if not floats:
        raise refused(name, "it gives no chances", do="convert a classifier, with its probabilities")
    return floats[0], _labels(model, None)


def _maybe_chances(kind: Any) -> bool:
    """Whether a value is of numbers, or of a type that is not said: as in a model that was cut to its chances."""
    said = kind.WhichOneof("value")
    return said is None or (said == "tensor_type" and kind.tensor_type.elem_type in (1, 11))


def _labels(model: Any, chosen: Any) -> npt.NDArray[Any] | None:
    nodes = [chosen] if chosen is not None else [node for node in model.graph.node if node.domain == ML]
    for node in nodes:
        for entry in node.attribute:
            if entry.name.startswith("classlabels") and (entry.ints or entry.strings):
                return np.array(list(entry.ints) or [text.decode("utf-8") for text in entry.strings])
    for tensor in model.graph.initializer:
        # skl2onnx keeps the labels of nets and pipelines under this name.
        if tensor.name == "classes" and len(tensor.dims) == 1:
            values = import_module("onnx.numpy_helper").to_array(tensor)
            return np.array([_text(value) for value in values.tolist()])
    return None


def _text(value: Any) -> Any:
    return value.decode("utf-8") if isinstance(value, bytes) else value


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


def _inputs_of(graph: Any) -> list[Any]:
    constants = {tensor.name for tensor in graph.initializer}
    return [entry for entry in graph.input if entry.name not in constants]


def _check_inputs(graph: Any, name: str) -> None:
    """One table of numbers, or columns."""
    inputs = _inputs_of(graph)
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
    for _ in range(len(inner).bit_length() + 1):
        top = top[top]
    roots = np.flatnonzero(parent == np.arange(len(parent)))
    if not np.isin(top, roots).all() or len(np.unique(ints["treeids"])) != len(roots):
        return "a node leads back to itself or to one before it"
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
    places = [place.get(key, -1) for key in zip(trees.tolist(), nodes.tolist(), strict=True)]
    if -1 in places or inner[places].any():
        return "a leaf value belongs to no leaf"
    return None
