"""CatBoost: symmetric trees over float features, ``x > border`` in float32, through its JSON export."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from fewest.engine.structure._trees import ModelTree, stack, sum_tolerance
from fewest.engine.structure.base import Opaque, as_float32_values
from fewest.engine.structure.question import FoundQuestion, Question, logistic, plain

_MOST_NODES = 20_000_000
_NUMBERS = frozenset({"RMSE", "MAE", "Quantile", "MAPE", "Huber", "Expectile", "LogCosh", "Lq"})


def read_catboost(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read CatBoost: the raw score is the log-odds, or the number."""
    refused = _unreadable(model, question)
    if refused is not None:
        return refused
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        inside = json.loads(path.read_text())
    if "oblivious_trees" not in inside:
        return Opaque("CatBoost: only symmetric trees are read")
    listed = inside["oblivious_trees"]
    if any(split["split_type"] != "FloatFeature" for tree in listed for split in tree.get("splits") or []):
        return Opaque("CatBoost: splits on categorical or text features are not read")
    if sum(2 * len(tree["leaf_values"]) for tree in listed) > _MOST_NODES:
        return Opaque("CatBoost: the trees are too deep to be written out")
    outputs = 1 if question.against is None else len(model.classes_)
    scale, bias = inside["scale_and_bias"]
    shifts = np.broadcast_to(np.asarray(bias, dtype=np.float64).ravel(), (outputs,))
    features = inside["features_info"]["float_features"]
    factors = {output: scale * sign for output, sign in question.parts.items()}
    trees = [_tree(tree, features, factors, outputs) for tree in listed]
    base = float(sum(sign * shifts[output] for output, sign in question.parts.items()))
    # One more unit per tree for the difference of two classes.
    tolerance = 2 * sum_tolerance([tree.leaves for tree in trees], base) + 64 * np.finfo(float).eps
    link = plain() if question.kind == "value" else logistic()
    return stack(trees, base, link, question, as_float32_values, len(model.feature_names_), tolerance)


def _unreadable(model: Any, question: Question) -> Opaque | None:
    loss = str(model.get_all_params().get("loss_function", "")).split(":")[0]
    if question.kind == "value" and loss not in _NUMBERS:
        return Opaque(f"CatBoost loss {loss} is not read")
    fitting = {"MultiClass" if question.against is not None else "Logloss", "CrossEntropy"}
    if question.kind != "value" and loss not in fitting:
        return Opaque(f"CatBoost loss {loss} does not fit the question")
    if question.kind == "label" and (model.get_probability_threshold() or 0.5) != 0.5:
        return Opaque("CatBoost has a label threshold of its own; ask for kind='proba'")
    if len(model.get_cat_feature_indices()) or len(model.get_text_feature_indices()):
        return Opaque("CatBoost: categorical and text features are not read")
    return None


def _tree(tree: Any, features: Any, factors: dict[int, float], outputs: int) -> ModelTree:
    """Write a symmetric tree out as a full binary one: the last split is the highest bit of the leaf number."""
    splits = list(reversed(tree.get("splits") or []))
    values = np.asarray(tree["leaf_values"], dtype=np.float64).reshape(-1, outputs)
    value = np.asarray(sum(factor * values[:, output] for output, factor in factors.items()))
    depth = len(splits)
    inner = 2**depth - 1
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth)).astype(np.intp)
    chosen = [features[split["float_feature_index"]] for split in splits]
    column = np.array([feature["flat_feature_index"] for feature in chosen], dtype=np.int64)
    border = np.array([split["border"] for split in splits], dtype=np.float32).astype(np.float64)
    low = np.array([feature["nan_value_treatment"] != "AsTrue" for feature in chosen], dtype=bool)
    leaves = 2**depth
    node = np.arange(inner)
    return ModelTree(
        np.concatenate([column[level], np.full(leaves, -1)]),
        np.concatenate([border[level], np.zeros(leaves)]),
        np.concatenate([2 * node + 1, np.full(leaves, -1)]),
        np.concatenate([2 * node + 2, np.full(leaves, -1)]),
        np.concatenate([low[level], np.zeros(leaves, dtype=bool)]),
        np.concatenate([np.zeros(inner), value]),
    )
