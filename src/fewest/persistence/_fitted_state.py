"""Loaded models, looked through before they are used: what native code believes unseen must be as an honest fit has it.

Three rules, whatever the model is made of: an estimator has the attributes that its own code sets, and no others; what
has native code behind it is asked by its class; what a file says of threads is forgotten. Estimators check the width of
their rows against `n_features_in_` themselves, so an estimator without it is refused, and what is called without that
check (trees inside forests and boosting) is held to the width of its outermost caller.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from fewest.persistence._readers import refused, refusing
from fewest.persistence._sound import flaw_of_predictor, flaw_of_sets, flaw_of_tree, parts_of

Check = Callable[[Any], str | None]
KERNELS = ("linear", "poly", "rbf", "sigmoid")
# Set by functions beside the classes, or written with an estimator.
BESIDE = {"n_features_in_", "feature_names_in_", "classes_", "_sklearn_output_config", "_metadata_request"}
# Holds a request for each method, under the method's name; no score asks it.
REQUESTS = "sklearn.utils._metadata_requests"
THREADS = ("n_jobs", "nthread", "num_threads", "num_thread", "nthreads")
ITERATIONS = ("max_iter", "max_doc_update_iter", "transform_max_iter", "max_no_improvement")
MOST_ITERATIONS = 10_000


def check_sound(model: Any, name: str) -> None:
    """Refuse a model in which something points outside itself, or is not as a fit leaves it."""
    for thing in parts_of(model):
        with refusing(name, "it is damaged"):
            flaw = _flaw(thing)
        if flaw is not None:
            raise refused(name, f"a damaged {type(thing).__name__}: {flaw}")


def forget_threads(model: Any) -> Any:
    """The model, which now uses as many threads as its library does by default."""
    for thing in parts_of(model):
        held = thing if isinstance(thing, dict) else getattr(thing, "__dict__", {})
        for key in THREADS:
            if held.get(key) is not None:
                held[key] = None
    return model


def _flaw(thing: Any) -> str | None:
    own: Any = type(thing)
    package = own.__module__.partition(".")[0]
    if package == "sklearn" and not isinstance(thing, dict) and own.__module__ != REQUESTS:
        strange = sorted(set(getattr(thing, "__dict__", ())) - attributes_of(own))
        if strange:
            return f'it has an attribute "{strange[0]}", which it never sets itself'
    for kind in own.__mro__:
        check = _CHECKS.get((package, kind.__name__))
        # A template that was never fitted has none of this, and scores nothing.
        if check is not None and hasattr(thing, check[0]):
            return check[1](thing)
    return None


@cache
def attributes_of(kind: Any) -> frozenset[str]:
    """Names of the attributes that methods of a class set, its parameters among them."""
    found = set(BESIDE)
    for base in kind.__mro__:
        for member in vars(base).values():
            parts = (member.fget, member.fset) if isinstance(member, property) else (member,)
            for part in parts:
                for code in _codes(part):
                    found |= {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_ATTR"}
    return frozenset(found)


def _codes(part: Any) -> Iterator[CodeType]:
    """The code of a function, of what it wraps, and of what is defined in it."""
    while hasattr(part, "__wrapped__") or hasattr(part, "__func__"):
        part = part.__wrapped__ if hasattr(part, "__wrapped__") else part.__func__
    todo = [part.__code__] if hasattr(part, "__code__") else []
    todo += [part.fn.__code__] if hasattr(part, "fn") else []
    while todo:
        code = todo.pop()
        yield code
        todo += [inner for inner in code.co_consts if isinstance(inner, CodeType)]


def _width(model: Any) -> int:
    width = vars(model)["n_features_in_"]
    if not isinstance(width, int | np.integer) or isinstance(width, bool) or width < 1:
        raise ValueError(f"its number of features is {width!r}")
    return int(width)


def _is(thing: Any, name: str) -> bool:
    return name in {kind.__name__ for kind in type(thing).__mro__ if kind.__module__.startswith("sklearn.")}


def _decision_tree(model: Any) -> str | None:
    tree = model.tree_
    if not _is(tree, "Tree") or tree.n_features != _width(model):
        return "it tests other features than its model has"
    return None


def _tree(tree: Any) -> str | None:
    left = tree.children_left
    return flaw_of_tree(left, tree.children_right, tree.feature, left != -1, tree.n_features)


def _flaw_of_members(trees: Any, width: int) -> str | None:
    """Forests and boosting hand their rows to their trees as they are."""
    for tree in trees:
        if not _is(tree, "BaseDecisionTree") or _width(tree) != width:
            return "its trees have another number of features"
    return None


def _forest(model: Any) -> str | None:
    return _flaw_of_members(model.estimators_, _width(model))


def _gradient_boosting(model: Any) -> str | None:
    stages, width = np.asarray(model.estimators_), _width(model)
    # Where there is no loss, it is a version that asks the number of trees of nothing else.
    outputs = len(model.classes_) if hasattr(model, "classes_") and len(model.classes_) > 2 else 1
    if stages.ndim != 2 or stages.size == 0 or stages.shape[1] != outputs or model.n_trees_per_iteration_ != outputs:
        return "its trees do not fit its classes"
    if model._loss.is_multiclass != (outputs > 1):
        return "its loss does not fit its classes"
    flaw = _flaw_of_members(stages.ravel(), width)
    if flaw is not None:
        return flaw
    if any(not _is(tree.tree_, "Tree") or tree.tree_.n_outputs != 1 for tree in stages.ravel()):
        return "its trees have several outputs"
    # Native code adds the trees to what the first guess gave, row by row: it has to have that shape.
    if not (isinstance(model.init_, str) or _is(model.init_, "DummyClassifier") or _is(model.init_, "DummyRegressor")):
        return "its first guess is a model of its own, which is not read"
    if model._raw_predict_init(np.zeros((2, width), dtype=np.float32)).shape != (2, outputs):
        return "its first guess does not fit its classes"
    return None


def _hist_gradient(model: Any) -> str | None:
    width, levels = _width(model), np.asarray(model._bin_mapper.is_categorical_)
    if model._preprocessor is not None or levels.shape != (width,) or levels.any():
        return "its rows are prepared in a way that is not read"
    for stage in model._predictors:
        if len(stage) != model.n_trees_per_iteration_ or not all(_is(tree, "TreePredictor") for tree in stage):
            return "its trees do not fit its classes"
        for tree in stage:
            flaw = flaw_of_predictor(tree.nodes, width)
            if flaw is not None:
                return flaw
    return None


def _predictor(tree: Any) -> str | None:
    # Its features are held to the model's width where it is called; a tree that stands elsewhere is never called.
    return flaw_of_predictor(tree.nodes, 1 << 32)


def _support_vectors(model: Any) -> str | None:
    """libsvm believes every count."""
    vectors, counts = np.asarray(model.support_vectors_), np.asarray(model._n_support)
    classes = len(model.classes_) if _is(model, "ClassifierMixin") else 2
    pairs = classes * (classes - 1) // 2
    rows, columns = vectors.shape
    each = (rows, rows) if not _is(model, "ClassifierMixin") else None
    fits = (
        columns == _width(model)
        and counts.shape == (classes,)
        and (counts >= 0).all()
        and (counts.sum() == rows if each is None else tuple(counts) == each)
        and model._dual_coef_.shape == (classes - 1, rows)
        and model._intercept_.shape == (pairs,)
        and model.support_.shape == (rows,)
        and all(len(part) in (0, pairs) for part in (model._probA, model._probB))
    )
    if not fits:
        return "its support vectors do not fit together"
    known = isinstance(model.kernel, str) and model.kernel in KERNELS and not model._sparse
    return None if known else "its kernel is not one of those that need no training rows"


def _one_hot(model: Any) -> str | None:
    """Levels are columns of a sparse matrix, which checks nothing: their numbers are computed once more."""
    again = type(model)(**model.get_params())
    vars(again).update(vars(model))
    if len(model.categories_) != _width(model) or not all(map(_is_ordered, model.categories_)):
        return "its levels are not those of its features"
    if model._infrequent_enabled:
        for levels, rare, mapping in zip(
            model.categories_, model._infrequent_indices, model._default_to_infrequent_mappings, strict=True
        ):
            if (rare is None) != (mapping is None) or (rare is not None and not _is_mapped(len(levels), rare, mapping)):
                return "a rare level is mapped outside its columns"
    again._set_drop_idx()
    dropped = (again._drop_idx_after_grouping, model._drop_idx_after_grouping)
    if any(part is None for part in dropped) != all(part is None for part in dropped):
        return "it drops a level that is not there"
    if dropped[0] is not None and list(dropped[0]) != list(dropped[1]):
        return "it drops a level that is not there"
    fits = list(model._n_features_outs) == again._compute_n_features_outs()
    return None if fits else "its columns are not its levels"


def _is_ordered(levels: Any) -> bool:
    """Whether levels are in the order by which numbers among them are looked up; only the last can be missing."""
    levels = np.asarray(levels)
    if levels.ndim != 1 or levels.dtype.kind in "OUS":
        return bool(levels.ndim == 1)
    return bool((np.diff(levels[:-1]) > 0).all() and (len(levels) < 2 or not levels[-2] >= levels[-1]))


def _is_mapped(levels: int, rare: Any, mapping: Any) -> bool:
    """Whether frequent levels are numbered one after the other, and all rare ones share the next number."""
    rare = np.asarray(rare)
    if rare.ndim != 1 or not len(rare) or (np.diff(rare) <= 0).any() or rare[0] < 0 or rare[-1] >= levels:
        return False
    honest = np.full(levels, levels - len(rare))
    honest[np.setdiff1d(np.arange(levels), rare)] = np.arange(levels - len(rare))
    return bool(np.array_equal(honest, mapping))


def _components(model: Any) -> str | None:
    """Factorisations iterate, compiled, while they transform."""
    shape = np.shape(model.components_)
    sized = {"_n_components", "n_components_", "exp_dirichlet_component_"} & set(vars(model))
    counts = [vars(model)[part] for part in sized]
    if len(shape) != 2 or shape[1] != _width(model):
        return "its components do not fit its features"
    if any((np.shape(count) or shape) != shape or (not np.shape(count) and count != shape[0]) for count in counts):
        return "its components are not as many as it says"
    return _iterations(model)


def _iterations(model: Any) -> str | None:
    for part in ITERATIONS:
        count = vars(model).get(part)
        if count is not None and not 0 <= count <= MOST_ITERATIONS:
            return f"its {part} is {count}; the most is {MOST_ITERATIONS:,}"
    return None


def _function(model: Any) -> str | None:
    # With these, a function of numpy leaves memory as it found it.
    found = {"out", "where"} & set(model.kw_args or ())
    return f"its function is called with {sorted(found)[0]}" if found else None


def _spline(spline: Any) -> str | None:
    knots, degree = np.asarray(spline.t), spline.k
    if not isinstance(degree, int | np.integer) or not 0 <= degree <= 10 or knots.ndim != 1:
        return "its degree makes no sense"
    count = len(knots) - degree - 1
    if count < degree + 1 or np.asarray(spline.c).shape[:1] < (count,):
        return "its knots do not fit its coefficients"
    sorted_knots = np.isfinite(knots).all() and (np.diff(knots) >= 0).all() and np.isfinite(spline.c).all()
    return None if sorted_knots else "its knots are not in order"


def _neutral(tree: Any) -> str | None:
    inner = np.asarray(tree.feature) >= 0
    flaw = flaw_of_tree(tree.left, tree.right, tree.feature, inner, len(tree.schema))
    nodes = (len(inner),)
    parts = (tree.threshold, tree.missing_left, tree.level_set, tree.positive, tree.score)
    if flaw is None and any(part.shape != nodes for part in parts):
        flaw = "its arrays have different lengths"
    wanted = 1 + max((len(feature.levels) for feature in tree.schema.features), default=0)
    if len(tree.levels_left) and (tree.levels_left.ndim != 2 or tree.levels_left.shape[1] < wanted):
        flaw = flaw or "its sets of levels are too short"
    return flaw or flaw_of_sets(tree.level_set, len(tree.levels_left))


def _leaf_sum(model: Any) -> str | None:
    fits = len(model.ensemble_.reading.source) == _width(model)
    return None if fits else "its columns are not its model's"


def _ensemble(trees: Any) -> str | None:
    inner = np.asarray(trees.column) >= 0
    flaw = flaw_of_tree(trees.left, trees.right, trees.column, inner, len(trees.reading.source))
    nodes = (len(inner),)
    parts = (trees.threshold, trees.missing_left, trees.category, trees.value)
    if flaw is None and (any(part.shape != nodes for part in parts) or trees.left_levels.ndim != 2):
        flaw = "its arrays have different lengths"
    if flaw is None and ((trees.root < 0) | (trees.root >= len(inner))).any():
        flaw = "a root is not there"
    return flaw or flaw_of_sets(trees.category, len(trees.left_levels))


# Library and class, or one it is made from -> an attribute it has once fitted, and what to ask of it then.
_CHECKS: dict[tuple[str, str], tuple[str, Check]] = {
    ("sklearn", "Tree"): ("feature", _tree),
    ("sklearn", "BaseDecisionTree"): ("tree_", _decision_tree),
    ("sklearn", "BaseForest"): ("estimators_", _forest),
    ("sklearn", "BaseGradientBoosting"): ("estimators_", _gradient_boosting),
    ("sklearn", "BaseHistGradientBoosting"): ("_predictors", _hist_gradient),
    ("sklearn", "TreePredictor"): ("nodes", _predictor),
    ("sklearn", "BaseLibSVM"): ("support_vectors_", _support_vectors),
    ("sklearn", "OneHotEncoder"): ("categories_", _one_hot),
    ("sklearn", "_BaseNMF"): ("components_", _components),
    ("sklearn", "LatentDirichletAllocation"): ("components_", _components),
    ("sklearn", "_BaseSparseCoding"): ("transform_max_iter", _iterations),
    ("sklearn", "FunctionTransformer"): ("kw_args", _function),
    ("scipy", "BSpline"): ("t", _spline),
    ("fewest", "Tree"): ("feature", _neutral),
    ("fewest", "LeafSumClassifier"): ("ensemble_", _leaf_sum),
    ("fewest", "Ensemble"): ("column", _ensemble),
}
