"""LightGBM: double comparisons ``x <= threshold``, three treatments of missing values, categorical bitsets.

The model text is read, not the private handle: it holds every number to full precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.engine.structure._trees import ModelTree, stack
from fewest.engine.structure.base import Opaque, as_float32_values, as_floats
from fewest.engine.structure.linear_leaves import LinearTree, read_linear_leaves
from fewest.engine.structure.question import FoundQuestion, Question, exponential, logistic, number_link, plain
from fewest.tables.arrays import Bools, Floats

_ZERO = float(np.float32(1e-35))  # LightGBM's kZeroThreshold: anything smaller is zero
_MISSING_ZERO, _MISSING_NAN = 1, 2
_CHANCES = ("binary", "cross_entropy")
_PLAIN = ("regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg")
_LOGARITHMS = ("poisson", "gamma", "tweedie")


def read_lightgbm(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read LightGBM's estimators and boosters: the raw score is the log-odds, or the number or its logarithm."""
    booster = getattr(model, "booster_", model)
    header, blocks = _parsed(booster.model_to_string())
    words = header.get("objective", "custom").split()
    known = (*_CHANCES, *_PLAIN, *_LOGARITHMS) if question.kind == "value" else (*_CHANCES, "multiclass")
    if words[0] not in known or "sqrt" in words or callable(getattr(model, "objective", None)):
        return Opaque(f"LightGBM objective {' '.join(words)} is not read")
    if (question.against is None) == (words[0] == "multiclass"):
        return Opaque(f"LightGBM objective {words[0]} does not fit the question")
    per_round = int(header["num_tree_per_iteration"])
    scale = 1.0 if "average_output" not in header else per_round / len(blocks)
    parsed = [(number % per_round, _Block(block)) for number, block in enumerate(blocks)]
    zero, mixed = _zero_columns([block for _, block in parsed])
    if mixed:
        return Opaque("LightGBM treats zero as missing in some splits of a column and not in others")
    signs = question.parts
    used = [(scale * signs[output], block) for output, block in parsed if output in signs]
    sigmoid = next((float(word.split(":")[1]) for word in words if word.startswith("sigmoid:")), 1.0)
    categorical = sorted({int(column) for _, block in parsed for column in block.column[block.categorical]})
    prepare = _Values(booster.pandas_categorical, zero, categorical)
    link = logistic(sigmoid)
    if question.kind == "value":
        of_words = {**dict.fromkeys(_CHANCES, link), **dict.fromkeys(_LOGARITHMS, exponential())}
        link = number_link(question, of_words.get(words[0], plain()))
    width = int(header["max_feature_idx"]) + 1
    if any(block.linear for _, block in parsed):  # LightGBM takes no zero for missing then
        return read_linear_leaves([block.with_functions(f) for f, block in used], link, question, prepare, width)
    return stack([block.tree(factor) for factor, block in used], 0.0, link, question, prepare, width)


