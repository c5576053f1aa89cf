"""A checked ONNX model as a classifier: raw tables in, chances out, through onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError
from fewest.persistence._limits import refused, refusing
from fewest.persistence._onnx_check import ML, check_onnx, flaw_of_node

# onnx's numbers of types -> numpy's.
DTYPES = {1: np.float32, 6: np.int32, 7: np.int64, 8: np.str_, 9: np.bool_, 11: np.float64}
TEXT = 8
INDEXING = ("LinearClassifier", "LinearRegressor", "TreeEnsembleClassifier", "TreeEnsembleRegressor")


class OnnxClassifier:
    """A classifier from an ONNX file; its inside is not read, so searches ask for its scores.

    Parameters
    ----------
    data : bytes
        The file. It is checked here.
    name : str
        Its name, for messages.

    Attributes
    ----------
    classes_ : (k,) array
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str
        Only where the model takes one input per column.
    """

    def __init__(self, data: bytes, name: str = "model.onnx") -> None:
        model = check_onnx(data, name)
        constants = {tensor.name for tensor in model.graph.initializer}
        self._inputs = {
            entry.name: (entry.type.tensor_type.elem_type, int(entry.type.tensor_type.shape.dim[1].dim_value))
            for entry in model.graph.input if entry.name not in constants
        }  # fmt: skip
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
