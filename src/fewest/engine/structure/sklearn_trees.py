"""scikit-learn trees: single ones, forests, bags of them, gradient boosting, AdaBoost and isolation forests.

They round the input to float32 and go left when ``x <= threshold`` (a float64).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.engine.structure._trees import ModelTree, stack
from fewest.engine.structure.base import Opaque, as_float32_values
from fewest.engine.structure.question import (
    EPS64,
    FoundQuestion,
    Link,
    Question,
    logistic,
    margin_link,
    number_link,
    plain,
)
from fewest.tables.arrays import Floats

TREES = frozenset({"DecisionTreeClassifier", "ExtraTreeClassifier", "DecisionTreeRegressor", "ExtraTreeRegressor"})
FORESTS = frozenset({
    "RandomForestClassifier", "ExtraTreesClassifier", "RandomForestRegressor", "ExtraTreesRegressor",
})  # fmt: skip


def read_tree(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read a single decision tree: the raw score is the leaf's share of the class."""
    return _mean_of_leaves(model, [model], None, question)


def read_forest(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read a forest: the raw score is the mean of the leaves' shares."""
    return _mean_of_leaves(model, model.estimators_, None, question)


def read_bagging(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read a bag of trees, each on its own columns."""
    if not all(type(member).__name__ in TREES for member in model.estimators_):
        return Opaque(f"{type(model).__name__}: only bags of decision trees are read")
    return _mean_of_leaves(model, model.estimators_, model.estimators_features_, question)


def read_gradient_boosting(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read gradient boosting: log-odds (half of them for the exponential loss), or the number itself."""
    start = model.init_
    constant = type(start).__name__ in ("DummyClassifier", "DummyRegressor")
    if not (isinstance(start, str) or (constant and start.strategy not in ("stratified", "uniform"))):
        return Opaque(f"{type(model).__name__} starts from {type(start).__name__}; only constant starts are read")
    # The start is the same for every row; the library computes it from any row.
    starts = model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))[0]
    parts = question.parts.items()
    trees = [
        _tree(estimator, sign * model.learning_rate * estimator.tree_.value[:, 0, 0])
        for output, sign in parts
        for estimator in model.estimators_[:, output]
    ]
    base = float(sum(sign * starts[output] for output, sign in parts))
    link = margin_link(question, logistic(2.0 if model.loss == "exponential" else 1.0))
    if question.kind == "value":
        link = plain()
    return stack(trees, base, link, question, as_float32_values, model.n_features_in_)


def read_adaboost(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read AdaBoost over trees: each tree votes for the class its leaf predicts."""
    members = model.estimators_
    if not all(type(member).__name__ in TREES for member in members):
        return Opaque("AdaBoostClassifier: only boosted decision trees are read")
    if not all(np.array_equal(member.classes_, model.classes_) for member in members):
        return Opaque("AdaBoostClassifier: a member has not seen every class")
    weights = np.asarray(model.estimator_weights_, dtype=np.float64)[: len(members)]
    weights = weights / float(np.sum(model.estimator_weights_))
    count = len(model.classes_)
    trees = []
    for member, weight in zip(members, weights, strict=True):
        voted = np.argmax(member.tree_.value[:, 0, :], axis=1)
        # A vote gives w to its class and -w/(K-1) to the others; with two classes the library adds both columns.
        votes = np.where(voted[:, None] == np.arange(count), 1.0, -1.0 / (count - 1))
        first, second = question.pair
        trees.append(_tree(member, weight * (votes[:, first] - votes[:, second])))
    link = margin_link(question, logistic())
    return stack(trees, 0.0, link, question, as_float32_values, model.n_features_in_)


def read_isolation_forest(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read IsolationForest: the raw score is minus the mean path length, in units of an ordinary one.

    A row is as unusual as 2 ** raw, and the decision function compares that with ``offset_``.
    """
    # What the library divides by is not kept; the path lengths of a tree's leaves are.
    usual = len(model.estimators_) * float(_average_path_length([model._max_samples])[0])
    if usual <= 0:
        return Opaque("IsolationForest: trees of one row tell nothing apart")
    trees = []
    for member, columns, length, rest in zip(
        model.estimators_, model.estimators_features_, model._decision_path_lengths,
        model._average_path_length_per_tree, strict=True,
    ):  # fmt: skip
        depth = (np.asarray(length) + np.asarray(rest) - 1.0) / usual
        trees.append(_tree(member, -question.sign * depth, columns))
    offset = float(model.offset_)

    def inverse(threshold: float) -> float:
        return float(np.log2(threshold - offset)) if threshold > offset else -np.inf

    link = Link(lambda raw: np.exp2(raw) + offset, inverse, np.log(2.0), 0.0, EPS64, lowest=offset + 1e-12)
    link = number_link(question, link)
    return stack(trees, 0.0, link, question, as_float32_values, model.n_features_in_)


def _average_path_length(rows: list[int]) -> Floats:
    from sklearn.ensemble._iforest import _average_path_length as library

    return np.asarray(library(rows))


def _mean_of_leaves(model: Any, members: Any, features: Any, question: Question) -> FoundQuestion | Opaque:
    if getattr(model, "n_outputs_", 1) != 1:
        return Opaque(f"{type(model).__name__} has several outputs")
    trees = []
    for number, member in enumerate(members):
        if question.kind == "value":
            value = question.sign * member.tree_.value[:, 0, 0]
        else:
            shares = _shares(member, len(model.classes_))
            value = shares[:, question.positive]
            if question.against is not None:
                value = value - shares[:, question.against]
        trees.append(_tree(member, value / len(members), None if features is None else features[number]))
    return stack(trees, 0.0, plain(), question, as_float32_values, model.n_features_in_)


def _shares(member: Any, count: int) -> Floats:
    """Class shares of every node (nodes, count), classes a bagged member never saw at zero."""
    value = member.tree_.value[:, 0, :]
    if value.shape[1] == count:
        return np.asarray(value)
    shares = np.zeros((len(value), count))
    shares[:, np.asarray(member.classes_, dtype=np.intp)] = value
    return shares


def _tree(estimator: Any, value: Floats, features: Any = None) -> ModelTree:
    inside = estimator.tree_
    column = inside.feature
    if features is not None:
        column = np.where(column >= 0, np.asarray(features)[np.maximum(column, 0)], -1)
    column = np.where(inside.children_left < 0, -1, column)
    return ModelTree(
        column, inside.threshold, inside.children_left, inside.children_right, inside.missing_go_to_left, value
    )
