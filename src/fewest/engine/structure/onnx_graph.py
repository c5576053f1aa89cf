"""ONNX graphs that end in a tree ensemble, a linear classifier or a net; what comes before is run as it is.

Of the operators before the model only which columns their results depend on is read.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from fewest.engine.structure._trees import ModelTree, stack, sum_tolerance
from fewest.engine.structure.base import Additive, Opaque
from fewest.engine.structure.networks import network
from fewest.engine.structure.question import EPS32, FoundQuestion, Link, Question, logistic, plain
from fewest.engine.structure.torch_graph import Layers
from fewest.tables.arrays import Floats

_ACTIVATIONS = {"Relu": "relu", "Tanh": "tanh", "Sigmoid": "logistic"}
_SAME = frozenset({"Identity", "Cast", "Dropout"})
_BY_COLUMN = _SAME | {"Scaler", "Imputer", "Binarizer"}
_RESHAPING = frozenset({"Concat", "FeatureVectorizer", "OneHotEncoder", "Reshape", "Gather", "ArrayFeatureExtractor"})
_WITH_CONSTANT = frozenset({"Add", "Sub", "Mul", "Div"})
_Found = FoundQuestion | Opaque


class _Graph:
    """The nodes of a model, by what they make."""

    def __init__(self, model: Any) -> None:
        onnx = import_module("onnx")
        graph = onnx.load_from_string(model.data).graph
        to_array = import_module("onnx.numpy_helper").to_array
        self.model = model
        self.constants = {tensor.name: np.asarray(to_array(tensor)) for tensor in graph.initializer}
        self.maker = {name: node for node in graph.node for name in node.output}
        self._value_of = onnx.helper.get_attribute_value

    def attributes(self, node: Any) -> dict[str, Any]:
        """Attributes of a node by name."""
        return {entry.name: self._value_of(entry) for entry in node.attribute}

    def before(self, value: str, skipped: frozenset[str] = _SAME) -> str:
        """The value that this one is but another name or type of."""
        while value in self.maker and self.maker[value].op_type in skipped:
            value = self.maker[value].input[0]
        return value

    def kind(self, value: str) -> str:
        """The operator that makes a value; empty for inputs."""
        return str(self.maker[value].op_type) if value in self.maker else ""

    def columns(self, value: str) -> list[frozenset[int]] | Opaque:
        """Columns of the model's input that each column of a value depends on."""
        if value in self.model.columns:
            return [frozenset({place}) for place in self.model.columns[value]]
        node = self.maker.get(value)
        kind = "a constant" if node is None else node.op_type
        if node is None or kind not in _BY_COLUMN | _WITH_CONSTANT | _RESHAPING:
            return Opaque(f"ONNX: {kind} before the model is not read")
        parts = [self.columns(name) for name in node.input if name and name not in self.constants]
        for part in parts:
            if isinstance(part, Opaque):
                return part
        known = [part for part in parts if not isinstance(part, Opaque)]
        if kind in ("Concat", "FeatureVectorizer") and len(known) == len(node.input):
            return [places for part in known for places in part]
        if len(known) != 1 or kind in ("Concat", "FeatureVectorizer"):
            return Opaque(f"ONNX: {kind} of these values is not read")
        return self._reshaped(node, known[0]) if kind in _RESHAPING else known[0]

    def _reshaped(self, node: Any, columns: list[frozenset[int]]) -> list[frozenset[int]] | Opaque:
        """Columns that are chosen, made several of, or laid out otherwise."""
        attributes, constant = self.attributes(node), self.constants.get(node.input[-1], np.empty(0)).ravel()
        if node.op_type == "OneHotEncoder":
            levels = len(attributes.get("cats_int64s") or attributes.get("cats_strings") or [])
            return [places for places in columns for _ in range(levels)]
        if node.op_type == "Reshape" and constant.tolist() == [-1, len(columns)]:
            return columns
        chosen = node.op_type == "ArrayFeatureExtractor" or attributes.get("axis", 0) == 1
        if node.op_type != "Reshape" and chosen and len(constant):
            return [columns[int(place)] for place in constant]
        return Opaque(f"ONNX: a {node.op_type} of this kind is not read")


def read_onnx(model: Any, question: Question) -> _Found:
    """Read an ONNX classifier: the raw score is the sum of leaves, the linear score, or the net's last layer."""
    graph = _Graph(model)
    value = graph.before(model.output, _SAME | {"Normalizer"})
    node = graph.maker.get(value)
    kind = graph.kind(value)
    if node is not None and kind == "TreeEnsembleClassifier":
        found = _trees(graph.attributes(node), len(model.classes_), question)
    elif node is not None and kind == "LinearClassifier":
        found = _linear(graph.attributes(node), len(model.classes_), question)
    else:
        return _net(graph, value, question)
    return found if isinstance(found, Opaque) or node is None else _fed(graph, node.input[0], found)


