"""What an XGBoost model says of itself, checked before XGBoost reads it: its loader believes children and features."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from fewest.persistence._json import as_json
from fewest.persistence._limits import refused, refusing
from fewest.persistence._tree_arrays import flaw_of_tree

OBJECTIVES = ("binary:logistic", "binary:logitraw", "reg:logistic", "multi:softprob", "multi:softmax")
INTS = ("left_children", "right_children", "split_indices", "default_left", "split_type")
FLOATS = ("split_conditions", "base_weights", "loss_changes", "sum_hessian")
LARGEST_LEVEL = 1 << 20
MOST_TREES = 1_000_000
NO_PARENT = 2**31 - 1
ABSENT = {"num_target": "1", "num_deleted": "0"}


def check_xgboost(content: Any, name: str) -> None:
    """Refuse a model whose trees are damaged, or which is no classifier.

    Parameters
    ----------
    content : mapping
        The parsed JSON or UBJSON of a saved model.
    name : str
        For messages.

    Examples
    --------
    >>> check_xgboost({"learner": {}}, "m.json")
    Traceback (most recent call last):
    fewest.errors.ModelError: m.json is refused: it is no XGBoost model (KeyError: 'learner_model_param')
      Try: ...
    """
    with refusing(name, "it is no XGBoost model"):
        learner = content["learner"]
        params = learner["learner_model_param"]
        width, classes, targets = (_count(params, part) for part in ("num_feature", "num_class", "num_target"))
        if not 0 < width <= 1 << 24 or not 0 <= classes <= 1 << 16 or targets != 1:
            raise refused(name, "its numbers of features, classes and targets make no sense")
        objective = learner["objective"]["name"]
        if objective not in OBJECTIVES:
            raise refused(name, f"its objective is {objective}, which is no classifier's", do="save a classifier")
        for part in ("feature_names", "feature_types"):
            if len(learner.get(part) or []) not in (0, width):
                raise refused(name, f"it has {len(learner[part])} {part} and {width} features")
        _check_booster(learner["gradient_booster"], width, max(1, classes), name)


def rewritten(content: Any) -> bytes:
    """A checked model as JSON text for XGBoost to read.

    Its parser then sees what was checked and cannot read it otherwise; and its reader of UBJSON, which ends the process
    where an array is of another type than it expects, is not used at all.

    Examples
    --------
    >>> rewritten({"a": np.array([0.1], dtype=">f4")})
    b'{"a": [0.1]}'
    """
    return as_json(_plain(content))


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_plain(value) for value in content]
    if isinstance(content, np.ndarray):
        # The shortest text of a float32 that brings it back; as a double it would have digits XGBoost cannot read.
        return content.astype(str).astype(float).tolist() if content.dtype.kind == "f" else content.tolist()
    return content


def _check_booster(booster: Mapping[str, Any], width: int, outputs: int, name: str) -> None:
    kind = booster["name"]
    if kind == "gblinear":
        weights = np.asarray(booster["model"]["weights"], dtype=np.float64)
        if weights.shape != ((width + 1) * outputs,) or not np.isfinite(weights).all():
            raise refused(name, "its weights do not fit its features")
        return
    if kind not in ("gbtree", "dart"):
        raise refused(name, f"it has an unknown booster {kind!r}")
    inside = (booster["gbtree"] if kind == "dart" else booster)["model"]
    trees = inside["trees"]
    if kind == "dart" and _numbers(booster["weight_drop"], np.float64, name).shape != (len(trees),):
        raise refused(name, "it has not one weight per tree")
    _check_rounds(inside, len(trees), outputs, name)
    if inside.get("cats", {}).get("enc"):
        _check_names(inside["cats"], width, name)
    for number, tree in enumerate(trees):
        flaw = _flaw(tree, number, width, name)
        if flaw is not None:
            raise refused(name, f"a damaged tree, number {number}: {flaw}")


def _check_rounds(inside: Mapping[str, Any], trees: int, outputs: int, name: str) -> None:
    """XGBoost picks trees by these numbers."""
    of_class = _numbers(inside["tree_info"], np.int64, name)
    bounds = _numbers(inside["iteration_indptr"], np.int64, name)
    if trees > MOST_TREES or _count(inside["gbtree_model_param"], "num_trees") != trees or of_class.shape != (trees,):
        raise refused(name, "it miscounts its trees")
    if ((of_class < 0) | (of_class >= outputs)).any():
        raise refused(name, "a tree is of a class that is not there")
    if len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != trees or (np.diff(bounds) < 0).any():
        raise refused(name, "its rounds do not fit its trees")


def _check_names(names: Mapping[str, Any], width: int, name: str) -> None:
    """Names of levels: stretches of one list of bytes, and a sorted order of them for each feature."""
    ends, order = (_numbers(names[part], np.int64, name) for part in ("feature_segments", "sorted_idx"))
    fits = len(names["enc"]) == width and _is_cut(ends, width, len(order))
    for known, first, last in zip(names["enc"], ends[:-1], ends[1:], strict=True) if fits else ():
        held, count = len(known["values"]), int(last - first)
        if "offsets" in known and (count or len(known["offsets"])):
            # The last name may be cut short: XGBoost counts letters where it should count bytes.
            starts = _numbers(known["offsets"], np.int64, name)
            fits &= _is_cut(starts, count, int(starts[-1])) and int(starts[-1]) <= held
        elif "offsets" not in known:
            fits &= held == count
        places = order[first:last]
        fits &= bool(((places >= 0) & (places < count)).all())
    if not fits:
        raise refused(name, "its names of levels do not fit together")


def _is_cut(ends: Any, parts: int, whole: int) -> bool:
    """Whether numbers cut a list of this length into so many parts, one after the other."""
    return bool(len(ends) == parts + 1 and ends[0] == 0 and ends[-1] == whole and (np.diff(ends) >= 0).all())


def _flaw(tree: Mapping[str, Any], number: int, width: int, name: str) -> str | None:
    param = tree["tree_param"]
    if _count(param, "size_leaf_vector") > 1:
        return "its leaves are vectors, which are not read"
    nodes = _count(param, "num_nodes")
    ints = {part: _numbers(tree[part], np.int64, name) for part in INTS}
    floats = {part: _numbers(tree[part], np.float64, name) for part in FLOATS}
    if any(array.shape != (nodes,) for array in (*ints.values(), *floats.values())) or tree["id"] != number:
        return "its arrays have different lengths"
    if _count(param, "num_feature") != width or _count(param, "num_deleted") >= max(1, nodes):
        return "its features are not the model's"
    left, right = ints["left_children"], ints["right_children"]
    inner = left != -1
    if (right[~inner] != -1).any():
        return "a leaf has a child"
    if not all(np.isfinite(array).all() for array in floats.values()):
        return "it holds a number that is not finite"
    parents = _numbers(tree["parents"], np.int64, name)
    flaw = flaw_of_tree(left, right, ints["split_indices"], inner, width)
    if flaw is None and not _agree(parents, left, right, inner):
        flaw = "its parents and children disagree"
    return flaw or _flaw_of_levels(tree, ints["split_type"], inner, name)


def _agree(parents: Any, left: Any, right: Any, inner: Any) -> bool:
    """Whether each node's parent is there and has it as its child; nodes that were pruned have a parent only."""
    if parents.shape != left.shape or parents[0] not in (-1, NO_PARENT):
        return False
    here = np.flatnonzero(inner)
    known = ((parents[1:] >= 0) & (parents[1:] < len(parents))).all()
    return bool(known and (parents[left[inner]] == here).all() and (parents[right[inner]] == here).all())


