"""What is asked of a model (which class, which score, which threshold) and how its raw score answers.

A `Link` is the non-decreasing function from the raw score to the score the decision compares with its threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewest.engine.structure.base import Reading, Structure
from fewest.tables.arrays import Floats, Ints32

EPS64 = float(np.finfo(np.float64).eps)
EPS32 = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Question:
    """Which decision of the model is asked about."""

    positive: int = 1  # Position in ``classes_`` of the class being explained
    # Among three or more classes: the class it is compared with (the score is then the difference of the two)
    against: int | None = None
    kind: str = "proba"  # The score the decision uses
    threshold: float = 0.5  # Positive means score >= threshold
    # Uncertainty of the threshold itself, in score units (a calibrator's inverse is computed, not stored)
    slack: float = 0.0
    width: int | None = None  # Columns of the model's input, where they are known

    @property
    def sign(self) -> float:
        """Direction of a two-class margin that speaks for ``classes_[1]``."""
        return 1.0 if self.positive == 1 else -1.0

    @property
    def pair(self) -> tuple[int, int]:
        """The explained class and the one it is compared with."""
        return self.positive, 1 - self.positive if self.against is None else self.against

    @property
    def parts(self) -> dict[int, float]:
        """Outputs of a model that make up the raw score, with their signs: one margin, or two classes' scores."""
        return {0: self.sign} if self.against is None else {self.positive: 1.0, self.against: -1.0}


@dataclass(frozen=True)
class Link:
    """Score of a raw value and back."""

    score: Callable[[Floats], Floats]  # Raw (n,) -> score (n,), non-decreasing
    # Threshold -> smallest raw value whose score reaches it; -inf or inf where all or none do
    inverse: Callable[[float], float]
    slope: float  # Steepest rise of `score`
    label_at: float  # Score at which the model's own label turns
    eps: float  # Rounding unit of the scores the library returns
    plain: bool = False  # Whether score and raw are the same number
    # lowest, highest: Scores closer than this to the ends of the range cannot be distinguished from them
    lowest: float = -np.inf
    highest: float = np.inf
    # Largest change of the score for a given change of the raw value, where that is less than slope times it
    moves: Callable[[float], float] | None = None
    one_cut: bool = False  # Whether only the cut of the raw score is known, and no score that goes with it

    def cut(self, question: Question) -> tuple[float, float]:
        """Raw value at the threshold, and how far rounding of the scores may move it."""
        threshold = question.threshold
        if question.against is not None:
            # A difference of two scores says which raw value is larger; only plain scores say by how much.
            return threshold if self.plain else 0.0, 16 * self.eps * max(1.0, abs(threshold))
        if question.kind == "label":
            if not 0 < threshold <= 1:
                return (-np.inf if threshold <= 0 else np.inf), 0.0
            threshold = self.label_at
        cut = self.inverse(threshold)
        if not np.isfinite(cut):
            return cut, 0.0
        reach = question.slack + 4 * self.eps * max(1.0, abs(threshold))
        below = self.inverse(max(threshold - reach, self.lowest))
        above = self.inverse(min(threshold + reach, self.highest))
        return cut, max(cut - below, above - cut, 0.0)

    def reading(
        self, question: Question, tolerance: float, prepare: Callable[[Any], Floats], source: int | Ints32,
        growth: float = 0.0,
    ) -> Reading:  # fmt: skip
        """Where the raw score decides; ``source`` is an array, or how many columns are taken as they come."""
        cut, slack = self.cut(question)
        columns = source if isinstance(source, np.ndarray) else np.arange(source, dtype=np.int32)
        return Reading(cut, tolerance + slack, prepare, columns, growth)

    def spread(self, delta: float) -> float:
        """Largest change of the score when the raw value is off by delta, rounding included."""
        change = self.slope * delta if self.moves is None else self.moves(delta)
        return change + 4 * self.eps


@dataclass(frozen=True)
class FoundQuestion:
    """A structure together with the link from its raw score to the score asked about."""

    structure: Structure
    link: Link


def plain(label_at: float = 0.5, eps: float = EPS64, one_cut: bool = False) -> Link:
    """The raw score is the score: decision functions (label at 0) and mean probabilities (label at 0.5)."""
    return Link(lambda raw: raw, lambda threshold: threshold, 1.0, label_at, eps, plain=True, one_cut=one_cut)


def logistic(scale: float = 1.0, eps: float = EPS64) -> Link:
    """Score = 1 / (1 + exp(-scale * raw)), returned with rounding unit eps.

    A threshold of 1 is reached where the rounded probability is 1, not at infinity.
    """
    from scipy.special import expit, logit

    def inverse(threshold: float) -> float:
        if threshold <= 0:
            return -np.inf
        if threshold > 1:
            return np.inf
        return float(logit(min(threshold, 1 - eps / 2))) / scale

    def score(raw: Floats) -> Floats:
        return np.asarray(expit(scale * raw))

    return Link(score, inverse, scale / 4, 0.5, eps, lowest=eps / 4, highest=1.0)


def clipped() -> Link:
    """Score = (clip(raw, -1, 1) + 1) / 2: probabilities of the modified Huber loss."""

    def inverse(threshold: float) -> float:
        if threshold <= 0:
            return -np.inf
        return 2 * threshold - 1 if threshold <= 1 else np.inf

    return Link(lambda raw: (np.clip(raw, -1, 1) + 1) / 2, inverse, 0.5, 0.5, EPS64, False, EPS64 / 4, 1.0)


def exponential(eps: float = EPS64) -> Link:
    """Score = exp(raw): means of counts and amounts."""

    def inverse(threshold: float) -> float:
        return float(np.log(threshold)) if threshold > 0 else -np.inf

    return Link(lambda raw: np.exp(np.minimum(raw, 700.0)), inverse, np.inf, 0.5, eps, lowest=1e-300)


def turned_round(link: Link) -> Link:
    """The link from minus the raw score to minus the score."""
    return replace(
        link,
        score=lambda raw: -link.score(-raw),
        inverse=lambda threshold: -link.inverse(-threshold),
        lowest=-link.highest,
        highest=-link.lowest,
    )


def number_link(question: Question, link: Link) -> Link:
    """The link of a predicted number; where small ones are asked about, raw score and number are turned round."""
    return link if question.positive == 1 or link.plain else turned_round(link)


def margin_link(question: Question, proba: Link) -> Link:
    """The link of a model whose raw score is its decision function: `proba` links it to predict_proba."""
    return plain(label_at=0.0, eps=proba.eps) if question.kind == "decision" else proba
