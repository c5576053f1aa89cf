"""Models made of models: calibrated classifiers and votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fewest.engine.structure._calibrators import base_threshold, calibrator_link
from fewest.engine.structure.base import Composite, Ensemble, Opaque, Reading, as_float32_values
from fewest.engine.structure.question import EPS64, FoundQuestion, Link, Question, Readable, chances_only, plain
from fewest.tables.arrays import Floats

Find = Callable[[Any, Question], FoundQuestion | Opaque]


def read_calibrated(model: Any, question: Question, find: Find) -> FoundQuestion | Opaque:
    """Read CalibratedClassifierCV: one fold is its base with another cut, several are a `Composite`."""
    refused = chances_only(model, question)
    if refused is not None:
        return refused
    if question.against is not None:
        return Opaque("CalibratedClassifierCV: calibrated probabilities of three or more classes are not additive")
    folds = model.calibrated_classifiers_
    if len(folds) == 1:
        return _one_fold(folds[0], question, find)
    found = [_fold_member(fold, question, find) for fold in folds]
    return _composite(found, [1.0 / len(folds)] * len(folds), question)


def read_voting(model: Any, question: Question, find: Find) -> FoundQuestion | Opaque:
    """Read VotingClassifier: trees merge into one `Ensemble`, anything else is a `Composite`."""
    weights = np.asarray(model._weights_not_none if model.weights is not None else np.ones(len(model.estimators_)))
    shares = [float(weight) for weight in weights / weights.sum()]
    if model.voting == "hard":
        return _hard_vote(model, shares, question, find)
    refused = chances_only(model, question)
    if refused is not None:
        return refused
    asked = Question(question.positive, question.against, "proba", 0.5 if question.against is None else 0.0)
    found = [find(member, asked) for member in model.estimators_]
    merged = _merged(found, shares, question)
    if merged is not None:
        return merged
    if question.against is not None:
        return Opaque("VotingClassifier: only trees and forests are merged for three or more classes")
    return _composite(found, shares, question)


def _base_kind(estimator: Any) -> str:
    return "decision" if hasattr(estimator, "decision_function") else "proba"


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


def _fold(fold: Any, question: Question) -> tuple[str, Link] | Opaque:
    if len(getattr(fold.estimator, "classes_", ())) != 2:
        return Opaque("CalibratedClassifierCV: a fold has not seen both classes")
    kind = _base_kind(fold.estimator)
    curve = calibrator_link(fold.calibrators[0], fold.method, kind)
    return curve if isinstance(curve, Opaque) else (kind, curve)


def _fold_member(fold: Any, question: Question, find: Find) -> FoundQuestion | Opaque:
    parts = _fold(fold, question)
    if isinstance(parts, Opaque):
        return parts
    kind, curve = parts
    found = find(fold.estimator, Question(question.positive, None, kind, 0.5))
    if isinstance(found, Opaque):
        return found
    return FoundQuestion(found.structure, _calibrated_link(found.link, curve, question, kind))


def _one_fold(fold: Any, question: Question, find: Find) -> FoundQuestion | Opaque:
    parts = _fold(fold, question)
    if isinstance(parts, Opaque):
        return parts
    kind, curve = parts
    turn, slack = base_threshold(fold.calibrators[0], fold.method, curve, question)
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
            return Opaque(f"a member is not read: {member.reason}", member.notes)
    return None


class _SideBySide:
    """The members' prepared arrays next to each other."""

    def __init__(self, members: list[Any]) -> None:
        self.prepares = [member.reading.prepare for member in members]

    def __call__(self, model_input: Any) -> Floats:
        return np.ascontiguousarray(np.hstack([prepare(model_input) for prepare in self.prepares]))


def _composite(found: list[FoundQuestion | Opaque], weights: list[float], question: Question) -> FoundQuestion | Opaque:
    refused = _opaque_member(found)
    if refused is not None:
        return refused
    read = [member for member in found if isinstance(member, FoundQuestion)]
    link = plain(eps=max(member.link.eps for member in read))
    error = sum(
        weight * min(1.0, member.link.spread(member.structure.reading.tolerance))
        for member, weight in zip(read, weights, strict=True)
    )
    cut, slack = link.cut(question)
    return FoundQuestion(_side_by_side(read, weights, cut, error + slack + 64 * EPS64), link)


def _side_by_side(read: list[FoundQuestion], weights: list[float], cut: float, tolerance: float) -> Composite:
    members: list[Any] = [member.structure for member in read]
    ends = np.cumsum([len(member.reading.source) for member in members])
    starts = [0, *ends[:-1].tolist()]
    spans = tuple(slice(start, int(end)) for start, end in zip(starts, ends, strict=True))
    source = np.concatenate([member.reading.source for member in members]).astype(np.int32)
    reading = Reading(cut, tolerance, _SideBySide(members), source)
    return Composite(reading, tuple(members), spans, tuple(member.link.score for member in read), tuple(weights))


def _hard_vote(model: Any, shares: list[float], question: Question, find: Find) -> FoundQuestion | Opaque:
    if question.kind != "label":
        return Opaque("VotingClassifier(voting='hard') has labels alone; ask for kind='label'")
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


def _step(structure: Readable) -> Link:
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
    tolerance = sum(weight * tree.reading.tolerance for tree, weight in zip(trees, weights, strict=True))
    reading = replace(trees[0].reading, cut=cut, tolerance=tolerance + slack + 64 * EPS64)
    offsets = np.cumsum([0, *(len(tree.column) for tree in trees)])[:-1]
    moved = [
        [np.where(child >= 0, child + first, -1).astype(np.int32) for child in (tree.left, tree.right, tree.root)]
        for tree, first in zip(trees, offsets, strict=True)
    ]
    left, right, root = (np.concatenate(parts) for parts in zip(*moved, strict=True))
    merged = Ensemble(
        reading=reading,
        column=np.concatenate([tree.column for tree in trees]),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        left=left,
        right=right,
        missing_left=np.concatenate([tree.missing_left for tree in trees]),
        category=np.concatenate([tree.category for tree in trees]),
        left_levels=trees[0].left_levels,
        value=np.concatenate([weight * tree.value for tree, weight in zip(trees, weights, strict=True)]),
        root=root,
        base=float(sum(weight * tree.base for tree, weight in zip(trees, weights, strict=True))),
    )
    return FoundQuestion(merged, link)
