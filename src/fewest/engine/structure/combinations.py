"""Models made of models: calibrated classifiers, votes and stacks.

Calibrators are links: sigmoid, isotonic and temperature scaling map a score to a calibrated probability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fewest.engine.encoding import single_columns, split_pipeline
from fewest.engine.structure.base import (
    Additive,
    Composite,
    Ensemble,
    Opaque,
    Reading,
    Structure,
    as_float32_values,
    as_floats,
)
from fewest.engine.structure.question import EPS32, EPS64, FoundQuestion, Link, Question, logistic, plain
from fewest.tables.arrays import Floats

Find = Callable[[Any, Question], FoundQuestion | Opaque]


def read_calibrated(model: Any, question: Question, find: Find) -> FoundQuestion | Opaque:
    """Read CalibratedClassifierCV: one fold is its base with another cut, several are a `Composite`."""
    if question.against is not None:
        return Opaque("CalibratedClassifierCV: calibrated probabilities of three or more classes are not additive")
    folds = model.calibrated_classifiers_
    found = [_read_fold(fold, question, find, len(folds) == 1) for fold in folds]
    return found[0] if len(folds) == 1 else composite_of(found, [1.0 / len(folds)] * len(folds), question)


def read_voting(model: Any, question: Question, find: Find) -> FoundQuestion | Opaque:
    """Read soft and hard votes: trees merge into one `Ensemble`, anything else is a `Composite`."""
    weights = np.asarray(model._weights_not_none if model.weights is not None else np.ones(len(model.estimators_)))
    shares = [float(weight) for weight in weights / weights.sum()]
    if question.kind == "value":
        asked = Question(kind="value", threshold=0.0)
        shares = [question.sign * share for share in shares]
    elif model.voting == "hard":
        return _hard_vote(model, shares, question, find)
    else:
        asked = Question(question.positive, question.against, "proba", 0.5 if question.against is None else 0.0)
    found = [find(member, asked) for member in model.estimators_]
    merged = _merged(found, shares, question)
    if merged is not None:
        return merged
    if question.against is not None:
        return Opaque("VotingClassifier: only trees and forests are merged for three or more classes")
    return composite_of(found, shares, question)


def read_stacking(model: Any, question: Question, find: Find) -> FoundQuestion | Opaque:
    """Read a stack whose last model is linear: a `Composite` of its members' scores, weighted by its coefficients."""
    name = type(model).__name__
    if question.against is not None:
        return Opaque(f"{name}: stacks over three or more classes are not read")
    final = find(model.final_estimator_, question)
    if isinstance(final, Opaque) or not isinstance(final.structure, Additive):
        return Opaque(f"{name}: its last model, {type(model.final_estimator_).__name__}, is not a linear one")
    kinds = {"predict_proba": "proba", "decision_function": "decision"}
    if question.kind == "value":
        kinds = {"predict": "value"}
    if not set(model.stack_method_) <= set(kinds):
        return Opaque(f"{name}: its members give labels, not scores")
    members, coef = list(model.estimators_), final.structure.coef
    extra = model.n_features_in_ if model.passthrough else 0
    if len(model.stack_method_) != len(members) or len(members) + extra != len(coef):
        return Opaque(f"{name} has {len(members)} members, and its last model was fitted on {len(coef) - extra}")
    found: list[FoundQuestion | Opaque] = [
        find(member, Question(kind=kinds[method], threshold=0.5 if method == "predict_proba" else 0.0))
        for member, method in zip(members, model.stack_method_, strict=True)
    ]
    weights = coef[: len(members)].tolist()
    if extra:
        reading = plain().reading(Question(kind="value"), 0.0, as_floats, extra)
        found.append(FoundQuestion(Additive(reading, coef[len(members) :], 0.0), plain()))
        weights.append(1.0)
    refused = _opaque_member(found)
    if refused is not None:
        return refused
    read = [member for member in found if isinstance(member, FoundQuestion)]
    error = sum(
        abs(weight) * member.link.spread(member.structure.reading.tolerance)
        for member, weight in zip(read, weights, strict=True)
    )
    last = final.structure
    made = _side_by_side(read, weights, last.reading.cut - last.intercept, last.reading.tolerance + error)
    shifted = replace(
        final.link, score=lambda raw: final.link.score(raw + last.intercept), inverse=_no_inverse, plain=False
    )
    return FoundQuestion(made, shifted)


