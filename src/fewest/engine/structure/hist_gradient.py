"""HistGradientBoosting: float64 comparisons, missing values, categories through its own preprocessor."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.engine.structure._trees import ModelTree, stack
from fewest.engine.structure.base import as_floats
from fewest.engine.structure.question import (
    FoundQuestion,
    Question,
    exponential,
    logistic,
    margin_link,
    number_link,
    plain,
)
from fewest.tables.arrays import Bools, Floats


def read_hist_gradient(model: Any, question: Question) -> FoundQuestion:
    """Read HistGradientBoosting: the raw score is the log-odds, or the number (its logarithm for counts, amounts)."""
    parts = question.parts.items()
    known, row_of = model._bin_mapper.make_known_categories_bitsets()
    trees = [
        _tree(stage[output], sign, _unpacked(known), row_of) for output, sign in parts for stage in model._predictors
    ]
    starts = np.asarray(model._baseline_prediction).ravel()
    base = float(sum(sign * starts[output] for output, sign in parts))
    source = np.arange(model.n_features_in_, dtype=np.int32)
    if getattr(model, "_preprocessor", None) is not None:
        source = np.argsort(~np.asarray(model.is_categorical_, dtype=bool), kind="stable").astype(np.int32)
    link = margin_link(question, logistic())
    if question.kind == "value":
        link = number_link(question, exponential() if model.loss in ("poisson", "gamma") else plain())
    return stack(trees, base, link, question, _Prepared(model), source)


class _Prepared:
    """Model input as the trees see it: categories as codes in front, then the numbers."""

    def __init__(self, model: Any) -> None:
        self.preprocessor = getattr(model, "_preprocessor", None)

    def __call__(self, model_input: Any) -> Floats:
        if self.preprocessor is None:
            return as_floats(model_input)
        if hasattr(model_input, "toarray"):
            model_input = model_input.toarray()
        return as_floats(self.preprocessor.transform(model_input))


def _unpacked(bitsets: Any) -> Bools:
    """Bitsets (n, 8) of 32 bits each -> (n, 256) of bool."""
    words = np.ascontiguousarray(bitsets, dtype="<u4").reshape(-1, 8)
    return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)


def _tree(predictor: Any, sign: float, known: Bools, row_of: Any) -> ModelTree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    missing_left = nodes["missing_go_to_left"].astype(bool)
    levels: dict[int, Bools] = {}
    left_sets = _unpacked(predictor.raw_left_cat_bitsets)
    for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf):
        goes_left = left_sets[nodes["bitset_idx"][node]]
        seen = known[row_of[nodes["feature_idx"][node]]]
        row = np.where(goes_left | seen, goes_left, missing_left[node])
        levels[int(node)] = row[: int(np.flatnonzero(seen | goes_left).max(initial=0)) + 1]
    return ModelTree(
        np.where(leaf, -1, nodes["feature_idx"]),
        nodes["num_threshold"],
        nodes["left"],
        nodes["right"],
        missing_left,
        sign * nodes["value"],
        levels,
    )
