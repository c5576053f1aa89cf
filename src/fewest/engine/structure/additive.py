"""Linear models and explainable boosting machines: one term per column, feature or pair of features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fewest.engine.structure.base import Additive, Opaque, as_floats
from fewest.engine.structure.question import (
    EPS32,
    EPS64,
    FoundQuestion,
    Question,
    clipped,
    exponential,
    logistic,
    margin_link,
    number_link,
    plain,
)
from fewest.tables.arrays import Floats

LINEAR = frozenset({
    "LogisticRegression", "LogisticRegressionCV", "LinearSVC", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier",
    "Perceptron", "PassiveAggressiveClassifier", "LinearDiscriminantAnalysis",
})  # fmt: skip

LINEAR_REGRESSORS = frozenset({
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "Lars",
    "LarsCV", "ElasticNet", "ElasticNetCV", "SGDRegressor", "LinearSVR", "HuberRegressor", "BayesianRidge",
    "ARDRegression", "QuantileRegressor", "TheilSenRegressor", "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV", "PassiveAggressiveRegressor", "PoissonRegressor", "GammaRegressor",
    "TweedieRegressor",
})  # fmt: skip


def read_linear(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read coef_ and intercept_ of a scikit-learn linear model: the raw score is the decision function or number."""
    name, coef = type(model).__name__, np.atleast_2d(np.asarray(model.coef_))
    eps = EPS32 if coef.dtype == np.float32 else EPS64
    huber = name == "SGDClassifier" and model.loss == "modified_huber"
    if question.kind == "value":
        if len(coef) > 1:
            return Opaque(f"{name} has several outputs")
        link = number_link(question, exponential(eps) if _has_log_link(model) else plain(eps=eps))
    else:
        link = margin_link(question, clipped() if huber else logistic(eps=eps))
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64).ravel(), (len(coef),))
    coef = coef.astype(np.float64)
    if question.against is not None and question.kind == "proba" and huber:
        # Others are in the order of their decision functions, whatever they are divided by.
        return Opaque(f"{name}: probabilities of the modified Huber loss are often equal; ask for kind='decision'")
    row = np.asarray(sum(sign * coef[output] for output, sign in question.parts.items()))
    constant = float(sum(sign * intercept[output] for output, sign in question.parts.items()))
    # How far two ways of summing may lie apart grows with the input, which is not known here. The factor leaves room
    # for values far from unit scale (up to about 1e6 in float64), and `Additive.wide_enough` for larger ones.
    tolerance = (1e-8 if eps == EPS64 else 1e-4) * (1.0 + abs(constant) + float(np.abs(coef).sum()))
    reading = link.reading(question, tolerance, as_floats, coef.shape[1], growth=16 * eps)
    return FoundQuestion(Additive(reading, np.ascontiguousarray(row), constant), link)


def _has_log_link(model: Any) -> bool:
    """Whether a generalised linear model predicts exp(coef @ x)."""
    if type(model).__name__ == "TweedieRegressor":
        return bool(model.link == "log" or (model.link == "auto" and model.power > 0))
    return type(model).__name__ in ("PoissonRegressor", "GammaRegressor")


def read_ebm(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read an explainable boosting machine: the prepared columns are the terms' contributions."""
    name, through = type(model).__name__, getattr(model, "link_", "logit")
    if through not in (("identity", "log") if question.kind == "value" else ("logit", "mlogit")):
        return Opaque(f"{name} with the link {through!r} is not read")
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    constant = float(sum(sign * intercept[output] for output, sign in question.parts.items()))
    size = float(sum(np.abs(scores).max() for scores in model.term_scores_)) + float(np.abs(intercept).max())
    terms = tuple(tuple(int(place) for place in features) for features in model.term_features_)
    source = np.array([features[0] for features in terms], dtype=np.int32)

    def contributions(model_input: Any) -> Floats:
        if hasattr(model_input, "toarray"):
            model_input = model_input.toarray()
        parts = np.asarray(model.eval_terms(model_input), dtype=np.float64)
        if parts.ndim == 3:
            first, second = question.pair
            parts = parts[:, :, first] - parts[:, :, second]
        return np.ascontiguousarray(parts)

    link = margin_link(question, logistic())
    if question.kind == "value":
        link = number_link(question, exponential() if through == "log" else plain())
    reading = link.reading(question, 1e-12 * (1.0 + 2 * size), contributions, source)
    if any(len(features) > 1 for features in terms):
        reading = replace(reading, several=terms)
    coef = np.full(len(source), question.sign if question.against is None else 1.0)
    return FoundQuestion(Additive(reading, coef, constant), link)
