"""Feed-forward nets with one non-decreasing activation: scikit-learn's MLPClassifier and torch.nn.Sequential."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fewest.engine.structure.base import Network, Opaque, as_float32_values, as_floats
from fewest.engine.structure.question import (
    EPS32,
    EPS64,
    FoundQuestion,
    Link,
    Question,
    exponential,
    logistic,
    margin_link,
    number_link,
    plain,
)
from fewest.tables.arrays import Floats

_TORCH_ACTIVATIONS = {"ReLU": "relu", "Tanh": "tanh", "Sigmoid": "logistic"}
_TORCH_IGNORED = frozenset({"Identity", "Flatten", "Dropout"})
_TORCH_LINEAR = frozenset({"Linear", "BatchNorm1d"})
Layers = list[tuple[Floats, Floats]]


def read_mlp(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read a net of scikit-learn: the raw score is the last layer before its sigmoid or softmax, or the number."""
    if question.against is not None and model.out_activation_ != "softmax":
        return Opaque("MLPClassifier: probabilities of several labels are not additive")
    single = model.coefs_[0].dtype == np.float32
    layers = [
        (np.asarray(weight, dtype=np.float64), np.asarray(bias, dtype=np.float64))
        for weight, bias in zip(model.coefs_, model.intercepts_, strict=True)
    ]
    eps = EPS32 if single else EPS64
    link = logistic(eps=eps)
    if question.kind == "value":
        if layers[-1][0].shape[1] > 1 or model.out_activation_ not in ("identity", "exp"):
            return Opaque(f"{type(model).__name__}: several outputs, or its last activation, are not read")
        link = number_link(question, plain(eps=eps) if model.out_activation_ == "identity" else exponential(eps))
    return network(layers, model.activation, link, question, as_floats)


def read_torch(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read torch.nn.Sequential of Linear layers: the raw score is the logit, or the difference of two outputs."""
    modules = _flat(model)
    names = [type(module).__name__ for module in modules]
    if model.training and any(name == "Dropout" and module.p > 0 for name, module in zip(names, modules, strict=True)):
        return Opaque("the torch module is in training mode and has dropout; call model.eval() first")
    if any(
        name == "BatchNorm1d" and (module.training or module.running_mean is None)
        for name, module in zip(names, modules, strict=True)
    ):
        return Opaque("the torch module normalises by the rows beside a row; call model.eval() first")
    parts = [(name, module) for name, module in zip(names, modules, strict=True) if name not in _TORCH_IGNORED]
    outputs = next((int(module.out_features) for name, module in reversed(parts) if name == "Linear"), None)
    if outputs is None:
        return Opaque("torch: only Sequential modules that end in a Linear layer (and Sigmoid or LogSoftmax) are read")
    last = parts[-1][0]
    if last == "Softmax":
        return Opaque("torch: a final Softmax is not read; let the module end in its Linear layer")
    if last in ("Sigmoid", "LogSoftmax"):
        if (last == "Sigmoid") != (outputs == 1):
            return Opaque(f"torch: a final {last} over {outputs} outputs is not read")
        parts = parts[:-1]
    layers = _torch_layers(parts)
    if isinstance(layers, Opaque):
        return layers
    if (question.against is None) == (outputs > 2):
        return Opaque(f"torch: {outputs} outputs do not fit the question (two classes, or 'against')")
    linear, activation = layers
    single = "float32" in str(next(module.weight.dtype for name, module in parts if name == "Linear"))
    eps = EPS32 if single else EPS64
    link = margin_link(question, logistic(eps=eps))
    return network(linear, activation, link, question, as_float32_values if single else as_floats)


def network(
    layers: Layers, activation: str, link: Link, question: Question, prepare: Callable[[Any], Floats]
) -> FoundQuestion:
    """Layers as a `Network` with one raw output: a single one, or the difference of two."""
    weight, bias = layers[-1]
    if weight.shape[1] == 1:
        last = (question.sign * weight, question.sign * bias)
    else:
        first, second = question.pair
        last = (weight[:, [first]] - weight[:, [second]], bias[[first]] - bias[[second]])
    layers = [*layers[:-1], last]
    tolerance = (1e-5 if link.eps == EPS32 else 1e-10) * (1.0 + _size(layers))
    reading = link.reading(question, tolerance, prepare, layers[0][0].shape[0])
    weights = tuple(np.ascontiguousarray(weight) for weight, _ in layers)
    return FoundQuestion(Network(reading, weights, tuple(bias for _, bias in layers), activation), link)


def _size(layers: Layers) -> float:
    """Largest output for inputs in [-1, 1] if no term cancelled another: the scale rounding errors live on."""
    reach = np.ones(layers[0][0].shape[0])
    for weight, bias in layers:
        reach = reach @ np.abs(weight) + np.abs(bias)
    return float(reach.max())


def _flat(module: Any) -> list[Any]:
    """Modules of nested Sequentials, in order."""
    if type(module).__name__ != "Sequential":
        return [module]
    return [inner for child in module.children() for inner in _flat(child)]


def _torch_layer(name: str, module: Any) -> tuple[Floats, Floats]:
    """Weights and bias of a linear layer; one that normalises by stored statistics has a diagonal."""

    def numbers(tensor: Any) -> Floats:
        return np.asarray(tensor.detach().cpu().numpy().astype(np.float64))

    if name == "BatchNorm1d":
        mean, scale = numbers(module.running_mean), 1.0 / np.sqrt(numbers(module.running_var) + module.eps)
        shift = np.zeros(len(mean))
        if module.affine:
            scale, shift = scale * numbers(module.weight), numbers(module.bias)
        return np.diag(scale), shift - mean * scale
    weight = numbers(module.weight).T
    return weight, np.zeros(weight.shape[1]) if module.bias is None else numbers(module.bias)


def _torch_layers(parts: Sequence[tuple[str, Any]]) -> tuple[Layers, str] | Opaque:
    """Weights and the one activation; Linear layers that follow each other directly become one."""
    layers: Layers = []
    activations: set[str] = set()
    after_linear = False
    for name, module in parts:
        if name in _TORCH_LINEAR:
            weight, bias = _torch_layer(name, module)
            if after_linear:
                before, shift = layers.pop()
                weight, bias = before @ weight, shift @ weight + bias
            layers.append((weight, bias))
        elif name in _TORCH_ACTIVATIONS and after_linear:
            activations.add(_TORCH_ACTIVATIONS[name])
        else:
            return Opaque(f"torch: a {name} layer is not read here")
        after_linear = name in _TORCH_LINEAR
    if not after_linear:
        return Opaque("torch: only Sequential modules that end in a Linear layer (and Sigmoid or LogSoftmax) are read")
    if len(activations) > 1:
        return Opaque(f"torch: activations differ between layers ({', '.join(sorted(activations))})")
    return layers, activations.pop() if activations else "identity"
