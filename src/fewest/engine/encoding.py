"""Encoding: which original feature every column of a Pipeline's final model input comes from.

The map is *declared* by what is known of each transformer and checked on mixed rows before it is trusted
(`Encoding.agrees`). A transformer that is not understood, or one that blends features, leaves the model opaque: raw
rows are scored then, still right, slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.tables.arrays import Bools, Ints32
from fewest.tables.schema import Schema

Sources = list[frozenset[int]]

# Transformers that put out one column for each column they take in, in order, each a function of that column alone.
ONE_TO_ONE = frozenset({
    "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "PowerTransformer", "QuantileTransformer",
    "OrdinalEncoder", "Binarizer",
})  # fmt: skip
SELECTORS = frozenset({
    "VarianceThreshold", "SelectKBest", "SelectPercentile", "SelectFromModel", "RFE", "RFECV", "SelectFpr", "SelectFdr",
    "SelectFwe", "GenericUnivariateSelect", "SequentialFeatureSelector",
})  # fmt: skip


class NotUnderstoodError(Exception):
    """A transformer whose columns cannot be traced to single features; the text says which and why."""


@dataclass(frozen=True)
class Encoding:
    """The way from raw rows to what the final model is fed, and the feature each of its columns belongs to."""

    decision: Decision  # The decision whose model is encoded for
    steps: Any  # The fitted transformers before the final model; None where there are none
    final: Any  # The final model
    # (columns of the model input,) int32: Feature of each column (-1: a constant); None where columns cannot be
    # traced
    feature_of: Ints32 | None
    reason: str = ""  # Why not, in that case

    @classmethod
    def read(cls, decision: Decision, schema: Schema) -> Encoding:
        """Trace the columns of a decision's model."""
        steps, final = split_pipeline(decision.model)
        if decision.kind == "function":
            return cls(decision, None, decision.model, None, "a function of raw rows")
        names = decision.columns if decision.columns is not None else schema.columns
        if not set(names) <= set(schema.columns):
            names = schema.columns
        inputs: Sources = [frozenset({schema.feature_of[name]}) for name in names]
        try:
            outputs = inputs if steps is None else _outputs(steps, inputs)
        except NotUnderstoodError as why:
            return cls(decision, steps, final, None, str(why))
        blended = [column for column, features in enumerate(outputs) if len(features) > 1]
        if blended:
            return cls(decision, steps, final, None, f"column {blended[0]} of the model's input blends features")
        feature_of = np.array([next(iter(features), -1) for features in outputs], dtype=np.int32)
        return cls(decision, steps, final, feature_of)

    def transform(self, frame: pd.DataFrame) -> Any:
        """What the final model is fed for these raw rows."""
        arranged = self.decision.arrange(frame)
        if self.steps is None or len(frame) == 0:
            return arranged
        try:
            return self.steps.transform(arranged)
        except Exception as error:
            raise self.decision.blame(error, frame) from error

    def agrees(self, first: Any, second: Any, mixed: Any, second_of: npt.NDArray[Any], took: Bools) -> bool:
        """Whether encoded mixtures are mixtures of encoded rows, column block by column block.

        Row i of ``mixed`` has the features ``took[i]`` (n, p) from row ``second_of[i]`` of ``second``, the others from
        row i of ``first``; all are rows as `transform` gives them.
        """
        if self.feature_of is None:
            return False
        a, b, c = (cells(rows) for rows in (first, second, mixed))
        if a.shape[1] != len(self.feature_of):
            return False
        from_second = np.where(self.feature_of >= 0, took[:, self.feature_of], False)
        return bool(equal_cells(np.where(from_second, b[second_of], a), c).all())


def cells(model_input: Any) -> npt.NDArray[Any]:
    """Model input as a dense array of any dtype."""
    if hasattr(model_input, "toarray"):
        model_input = model_input.toarray()
    if isinstance(model_input, pd.DataFrame):
        return np.asarray(model_input.astype(object))
    return np.asarray(model_input)


def equal_cells(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Bools:
    """Cell by cell equality with missing equal to missing."""
    if a.dtype == object or b.dtype == object:
        return np.asarray((a == b) | (pd.isna(a) & pd.isna(b)), dtype=bool)
    return np.asarray(np.isclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True))


def split_pipeline(model: Any) -> tuple[Any, Any]:
    """Transformers before the final model (or None) and the final model; search wrappers are opened.

    So are this package's own classifiers that keep a pipeline of plain parts.
    """
    while (inner := _wrapped(model)) is not None:
        model = inner
    if _known(model) != "Pipeline":
        return None, model
    final = model.steps[-1][1]
    head = model[:-1] if len(model.steps) > 1 else None
    inner, final = split_pipeline(final)
    if inner is None:
        return head, final
    if head is None:
        return inner, final
    from sklearn.pipeline import Pipeline

    return Pipeline([("outer", head), ("inner", inner)]), final


def _wrapped(model: Any) -> Any:
    """The model inside a wrapper that adds nothing to it; None where it is none."""
    decides_by = vars(type(model)).get("decides_by")  # not inherited: sub-classes may do anything
    if isinstance(decides_by, str) and hasattr(model, decides_by):
        return getattr(model, decides_by)
    if _known(model) in ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV",
                         "FrozenEstimator"):  # fmt: skip
        return getattr(model, "best_estimator_", None) or model.estimator
    return None


