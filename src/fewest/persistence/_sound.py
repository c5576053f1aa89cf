"""What native code indexes by must be inside its arrays: trees as arrays, and loaded models, looked through before use.

A forged child hangs the walk of a tree, a forged number reads foreign memory. Every library here numbers a node's
children after the node itself. Asking for that order proves, without a walk, that there is no cycle and no node that is
not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.persistence._readers import refused, refusing
from fewest.tables.arrays import Bools

Anything = npt.NDArray[Any]
PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None), np.generic, type)
LARGEST_CODE = 255


def flaw_of_tree(left: Anything, right: Anything, feature: Anything, inner: Bools, width: int | None) -> str | None:
    """What is wrong with a tree's arrays; None if nothing is."""
    nodes = len(inner)
    if nodes == 0:
        return "it has no nodes"
    if any(array.shape != (nodes,) for array in (left, right, feature)):
        return "its arrays have different lengths"
    here = np.flatnonzero(inner)
    for child in (left, right):
        to = child[inner].astype(np.int64)
        if (to >= nodes).any():
            return "a node leads to one that is not there"
        if (to <= here).any():
            return "a node leads back to itself or to one before it"
    tested = feature[inner].astype(np.int64)
    if (tested < 0).any() or (width is not None and (tested >= width).any()):
        return "it tests a feature that is not there"
    return None


def flaw_of_sklearn(nodes: Anything, values: Anything, outputs: int, classes: int, width: int) -> str | None:
    """What is wrong with the state of a scikit-learn tree; None if nothing is."""
    wanted = {"left_child", "right_child", "feature", "threshold"}
    if nodes.ndim != 1 or not wanted <= set(nodes.dtype.names or ()):
        return "its nodes are not those of a scikit-learn tree"
    if values.dtype != np.float64 or values.shape != (len(nodes), outputs, classes):
        return "its values do not fit its nodes"
    # Only the left child says whether a node is a leaf; a leaf's right child is not looked at.
    inner = nodes["left_child"] != -1
    if not np.isfinite(values).all() or not np.isfinite(nodes["threshold"][inner]).all():
        return "it holds a number that is not finite"
    return flaw_of_tree(nodes["left_child"], nodes["right_child"], nodes["feature"], inner, width)


def flaw_of_predictor(nodes: Anything, bitsets: Anything, categorical: Bools) -> str | None:
    """What is wrong with a tree of HistGradientBoosting; None if nothing is."""
    wanted = {"left", "right", "feature_idx", "is_leaf", "is_categorical", "bitset_idx", "value", "num_threshold"}
    if nodes.ndim != 1 or not wanted <= set(nodes.dtype.names or ()):
        return "its nodes are not those of HistGradientBoosting"
    if bitsets.ndim != 2 or bitsets.shape[1] != 8:
        return "its sets of levels have the wrong shape"
    inner = nodes["is_leaf"] == 0
    flaw = flaw_of_tree(nodes["left"], nodes["right"], nodes["feature_idx"], inner, len(categorical))
    if flaw is not None:
        return flaw
    levels = inner & (nodes["is_categorical"] != 0)
    if not categorical[nodes["feature_idx"][levels]].all() or (nodes["bitset_idx"][levels] >= len(bitsets)).any():
        return "it tests levels of a feature that has none"
    numbers = nodes["num_threshold"][inner & ~levels]
    # An infinite threshold is the library's own way of splitting off missing values.
    if not np.isfinite(nodes["value"]).all() or np.isnan(numbers).any():
        return "it holds a number that is not finite"
    return None


def is_cut(ends: Anything, parts: int, whole: int) -> bool:
    """Whether numbers cut a list of this length into this many parts, one after the other."""
    fits = 0 < len(ends) == parts + 1 and ends[0] == 0 and ends[-1] == whole
    return bool(fits and (np.diff(ends) >= 0).all())


