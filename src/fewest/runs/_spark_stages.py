"""Stages of a fitted `pyspark.ml` pipeline as plain numbers: what they do to a table, and the classifier at the end.

Arithmetic is that of Spark's own transformers, operation for operation: a split compares what Spark would compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import DataError, ModelError
from fewest.tables.arrays import Bools, Floats, Ints

Columns = dict[str, Floats]  # (n, width) each


@dataclass(frozen=True)
class SparkTree:
    """A tree: continuous splits send ``x <= threshold`` left, categorical ones the levels of a table."""

    column: Ints  # below 0: a leaf
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats  # (nodes, k): shares of the classes, or (nodes, 1): what a boosted tree adds
    levels: dict[int, Bools]
    beyond_left: Bools  # Where levels that the table does not have go


@dataclass(frozen=True)
class Stage:
    """What one stage does: its kind, the columns it takes and makes, and its numbers."""

    kind: str
    takes: tuple[str, ...]
    makes: tuple[str, ...]
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SparkParts:
    """A pipeline as plain numbers."""

    stages: tuple[Stage, ...]  # Those that lead to the classifier
    columns: tuple[str, ...]  # Raw columns that they take
    features: str  # The vector that the classifier takes
    probability: str  # The column Spark puts chances in
    classes: tuple[Any, ...]
    unread: str = ""  # Why the inside is not read; empty where it is
    coef: Floats | None = None  # (k or 1, d) of a linear classifier
    intercept: Floats | None = None
    trees: tuple[SparkTree, ...] = ()
    boosted: bool = False

    def vector(self, table: Any) -> Floats:
        """What the classifier is fed for rows of a table (n, d)."""
        if not isinstance(table, pd.DataFrame):
            table = pd.DataFrame(np.asarray(table), columns=list(self.columns))
        made: dict[str, Any] = {name: table[name] for name in self.columns}
        for stage in self.stages:
            made.update(_STEPS[stage.kind](stage, [made[name] for name in stage.takes]))
        return np.ascontiguousarray(_numbers(made[self.features]))

    def sources(self) -> tuple[int, ...]:
        """The raw column that each entry of the vector comes from."""
        known = {name: [place] for place, name in enumerate(self.columns)}
        for stage in self.stages:
            if stage.kind == "assembler":
                known[stage.makes[0]] = [place for name in stage.takes for place in known[name]]
                continue
            for at, (old, new) in enumerate(zip(stage.takes, stage.makes, strict=True)):
                wide = stage.numbers["widths"][at] if stage.kind == "one-hot" else 1
                known[new] = [place for place in known[old] for _ in range(wide)]
        return tuple(known[self.features])

    def chances(self, vector: Floats) -> Floats:
        """Chances of the classes (n, k) without Spark."""
        if self.coef is not None:
            raw = vector @ self.coef.T + np.asarray(self.intercept)
            if raw.shape[1] > 1:
                raw = np.exp(raw - raw.max(axis=1, keepdims=True))
                return np.asarray(raw / raw.sum(axis=1, keepdims=True))
            one = 1.0 / (1.0 + np.exp(-raw[:, 0]))
        else:
            total = np.sum([_leaves(tree, vector) for tree in self.trees], axis=0)
            if not self.boosted:
                return np.asarray(total / total.sum(axis=1, keepdims=True))
            one = 1.0 / (1.0 + np.exp(-2.0 * total[:, 0]))
        return np.column_stack([1.0 - one, one])


def _leaves(tree: SparkTree, vector: Floats) -> Floats:
    """The value of the leaf that each row falls into."""
    at = np.zeros(len(vector), dtype=np.int64)
    while (inner := np.flatnonzero(tree.column[at] >= 0)).size:
        node = at[inner]
        x = vector[inner, tree.column[node]]
        goes = x <= tree.threshold[node]
        for place, one in enumerate(node.tolist()):
            if one in tree.levels:
                level, table = x[place], tree.levels[one]
                goes[place] = table[int(level)] if 0 <= level < len(table) else tree.beyond_left[one]
        at[inner] = np.where(goes, tree.left[node], tree.right[node])
    return np.asarray(tree.value[at])


def _numbers(column: Any) -> Floats:
    """A column, or a vector of several, as (n, width)."""
    if isinstance(column, pd.Series):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))[:, None]
    return np.asarray(column)


def _imputed(stage: Stage, inputs: Sequence[Any]) -> Columns:
    out: Columns = {}
    for name, column, filling in zip(stage.makes, inputs, stage.numbers["filling"], strict=True):
        values = _numbers(column)
        out[name] = np.where(np.isnan(values) | (values == stage.numbers["missing"]), filling, values)
    return out


def _indexed(stage: Stage, inputs: Sequence[Any]) -> Columns:
    out: Columns = {}
    for name, column, labels in zip(stage.makes, inputs, stage.numbers["labels"], strict=True):
        place = {label: number for number, label in enumerate(labels)}
        beyond = len(labels) if stage.numbers["keep"] else None
        found = [place.get(_text(cell), beyond) for cell in column.tolist()]
        if None in found:
            raise DataError(
                f'"{name}": {column.tolist()[found.index(None)]!r} is a level that the StringIndexer does not know',
                do="fit it with handleInvalid='keep'",
            )
        out[name] = np.array(found, dtype=np.float64)[:, None]
    return out


def _text(cell: Any) -> Any:
    """A cell as Spark casts it to text; whole numbers and texts alone."""
    if isinstance(cell, float | np.floating) and cell == cell:
        raise DataError(f"a StringIndexer over numbers such as {cell!r} is not read", do="make the column a text")
    return cell if isinstance(cell, str) else None if pd.isna(cell) else str(cell).lower()


def _one_hot(stage: Stage, inputs: Sequence[Any]) -> Columns:
    out: Columns = {}
    for name, column, width in zip(stage.makes, inputs, stage.numbers["widths"], strict=True):
        out[name] = (_numbers(column) == np.arange(width)).astype(np.float64)
    return out


def _scaled(stage: Stage, inputs: Sequence[Any]) -> Columns:
    values, mean, scale = _numbers(inputs[0]), stage.numbers["mean"], stage.numbers["scale"]
    values = values if mean is None else values - mean
    return {stage.makes[0]: values if scale is None else values * scale}


def _renumbered(stage: Stage, inputs: Sequence[Any]) -> Columns:
    values = _numbers(inputs[0]).copy()
    for column, codes in stage.numbers["codes"].items():
        values[:, column] = [codes.get(value, np.nan) for value in values[:, column].tolist()]
    return {stage.makes[0]: values}


_STEPS = {
    "imputer": _imputed,
    "indexer": _indexed,
    "one-hot": _one_hot,
    "assembler": lambda stage, inputs: {stage.makes[0]: np.hstack([_numbers(one) for one in inputs])},
    "scaler": _scaled,
    "vector indexer": _renumbered,
}


def read_stages(model: Any) -> SparkParts:
    """Read the stages of a PipelineModel that lead to its classifier."""
    flat = _flat(model)
    last = next(
        (one for one in reversed(flat) if hasattr(one, "getProbabilityCol") and hasattr(one, "numClasses")), None
    )
    if last is None:
        raise ModelError(
            "no stage of this pipeline is a classifier with probabilities",
            do="end it in LogisticRegression, DecisionTreeClassifier, RandomForestClassifier or GBTClassifier",
        )
    features = last.getFeaturesCol()
    wanted, labels, unread = {features}, None, ""
    stages: list[Stage] = []
    for one in reversed(flat[: flat.index(last)]):
        takes, makes = _ends(one, "input"), _ends(one, "output")
        if type(one).__name__ == "StringIndexerModel" and last.getLabelCol() in makes:
            labels = list(one.labelsArray[makes.index(last.getLabelCol())])
        if not wanted & set(makes):
            continue
        wanted = (wanted - set(makes)) | set(takes)
        reader = _READERS.get(type(one).__name__)
        unread = unread if reader else f"{type(one).__name__} is not a stage whose inside is read"
        stages.insert(0, Stage("", takes, makes) if reader is None else reader(one, takes, makes))
    made = {name for stage in stages for name in stage.makes}
    raw = tuple(dict.fromkeys(name for stage in stages for name in stage.takes if name not in made))
    classes = tuple(labels if labels is not None else range(int(last.numClasses)))
    plain = (tuple(stages), raw, features, last.getProbabilityCol(), classes)
    if features in raw or not stages:
        raise ModelError("the pipeline takes a vector, not columns", do="put its VectorAssembler into it")
    name = type(last).__name__
    if unread:
        return SparkParts(*plain, unread)
    if name == "LogisticRegressionModel":
        coef, intercept = last.coefficientMatrix.toArray(), last.interceptVector.toArray()
        return SparkParts(*plain, coef=np.asarray(coef, dtype=float), intercept=np.asarray(intercept, dtype=float))
    if name == "DecisionTreeClassificationModel":
        return SparkParts(*plain, trees=(_tree(last, 1.0, False),))
    if name in ("RandomForestClassificationModel", "GBTClassificationModel"):
        boosted = name.startswith("GBT")
        weights = list(last.treeWeights) if boosted else [1.0] * len(last.trees)
        trees = tuple(_tree(tree, weight, boosted) for tree, weight in zip(last.trees, weights, strict=True))
        return SparkParts(*plain, trees=trees, boosted=boosted)
    return SparkParts(*plain, f"{name} is not a classifier whose inside is read")


def _flat(model: Any) -> list[Any]:
    return [one for stage in model.stages for one in (_flat(stage) if hasattr(stage, "stages") else [stage])]


def _ends(stage: Any, side: str) -> tuple[str, ...]:
    """The columns a stage takes (``input``) or makes (``output``)."""
    for name, several in ((f"{side}Cols", True), (f"{side}Col", False)):
        if stage.hasParam(name) and stage.isSet(name):
            value = stage.getOrDefault(name)
            return tuple(value) if several else (value,)
    for name in ("featuresCol",) if side == "input" else ("outputCol", "predictionCol"):
        if stage.hasParam(name):
            return (stage.getOrDefault(name),)
    return ()


def _imputer(model: Any, takes: tuple[str, ...], makes: tuple[str, ...]) -> Stage:
    filling = model.surrogateDF.collect()[0]
    numbers = {"filling": [float(filling[name]) for name in takes], "missing": float(model.getMissingValue())}
    return Stage("imputer", takes, makes, numbers)


def _indexer(model: Any, takes: tuple[str, ...], makes: tuple[str, ...]) -> Stage:
    labels = [list(own) for own in model.labelsArray]
    return Stage("indexer", takes, makes, {"labels": labels, "keep": model.getHandleInvalid() == "keep"})


def _encoder(model: Any, takes: tuple[str, ...], makes: tuple[str, ...]) -> Stage:
    more = (model.getHandleInvalid() == "keep") - bool(model.getDropLast())
    return Stage("one-hot", takes, makes, {"widths": [int(size) + more for size in model.categorySizes]})


def _scaler(model: Any, takes: tuple[str, ...], makes: tuple[str, ...]) -> Stage:
    std = np.asarray(model.std.toArray(), dtype=float)
    scale = np.divide(1.0, std, out=np.zeros_like(std), where=std != 0) if model.getWithStd() else None
    mean = np.asarray(model.mean.toArray(), dtype=float) if model.getWithMean() else None
    return Stage("scaler", takes, makes, {"mean": mean, "scale": scale})


def _vector_indexer(model: Any, takes: tuple[str, ...], makes: tuple[str, ...]) -> Stage:
    codes = {int(k): {float(v): float(c) for v, c in own.items()} for k, own in model.categoryMaps.items()}
    return Stage("vector indexer", takes, makes, {"codes": codes})


_READERS = {
    "ImputerModel": _imputer,
    "StringIndexerModel": _indexer,
    "OneHotEncoderModel": _encoder,
    "VectorAssembler": lambda model, takes, makes: Stage("assembler", takes, makes),
    "StandardScalerModel": _scaler,
    "VectorIndexerModel": _vector_indexer,
}


def _tree(model: Any, weight: float, boosted: bool) -> SparkTree:
    """Walk a tree through Spark's gateway, about a third of a millisecond a node."""
    column: list[int] = []
    threshold: list[float] = []
    left: list[int] = []
    right: list[int] = []
    value: list[list[float]] = []
    beyond: list[bool] = []
    levels: dict[int, Bools] = {}
    blank = [0.0] * (1 if boosted else int(model.numClasses))

    def walk(node: Any) -> int:
        at = len(column)
        for numbers in (column, left, right):
            numbers.append(-1)
        threshold.append(0.0)
        value.append(blank)
        beyond.append(False)
        if node.getClass().getSimpleName() == "LeafNode":
            if boosted:
                value[at] = [weight * float(node.prediction())]
            else:
                counts = np.array(list(node.impurityStats().stats()))
                value[at] = (counts / counts.sum() if counts.sum() else counts).tolist()
            return at
        split = node.split()
        column[at] = int(split.featureIndex())
        if split.getClass().getSimpleName() == "ContinuousSplit":
            threshold[at] = float(split.threshold())
        else:
            table = np.zeros(int(split.numCategories()), dtype=bool)
            table[np.array(list(split.leftCategories()), dtype=np.intp)] = True
            levels[at], beyond[at] = table, bool(table.sum() > len(table) / 2)
        left[at], right[at] = walk(node.leftChild()), walk(node.rightChild())
        return at

    walk(model._call_java("rootNode"))
    return SparkTree(
        np.array(column), np.array(threshold), np.array(left), np.array(right), np.array(value), levels,
        np.array(beyond),
    )  # fmt: skip
