"""Feed-forward nets with one non-decreasing activation: scikit-learn's, torch modules, and those of skorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fewest.engine.structure._affine import NotReadError
from fewest.engine.structure.base import Network, Opaque, as_floats
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
from fewest.engine.structure.torch_graph import Layers, trace
from fewest.tables.arrays import Floats, Ints32
from fewest.tables.scores import home_of, last_layer

_ENDS = {"chances": ("softmax",), "logits": ("", "log_softmax")}  # of two outputs or more


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
    """Read a torch module: the raw score is the logit, or the difference of two outputs."""
    return _read_module(model, question, last_layer(model) in ("Sigmoid", "Softmax"))


def read_skorch(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read a net of skorch: its module, under what its criterion makes of the outputs."""
    if model.predict_nonlinearity not in ("auto", None):
        return Opaque(f"{type(model).__name__} with a predict_nonlinearity of its own is not read")
    loss = type(model.criterion_).__name__ if model.predict_nonlinearity == "auto" else ""
    module = model.module_.eval()  # as `predict_proba` does
    return _read_module(module, question, loss not in ("CrossEntropyLoss", "BCEWithLogitsLoss"))


def _read_module(model: Any, question: Question, chances: bool) -> FoundQuestion | Opaque:
    """Read a module whose outputs are taken for chances, or for what a sigmoid or softmax makes them of."""
    if home_of(model).type != "cpu" and type(model).__name__ != "Sequential":
        return Opaque("torch: on a GPU, looking at all sets takes less time than a search on the processor")
    try:
        net = trace(model, question.width)
    except NotReadError as why:
        return Opaque(f"torch: {why}")
    outputs = net.layers[-1][0].shape[1]
    if (question.against is None) == (outputs > 2):
        return Opaque(f"torch: {outputs} outputs do not fit the question (two classes, or 'against')")
    taken = "chances" if chances else "logits"
    ends = {"chances": ("sigmoid",), "logits": ("",)} if outputs == 1 else _ENDS
    if net.end not in ends[taken]:
        return Opaque(f"torch: {outputs} outputs that end in {net.end or 'a sum'} are taken for {taken}; not read")
    link = margin_link(question, logistic(eps=EPS32 if net.single else EPS64))
    return network(net.layers, net.activation, link, question, net.prepare, net.source)


def network(
    layers: Layers, activation: str, link: Link, question: Question, prepare: Callable[[Any], Floats],
    source: Ints32 | None = None,
) -> FoundQuestion:  # fmt: skip
    """Layers as a `Network` with one raw output: a single one, or the difference of two."""
    weight, bias = layers[-1]
    if weight.shape[1] == 1:
        last = (question.sign * weight, question.sign * bias)
    else:
        first, second = question.pair
        last = (weight[:, [first]] - weight[:, [second]], bias[[first]] - bias[[second]])
    layers = [*layers[:-1], last]
    tolerance = (1e-5 if link.eps == EPS32 else 1e-10) * (1.0 + _size(layers))
    reading = link.reading(question, tolerance, prepare, layers[0][0].shape[0] if source is None else source)
    weights = tuple(np.ascontiguousarray(weight) for weight, _ in layers)
    return FoundQuestion(Network(reading, weights, tuple(bias for _, bias in layers), activation), link)


def _size(layers: Layers) -> float:
    """Largest output for inputs in [-1, 1] if no term cancelled another: the scale rounding errors live on."""
    reach = np.ones(layers[0][0].shape[0])
    for weight, bias in layers:
        reach = reach @ np.abs(weight) + np.abs(bias)
    return float(reach.max())
