"""Sums of kernels: support vector machines, kernel ridge regression and Gaussian processes, read as nets of one layer.

Minus a squared distance to a training row is linear in the columns and their squares, so each row is a neuron whose
activation is exp; for the other kernels it is a power or tanh of a linear function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fewest.engine.structure.base import Additive, Network, Opaque, as_floats
from fewest.engine.structure.question import FoundQuestion, Question, number_link, plain
from fewest.tables.arrays import Floats

SUPPORT_VECTORS = frozenset({"SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"})
POWERS = {1: "identity", 2: "square", 3: "cube"}
_EXACT = 1e-12  # of all terms: how far two ways of adding them up may lie apart
_HALF = 1e-6  # of a latent value: the chance of a Gaussian process is one half, but for its last digits, at zero


class KernelSum(NamedTuple):
    """Score = constant + the sum of coef times kernel(row, vector)."""

    vectors: Floats  # (n, d)
    coef: Floats  # (n,)
    constant: float

    def signed(self, sign: float) -> KernelSum:
        """The same, turned round where the sign is negative."""
        return KernelSum(self.vectors, sign * self.coef, sign * self.constant)


class Bells(NamedTuple):
    """A kernel amplitude * exp(-precision @ (row - vector)**2)."""

    amplitude: float
    precision: Floats  # (d,)


def read_support_vectors(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read a support vector machine: the raw score is the decision function, or the number."""
    name = type(model).__name__
    if question.against is not None:
        return Opaque(f"{name}: three or more classes are decided by votes between pairs of them")
    if question.kind == "proba":
        return Opaque(f"{name}: its chances are approximations that need not rise with the score; use kind='decision'")
    coef = model.dual_coef_.toarray() if hasattr(model.dual_coef_, "toarray") else model.dual_coef_
    terms = KernelSum(as_floats(model.support_vectors_), np.asarray(coef)[0], float(model.intercept_[0]))
    sign = -question.sign if question.kind == "outlier" else question.sign
    return _of_named_kernel(model, float(model._gamma), terms.signed(sign), question)


