"""XGBoost: float32 input, float32 sums, left when ``x < threshold``, a default direction for missing values."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np

from fewest.engine.structure._trees import ModelTree, stack, sum_tolerance
from fewest.engine.structure.base import Additive, Opaque
from fewest.engine.structure.question import (
    EPS32,
    FoundQuestion,
    Link,
    Question,
    exponential,
    logistic,
    number_link,
    plain,
)
from fewest.tables.arrays import Bools, Floats

_OBJECTIVES = frozenset({"binary:logistic", "reg:logistic", "multi:softprob", "multi:softmax"})
_CHANCES = frozenset({"binary:logistic", "reg:logistic"})
_PLAIN = frozenset({
    "reg:squarederror", "reg:squaredlogerror", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror",
    "binary:logitraw", "rank:pairwise", "rank:ndcg", "rank:map",
})  # fmt: skip
_LOGARITHMS = frozenset({"count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"})


def read_xgboost(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read XGBoost's estimators and boosters (gbtree, dart, gblinear): the raw score is the margin."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    objective = learner["objective"]["name"]
    known = _CHANCES | _PLAIN | _LOGARITHMS if question.kind == "value" else _OBJECTIVES
    if objective not in known:
        return Opaque(f"XGBoost objective {objective} is not read")
    if (question.against is None) == objective.startswith("multi"):
        return Opaque(f"XGBoost objective {objective} with {model.n_classes_} classes is not read")
    if int(learner["learner_model_param"].get("num_target", 1)) > 1:
        return Opaque("XGBoost with several outputs is not read")
    starts = _starts(learner)
    base = float(sum(sign * starts[output] for output, sign in question.parts.items()))
    if learner["gradient_booster"]["name"] == "gblinear":
        return _linear(learner, model, base, question)
    return _boosted(learner, model, base, question)


def _starts(learner: Any) -> Floats:
    """Starting margins, one per output; a stored probability is turned into log-odds, an amount into its logarithm."""
    stored = np.asarray(json.loads(learner["learner_model_param"]["base_score"]), dtype=np.float64).ravel()
    if learner["objective"]["name"] in _CHANCES:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(1.0 / stored - 1.0))
    if learner["objective"]["name"] in _LOGARITHMS:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(stored))
    count = max(int(learner["learner_model_param"]["num_class"]), 1)
    return np.broadcast_to(stored, (count,)) if len(stored) == 1 else stored


def _link(learner: Any, question: Question) -> Link:
    if question.kind != "value":
        return logistic(eps=EPS32)
    objective = learner["objective"]["name"]
    if objective in _PLAIN:
        return plain(eps=EPS32)
    return number_link(question, logistic(eps=EPS32) if objective in _CHANCES else exponential(EPS32))


def _boosted(learner: Any, model: Any, base: float, question: Question) -> FoundQuestion | Opaque:
    booster = learner["gradient_booster"]
    drops = booster.get("weight_drop")
    inside = (booster["gbtree"] if drops is not None else booster)["model"]
    if any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in inside["trees"]):
        return Opaque("XGBoost trees with vector leaves (multi_output_tree) are not read")
    columns = int(learner["learner_model_param"]["num_feature"])
    codes = _Codes(inside, learner.get("feature_types") or [], getattr(model, "missing", np.nan))
    used = _used_trees(inside, model)
    signs = question.parts
    trees = [
        _tree(tree, signs[output] * (1.0 if drops is None else drops[number]), codes.width)
        for number, (tree, output) in enumerate(zip(inside["trees"][:used], inside["tree_info"][:used], strict=True))
        if output in signs
    ]
    # u = eps / 2 per addition; the start is itself rounded to float32.
    rounding = sum_tolerance([tree.leaves for tree in trees], base, EPS32 / 2)
    tolerance = rounding + 4 * EPS32 * (1.0 + abs(base))
    return stack(trees, base, _link(learner, question), question, codes, columns, tolerance)


def _used_trees(inside: Any, model: Any) -> int:
    """Early stopping keeps the trees of the best iteration and before; a bare booster uses all it has."""
    if not hasattr(model, "get_booster"):
        return len(inside["trees"])
    try:
        rounds = int(model.best_iteration) + 1
    except AttributeError:
        return len(inside["trees"])
    return int(inside["iteration_indptr"][rounds])


def _tree(tree: Any, factor: float, width: int) -> ModelTree:
    left = np.asarray(tree["left_children"])
    leaf = left < 0
    conditions = np.asarray(tree["split_conditions"], dtype=np.float32)
    # x < t over float32 values is x <= the float32 just below t.
    below = np.nextafter(conditions, np.float32(-np.inf)).astype(np.float64)
    levels: dict[int, Bools] = {}
    spans = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    for node, first, size in spans:
        # The stored categories go right, every other one left, unknown ones too.
        row = np.ones(width, dtype=np.bool_)
        row[np.asarray(tree["categories"][first : first + size], dtype=np.intp)] = False
        levels[int(node)] = row
    value = np.where(leaf, factor * conditions.astype(np.float64), 0.0)
    column = np.where(leaf, -1, tree["split_indices"])
    return ModelTree(column, below, left, tree["right_children"], tree["default_left"], value, levels)


class _Codes:
    """Model input in float32, the missing marker as NaN, categories as the booster's codes.

    Absent entries of a sparse matrix are missing to XGBoost. ``width`` is one more than the largest code a split
    names: codes beyond share that last level.
    """

    def __init__(self, inside: Any, types: list[str], missing: float) -> None:
        self.missing = np.float32(np.nan if missing is None else missing)
        self.categorical = [column for column, kind in enumerate(types) if kind == "c"]
        stored = inside.get("cats", {}).get("enc", [])
        self.known = {column: _names(stored[column]) for column in self.categorical if column < len(stored)}
        largest = [max(tree["categories"], default=-1) for tree in inside["trees"]]
        counts = [len(names) for names in self.known.values()]
        self.width = max([*largest, *(count - 1 for count in counts), -1]) + 2

    def __call__(self, model_input: Any) -> Floats:
        with np.errstate(over="ignore"):
            values = self._floats(model_input).astype(np.float32)
        values[values == self.missing] = np.nan
        out = values.astype(np.float64)
        for column in self.categorical:
            codes = np.trunc(out[:, column])
            unknown = (out[:, column] < 0) | (codes >= self.width)
            out[:, column] = np.where(unknown, self.width - 1, codes)
        return np.ascontiguousarray(out)

    def _floats(self, model_input: Any) -> Floats:
        if hasattr(model_input, "tocoo"):
            entries = model_input.tocoo()
            dense = np.full(entries.shape, np.nan)
            dense[entries.row, entries.col] = entries.data
            return dense
        if not hasattr(model_input, "columns"):
            return np.asarray(model_input, dtype=np.float64)
        return np.column_stack([self._column(model_input.iloc[:, at], at) for at in range(model_input.shape[1])])

    def _column(self, series: Any, column: int) -> Floats:
        if not hasattr(series, "cat"):
            return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
        codes = series.cat.codes.to_numpy()
        names = self.known.get(column)
        position = np.arange(len(series.cat.categories), dtype=np.float64)
        if names:
            place = {name: number for number, name in enumerate(names)}
            position = np.array([place.get(name, np.nan) for name in series.cat.categories.tolist()], dtype=np.float64)
        return np.append(position, np.nan)[np.where(codes < 0, len(position), codes)]


def _names(stored: Any) -> list[Any]:
    """Category names as the booster keeps them: bytes with offsets, or numbers.

    Names beyond ASCII are stored with offsets that do not fit their bytes; none are given then, and the codes of a
    frame are taken as they are, which is what XGBoost does as long as the levels have not changed.
    """
    values = stored.get("values", [])
    if "offsets" not in stored:
        return list(values)
    if any(not 0 <= value < 128 for value in values):
        return []
    return [bytes(values[first:last]).decode() for first, last in pairwise(stored["offsets"])]


def _linear(learner: Any, model: Any, base: float, question: Question) -> FoundQuestion:
    inside = learner["gradient_booster"]["model"]
    outputs = 1 if question.against is None else int(model.n_classes_)
    weights = np.asarray(inside["weights"], dtype=np.float32).astype(np.float64).reshape(-1, outputs)
    coef = np.asarray(sum(sign * weights[:-1, output] for output, sign in question.parts.items()))
    # With several classes gblinear leaves the starting margins out, also where each class has its own.
    start = base if question.against is None else 0.0
    constant = start + float(sum(sign * weights[-1, output] for output, sign in question.parts.items()))
    tolerance = 1e-4 * (1.0 + abs(constant) + float(np.abs(weights).sum()))
    codes, link = _Codes({"trees": []}, [], getattr(model, "missing", np.nan)), _link(learner, question)

    def prepare(model_input: Any) -> Floats:  # a linear booster skips missing values
        return np.nan_to_num(codes(model_input), nan=0.0, posinf=np.inf, neginf=-np.inf)

    return FoundQuestion(Additive(link.reading(question, tolerance, prepare, len(coef)), coef, constant), link)