def _parsed(text: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Split the model text into its header and one block of ``key=value`` lines per tree."""
    head, _, rest = text.partition("\nTree=")
    body = rest.partition("\nend of trees")[0]
    blocks = [_pairs(block) for block in body.split("\nTree=")] if rest else []
    return _pairs(head), blocks


def _pairs(block: str) -> dict[str, str]:
    return {key: value for key, _, value in (line.partition("=") for line in block.splitlines())}


class _Block:
    """Arrays of one tree of the model text: inner nodes first, leaves numbered from there."""

    def __init__(self, block: dict[str, str]) -> None:
        def numbers(key: str, dtype: Any) -> Any:
            return np.array(block.get(key, "").split(), dtype=dtype)

        self.column = numbers("split_feature", np.int64)
        self.threshold = numbers("threshold", np.float64)
        self.left = numbers("left_child", np.int64)
        self.right = numbers("right_child", np.int64)
        self.leaf_value = numbers("leaf_value", np.float64)
        self.bounds = numbers("cat_boundaries", np.int64)
        self.words = numbers("cat_threshold", np.uint32)
        decision = numbers("decision_type", np.int64)
        self.categorical = (decision & 1).astype(bool)
        self.default_left = (decision & 2).astype(bool)
        self.missing = (decision >> 2) & 3
        self.linear = block.get("is_linear", "0") != "0"
        ends = np.cumsum(numbers("num_features", np.int64)) if self.linear else np.zeros(len(self.leaf_value), int)
        self.leaf_const = numbers("leaf_const", np.float64) if self.linear else self.leaf_value
        self.leaf_features = np.split(numbers("leaf_features", np.int64), ends)[:-1]
        self.leaf_coeff = np.split(numbers("leaf_coeff", np.float64), ends)[:-1]

    def tree(self, factor: float) -> ModelTree:
        """The tree with its leaves times factor."""
        inner, leaves = len(self.column), len(self.leaf_value)
        # Without a missing type NaN is read as zero and compared.
        goes_left = np.where(self.missing == 0, self.threshold >= 0, self.default_left) & ~self.categorical
        levels = {int(node): self._levels(int(self.threshold[node])) for node in np.flatnonzero(self.categorical)}
        pad_int, pad_float = np.full(leaves, -1), np.zeros(leaves)
        return ModelTree(
            np.concatenate([self.column, pad_int]),
            np.concatenate([self.threshold, pad_float]),
            np.concatenate([np.where(self.left < 0, inner + ~self.left, self.left), pad_int]),
            np.concatenate([np.where(self.right < 0, inner + ~self.right, self.right), pad_int]),
            np.concatenate([goes_left, np.zeros(leaves, dtype=bool)]),
            np.concatenate([np.zeros(inner), factor * self.leaf_value]),
            levels,
        )

    def with_functions(self, factor: float) -> LinearTree:
        """The tree with the linear functions of its leaves, all times factor."""
        inner = len(self.column)
        none: list[Any] = [np.zeros(0, dtype=np.int64)] * inner
        return LinearTree(
            self.tree(factor),
            np.concatenate([np.zeros(inner), factor * self.leaf_const]),
            none + self.leaf_features,
            none + [factor * own for own in self.leaf_coeff],
        )

    def _levels(self, number: int) -> Bools:
        words = np.ascontiguousarray(self.words[self.bounds[number] : self.bounds[number + 1]], dtype="<u4")
        return np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_)


def _zero_columns(blocks: list[_Block]) -> tuple[list[int], bool]:
    """Columns where zero counts as missing, and whether a column is treated in two ways."""
    kinds: dict[int, set[int]] = {}
    for block in blocks:
        numeric = ~block.categorical
        for column, kind in zip(block.column[numeric], block.missing[numeric], strict=True):
            kinds.setdefault(int(column), set()).add(int(kind))
    zero = sorted(column for column, seen in kinds.items() if _MISSING_ZERO in seen)
    return zero, any(len(kinds[column]) > 1 for column in zero)


class _Values:
    """Model input as LightGBM sees it: category codes, tiny values at zero, zero as missing where it says so."""

    def __init__(self, levels: Any, zero: list[int], categorical: list[int]) -> None:
        self.levels = levels or []
        self.zero = zero
        self.categorical = categorical

    def __call__(self, model_input: Any) -> Floats:
        out = self._floats(model_input)
        out[np.abs(out) <= _ZERO] = 0.0
        for column in self.zero:
            out[out[:, column] == 0.0, column] = np.nan
        for column in self.categorical:
            out[:, column] = np.trunc(out[:, column])
        return out

    def _floats(self, model_input: Any) -> Floats:
        if hasattr(model_input, "columns"):
            return self._frame(model_input)
        if isinstance(model_input, np.ndarray) and model_input.dtype not in (np.float32, np.float64):
            return as_float32_values(model_input)  # integers reach LightGBM as float32
        return np.array(as_floats(model_input))

    def _frame(self, frame: Any) -> Floats:
        levels = iter(self.levels)
        columns = []
        for at in range(frame.shape[1]):
            series = frame.iloc[:, at]
            if hasattr(series, "cat"):
                codes = series.cat.set_categories(next(levels)).cat.codes.to_numpy()
                columns.append(np.where(codes < 0, np.nan, codes.astype(np.float64)))
            else:
                columns.append(np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan)))
        return np.ascontiguousarray(np.column_stack(columns))