def read_kernel_ridge(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read kernel ridge regression: the raw score is the number."""
    vectors, coef = as_floats(model.X_fit_), np.asarray(model.dual_coef_)
    if coef.ndim > 1:
        return Opaque("KernelRidge has several outputs")
    gamma = 1.0 / vectors.shape[1] if model.gamma is None else float(model.gamma)
    return _of_named_kernel(model, gamma, KernelSum(vectors, coef, 0.0).signed(question.sign), question)


def read_process_classifier(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read a Gaussian process for two classes: above a chance of one half is where the latent mean is above zero."""
    inside = model.base_estimator_
    if question.against is not None:
        return Opaque("GaussianProcessClassifier: three or more classes are divided by the sum of their chances")
    if question.kind == "proba" and (question.threshold != 0.5 or question.slack):
        return Opaque("GaussianProcessClassifier: other chances than one half depend on the latent variance as well")
    bells = _bells(inside.kernel_, inside.X_train_.shape[1])
    if isinstance(bells, Opaque):
        return bells
    terms = KernelSum(as_floats(inside.X_train_), np.asarray(inside.y_train_ - inside.pi_), 0.0)
    size = sum(bell.amplitude for bell in bells)
    latent = Question(question.positive, None, "decision", 0.0, _HALF * (1.0 + size) ** 0.5)
    if question.kind == "label" and not 0 < question.threshold <= 1:
        latent = Question(question.positive, None, "label", question.threshold)
    found = _of_bells(bells, terms.signed(question.sign), latent)
    return FoundQuestion(found.structure, plain(label_at=0.0, one_cut=True))


def read_process_regressor(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read the mean of a Gaussian process."""
    alpha = np.asarray(model.alpha_)
    if alpha.ndim > 1 and alpha.shape[1] > 1:
        return Opaque("GaussianProcessRegressor has several outputs")
    bells = _bells(model.kernel_, model.X_train_.shape[1])
    if isinstance(bells, Opaque):
        return bells
    scale, mean = (float(np.ravel(part)[0]) for part in (model._y_train_std, model._y_train_mean))
    terms = KernelSum(as_floats(model.X_train_), scale * alpha.ravel(), mean)
    return _of_bells(bells, terms.signed(question.sign), question)


def _bells(kernel: Any, width: int) -> list[Bells] | Opaque:
    """A kernel of Gaussian processes as a sum of bells; constants are bells without precision."""
    name = type(kernel).__name__
    if name == "ConstantKernel":
        return [Bells(float(kernel.constant_value), np.zeros(width))]
    if name == "WhiteKernel":  # noise of training rows, which other rows do not share
        return []
    if name == "RBF":
        return [Bells(1.0, np.broadcast_to(0.5 / np.asarray(kernel.length_scale, dtype=float) ** 2, (width,)))]
    if name not in ("Sum", "Product"):
        return Opaque(f"the kernel {name} is not read; those of RBF, ConstantKernel and WhiteKernel are")
    first, second = _bells(kernel.k1, width), _bells(kernel.k2, width)
    if isinstance(first, Opaque) or isinstance(second, Opaque):
        return first if isinstance(first, Opaque) else second
    if name == "Sum":
        return first + second
    return [Bells(a.amplitude * b.amplitude, a.precision + b.precision) for a in first for b in second]


def _of_named_kernel(model: Any, gamma: float, terms: KernelSum, question: Question) -> FoundQuestion | Opaque:
    name, kernel = type(model).__name__, model.kernel
    if kernel == "rbf":
        return _of_bells([Bells(1.0, np.full(terms.vectors.shape[1], gamma))], terms, question)
    if kernel == "linear":
        return _of_products(1.0, 0.0, "identity", terms, question)
    if kernel in ("poly", "polynomial") and model.degree in POWERS:
        return _of_products(gamma, float(model.coef0), POWERS[model.degree], terms, question)
    if kernel == "sigmoid":
        return _of_products(gamma, float(model.coef0), "tanh", terms, question)
    what = f"{kernel!r} of degree {model.degree}" if kernel in ("poly", "polynomial") else f"{kernel!r}"
    return Opaque(f"{name} with the kernel {what} is not read; 'rbf', 'linear', 'sigmoid' and 'poly' up to 3 are")


def _of_bells(bells: list[Bells], terms: KernelSum, question: Question) -> FoundQuestion:
    """A net on the columns, counted from the middle of the vectors, and their squares."""
    middle = terms.vectors.mean(axis=0)
    place, width = terms.vectors - middle, terms.vectors.shape[1]

    def with_squares(model_input: Any) -> Floats:
        away = as_floats(model_input) - middle
        return np.ascontiguousarray(np.hstack([away, away**2]))

    weights = [
        np.vstack([2.0 * (bell.precision * place).T, np.repeat(-bell.precision[:, None], len(place), axis=1)])
        for bell in bells
    ]
    biases = [-(place**2) @ bell.precision for bell in bells]
    last = [bell.amplitude * terms.coef for bell in bells]
    bias = np.concatenate([np.zeros(0), *biases])
    exponent = float(np.abs(bias).max(initial=0.0))
    total = float(np.abs(np.concatenate([np.zeros(1), *last])).sum()) + abs(terms.constant)
    first = np.hstack([np.zeros((2 * width, 0)), *weights])
    link = number_link(question, plain(label_at=0.0))
    source = np.tile(np.arange(width, dtype=np.int32), 2)
    reading = link.reading(question, _EXACT * (1.0 + exponent) * (1.0 + total), with_squares, source)
    net = _one_layer(reading, first, bias, np.concatenate([np.zeros(0), *last]), terms.constant, "gauss")
    return FoundQuestion(net, link)


def _of_products(gamma: float, shift: float, activation: str, terms: KernelSum, question: Question) -> FoundQuestion:
    """A net on the columns; of a linear kernel, a linear model."""
    link = number_link(question, plain(label_at=0.0))
    width = terms.vectors.shape[1]
    largest = float(gamma * (terms.vectors**2).sum(axis=1).max(initial=0.0)) + abs(shift)
    power = {"identity": 1, "square": 2, "cube": 3, "tanh": 0}[activation]
    total = float(np.abs(terms.coef).sum()) * (1.0 + largest) ** power + abs(terms.constant)
    reading = link.reading(question, _EXACT * 10.0 * (1.0 + largest) * (1.0 + total), as_floats, width)
    if activation == "identity":
        slope, constant = gamma * (terms.coef @ terms.vectors), terms.constant + shift * float(terms.coef.sum())
        return FoundQuestion(Additive(reading, np.ascontiguousarray(slope), constant), link)
    bias = np.full(len(terms.coef), shift)
    net = _one_layer(reading, gamma * terms.vectors.T, bias, terms.coef, terms.constant, activation)
    return FoundQuestion(net, link)


def _one_layer(reading: Any, weight: Floats, bias: Floats, last: Floats, constant: float, activation: str) -> Network:
    """A net of one hidden layer, without the neurons that add nothing."""
    used = np.flatnonzero(last)
    weights = (np.ascontiguousarray(weight[:, used]), np.ascontiguousarray(last[used, None]))
    return Network(reading, weights, (np.ascontiguousarray(bias[used]), np.array([constant])), activation)
