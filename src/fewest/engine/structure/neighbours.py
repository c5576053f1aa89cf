"""Nearest neighbours: the training rows and their values are all there is to read."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.engine.structure.base import Neighbours, Opaque, Reading, as_floats
from fewest.engine.structure.question import FoundQuestion, Question, plain

NEIGHBOURS = frozenset({"KNeighborsClassifier", "KNeighborsRegressor"})
_POWERS = {"euclidean": 2.0, "l2": 2.0, "manhattan": 1.0, "cityblock": 1.0, "l1": 1.0}
_TOLERANCE = 1e-10


def read_neighbours(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read k nearest neighbours: the share of a class among them, or the mean of their numbers."""
    name, params = type(model).__name__, dict(model.effective_metric_params_ or {})
    metric = model.effective_metric_
    power = params.get("p") if metric == "minkowski" else _POWERS.get(metric)
    if power is None or params.get("w") is not None:
        return Opaque(f"{name}: distances {metric!r} of this kind are not sums over the columns")
    if model.weights not in (None, "uniform", "distance"):
        return Opaque(f"{name}: weights by a function of one's own are not read")
    if question.against is not None:
        return Opaque(f"{name}: shares of three or more classes are not read")
    known = np.asarray(model._y)
    if known.ndim > 1 and known.shape[1] > 1:
        return Opaque(f"{name} has several outputs")
    weighted, k = model.weights == "distance", int(model.n_neighbors)
    if question.kind == "value":
        value, cut = question.sign * known.ravel().astype(np.float64), question.threshold
    else:
        value = (known.ravel() == question.positive).astype(np.float64)
        cut = _share(question, k, weighted)
    rows = as_floats(model._fit_X)
    tolerance = _TOLERANCE * (1.0 + float(np.abs(value).max(initial=0.0)))
    reading = Reading(cut, tolerance, as_floats, np.arange(rows.shape[1], dtype=np.int32))
    rounding = 1e-5 if np.asarray(getattr(model._fit_X, "data", model._fit_X)).dtype == np.float32 else 1e-12
    found = Neighbours(reading, rows, value, k, float(power), weighted, rounding)
    return FoundQuestion(found, plain(one_cut=True))


def _share(question: Question, k: int, weighted: bool) -> float:
    """Share of the class at which it is decided for; of equal votes, half a vote below what is needed."""
    threshold, label = question.threshold, question.kind == "label"
    if label and not 0 < threshold <= 1:
        return -np.inf if threshold <= 0 else np.inf
    if weighted:
        return 0.5 if label else threshold
    votes = np.arange(k + 1)
    if label:  # the first class takes a tie
        enough = votes > k - votes if question.positive == 1 else votes >= k - votes
    else:
        enough = votes / k >= threshold
    if enough.all() or not enough.any():
        return -np.inf if enough.all() else np.inf
    return float((np.argmax(enough) - 0.5) / k)