def _fed(graph: _Graph, value: str, found: FoundQuestion) -> _Found:
    """What was read of the last operators, fed by a value inside the graph."""
    value = graph.before(value)
    columns = graph.columns(value)
    if isinstance(columns, Opaque):
        return columns
    width = len(found.structure.reading.source)
    if len(columns) < width or not all(columns):
        return Opaque(f"ONNX: the model takes {width} columns, and {len(columns)} come to it")
    model, several = graph.model, tuple(tuple(sorted(places)) for places in columns)

    def prepare(model_input: Any) -> Floats:
        inside = np.asarray(model.inner(value, model_input), dtype=np.float32).astype(np.float64)
        return np.ascontiguousarray(inside.reshape(len(inside), -1))

    reading = replace(
        found.structure.reading, prepare=prepare,
        source=np.array([places[0] for places in several], dtype=np.int32),
        several=several if any(len(places) > 1 for places in several) else (),
    )  # fmt: skip
    return FoundQuestion(replace(found.structure, reading=reading), found.link)


def _link(post: str, plain_score: bool = False) -> Link | Opaque:
    if post == "NONE":
        return plain(eps=EPS32)
    known = post == "LOGISTIC" or (post == "SOFTMAX" and not plain_score)
    return logistic(eps=EPS32) if known else Opaque(f"ONNX: scores through {post} are not read")


def _trees(attributes: dict[str, Any], classes: int, question: Question) -> _Found:
    if "nodes_values" not in attributes or "class_weights" not in attributes:
        return Opaque("ONNX: tree ensembles in double precision are not read")
    ids, weights = np.asarray(attributes["class_ids"]), np.asarray(attributes["class_weights"], dtype=np.float64)
    base = np.asarray(attributes.get("base_values", []), dtype=np.float64)
    one = classes == 2 and len(set(ids.tolist())) == 1
    post = attributes.get("post_transform", b"NONE").decode()
    link = _link(post, one)
    if isinstance(link, Opaque):
        return link
    if one and (bool((weights >= 0).all()) != (post == "NONE")):
        return Opaque("ONNX: the sign of the leaves does not fit the way the runtime makes chances of them")
    if len(base) not in (0, 1 if one else classes):
        return Opaque("ONNX: the base values do not fit the classes")
    parts = _parts(one, post, question)
    start = 1.0 if one and post == "NONE" and question.positive == 0 else 0.0  # 1 - the chance of the other
    start += float(sum(sign * (base[0] if one else base[output]) for output, sign in parts.items() if len(base)))
    factor = np.array([parts.get(0 if one else int(place), 0.0) for place in ids])
    trees = _model_trees(attributes, factor * weights)
    if isinstance(trees, Opaque):
        return trees
    tolerance = sum_tolerance([tree.leaves for tree in trees], start, EPS32 / 2) + 4 * EPS32 * (1.0 + abs(start))
    width = 1 + max(int(tree.column.max(initial=0)) for tree in trees)
    return stack(trees, start, link, question, lambda rows: rows, width, tolerance)


def _parts(one: bool, post: str, question: Question) -> dict[int, float]:
    """Outputs that make up the raw score, with their signs."""
    if one:
        return {0: question.sign}
    if question.against is None and post == "NONE":
        return {question.positive: 1.0}
    first, second = question.pair
    return {first: 1.0, second: -1.0}


def _model_trees(attributes: dict[str, Any], leaf: Floats) -> list[ModelTree] | Opaque:
    def of(name: str) -> Any:
        return np.asarray(attributes[name])

    tree_of, number, mode = of("nodes_treeids"), of("nodes_nodeids"), of("nodes_modes")
    if not set(mode.tolist()) <= {b"LEAF", b"BRANCH_LEQ", b"BRANCH_LT"}:
        return Opaque("ONNX: only splits by <= and < are read")
    border = of("nodes_values").astype(np.float32)
    border = np.where(mode == b"BRANCH_LT", np.nextafter(border, np.float32(-np.inf)), border).astype(np.float64)
    missing = np.asarray(attributes.get("nodes_missing_value_tracks_true", np.zeros(len(mode)))).astype(bool)
    value_of: dict[tuple[int, int], float] = {}
    for tree, node, value in zip(of("class_treeids").tolist(), of("class_nodeids").tolist(), leaf, strict=True):
        value_of[tree, node] = value_of.get((tree, node), 0.0) + float(value)
    trees = []
    for tree in dict.fromkeys(tree_of.tolist()):
        own = np.flatnonzero(tree_of == tree)
        place = {node: at for at, node in enumerate(number[own].tolist())}
        inner = mode[own] != b"LEAF"

        def child(name: str, own: Any = own, place: Any = place, inner: Any = inner) -> Any:
            return np.where(inner, [place.get(node, -1) for node in of(name)[own].tolist()], -1)

        value = np.array([value_of.get((tree, node), 0.0) for node in number[own].tolist()])
        trees.append(
            ModelTree(
                np.where(inner, of("nodes_featureids")[own], -1), border[own], child("nodes_truenodeids"),
                child("nodes_falsenodeids"), missing[own], np.where(inner, 0.0, value),
            )
        )  # fmt: skip
    return trees


