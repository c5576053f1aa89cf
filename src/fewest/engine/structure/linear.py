"""Linear classifiers: the raw score is the decision function."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.engine.structure.base import Additive, Opaque, Reading, as_floats
from fewest.engine.structure.question import (
    EPS32,
    EPS64,
    FoundQuestion,
    Link,
    Question,
    all_columns,
    clipped,
    logistic,
    margin_link,
)
from fewest.tables.arrays import Floats

LINEAR = frozenset({
    "LogisticRegression", "LogisticRegressionCV", "LinearSVC", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier",
    "Perceptron", "PassiveAggressiveClassifier", "LinearDiscriminantAnalysis",
})  # fmt: skip


def linear_tolerance(coef: Floats, intercept: float, eps: float) -> float:
    """How far two ways of summing a linear score may lie apart.

    The true bound grows with the input, which is not known here; the factor leaves room for values far from unit
    scale (up to about 1e6 in float64), and `Additive.wide_enough` for larger ones.
    """
    factor = 1e-8 if eps < 1e-12 else 1e-4
    return factor * (1.0 + abs(intercept) + float(np.abs(coef).sum()))


def read_linear(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read coef_ and intercept_ of a scikit-learn linear classifier."""
    coef = np.atleast_2d(np.asarray(model.coef_))
    eps = EPS32 if coef.dtype == np.float32 else EPS64
    link = margin_link(model, question, _probabilities(model, eps))
    if isinstance(link, Opaque):
        return link
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64).ravel(), (len(coef),))
    coef = coef.astype(np.float64)
    if question.against is None:
        row, constant = question.sign * coef[0], question.sign * float(intercept[0])
    else:
        if question.kind == "proba" and not _is_softmax(model):
            name = type(model).__name__
            return Opaque(f"{name}: one-vs-rest probabilities are not additive; ask for kind='decision'")
        first, second = question.pair
        row, constant = coef[first] - coef[second], float(intercept[first] - intercept[second])
    cut, slack = link.cut(question)
    tolerance = linear_tolerance(coef, constant, eps) + slack
    reading = Reading(cut, tolerance, as_floats, all_columns(coef.shape[1]), growth=16 * eps)
    return FoundQuestion(Additive(reading, np.ascontiguousarray(row), constant), link)


def _probabilities(model: Any, eps: float) -> Link:
    if type(model).__name__ == "SGDClassifier" and model.loss == "modified_huber":
        return clipped()
    return logistic(eps=eps)


def _is_softmax(model: Any) -> bool:
    name = type(model).__name__
    if name.startswith("LogisticRegression"):
        return getattr(model, "solver", "") != "liblinear" and getattr(model, "multi_class", "auto") != "ovr"
    return name == "LinearDiscriminantAnalysis"
