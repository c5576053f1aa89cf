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
from fewest.persistence._onnx_audit import DTYPES, ML, TEXT, check_onnx, flaw_of_node, inputs_of
from fewest.persistence._readers import refused, refusing

# Of one row: values in any array, and products in all of them.
MOST_VALUES, MOST_PRODUCTS = 1 << 24, 1 << 30
STRETCHED = frozenset(
    ["Add", "And", "Div", "Equal", "Greater", "Less", "Max", "Min", "Mul", "Or", "Pow", "Sub", "Sum", "Where"]
)


class OnnxClassifier:
    """A classifier from an ONNX file.

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
            for entry in inputs_of(model.graph)
        }
        self.n_features_in_ = sum(width for _, width in self._inputs.values())
        if len(self._inputs) > 1:
            self.feature_names_in_ = np.array(list(self._inputs), dtype=object)
        with refusing(name, "onnxruntime does not take it"):
            self._output, labels = _output(model, name)
            shapes = _walked(model, self._blank(1), name)
            if any(shape[0] > 2 * shapes[part][0] for part, shape in _walked(model, self._blank(2), name).items()):
                raise refused(name, "a value in it grows faster than the rows")
            self._data = _ending_in(model, self._output)
            self._session: Any = None
            self._inner: dict[str, Any] = {}
            width = shapes[self._output][1]
        if labels is not None and len(labels) != max(2, width):
            raise refused(name, f"it has {len(labels)} classes and {width} scores")
        self.classes_ = np.arange(max(2, width)) if labels is None else labels

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None, "_inner": {}}

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def data(self) -> bytes:
        """The model as it is run: what leads to the chances, and no more."""
        return self._data

    @property
    def output(self) -> str:
        """The value in it that holds the chances."""
        return self._output

    @property
    def columns(self) -> dict[str, range]:
        """Of each input the positions of the columns it takes."""
        ends = np.cumsum([width for _, width in self._inputs.values()]).tolist()
        return {
            entry: range(end - width, end) for end, (entry, (_, width)) in zip(ends, self._inputs.items(), strict=True)
        }

    def inner(self, value: str, X: Any) -> npt.NDArray[Any]:
        """A value inside the model, of rows."""
        feed = self._feed(X)
        if value in feed:
            return np.asarray(feed[value])
        if value not in self._inner:
            self._inner[value] = _session(_ending_in(import_module("onnx").load_from_string(self._data), value))
        return np.asarray(self._inner[value].run([value], feed)[0])

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

    def _blank(self, rows: int) -> dict[str, Any]:
        """Rows of nothing in particular."""
        return {
            entry: np.full((rows, width), "", dtype=object) if kind == TEXT else np.zeros((rows, width), DTYPES[kind])
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


def _walked(model: Any, blank: Mapping[str, Any], name: str) -> dict[str, tuple[int, int]]:
    """Size and width of every value, found by running the operators one at a time; none is run that would cost much.

    Operators that index their input are held against its width before they run.
    """
    numpy_of = import_module("onnx.numpy_helper").to_array
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    values: dict[str, Any] = dict(blank)
    products = 0
    for node in model.graph.node:
        inputs = [values[part] if part in values else numpy_of(constants[part]) for part in node.input if part]
        if node.op_type == "ZipMap":
            continue
        flaw = flaw_of_node(node, _columns(inputs[0]))
        if flaw is not None:
            raise refused(name, f"a damaged {node.op_type}: {flaw}")
        size, cost = _most(node, inputs)
        products += cost
        if size > MOST_VALUES or products > MOST_PRODUCTS:
            raise refused(name, f"its operator {node.op_type} would make {max(size, cost):,} numbers of one row")
        feed = {part: values[part] for part in node.input if part in values}
        made = _session(_alone(model, node, feed, constants)).run(list(filter(None, node.output)), feed)
        values.update(zip(filter(None, node.output), made, strict=True))
    return {part: (np.size(value), _columns(value)) for part, value in values.items()}


def _columns(value: Any) -> int:
    return 1 if np.ndim(value) < 2 else int(np.shape(value)[-1])


def _most(node: Any, inputs: list[Any]) -> tuple[int, int]:
    """The most values an operator can make of its inputs, and the most products it takes."""
    parts = {entry.name: entry for entry in node.attribute}
    sizes, shapes = [max(1, np.size(part)) for part in inputs], [np.shape(part) for part in inputs]
    if node.op_type in ("MatMul", "Gemm"):
        turned = "transA" in parts and parts["transA"].i
        meet = max(1, shapes[0][0 if turned else -1]) if shapes[0] else 1
        return sizes[0] * sizes[1] // meet**2, sizes[0] * sizes[1] // meet
    listed = max((len(entry.ints) + len(entry.floats) + len(entry.strings) for entry in node.attribute), default=0)
    most = max(*sizes, listed)
    if node.op_type in STRETCHED:
        most = math.prod(np.broadcast_shapes(*shapes))
    elif node.op_type == "Concat":
        most = sum(sizes)
    elif node.op_type == "FeatureVectorizer":
        most = max(1, len(inputs[0])) * sum(max(0, width) for width in parts["inputdimensions"].ints)
    elif node.op_type == "OneHotEncoder":
        most = sizes[0] * max(1, listed)
    elif node.op_type in ("Gather", "ArrayFeatureExtractor"):
        axis = -1 if node.op_type == "ArrayFeatureExtractor" else parts["axis"].i if "axis" in parts else 0
        most = sizes[0] // max(1, shapes[0][axis]) * sizes[1]
    return most, most


def _alone(model: Any, node: Any, feed: Mapping[str, Any], constants: Mapping[str, Any]) -> bytes:
    """A model of one operator; one that knows levels takes those it does not know."""
    onnx = import_module("onnx")
    alone = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    alone.graph.name = "alone"
    alone.graph.node.append(node)
    for part, value in feed.items():
        kind = TEXT if value.dtype.kind in "OU" else onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        alone.graph.input.append(onnx.helper.make_tensor_value_info(part, kind, value.shape))
    alone.graph.initializer.extend(constants[part] for part in node.input if part in constants)
    alone.graph.output.extend(onnx.ValueInfoProto(name=part) for part in node.output if part)
    if node.op_type == "OneHotEncoder":
        others = [entry for entry in node.attribute if entry.name != "zeros"]
        del alone.graph.node[0].attribute[:]
        alone.graph.node[0].attribute.extend([*others, onnx.helper.make_attribute("zeros", 1)])
    return bytes(alone.SerializeToString())


def _ending_in(model: Any, output: str) -> bytes:
    """The model with one output."""
    onnx = import_module("onnx")
    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    kept = [node for node in model.graph.node if node.op_type != "ZipMap"]
    del cut.graph.node[:], cut.graph.output[:], cut.graph.value_info[:], cut.metadata_props[:]
    cut.graph.node.extend(kept)
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