def _linear(attributes: dict[str, Any], classes: int, question: Question) -> _Found:
    post = attributes.get("post_transform", b"NONE").decode()
    intercept = np.asarray(attributes.get("intercepts", [0.0]), dtype=np.float64)
    coef = np.asarray(attributes["coefficients"], dtype=np.float64).reshape(len(intercept), -1)
    link = _link(post)
    if isinstance(link, Opaque):
        return link
    if len(coef) not in (1, classes) or (post == "NONE" and classes == 2):
        return Opaque("ONNX: linear scores without chances are not read")
    signs = question.parts if len(coef) == 1 else dict(zip(question.pair, (1.0, -1.0), strict=True))
    mirrored = len(coef) == 2 and np.array_equal(coef[0], -coef[1]) and intercept[0] == -intercept[1]
    if post == "LOGISTIC" and len(coef) == 2:
        if not mirrored:
            return Opaque("ONNX: two linear scores that are not each other's opposite are not read")
        signs = {question.positive: 1.0}
    row = np.asarray(sum(sign * coef[output] for output, sign in signs.items()))
    constant = float(sum(sign * intercept[output] for output, sign in signs.items()))
    tolerance = 1e-4 * (1.0 + abs(constant) + float(np.abs(coef).sum()))
    reading = link.reading(question, tolerance, lambda rows: rows, coef.shape[1], growth=16 * EPS32)
    return FoundQuestion(Additive(reading, np.ascontiguousarray(row), constant), link)


def _net(graph: _Graph, value: str, question: Question) -> _Found:
    """A chain of products, sums and one kind of activation, under a sigmoid or softmax."""
    if graph.kind(value) == "Concat":  # the chance of class 1, and before it one minus that
        value = graph.before(graph.maker[value].input[-1])
        if graph.kind(value) != "Sigmoid":
            return Opaque("ONNX: only chances from a sigmoid or softmax are read")
    if graph.kind(value) not in ("Sigmoid", "Softmax"):
        return Opaque(f"ONNX: a model that ends in {graph.kind(value) or 'its input'} is not read")
    last, value = graph.kind(value), graph.before(graph.maker[value].input[0])
    layers: Layers = []
    activations: set[str] = set()
    while True:
        bent = layers and graph.kind(value) in _ACTIVATIONS
        below = graph.before(graph.maker[value].input[0]) if bent else value
        layer = _layer(graph, below)
        if layer is None:
            break
        if bent:
            activations.add(_ACTIVATIONS[graph.kind(value)])
        weight, bias, value = layer
        if layers and not bent:  # two linear layers in a row are one
            above, shift = layers.pop(0)
            weight, bias = weight @ above, bias @ above + shift
        layers.insert(0, (weight, bias))
    if not layers or len(activations) > 1:
        return Opaque("ONNX: only nets with one kind of activation are read")
    outputs = layers[-1][0].shape[1]
    if (last == "Sigmoid") != (outputs == 1):
        return Opaque(f"ONNX: a {last} over {outputs} outputs is not read")
    link = logistic(eps=EPS32)
    found = network(layers, activations.pop() if activations else "identity", link, question, lambda rows: rows)
    return _fed(graph, value, found)


def _layer(graph: _Graph, value: str) -> tuple[Floats, Floats, str] | None:
    """Weights and bias of the layer that makes a value, and what goes into it; None where it is not made by one."""
    bias: Any = 0.0
    if graph.kind(value) == "Add":
        names = list(graph.maker[value].input)
        inner = [name for name in names if name not in graph.constants]
        if len(inner) != 1 or graph.kind(inner[0]) != "MatMul":
            return None
        bias, value = graph.constants[next(name for name in names if name in graph.constants)], inner[0]
    if graph.kind(value) not in ("MatMul", "Gemm"):
        return None
    node = graph.maker[value]
    names, attributes = list(node.input), graph.attributes(node)
    weight = graph.constants.get(names[1])
    if graph.kind(value) == "Gemm":
        if attributes.get("transA", 0) or {attributes.get("alpha", 1.0), attributes.get("beta", 1.0)} != {1.0}:
            return None
        if weight is not None and attributes.get("transB", 0):
            weight = weight.T
        if len(names) > 2:
            bias = graph.constants.get(names[2])
    if weight is None or weight.ndim != 2 or bias is None:
        return None
    wide = np.broadcast_to(np.asarray(bias, dtype=np.float64).ravel(), (weight.shape[1],))
    return np.ascontiguousarray(weight, dtype=np.float64), np.array(wide), graph.before(names[0])