def read_pipeline(model: Any, question: Question, find: Find) -> FoundQuestion | Opaque:
    """Read a Pipeline inside another model: its last step, fed through the steps before it."""
    steps, final = split_pipeline(model)
    found = find(final, question)
    if steps is None or isinstance(found, Opaque):
        return found
    columns = single_columns(steps, int(model.n_features_in_))
    if isinstance(columns, str):
        return Opaque(f"a Pipeline inside the model: {columns}")
    inner = found.structure.reading

    def prepare(model_input: Any) -> Floats:
        return inner.prepare(steps.transform(model_input))

    several = tuple(tuple(int(columns[place]) for place in places) for places in inner.several)
    reading = replace(inner, prepare=prepare, source=columns[inner.source], several=several)
    return FoundQuestion(replace(found.structure, reading=reading), found.link)


def _mirrored(values: Any, kind: str) -> Any:
    """Score of the other class."""
    return -values if kind == "decision" else 1.0 - values


def _calibrated_link(base: Link, curve: Link, question: Question, kind: str) -> Link:
    """From the base's raw score for the positive class to the calibrated probability of that class."""

    def score(raw: Floats) -> Floats:
        if question.positive == 1:
            return curve.score(base.score(raw))
        return 1.0 - curve.score(_mirrored(base.score(raw), kind))

    def moves(delta: float) -> float:
        return curve.spread(base.spread(delta))

    return Link(score, curve.inverse, curve.slope * base.slope, 0.5, curve.eps, moves=moves)


def _read_fold(fold: Any, question: Question, find: Find, alone: bool) -> FoundQuestion | Opaque:
    """The base of one fold, linked to its calibrated probability; ``alone`` it decides, at a cut of its own."""
    if len(getattr(fold.estimator, "classes_", ())) != 2:
        return Opaque("CalibratedClassifierCV: a fold has not seen both classes")
    kind = "decision" if hasattr(fold.estimator, "decision_function") else "proba"
    curve = _calibrator_link(fold.calibrators[0], fold.method, kind)
    if isinstance(curve, Opaque):
        return curve
    turn, slack = 0.5, 0.0
    if alone:
        turn, slack = _base_threshold(fold.calibrators[0], fold.method, curve, question)
        if question.positive == 0:
            turn = float(_mirrored(turn, kind))
        if question.kind == "label" and not 0 < question.threshold <= 1:
            turn = -np.inf if question.threshold <= 0 else np.inf
    found = find(fold.estimator, Question(question.positive, None, kind, turn, slack))
    if isinstance(found, Opaque):
        return found
    return FoundQuestion(found.structure, _calibrated_link(found.link, curve, question, kind))


def _opaque_member(found: list[FoundQuestion | Opaque]) -> Opaque | None:
    for member in found:
        if isinstance(member, Opaque):
            return Opaque(f"a member is not read: {member.reason}")
        if member.structure.reading.several:
            return Opaque("a member has terms of several columns")
        if member.link.one_cut:
            return Opaque("a member's score does not follow from one raw number")
    return None


def composite_of(
    found: list[FoundQuestion | Opaque], weights: list[float], question: Question
) -> FoundQuestion | Opaque:
    """The weighted sum of members' scores; opaque where a member is."""
    refused = _opaque_member(found)
    if refused is not None:
        return refused
    read = [member for member in found if isinstance(member, FoundQuestion)]
    link = plain(eps=max(member.link.eps for member in read))
    largest = np.inf if question.kind == "value" else 1.0
    error = sum(
        abs(weight) * min(largest, member.link.spread(member.structure.reading.tolerance))
        for member, weight in zip(read, weights, strict=True)
    )
    cut, slack = link.cut(question)
    return FoundQuestion(_side_by_side(read, weights, cut, error + slack + 64 * EPS64), link)


def _side_by_side(read: list[FoundQuestion], weights: list[float], cut: float, tolerance: float) -> Composite:
    read, weights = _flat(read, weights)
    members: list[Any] = [member.structure for member in read]
    ends = np.cumsum([len(member.reading.source) for member in members])
    starts = [0, *ends[:-1].tolist()]
    spans = tuple(slice(start, int(end)) for start, end in zip(starts, ends, strict=True))
    source = np.concatenate([member.reading.source for member in members]).astype(np.int32)

    def prepare(model_input: Any) -> Floats:
        return np.ascontiguousarray(np.hstack([member.reading.prepare(model_input) for member in members]))

    reading = Reading(cut, tolerance, prepare, source)
    return Composite(reading, tuple(members), spans, tuple(member.link.score for member in read), tuple(weights))


