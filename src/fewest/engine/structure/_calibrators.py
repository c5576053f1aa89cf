"""Calibrators as links: sigmoid, isotonic and temperature scaling map a score to a calibrated probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.engine.structure.base import Opaque
from fewest.engine.structure.question import EPS32, EPS64, Link, Question, logistic
from fewest.tables.arrays import Floats


def calibrator_link(calibrator: Any, method: str, base_kind: str) -> Link | Opaque:
    """The calibrator as a link from the base model's score for ``classes_[1]`` to its calibrated probability."""
    if method == "isotonic":
        return _isotonic(calibrator)
    if method == "temperature":
        return _temperature(float(calibrator.beta_), base_kind)
    return _sigmoid(float(calibrator.a_), float(calibrator.b_))


def base_threshold(calibrator: Any, method: str, link: Link, question: Question) -> tuple[float, float]:
    """Score for ``classes_[1]`` at which the calibrated decision turns, and its uncertainty."""
    if method == "isotonic":
        return _isotonic_turn(calibrator, question)
    # Class 0 is positive while p1 <= 1 - threshold: the same turning point.
    threshold = 0.5 if question.kind == "label" else question.threshold
    mirrored = threshold if question.positive == 1 else 1.0 - threshold
    if question.positive == 0 and not 0.0 < mirrored < 1.0:
        if threshold != 1.0:
            return (np.inf if threshold <= 0 else -np.inf), 0.0
        # 1 - p1 reaches 1 only where p1 rounds to nothing.
        mirrored = EPS64 / 4
    return link.cut(Question(kind="proba", threshold=mirrored, slack=question.slack))


def _sigmoid(slope: float, shift: float) -> Link | Opaque:
    if slope >= 0:
        return Opaque("the sigmoid calibrator does not increase with the score it calibrates")
    inner = logistic()

    def score(values: Floats) -> Floats:
        return inner.score(-(slope * values + shift))

    def inverse(threshold: float) -> float:
        return (inner.inverse(threshold) + shift) / -slope

    return Link(score, inverse, -slope / 4, 0.5, EPS64, False, inner.lowest, inner.highest)


def _temperature(beta: float, base_kind: str) -> Link:
    if base_kind == "decision":
        return logistic(2.0 * beta)
    tiny = 1e-12
    inner = logistic(beta)

    def score(values: Floats) -> Floats:
        return inner.score(np.log(values + tiny) - np.log(1.0 - values + tiny))

    def inverse(threshold: float) -> float:
        odds = float(np.exp(np.clip(inner.inverse(threshold), -700.0, 700.0)))
        return (odds * (1.0 + tiny) - tiny) / (1.0 + odds)

    chances = np.concatenate([np.logspace(-15, -0.3, 400), 1.0 - np.logspace(-15, -0.3, 400)])
    calibrated = score(chances)
    rise = calibrated * (1.0 - calibrated) * (1.0 / (chances + tiny) + 1.0 / (1.0 - chances + tiny))
    return Link(score, inverse, 2.0 * beta * float(rise.max()), 0.5, EPS64, False, inner.lowest, inner.highest)


def _points(calibrator: Any) -> tuple[Floats, Floats, float]:
    x, y = np.asarray(calibrator.X_thresholds_), np.asarray(calibrator.y_thresholds_)
    eps = EPS32 if np.float32 in (x.dtype, y.dtype) else EPS64
    return x.astype(np.float64), y.astype(np.float64), eps


def _isotonic(calibrator: Any) -> Link | Opaque:
    if not calibrator.increasing_:
        return Opaque("the isotonic calibrator does not increase with the score it calibrates")
    x, y, eps = _points(calibrator)
    steepest = float(np.max(np.diff(y) / np.diff(x))) if len(x) > 1 else 0.0

    def moves(delta: float) -> float:
        ahead, behind = np.interp(x + delta, x, y) - y, y - np.interp(x - delta, x, y)
        return float(max(ahead.max(), behind.max()))

    return Link(lambda values: np.interp(values, x, y), _no_inverse, steepest, 0.5, eps, moves=moves)


def _isotonic_turn(calibrator: Any, question: Question) -> tuple[float, float]:
    """Where the piecewise linear curve crosses the threshold; on a plateau the library's own numbers are compared."""
    x, y, eps = _points(calibrator)
    threshold = 0.5 if question.kind == "label" else question.threshold
    # True from some point on: "p1 reaches the threshold", or "p0 no longer does". A label goes to class 0 in a tie.
    if question.kind == "label":
        turned = y > 1.0 - y
    else:
        turned = y >= threshold if question.positive == 1 else ~(1.0 - y >= threshold)
    if turned.all() or not turned.any():
        return (-np.inf if turned[0] else np.inf), 0.0
    after = int(np.argmax(turned))
    rise = (y[after] - y[after - 1]) / (x[after] - x[after - 1])
    wanted = threshold if question.positive == 1 else 1.0 - threshold
    place = float(np.clip(x[after - 1] + (wanted - y[after - 1]) / rise, x[after - 1], x[after]))
    slack = 8 * eps * (max(abs(x[after - 1]), abs(x[after])) + 1.0 / rise)
    return place, float(slack)


def _no_inverse(threshold: float) -> float:
    raise TypeError(f"no raw score belongs to {threshold}: this link is only applied forwards")
