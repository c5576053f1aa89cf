"""Encoding: which original features every column of a Pipeline's final model input depends on.

The map is *declared* by what is known of each transformer, *found* by `column_probe` where nothing is known, and
checked on mixed rows before it is trusted (`Encoding.agrees`). A transformer that cannot be traced leaves the model
opaque: raw rows are scored then, still right, slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.engine.column_probe import NotUnderstoodError, Probe, Sources, cells, equal_cells
from fewest.tables.arrays import Bools, Ints32
from fewest.tables.model_kinds import is_scorecard
from fewest.tables.schema import Schema

# Transformers that put out one column for each column they take in, in order, each a function of that column alone.
ONE_TO_ONE = frozenset({
    "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "PowerTransformer", "QuantileTransformer",
    "OrdinalEncoder", "Binarizer",
})  # fmt: skip
SELECTORS = frozenset({
    "VarianceThreshold", "SelectKBest", "SelectPercentile", "SelectFromModel", "RFE", "RFECV", "SelectFpr", "SelectFdr",
    "SelectFwe", "GenericUnivariateSelect", "SequentialFeatureSelector",
})  # fmt: skip
# Transformers whose every column depends on all that goes in.
ALL_TO_ALL = frozenset({"PCA", "IncrementalPCA", "TruncatedSVD", "FastICA", "FactorAnalysis"})


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
    # (columns of the model input,): Features each column depends on; None where that is not known
    sources: tuple[frozenset[int], ...] | None = None
    probed: bool = False  # Whether some of them were found by probing

    @classmethod
    def read(cls, decision: Decision, schema: Schema, rows: pd.DataFrame | None = None) -> Encoding:
        """Trace the columns of a decision's model; ``rows``: what transformers that are not known are probed with."""
        steps, final = split_pipeline(decision.model)
        if decision.kind == "function":
            return cls(decision, None, decision.model, None, "a function of raw rows")
        names = decision.columns if decision.columns is not None else schema.columns
        if not set(names) <= set(schema.columns):
            names = schema.columns
        inputs: Sources = [frozenset({schema.feature_of[name]}) for name in names]
        probe = None if rows is None or steps is None else Probe.of(schema, rows, decision.arrange)
        try:
            outputs = inputs if steps is None else _outputs(steps, inputs, probe)
        except NotUnderstoodError as why:
            return cls(decision, steps, final, None, str(why))
        blended = [column for column, features in enumerate(outputs) if len(features) > 1]
        if blended:
            reason = f"column {blended[0]} of the model's input depends on several features"
            return cls(decision, steps, final, None, reason, tuple(outputs), probe is not None)
        feature_of = np.array([next(iter(features), -1) for features in outputs], dtype=np.int32)
        return cls(decision, steps, final, feature_of, sources=tuple(outputs), probed=probe is not None)

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
        """Whether encoded mixtures are mixtures of encoded rows in the columns that depend on one feature at most.

        Row i of ``mixed`` has the features ``took[i]`` (n, p) from row ``second_of[i]`` of ``second``, the others from
        row i of ``first``; all are rows as `transform` gives them.
        """
        if self.sources is None:
            return False
        a, b, c = (cells(rows) for rows in (first, second, mixed))
        if not a.shape[1] == b.shape[1] == len(self.sources) or c.shape != a.shape:
            return False
        if self.feature_of is not None:
            feature_of = self.feature_of
        else:
            one = np.array([len(features) <= 1 for features in self.sources])
            feature_of = np.array([next(iter(features), -1) for features in self.sources], dtype=np.int32)[one]
            a, b, c = a[:, one], b[:, one], c[:, one]
        from_second = np.where(feature_of >= 0, took[:, feature_of], False)
        return bool(equal_cells(np.where(from_second, b[second_of], a), c).all())


def split_pipeline(model: Any) -> tuple[Any, Any]:
    """Transformers before the final model (or None) and the final model; search wrappers are opened.

    So are this package's own classifiers that keep a pipeline of plain parts.
    """
    while (inner := _wrapped(model)) is not None:
        model = inner
    if not _is_pipeline(model):
        return None, model
    from sklearn.pipeline import Pipeline

    final = model.steps[-1][1]
    # Steps that draw other training rows, of which imblearn's pipelines know, do nothing when a row is scored.
    kept = [(name, step) for name, step in model.steps[:-1] if not hasattr(step, "fit_resample")]
    head = None if not kept else model[:-1] if known_class(model) else Pipeline(kept)
    if len(kept) == 1 and not known_class(kept[0][1]):
        head = kept[0][1]  # a pipeline asks its last step whether it was fitted, and some cannot say
    inner, final = split_pipeline(final)
    if inner is None:
        return head, final
    if head is None:
        return inner, final
    return Pipeline([("outer", head), ("inner", inner)]), final


def _is_pipeline(model: Any) -> bool:
    kind = type(model)
    return kind.__name__ == "Pipeline" and kind.__module__.startswith(("sklearn.", "imblearn."))


