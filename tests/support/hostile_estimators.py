"""Fitted estimators with attributes no fit leaves: compiled code would read or write outside its arrays, or never end.

Each is an honest model and a change to it, so that the same model without the change can be shown to load.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import hostile_models
import numpy as np
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import Tree

FAR = 5_000_000
LETTERS = np.array([[letter] for letter in "abcdefghij" * 6], dtype=object)
FORGED: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {}


def rows(model: Any) -> Any:
    """Rows that a model here was fitted to."""
    X, _ = hostile_models.data()
    if isinstance(model[0] if hasattr(model, "steps") else model, OneHotEncoder):
        width = model.n_features_in_
        return np.hstack([LETTERS if model[0].categories_[0].dtype == object else LETTERS == "a"] * width)
    return np.abs(X) if hasattr(model, "steps") else X


def forged(name: str, honest: Callable[[], Any]) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def enter(change: Callable[[Any], None]) -> Callable[[Any], None]:
        FORGED[name] = (honest, change)
        hostile_models.hostile(f"{name}.skops")(lambda mark: written(name))
        return change

    return enter


def written(name: str) -> bytes:
    honest, change = FORGED[name]
    model = deepcopy(honest())  # what it is made from is fitted again for other tests
    change(model)
    return bytes(skops.io.dumps(model))


def fitted(model: Any) -> Callable[[], Any]:
    return lambda: model.fit(*hostile_models.data())


def stacked(model: Any) -> Callable[[], Any]:
    return fitted(StackingClassifier([("inner", model)], final_estimator=LogisticRegression(), cv=3))


def encoded(encoder: OneHotEncoder, columns: int = 1) -> Callable[[], Any]:
    return lambda: make_pipeline(encoder, LogisticRegression()).fit(np.hstack([LETTERS] * columns), [0, 1] * 30)


def positive(step: Any) -> Callable[[], Any]:
    X, y = hostile_models.data()
    return lambda: make_pipeline(MinMaxScaler(), step, LogisticRegression()).fit(np.abs(X), y)


def lead_astray(tree: Any, width: int = FAR) -> None:
    """Give a tree so many features, and make it test the last of them."""
    state = tree.tree_.__getstate__()
    state["nodes"] = state["nodes"].copy()
    state["nodes"]["feature"][state["nodes"]["left_child"] != -1] = width - 1
    wider = Tree(width, np.asarray(tree.tree_.n_classes), tree.tree_.n_outputs)
    wider.__setstate__(state)
    tree.tree_ = wider


BOOSTING = fitted(GradientBoostingClassifier(n_estimators=5, max_depth=2))
TREE = fitted(DecisionTreeClassifier(max_depth=3))


@forged("boosting-too-wide", BOOSTING)
def _(model: Any) -> None:
    model.estimators_ = np.repeat(model.estimators_[:1], 100, axis=1)
    model.n_trees_per_iteration_ = 100


@forged("boosting-of-more-classes", BOOSTING)
def _(model: Any) -> None:
    model.estimators_ = np.repeat(model.estimators_[:1], 100, axis=1)
    model.n_trees_per_iteration_ = model.n_classes_ = 100
    model.classes_ = np.arange(100)


@forged("boosting-far-features", BOOSTING)
def _(model: Any) -> None:
    for tree in model.estimators_.ravel()[1:]:
        lead_astray(tree)
        tree.n_features_in_ = FAR


@forged("boosting-of-no-trees", BOOSTING)
def _(model: Any) -> None:
    other = DummyClassifier()
    other.n_outputs = 1
    for tree in model.estimators_.ravel():
        tree.tree_ = other


@forged("boosting-with-short-guess", BOOSTING)
def _(model: Any) -> None:
    X, y = hostile_models.data()
    drop_rows = make_pipeline(FunctionTransformer(np.positive), DummyClassifier())
    model.init_ = drop_rows.fit(X, y)


@forged("boosting-regressor-in-stack", stacked(GradientBoostingRegressor(n_estimators=2)))
def _(model: Any) -> None:
    inner = model.estimators_[0]
    inner.estimators_ = np.repeat(inner.estimators_[:1], 100, axis=1)


@forged("tree-without-width", TREE)
def _(model: Any) -> None:
    lead_astray(model)
    del model.n_features_in_


@forged("tree-of-other-width", TREE)
def _(model: Any) -> None:
    lead_astray(model)


@forged("tree-width-not-a-number", TREE)
def _(model: Any) -> None:
    model.n_features_in_ = np.array([3])


@forged("tree-deeper-than-it-says", TREE)
def _(model: Any) -> None:
    state = model.tree_.__getstate__()
    state["max_depth"] = 0
    model.tree_.__setstate__(state)


@forged("forest-far-features", fitted(RandomForestClassifier(3, max_depth=3)))
def _(model: Any) -> None:
    for tree in model.estimators_:
        lead_astray(tree)
        tree.n_features_in_ = FAR


@forged("one-hot-small", encoded(OneHotEncoder(sparse_output=False)))
def _(model: Any) -> None:
    model[0]._n_features_outs = [1]


@forged("one-hot-far", encoded(OneHotEncoder(sparse_output=False), 2))
def _(model: Any) -> None:
    model[0]._n_features_outs = [20_000_000, -19_999_980]


@forged("one-hot-far-sparse", encoded(OneHotEncoder(), 2))
def _(model: Any) -> None:
    model[0]._n_features_outs = [200_000_000, -199_999_980]


@forged("one-hot-drops-nothing-there", encoded(OneHotEncoder(drop="first")))
def _(model: Any) -> None:
    model[0]._drop_idx_after_grouping = np.array([-(10**6)], dtype=object)


def _counted() -> Any:
    return make_pipeline(OneHotEncoder(), LogisticRegression()).fit(LETTERS == "a", [0, 1] * 30)


@forged("one-hot-out-of-order", _counted)
def _(model: Any) -> None:
    model[0].categories_ = [np.array([1.0, 0.0])]


@forged("one-hot-fewer-columns-than-rare-levels", encoded(OneHotEncoder(max_categories=3, sparse_output=False)))
def _(model: Any) -> None:
    model[0]._default_to_infrequent_mappings[0][:] = 9


@forged("svc-precomputed", fitted(SVC()))
def _(model: Any) -> None:
    model.kernel, model.shape_fit_ = "precomputed", (3, 3)
    model.support_ = np.full_like(model.support_, 2_000_000_000)


@forged("nu-svc-counts", fitted(NuSVC()))
def _(model: Any) -> None:
    model._n_support = np.append(model._n_support, np.zeros(30_000, dtype=np.int32))


def many_counts(machine: Any) -> None:
    machine._n_support = np.array([len(machine.support_vectors_)] + [0] * 30_000, dtype=np.int32)


forged("svr-in-stack", stacked(SVR()))(lambda model: many_counts(model.estimators_[0]))
forged("one-class-counts", fitted(OneClassSVM()))(many_counts)


HIST_STACK = stacked(HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=5))


@forged("hist-regressor-cycle", HIST_STACK)
def _(model: Any) -> None:
    nodes = model.estimators_[0]._predictors[0][0].nodes
    nodes["left"][0] = nodes["right"][0] = 0


@forged("hist-regressor-far", HIST_STACK)
def _(model: Any) -> None:
    model.estimators_[0]._predictors[0][0].nodes["left"][0] = 2_000_000_000


@forged("hist-prepared", fitted(HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5)))
def _(model: Any) -> None:
    X, _ = hostile_models.data()
    model._preprocessor = ColumnTransformer([("a", StandardScaler(), [0])]).fit(X)
    model.n_features_in_ = FAR
    model._bin_mapper.is_categorical_ = np.zeros(FAR, dtype=np.uint8)
    for stage in model._predictors:
        for tree in stage:
            tree.nodes["feature_idx"][tree.nodes["is_leaf"] == 0] = FAR - 1


@forged("hist-more-scores-than-trees", fitted(HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5)))
def _(model: Any) -> None:
    model.n_trees_per_iteration_ = 10**9


@forged("nmf-endless", positive(NMF(2, max_iter=500, tol=1e-2)))
def _(model: Any) -> None:
    model[1].max_iter, model[1].tol, model[1].solver = 10**12, 0.0, "mu"


@forged("lda-endless", positive(LatentDirichletAllocation(2)))
def _(model: Any) -> None:
    model[1].max_doc_update_iter, model[1].mean_change_tol = 10**12, -1.0


@forged("lda-of-other-width", positive(LatentDirichletAllocation(2)))
def _(model: Any) -> None:
    model[1].components_ = model[1].components_[:, :1]


@forged("function-that-writes-nothing", fitted(make_pipeline(FunctionTransformer(np.positive), LogisticRegression())))
def _(model: Any) -> None:
    model[0].kw_args = {"where": False}


@forged("attribute-of-nobody", fitted(LogisticRegression()))
def _(model: Any) -> None:
    model.decision_function = 1