def flaw_of_sets(level_set: Anything, count: int) -> str | None:
    """Whether tests by levels name sets that are there: numbers from -1 (none) to below count."""
    if ((level_set < -1) | (level_set >= count)).any():
        return "a test names a set of levels that is not there"
    return None


def check_sound(model: Any, name: str) -> None:
    """Refuse a model in which something points outside itself."""
    for thing, width in _walk(model, lambda thing, width: getattr(thing, "n_features_in_", width)):
        check = _CHECKS.get((type(thing).__module__.partition(".")[0], type(thing).__name__))
        # A template that was never fitted has none of this, and scores nothing.
        if check is not None and hasattr(thing, check[0]):
            with refusing(name, "it is damaged"):
                flaw = check[1](thing, width)
            if flaw is not None:
                raise refused(name, f"a damaged {type(thing).__name__}: {flaw}")


def parts_of(model: Any) -> list[Any]:
    """Everything with attributes that a model holds, itself included."""
    # No attribute is asked for: a booster that is not there yet would answer with an error of its own.
    return [thing for thing, _ in _walk(model, lambda thing, width: None) if hasattr(thing, "__dict__")]


def _walk(model: Any, width_of: Callable[[Any, int | None], int | None]) -> list[tuple[Any, int | None]]:
    """Everything a model holds that is not a plain value, and the number of features of what is around it."""
    seen: set[int] = set()
    out: list[tuple[Any, int | None]] = []
    todo: list[tuple[Any, int | None]] = [(model, None)]
    while todo:
        thing, width = todo.pop()
        if isinstance(thing, PLAIN) or id(thing) in seen:
            continue
        seen.add(id(thing))
        out.append((thing, width))
        inside = width_of(thing, width)
        todo.extend((part, inside) for part in _parts(thing))
    return out


def _parts(thing: Any) -> list[Any]:
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    if isinstance(thing, np.ndarray):
        return list(thing.ravel()) if thing.dtype == object else []
    return list(vars(thing).values()) if hasattr(thing, "__dict__") else []


def _tree(tree: Any, width: int | None) -> str | None:
    if width is not None and tree.n_features > width:
        return "it tests more features than its model has"
    inner = tree.children_left != -1
    return flaw_of_tree(tree.children_left, tree.children_right, tree.feature, inner, tree.n_features)


def _gradient_boosting(model: Any, _width: int | None) -> str | None:
    stages = np.asarray(model.estimators_)
    if stages.ndim != 2 or stages.shape[1] != model.n_trees_per_iteration_:
        return "its trees do not fit its classes"
    if any(tree.tree_.n_outputs != 1 for tree in stages.ravel()):
        return "its trees have several outputs"
    return None


def _hist_gradient(model: Any, _width: int | None) -> str | None:
    bins = model._bin_mapper
    categorical = np.asarray(bins.is_categorical_, dtype=bool)
    if categorical.shape != (model.n_features_in_,) or len(bins.bin_thresholds_) != len(categorical):
        return "its features do not fit its bins"
    for column in np.flatnonzero(categorical):
        codes = np.asarray(bins.bin_thresholds_[column], dtype=float)
        if codes.size and not (codes.min() >= 0 and codes.max() <= LARGEST_CODE):
            return "a level has an impossible number"
    for stage in model._predictors:
        for tree in stage:
            flaw = flaw_of_predictor(tree.nodes, tree.raw_left_cat_bitsets, categorical)
            if flaw is not None:
                return flaw
    return None


def _support_vectors(model: Any, _width: int | None) -> str | None:
    """libsvm believes every count."""
    vectors, counts = np.asarray(model.support_vectors_), np.asarray(model._n_support)
    classes = len(model.classes_)
    pairs = classes * (classes - 1) // 2
    rows, columns = vectors.shape
    fits = (
        columns == model.n_features_in_
        and counts.shape == (classes,)
        and (counts >= 0).all()
        and counts.sum() == rows
        and model._dual_coef_.shape == (classes - 1, rows)
        and model._intercept_.shape == (pairs,)
        and model.support_.shape == (rows,)
        and all(len(part) in (0, pairs) for part in (model._probA, model._probB))
    )
    return None if fits else "its support vectors do not fit together"