def _wrapped(model: Any) -> Any:
    """The model inside a wrapper that adds nothing to it; None where it is none."""
    decides_by = vars(type(model)).get("decides_by")  # not inherited: sub-classes may do anything
    if isinstance(decides_by, str) and hasattr(model, decides_by):
        return getattr(model, decides_by)
    if known_class(model) in ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV",
                         "FrozenEstimator"):  # fmt: skip
        return getattr(model, "best_estimator_", None) or model.estimator
    if is_scorecard(model) and (model._metric_special, model._metric_missing) == (0, 0):  # as its bins do by themselves
        from sklearn.pipeline import Pipeline

        return Pipeline([("bins", model.binning_process_), ("points", model.estimator_)])
    return None


def known_class(thing: Any) -> str:
    """Class name of scikit-learn's own objects; sub-classes may do anything, so they count as unknown."""
    kind = type(thing)
    return kind.__name__ if kind.__module__.startswith("sklearn.") else ""


def _outputs(transformer: Any, inputs: Sources, probe: Probe | None) -> Sources:
    """Sources of a fitted transformer's output columns, given those of its input columns."""
    name = known_class(transformer)
    if transformer in ("passthrough", None) or name in ONE_TO_ONE:
        return inputs
    if transformer == "drop":
        return []
    if name in SELECTORS:
        return [inputs[i] for i in np.flatnonzero(transformer.get_support())]
    if name in _NESTED:
        return _NESTED[name](transformer, inputs, probe)
    if name in ALL_TO_ALL:
        return [frozenset().union(*inputs)] * len(transformer.components_)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(transformer, inputs)
    return _unknown(transformer, inputs, probe)


def _unknown(transformer: Any, inputs: Sources, probe: Probe | None) -> Sources:
    """Outputs of a transformer of which nothing is declared: of the one feature that goes in, or as probing finds."""
    name, features = type(transformer).__name__, frozenset().union(*inputs)
    if len(features) > 1:
        if probe is None:
            raise NotUnderstoodError(f"{name} may blend several features")
        return probe.found(transformer)
    try:
        n_out = len(transformer.get_feature_names_out())
    except Exception as error:
        if probe is None:
            raise NotUnderstoodError(f"{name} does not tell its output columns") from error
        n_out = len(probe.found(transformer))
    return [features] * n_out


def _pipeline(pipeline: Any, inputs: Sources, probe: Probe | None) -> Sources:
    for _, step in pipeline.steps:
        outputs = _outputs(step, inputs, probe)
        if probe is not None and step not in ("passthrough", None):
            probe = probe.through(step)
        inputs = outputs
    return inputs


def _column_transformer(transformer: Any, inputs: Sources, probe: Probe | None) -> Sources:
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
        own = positions[name]
        part = _outputs(inner, [inputs[i] for i in own], None if probe is None else probe.at(own))
        if len(part) != span.stop - span.start:
            raise NotUnderstoodError(f"{type(inner).__name__} gives {span.stop - span.start} columns, not {len(part)}")
        outputs[span] = part
    return outputs


def _union(union: Any, inputs: Sources, probe: Probe | None) -> Sources:
    return [source for _, part in union.transformer_list for source in _outputs(part, inputs, probe)]


def _function(transformer: Any, inputs: Sources, probe: Probe | None) -> Sources:
    """A ufunc, no function at all, or one declared one-to-one, works column by column; other functions may not."""
    func = transformer.func
    if func is None or isinstance(func, np.ufunc) or transformer.feature_names_out == "one-to-one":
        return inputs
    if transformer.feature_names_out is None and probe is None and len(frozenset().union(*inputs)) == 1:
        return inputs
    return _unknown(transformer, inputs, probe)


_NESTED: dict[str, Callable[[Any, Sources, Probe | None], Sources]] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _union,
    "FunctionTransformer": _function,
}


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


_SPECIAL: dict[str, Callable[[Any, Sources], Sources]] = {
    "OneHotEncoder": _one_hot,
    "TargetEncoder": lambda encoder, inputs: _evenly(len(encoder.encodings_), inputs),
    "SimpleImputer": _imputer,
    "MissingIndicator": lambda indicator, inputs: [inputs[i] for i in indicator.features_],
    "KBinsDiscretizer": lambda bins, inputs: inputs if bins.encode == "ordinal" else _repeat(bins.n_bins_, inputs),
    "SplineTransformer": lambda splines, inputs: _evenly(splines.n_features_out_, inputs),
    "PolynomialFeatures": lambda products, inputs: [
        frozenset().union(*(inputs[i] for i in np.flatnonzero(powers))) for powers in products.powers_
    ],
}


def single_columns(steps: Any, n_columns: int) -> Ints32 | str:
    """For transformers inside another model: the input column each of their outputs comes from; a reason if several."""
    try:
        outputs = _outputs(steps, [frozenset({column}) for column in range(n_columns)], None)
    except NotUnderstoodError as why:
        return str(why)
    if any(len(columns) != 1 for columns in outputs):
        return "a column of it comes from several columns, or from none"
    return np.array([next(iter(columns)) for columns in outputs], dtype=np.int32)