def _known(thing: Any) -> str:
    """Class name of scikit-learn's own objects; sub-classes may do anything, so they count as unknown."""
    kind = type(thing)
    return kind.__name__ if kind.__module__.startswith("sklearn.") else ""


def _outputs(transformer: Any, inputs: Sources) -> Sources:
    """Sources of a fitted transformer's output columns, given those of its input columns."""
    name = _known(transformer)
    if transformer in ("passthrough", None) or name in ONE_TO_ONE:
        return inputs
    if transformer == "drop":
        return []
    if name in SELECTORS:
        return [inputs[i] for i in np.flatnonzero(transformer.get_support())]
    special = _SPECIAL.get(name)
    if special is not None:
        return special(transformer, inputs)
    if len(inputs) == 1 or len(frozenset().union(*inputs)) == 1:
        return _all_from(transformer, inputs)
    raise NotUnderstoodError(f"{type(transformer).__name__} may blend several features")


def _all_from(transformer: Any, inputs: Sources) -> Sources:
    """Every output depends on the one feature that goes in."""
    try:
        n_out = len(transformer.get_feature_names_out())
    except Exception as error:
        raise NotUnderstoodError(f"{type(transformer).__name__} does not tell its output columns") from error
    return [frozenset().union(*inputs)] * n_out


def _pipeline(pipeline: Any, inputs: Sources) -> Sources:
    for _, step in pipeline.steps:
        inputs = _outputs(step, inputs)
    return inputs


def _column_transformer(transformer: Any, inputs: Sources) -> Sources:
    positions = getattr(transformer, "_transformer_to_input_indices", None)
    if positions is None:
        raise NotUnderstoodError("this scikit-learn's ColumnTransformer does not tell its columns")
    spans = transformer.output_indices_
    width = max((span.stop for span in spans.values()), default=0)
    outputs: Sources = [frozenset()] * width
    for name, inner, _ in transformer.transformers_:
        span = spans[name]
        if span.stop == span.start:
            continue
        part = _outputs(inner, [inputs[i] for i in positions[name]])
        if len(part) != span.stop - span.start:
            raise NotUnderstoodError(f"{type(inner).__name__} gives {span.stop - span.start} columns, not {len(part)}")
        outputs[span] = part
    return outputs


def _repeat(counts: Sequence[int], inputs: Sources) -> Sources:
    return [source for count, source in zip(counts, inputs, strict=True) for _ in range(count)]


def _evenly(n_out: int, inputs: Sources) -> Sources:
    """As many output columns for each input column."""
    return _repeat([n_out // max(1, len(inputs))] * len(inputs), inputs)


def _one_hot(encoder: Any, inputs: Sources) -> Sources:
    counts = [len(levels) for levels in encoder.categories_]
    infrequent = getattr(encoder, "infrequent_categories_", None) or [None] * len(counts)
    counts = [n - len(rare) + 1 if rare is not None else n for n, rare in zip(counts, infrequent, strict=True)]
    if encoder.drop_idx_ is not None:
        counts = [n - (dropped is not None) for n, dropped in zip(counts, encoder.drop_idx_, strict=True)]
    return _repeat(counts, inputs)


def _imputer(imputer: Any, inputs: Sources) -> Sources:
    empty = pd.isna(np.asarray(imputer.statistics_, dtype=object))
    kept = inputs if imputer.keep_empty_features else [s for s, gone in zip(inputs, empty, strict=True) if not gone]
    if imputer.add_indicator:
        kept = kept + [inputs[i] for i in imputer.indicator_.features_]
    return kept


def _function(transformer: Any, inputs: Sources) -> Sources:
    """A ufunc, no function at all, or one declared one-to-one, works column by column; other functions may not."""
    func = transformer.func
    if func is None or isinstance(func, np.ufunc) or transformer.feature_names_out == "one-to-one":
        return inputs
    if len(frozenset().union(*inputs)) == 1:
        return _all_from(transformer, inputs) if transformer.feature_names_out is not None else inputs
    raise NotUnderstoodError("a FunctionTransformer over several columns may blend them (declare it one-to-one)")


_SPECIAL: dict[str, Callable[[Any, Sources], Sources]] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": lambda union, inputs: [s for _, part in union.transformer_list for s in _outputs(part, inputs)],
    "OneHotEncoder": _one_hot,
    "TargetEncoder": lambda encoder, inputs: _evenly(len(encoder.encodings_), inputs),
    "SimpleImputer": _imputer,
    "MissingIndicator": lambda indicator, inputs: [inputs[i] for i in indicator.features_],
    "KBinsDiscretizer": lambda bins, inputs: inputs if bins.encode == "ordinal" else _repeat(bins.n_bins_, inputs),
    "SplineTransformer": lambda splines, inputs: _evenly(splines.n_features_out_, inputs),
    "FunctionTransformer": _function,
}


def single_columns(steps: Any, n_columns: int) -> Ints32 | str:
    """For transformers inside another model: the input column each of their outputs comes from; a reason if several."""
    try:
        outputs = _outputs(steps, [frozenset({column}) for column in range(n_columns)])
    except NotUnderstoodError as why:
        return str(why)
    if any(len(columns) != 1 for columns in outputs):
        return "a column of it comes from several columns, or from none"
    return np.array([next(iter(columns)) for columns in outputs], dtype=np.int32)
