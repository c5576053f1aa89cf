"""CatBoost: symmetric trees through its JSON export.

Splits of float features are ``x > border`` in float32. Of any other split (a level, a statistic of one or several
levels) the library itself says which way a row goes: a prepared column of zeros and ones.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fewest.engine.structure._trees import ModelTree, stack, sum_tolerance
from fewest.engine.structure.base import Opaque, as_float32_values
from fewest.engine.structure.question import FoundQuestion, Question, logistic, plain
from fewest.tables.arrays import Floats

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
    sides = _sides(model, inside)
    if isinstance(sides, Opaque):
        return sides
    if sum(2 * len(tree["leaf_values"]) for tree in listed) > _MOST_NODES:
        return Opaque("CatBoost: the trees are too deep to be written out")
    outputs = 1 if question.against is None else len(model.classes_)
    scale, bias = inside["scale_and_bias"]
    shifts = np.broadcast_to(np.asarray(bias, dtype=np.float64).ravel(), (outputs,))
    features = inside["features_info"]["float_features"]
    factors = {output: scale * sign for output, sign in question.parts.items()}
    trees = [_tree(tree, features, factors, outputs, sides.first.get(number, {})) for number, tree in enumerate(listed)]
    base = float(sum(sign * shifts[output] for output, sign in question.parts.items()))
    # One more unit per tree for the difference of two classes.
    tolerance = 2 * sum_tolerance([tree.leaves for tree in trees], base) + 64 * np.finfo(float).eps
    link = plain() if question.kind == "value" else logistic()
    width = len(model.feature_names_)
    if not sides.splits:
        return stack(trees, base, link, question, as_float32_values, width, tolerance)
    source = np.array([*range(width), *(places[0] for *_, places in sides.splits)], dtype=np.int32)
    found = stack(trees, base, link, question, sides, source, tolerance)
    several = (*((place,) for place in range(width)), *(places for *_, places in sides.splits))
    reading = replace(found.structure.reading, several=several if any(len(p) > 1 for p in several) else ())
    return FoundQuestion(replace(found.structure, reading=reading), link)


def _unreadable(model: Any, question: Question) -> Opaque | None:
    loss = str(model.get_all_params().get("loss_function", "")).split(":")[0]
    if question.kind == "value" and loss not in _NUMBERS:
        return Opaque(f"CatBoost loss {loss} is not read")
    fitting = {"MultiClass" if question.against is not None else "Logloss", "CrossEntropy"}
    if question.kind != "value" and loss not in fitting:
        return Opaque(f"CatBoost loss {loss} does not fit the question")
    if question.kind == "label" and (model.get_probability_threshold() or 0.5) != 0.5:
        return Opaque("CatBoost has a label threshold of its own; ask for kind='proba'")
    if len(model.get_text_feature_indices()) or len(model._get_embedding_feature_indices()):
        return Opaque("CatBoost: text and embedding features are not read")
    return None


@dataclass(frozen=True)
class _Sides:
    """Model input as the trees see it: its float columns, then for each other split which way a row goes (1: right)."""

    model: Any
    floats: tuple[int, ...]  # Positions of the float columns
    width: int
    # Of each split that is not of a float: a tree that has it, its place there, the columns it depends on
    splits: tuple[tuple[int, int, tuple[int, ...]], ...]
    first: dict[int, dict[int, int]]  # Tree -> place of a split in it -> its prepared column

    def __call__(self, model_input: Any) -> Floats:
        rows = model_input.to_numpy(dtype=object) if hasattr(model_input, "columns") else np.asarray(model_input)
        out = np.zeros((len(rows), self.width + len(self.splits)))
        floats = list(self.floats)
        out[:, floats] = rows[:, floats].astype(np.float64).astype(np.float32)
        if len(rows) and self.splits:
            leaf = np.asarray(self.model.calc_leaf_indexes(model_input, thread_count=1)).astype(np.int64)
            for column, (tree, place, _) in enumerate(self.splits, self.width):
                out[:, column] = leaf[:, tree] >> place & 1
        return out


def _sides(model: Any, inside: Any) -> _Sides | Opaque:
    """Which splits are not of floats, and what they depend on; the same split in several trees is one column."""
    features = inside["features_info"]
    levels, floats = features.get("categorical_features") or [], features.get("float_features") or []
    flat = {
        "float_feature_index": [feature["flat_feature_index"] for feature in floats],
        "cat_feature_index": [feature["flat_feature_index"] for feature in levels],
    }
    ctrs = [ctr for ctr in features.get("ctrs") or [] for _ in ctr["borders"]]
    before = sum(len(feature["borders"] or []) for feature in floats)
    before += sum(len(feature.get("values") or []) for feature in levels)
    width = len(model.feature_names_)
    columns: dict[int, int] = {}
    first: dict[int, dict[int, int]] = {}
    splits: list[tuple[int, int, tuple[int, ...]]] = []
    for number, tree in enumerate(inside["oblivious_trees"]):
        for place, split in enumerate(tree.get("splits") or []):
            kind, index = split["split_type"], split["split_index"]
            if kind == "FloatFeature":
                continue
            if kind == "OneHotFeature":
                elements = [split]
            elif kind == "OnlineCtr" and split["border"] in ctrs[index - before]["borders"]:
                elements = ctrs[index - before]["elements"]
            else:
                return Opaque(f"CatBoost: splits of the kind {kind} are not read")
            places = {flat[key][element[key]] for element in elements for key in flat if key in element}
            if index not in columns:
                columns[index] = width + len(splits)
                splits.append((number, place, tuple(sorted(places))))
            first.setdefault(number, {})[place] = columns[index]
    return _Sides(model, tuple(flat["float_feature_index"]), width, tuple(splits), first)


def _tree(tree: Any, features: Any, factors: dict[int, float], outputs: int, sides: dict[int, int]) -> ModelTree:
    """Write a symmetric tree out as a full binary one: the last split is the highest bit of the leaf number."""
    listed = tree.get("splits") or []
    splits = [(split, sides.get(place)) for place, split in reversed(list(enumerate(listed)))]
    values = np.asarray(tree["leaf_values"], dtype=np.float64).reshape(-1, outputs)
    value = np.asarray(sum(factor * values[:, output] for output, factor in factors.items()))
    depth = len(splits)
    inner = 2**depth - 1
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth)).astype(np.intp)
    columns, borders, lows = [], [], []
    for split, side in splits:
        feature = features[split["float_feature_index"]] if side is None else {}
        columns.append(feature["flat_feature_index"] if side is None else side)
        borders.append(np.float32(split["border"]) if side is None else 0.5)
        lows.append(feature.get("nan_value_treatment") != "AsTrue")
    column, border = np.array(columns, dtype=np.int64), np.array(borders, dtype=np.float64)
    low = np.array(lows, dtype=bool)
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
