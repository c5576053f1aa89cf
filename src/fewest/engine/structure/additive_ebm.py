"""Explainable boosting machines without interactions: one shape function per feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.engine.structure.base import Additive, Opaque, Reading
from fewest.engine.structure.question import FoundQuestion, Question, logistic, margin_link
from fewest.tables.arrays import Floats


def read_ebm(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read ExplainableBoostingClassifier: the prepared columns are the terms' contributions."""
    if any(len(features) != 1 for features in model.term_features_):
        return Opaque("ExplainableBoostingClassifier has interaction terms; fit it with interactions=0")
    if getattr(model, "link_", "logit") not in ("logit", "mlogit"):
        return Opaque(f"ExplainableBoostingClassifier with the link {model.link_!r} is not read")
    link = margin_link(model, question, logistic())
    if isinstance(link, Opaque):
        return link
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    if question.against is None:
        sign, constant = question.sign, question.sign * float(intercept[0])
    else:
        sign, constant = 1.0, float(intercept[question.positive] - intercept[question.against])
    cut, slack = link.cut(question)
    size = float(sum(np.abs(scores).max() for scores in model.term_scores_)) + float(np.abs(intercept).max())
    tolerance = 1e-12 * (1.0 + 2 * size) + slack
    source = np.array([features[0] for features in model.term_features_], dtype=np.int32)
    reading = Reading(cut, tolerance, _Terms(model, question), source)
    return FoundQuestion(Additive(reading, np.full(len(source), sign), constant), link)


class _Terms:
    """Contribution of each term, one column per term."""

    def __init__(self, model: Any, question: Question) -> None:
        self.model = model
        self.question = question

    def __call__(self, model_input: Any) -> Floats:
        if hasattr(model_input, "toarray"):
            model_input = model_input.toarray()
        terms = np.asarray(self.model.eval_terms(model_input), dtype=np.float64)
        if terms.ndim == 3:
            first, second = self.question.pair
            terms = terms[:, :, first] - terms[:, :, second]
        return np.ascontiguousarray(terms)
