"""Torch modules as one chain of layers: what `torch.fx` traces, if it is linear parts, ReLUs and links between them.

A value that is used further on than in the next layer is carried there by neurons of its own: relu(h) is h where h is
never negative, and x is relu(x) - relu(-x). The chain is the module to the last term. An embedding of a column of
whole numbers is a table: its columns are prepared columns of that one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fewest.engine.structure._affine import (
    AffineValue,
    NotReadError,
    arithmetic,
    chosen_columns,
    linear,
    scaled,
    side_by_side,
    summed,
)
from fewest.engine.structure.base import as_float32_values, as_floats
from fewest.tables.arrays import Floats, Ints32

ACTIVATIONS = {"relu": "relu", "relu_": "relu", "tanh": "tanh", "sigmoid": "logistic"}
ENDS = ("sigmoid", "softmax", "log_softmax")
_SAME = frozenset({"identity", "contiguous", "float", "detach", "clone"})
Layers = list[tuple[Floats, Floats]]


@dataclass(frozen=True)
class _NeuronBlock:
    """Neurons of one layer, or (level 0) columns that are prepared; ``parts`` and ``bias`` as of a `AffineValue`."""

    level: int
    width: int
    parts: dict[int, Floats] = field(default_factory=dict)
    bias: Floats | None = None


@dataclass(frozen=True)
class TracedNet:
    """A module as layers with one activation, and the columns they are fed."""

    layers: Layers
    activation: str
    end: str  # What the outputs of the last layer go through
    prepare: Callable[[Any], Floats]
    source: Ints32
    single: bool  # Whether it computes in single precision


def trace(module: Any, width: int | None) -> TracedNet:
    """Trace a module that takes a table of ``width`` columns; raises `NotReadError`."""
    import torch.fx

    name = type(module).__name__
    try:
        graph = torch.fx.symbolic_trace(module).graph
    except Exception as error:  # user code runs here, on stand-ins for tables: whatever it raises, it cannot be traced
        raise NotReadError(f"torch.fx cannot trace {name} ({type(error).__name__})") from error
    nodes = list(graph.nodes)
    if sum(node.op == "placeholder" for node in nodes) != 1:
        raise NotReadError(f"{name} takes several inputs")
    if width is None:
        width = _first_width(module)
    walk = _Walk(module, width)
    values: dict[Any, Any] = {}
    for node in nodes:
        if node.op == "output":
            return walk.chain(_value(values.get(node.args[0]) if _hashable(node.args[0]) else None))
        values[node] = walk.run(node, values)
    raise NotReadError(f"{name} puts nothing out")


def _first_width(module: Any) -> int:
    """Columns that the first layer takes."""
    for layer in module.modules():
        wide = getattr(layer, "in_features", getattr(layer, "num_features", None))
        if wide is not None:
            return int(wide)
    raise NotReadError("a module without a linear layer")


def _value(thing: Any) -> AffineValue:
    if not isinstance(thing, AffineValue):
        raise NotReadError("its output, or what an operation takes, is not one table")
    return thing


def numbers(tensor: Any) -> Floats:
    """A tensor, wherever it lies, as float64."""
    return np.asarray(tensor.detach().cpu().numpy().astype(np.float64))


class _Walk:
    """Values of the nodes of a graph, one after the other."""

    def __init__(self, module: Any, width: int) -> None:
        self._module, self._width = module, width
        self._modules = dict(module.named_modules())
        self._blocks = [_NeuronBlock(0, width)]
        self._tables: list[tuple[int, Floats]] = []  # column and table of each embedding
        self._activations: set[str] = set()

    def run(self, node: Any, values: dict[Any, Any]) -> Any:
        """The value of a node: a `AffineValue`, or a constant."""
        if node.op == "placeholder":
            return AffineValue({0: np.eye(self._width)}, np.zeros(self._width), tuple(range(self._width)))
        if node.op == "get_attr":
            found = self._module
            for part in node.target.split("."):
                found = getattr(found, part)
            return numbers(found)
        args = [values.get(arg, arg) if _hashable(arg) else arg for arg in node.args]
        if self._in_place(node) and len(node.args[0].users) > 1:
            raise NotReadError("an operation works in place on what is used again")
        if node.op == "call_module":
            return self._layer(self._modules[node.target], _value(args[0]), node)
        name = _name(node)
        if name == "cat":
            inner = [_value(values.get(part)) for part in node.args[0]]
            along = node.kwargs.get("dim", args[1] if len(args) > 1 else 0)
            return side_by_side(inner, along)
        return self._operation(name, args, node)

    def _in_place(self, node: Any) -> bool:
        layer = self._modules.get(node.target) if node.op == "call_module" else None
        name = "" if node.op == "call_module" else _name(node)
        return (
            name.endswith("_")
            or name in ("iadd", "isub", "imul", "itruediv")
            or bool(node.kwargs.get("inplace", False) or getattr(layer, "inplace", False))
        )

    def _layer(self, layer: Any, x: AffineValue, node: Any) -> Any:
        name = type(layer).__name__
        if name in ("Dropout", "AlphaDropout") and layer.training and layer.p > 0:
            raise NotReadError("the torch module is in training mode and has dropout; call model.eval() first")
        if name in ("Identity", "Dropout", "AlphaDropout"):
            return x
        if name == "Flatten":
            return self._operation("flatten", [x, layer.start_dim], node)
        if name == "Linear":
            weight = numbers(layer.weight).T
            return linear(x, weight, np.zeros(weight.shape[1]) if layer.bias is None else numbers(layer.bias))
        if name == "BatchNorm1d":
            if layer.training or layer.running_mean is None:
                raise NotReadError("the torch module normalises by the rows beside a row; call model.eval() first")
            mean, scale = numbers(layer.running_mean), 1.0 / np.sqrt(numbers(layer.running_var) + layer.eps)
            shift = np.zeros(len(mean))
            if layer.affine:
                scale, shift = scale * numbers(layer.weight), numbers(layer.bias)
            return linear(x, np.diag(scale), shift - mean * scale)
        if name == "Embedding" and layer.max_norm is None:
            return self._looked_up(x, numbers(layer.weight))
        if name == "LeakyReLU":
            return self._leaky(x, float(layer.negative_slope))
        if name in ("ReLU", "Tanh", "Sigmoid", "Softmax", "LogSoftmax"):
            word = {"LogSoftmax": "log_softmax"}.get(name, name.lower())
            return self._bent(word, x, node, getattr(layer, "dim", None))
        raise NotReadError(f"a {name} layer is not read here")

    def _operation(self, name: str, args: Sequence[Any], node: Any) -> Any:
        if name in (
            "add",
            "sub",
            "mul",
            "truediv",
            "div",
            "iadd",
            "imul",
            "isub",
            "itruediv",
            "add_",
            "sub_",
            "mul_",
            "div_",
        ):
            return arithmetic(name.strip("_").removeprefix("i"), args, node.kwargs)
        x = _value(args[0])
        if name in ENDS or name in ACTIVATIONS:
            return self._bent(name, x, node, node.kwargs.get("dim", (*args[1:], None)[0]))
        if name == "leaky_relu":
            return self._leaky(x, float(node.kwargs.get("negative_slope", (*args[1:], 0.01)[0])))
        if name == "dropout":
            if node.kwargs.get("training", (*args[2:], True)[0]):
                raise NotReadError("the torch module is in training mode and has dropout; call model.eval() first")
            return x
        if name in _SAME and not x.whole:
            return x
        if name == "neg":
            return scaled(x, -1.0)
        if name in ("long", "int") and x.columns is not None:
            return replace(x, whole=True)
        if name == "getitem":
            return chosen_columns(x, args[1])
        shape = (name, x.dims, node.kwargs.get("dim", node.kwargs.get("start_dim", (*args[1:], None)[0])))
        if shape in (("flatten", 2, 1), ("flatten", 3, 1)) or (name == "squeeze" and x.dims == 2 and x.width > 1):
            return replace(x, dims=2)
        if shape in (("squeeze", 2, None), ("squeeze", 2, 1), ("squeeze", 2, -1)):
            return replace(x, dims=1)
        if shape in (("unsqueeze", 1, 1), ("unsqueeze", 1, -1)):
            return replace(x, dims=2)
        raise NotReadError(f"the operation {name} is not read here")

    def _bent(self, name: str, x: AffineValue, node: Any, along: Any) -> AffineValue:
        """An activation: a new block of neurons, or the end."""
        if x.end or ("softmax" in name and along not in (1, -1)):
            raise NotReadError(f"{name} after {x.end or 'columns'} is not read")
        if name in ENDS and _leads_out(node):
            return replace(x, end=name)
        if name not in ACTIVATIONS:
            raise NotReadError(f"{name} before the end is not read")
        return self._neurons(ACTIVATIONS[name], x)

    def _neurons(self, activation: str, x: AffineValue) -> AffineValue:
        self._activations.add(activation)
        level = 1 + max((self._blocks[b].level for b in x.parts), default=0)
        self._blocks.append(_NeuronBlock(level, x.width, x.parts, x.bias))
        return replace(x, parts={len(self._blocks) - 1: np.eye(x.width)}, bias=np.zeros(x.width), columns=None)

    def _leaky(self, x: AffineValue, slope: float) -> AffineValue:
        up, down = self._neurons("relu", x), self._neurons("relu", scaled(x, -1.0))
        return summed(up, scaled(down, -slope))

    def _looked_up(self, x: AffineValue, table: Floats) -> AffineValue:
        """Rows of a table at columns of whole numbers."""
        if x.columns is None or not x.whole:
            raise NotReadError("an embedding of anything but columns of the input, cut to whole numbers, is not read")
        each = []
        for column in x.columns:
            self._tables.append((column, table))
            self._blocks.append(_NeuronBlock(0, table.shape[1]))
            each.append(AffineValue({len(self._blocks) - 1: np.eye(table.shape[1])}, np.zeros(table.shape[1])))
        return replace(side_by_side(each, 1), dims=2 if x.dims == 1 else 3)

    def chain(self, out: AffineValue) -> TracedNet:
        """The layers that give a value, with neurons that carry what later layers use."""
        if out.dims > 2 or out.whole:
            raise NotReadError("its output is not one table")
        if len(self._activations) > 1:
            raise NotReadError(f"activations differ between layers ({', '.join(sorted(self._activations))})")
        activation = next(iter(self._activations), "identity")
        depth = max((self._blocks[b].level for b in out.parts), default=0)
        used = _reached(self._blocks, out)
        until = {b: self._blocks[b].level + 1 for b in used}  # the last layer that takes each block
        for b in used:
            for below in self._blocks[b].parts:
                until[below] = max(until[below], self._blocks[b].level)
        for b in out.parts:
            until[b] = max(until[b], depth + 1)
        if activation != "relu" and any(until[b] > self._blocks[b].level + 1 for b in used):
            raise NotReadError(f"a link past a layer of {activation} is not read")
        before, layers = _Slots.of_inputs(self._blocks), []
        for level in range(1, depth + 1):
            after = _Slots()
            for b in used:
                block = self._blocks[b]
                if block.level == level:
                    assert block.bias is not None
                    after.add(b, before.weights(block.parts, block.width), block.bias)
                elif block.level < level < until[b]:
                    for sign in (1.0, -1.0) if block.level == 0 else (1.0,):
                        own = before.carried(b, sign, block.width)
                        after.add(b, own, np.zeros(block.width), sign)
            layers.append(after.joined())
            before = after
        layers.append((before.weights(out.parts, out.width), out.bias))
        single = "float32" in str(next(iter(self._module.parameters())).dtype)
        columns = np.concatenate([np.arange(self._width), *(np.full(t.shape[1], c) for c, t in self._tables)])
        prepare = _FedColumns(single, self._width, tuple(self._tables))
        return TracedNet(layers, activation, out.end, prepare, columns.astype(np.int32), single)


@dataclass(frozen=True)
class _FedColumns:
    """The columns of the input, then what embeddings have of theirs."""

    single: bool
    width: int
    tables: tuple[tuple[int, Floats], ...]

    def __call__(self, model_input: Any) -> Floats:
        values = (as_float32_values if self.single else as_floats)(model_input)[:, : self.width]
        parts = [values]
        for column, table in self.tables:
            parts.append(table[np.clip(np.nan_to_num(values[:, column]), 0, len(table) - 1).astype(np.intp)])
        return np.ascontiguousarray(np.hstack(parts)) if self.tables else np.ascontiguousarray(values)


class _Slots:
    """Where blocks are among the neurons of a layer; one that may be negative is there as two that are not."""

    def __init__(self) -> None:
        self._places: dict[int, list[tuple[int, float]]] = {}
        self._made: Layers = []
        self._size = 0

    @classmethod
    def of_inputs(cls, blocks: Sequence[_NeuronBlock]) -> _Slots:
        slots = cls()
        for b, block in enumerate(blocks):
            if block.level == 0:
                slots.add(b, np.zeros((0, block.width)), np.zeros(block.width))
        return slots

    def add(self, block: int, weight: Floats, bias: Floats, sign: float = 1.0) -> None:
        self._places.setdefault(block, []).append((self._size, sign))
        self._made.append((weight, bias))
        self._size += len(bias)

    def weights(self, parts: dict[int, Floats], width: int) -> Floats:
        """The matrix that gives a value of this width from the neurons of the layer."""
        out = np.zeros((self._size, width))
        for block, matrix in parts.items():
            for place, sign in self._places[block]:
                out[place : place + len(matrix)] += sign * matrix
        return out

    def carried(self, block: int, sign: float, width: int) -> Floats:
        """The matrix that takes a block, or minus it, on; one that was divided before stays as it is."""
        out, places = np.zeros((self._size, width)), self._places[block]
        if len(places) == 1:
            return sign * self.weights({block: np.eye(width)}, width)
        place = next(place for place, own in places if own == sign)
        out[place : place + width] = np.eye(width)
        return out

    def joined(self) -> tuple[Floats, Floats]:
        weights, biases = zip(*self._made, strict=True)
        return np.hstack(weights), np.concatenate(biases)


def _reached(blocks: Sequence[_NeuronBlock], out: AffineValue) -> list[int]:
    """Blocks that a value depends on."""
    found, waiting = set(), list(out.parts)
    while waiting:
        b = waiting.pop()
        if b not in found:
            found.add(b)
            waiting += list(blocks[b].parts)
    return sorted(found)


def _name(node: Any) -> str:
    """What is called: a method, a layer's name, or a function."""
    return str(getattr(node.target, "__name__", node.target))


def _leads_out(node: Any) -> bool:
    shapes = ("squeeze", "flatten")
    return all(user.op == "output" or (_name(user) in shapes and _leads_out(user)) for user in node.users)


def _hashable(arg: Any) -> bool:
    return not isinstance(arg, list | tuple | slice | dict)