def _flat(read: list[FoundQuestion], weights: list[float]) -> tuple[list[FoundQuestion], list[float]]:
    """Members that are sums themselves, and are taken as they are, become several members."""
    flat: list[tuple[FoundQuestion, float]] = []
    for member, weight in zip(read, weights, strict=True):
        inside = member.structure
        if not isinstance(inside, Composite) or not member.link.plain:
            flat.append((member, weight))
            continue
        prepare = inside.reading.prepare  # prepares all of them, so each takes its own columns of it
        for part, span, link, share in zip(inside.members, inside.spans, inside.links, inside.weights, strict=True):
            reading = replace(part.reading, prepare=_columns_of(prepare, span), source=inside.reading.source[span])
            moved = FoundQuestion(replace(part, reading=reading), replace(member.link, score=link, plain=False))
            flat.append((moved, weight * share))
    return [member for member, _ in flat], [weight for _, weight in flat]


def _columns_of(prepare: Callable[[Any], Floats], span: slice) -> Callable[[Any], Floats]:
    return lambda model_input: prepare(model_input)[:, span]


def _hard_vote(model: Any, shares: list[float], question: Question, find: Find) -> FoundQuestion | Opaque:
    if question.against is not None:
        return Opaque("VotingClassifier: hard votes over three or more classes are not additive")
    found = [find(member, Question(question.positive, None, "label", 0.5)) for member in model.estimators_]
    refused = _opaque_member(found)
    if refused is not None:
        return refused
    read = [
        FoundQuestion(member.structure, _step(member.structure))
        for member in found
        if isinstance(member, FoundQuestion)
    ]
    # A member inside its own band counts half a vote, so the band has to hold half of the heaviest vote.
    tolerance = 0.5 * max(shares) * (1 - 1e-6)
    cut, _ = plain().cut(question)
    return FoundQuestion(_side_by_side(read, shares, cut, tolerance), plain())


def _step(structure: Structure) -> Link:
    """One vote: 0 below the member's cut, 1 above it, one half where only the library can say."""
    cut, band = structure.reading.cut, structure.reading.tolerance

    def score(raw: Floats) -> Floats:
        return np.asarray(0.5 * (raw >= cut - band) + 0.5 * (raw > cut + band))

    return Link(score, plain().inverse, np.inf, 0.5, EPS64)


def _merged(found: list[FoundQuestion | Opaque], weights: list[float], question: Question) -> FoundQuestion | None:
    """One ensemble with scaled leaves, where every member is a mean of tree probabilities."""
    trees: list[Ensemble] = []
    for member in found:
        if not isinstance(member, FoundQuestion) or not isinstance(member.structure, Ensemble):
            return None
        if not member.link.plain or member.structure.reading.prepare is not as_float32_values:
            return None
        trees.append(member.structure)
    link = plain()
    cut, slack = link.cut(question)
    tolerance = sum(abs(weight) * tree.reading.tolerance for tree, weight in zip(trees, weights, strict=True))
    reading = replace(trees[0].reading, cut=cut, tolerance=tolerance + slack + 64 * EPS64)
    offsets = np.cumsum([0, *(len(tree.column) for tree in trees)])[:-1]
    moved = [
        [np.where(child >= 0, child + first, -1).astype(np.int32) for child in (tree.left, tree.right, tree.root)]
        for tree, first in zip(trees, offsets, strict=True)
    ]
    left, right, root = (np.concatenate(parts) for parts in zip(*moved, strict=True))
    joined = {
        name: np.concatenate([getattr(tree, name) for tree in trees])
        for name in ("column", "threshold", "missing_left", "category")
    }
    value = np.concatenate([weight * tree.value for tree, weight in zip(trees, weights, strict=True)])
    base = float(sum(weight * tree.base for tree, weight in zip(trees, weights, strict=True)))
    merged = replace(trees[0], reading=reading, left=left, right=right, value=value, root=root, base=base, **joined)
    return FoundQuestion(merged, link)


def _calibrator_link(calibrator: Any, method: str, base_kind: str) -> Link | Opaque:
    """The calibrator as a link from the base model's score for ``classes_[1]`` to its calibrated probability."""
    if method == "isotonic":
        return _isotonic(calibrator)
    if method == "temperature":
        return _temperature(float(calibrator.beta_), base_kind)
    return _sigmoid(float(calibrator.a_), float(calibrator.b_))


def _base_threshold(calibrator: Any, method: str, link: Link, question: Question) -> tuple[float, float]:
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