def _one_hot(model: Any, _width: int | None) -> str | None:
    """Rare levels are mapped to columns of a sparse matrix, which checks nothing."""
    for levels, mapping in zip(model.categories_, getattr(model, "_default_to_infrequent_mappings", ()), strict=False):
        if mapping is not None:
            to = np.asarray(mapping)
            if to.shape != (len(levels),) or ((to < 0) | (to >= len(levels))).any():
                return "a rare level is mapped outside its columns"
    return None


def _spline(spline: Any, _width: int | None) -> str | None:
    knots, degree = np.asarray(spline.t), spline.k
    if not isinstance(degree, int | np.integer) or not 0 <= degree <= 10 or knots.ndim != 1:
        return "its degree makes no sense"
    count = len(knots) - degree - 1
    if count < degree + 1 or np.asarray(spline.c).shape[:1] < (count,):
        return "its knots do not fit its coefficients"
    sorted_knots = np.isfinite(knots).all() and (np.diff(knots) >= 0).all() and np.isfinite(spline.c).all()
    return None if sorted_knots else "its knots are not in order"


def _neutral(tree: Any, _width: int | None) -> str | None:
    inner = np.asarray(tree.feature) >= 0
    flaw = flaw_of_tree(tree.left, tree.right, tree.feature, inner, len(tree.schema))
    nodes = (len(inner),)
    if flaw is None and any(
        part.shape != nodes for part in (tree.threshold, tree.missing_left, tree.level_set, tree.positive, tree.score)
    ):
        flaw = "its arrays have different lengths"
    return flaw or flaw_of_sets(tree.level_set, len(tree.levels_left)) or _flaw_of_widths(tree)


def _flaw_of_widths(tree: Any) -> str | None:
    wanted = 1 + max((len(feature.levels) for feature in tree.schema.features), default=0)
    fits = tree.levels_left.ndim == 2 and tree.levels_left.shape[1] >= wanted
    return None if fits or not len(tree.levels_left) else "its sets of levels are too short"


def _ensemble(trees: Any, width: int | None) -> str | None:
    inner = np.asarray(trees.column) >= 0
    if width is not None and len(trees.reading.source) != width:
        return "its columns are not its model's"
    flaw = flaw_of_tree(trees.left, trees.right, trees.column, inner, len(trees.reading.source))
    nodes = (len(inner),)
    parts = (trees.threshold, trees.missing_left, trees.category, trees.value)
    if flaw is None and (any(part.shape != nodes for part in parts) or trees.left_levels.ndim != 2):
        flaw = "its arrays have different lengths"
    if flaw is None and ((trees.root < 0) | (trees.root >= len(inner))).any():
        flaw = "a root is not there"
    return flaw or flaw_of_sets(trees.category, len(trees.left_levels))


# Library and class -> an attribute it has once fitted, and what to ask of it then.
_CHECKS: dict[tuple[str, str], tuple[str, Callable[[Any, int | None], str | None]]] = {
    ("sklearn", "Tree"): ("feature", _tree),
    ("sklearn", "GradientBoostingClassifier"): ("estimators_", _gradient_boosting),
    ("sklearn", "HistGradientBoostingClassifier"): ("_predictors", _hist_gradient),
    ("sklearn", "SVC"): ("support_vectors_", _support_vectors),
    ("sklearn", "NuSVC"): ("support_vectors_", _support_vectors),
    ("sklearn", "OneHotEncoder"): ("categories_", _one_hot),
    ("scipy", "BSpline"): ("t", _spline),
    ("fewest", "Tree"): ("feature", _neutral),
    ("fewest", "Ensemble"): ("column", _ensemble),
}