def _flaw_of_levels(tree: Mapping[str, Any], split_type: Any, inner: Any, name: str) -> str | None:
    """Tests by levels: each has a stretch of the list of levels."""
    levels, nodes, first, size = (
        _numbers(tree[part], np.int64, name)
        for part in ("categories", "categories_nodes", "categories_segments", "categories_sizes")
    )
    if not len(nodes) == len(first) == len(size) or not np.isin(split_type, (0, 1)).all():
        return "its tests by levels do not fit together"
    if not np.array_equal(np.flatnonzero((split_type == 1) & inner), np.sort(nodes)):
        return "its tests by levels do not fit together"
    if ((first < 0) | (size < 0) | (first + size > len(levels))).any():
        return "a test by levels leads outside its list"
    if ((levels < 0) | (levels >= LARGEST_LEVEL)).any():
        return "a level has an impossible number"
    return None


def _count(params: Mapping[str, Any], part: str) -> int:
    """A whole number, which XGBoost writes as text; one that is left out is one or zero."""
    text = params.get(part, ABSENT.get(part))
    if not isinstance(text, str) or not re.fullmatch("[0-9]{1,9}", text):
        raise ValueError(f"{part} is {text!r}")
    return int(text)


def _numbers(values: Any, kind: Any, name: str) -> Any:
    """A flat array of numbers; whole ones where whole ones are asked for."""
    array = np.asarray(values if len(values) else [], dtype=None if len(values) else kind)
    if array.ndim != 1 or array.dtype.kind not in ("iu" if kind is np.int64 else "iuf"):
        raise refused(name, "a list of numbers in it is none")
    return array.astype(kind)
