"""A fitted `pyspark.ml` pipeline as a classifier of tables: Spark scores, and what is inside is read.

Spark is asked in one job for all rows of a call. Copies that travel (to executors, to other processes) leave Spark
behind and score with the numbers of the pipeline; both give the same chances up to the last bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError, ModelError
from fewest.runs._spark_stages import SparkParts, read_stages
from fewest.tables.arrays import Floats

_ROW = "fewest_row"
_KEPT = 1024  # rows whose chances are remembered: scores of single rows are asked for again and again


class SparkClassifier:
    """A `PipelineModel` of pyspark.ml that ends in a classifier with probabilities.

    Parameters
    ----------
    model : pyspark.ml.PipelineModel
        Imputer, StringIndexer, OneHotEncoder, VectorAssembler, VectorIndexer and StandardScaler before a
        LogisticRegression, DecisionTree, RandomForest or GBT classifier are read. With any other stage Spark's scores
        are searched, which takes a Spark job for each question.

    Attributes
    ----------
    classes_ : (k,) array
        The labels of the StringIndexer that made the label column, where there is one; else 0, 1, ...
    feature_names_in_ : (p,) array of str
        The columns of a table that lead to the classifier.

    Examples
    --------
    >>> import fewest as fw
    >>> model = SparkClassifier(pipeline.fit(df))  # doctest: +SKIP
    >>> decision = fw.Decision(model, positive="bad")  # doctest: +SKIP

    Anything else is refused:

    >>> SparkClassifier("model")
    Traceback (most recent call last):
    ...
    fewest.errors.ModelError: str is not a fitted pipeline of pyspark.ml
      Try: pass a PipelineModel, as Pipeline.fit gives it
    """

    def __init__(self, model: Any) -> None:
        if not hasattr(model, "stages") or not hasattr(model, "transform"):
            raise ModelError(
                f"{type(model).__name__} is not a fitted pipeline of pyspark.ml",
                do="pass a PipelineModel, as Pipeline.fit gives it",
            )
        self._live: Any = model
        self.parts: SparkParts = read_stages(model)
        self.classes_ = np.array(self.parts.classes)
        self.feature_names_in_ = np.array(self.parts.columns, dtype=object)
        self.n_features_in_ = len(self.parts.columns)
        self._known: dict[tuple[Any, ...], Floats] = {}

    def __getstate__(self) -> dict[str, Any]:
        if self.parts.unread:
            raise ModelError(
                f"this pipeline cannot leave its Spark session: {self.parts.unread}", do="explain where the session is"
            )
        return {**vars(self), "_live": None, "_known": {}}

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Floats:
        """Chances of the classes (n, k): by Spark, or in a copy without a session by the pipeline's numbers."""
        table = self._table(X)
        if self._live is None:
            return self.parts.chances(self.parts.vector(table))
        if len(table) > _KEPT:
            return self._asked(table)
        keys = [tuple(map(_key, row)) for row in table.itertuples(index=False)]
        new = list(dict.fromkeys(key for key in keys if key not in self._known))
        if new:
            first = {key: place for place, key in reversed(list(enumerate(keys)))}
            if len(self._known) + len(new) > _KEPT:
                self._known = {key: self._known[key] for key in keys if key in self._known}
            scores = self._asked(table.iloc[[first[key] for key in new]])
            self._known.update(zip(new, scores, strict=True))
        return np.array([self._known[key] for key in keys]).reshape(len(keys), len(self.classes_))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of each row (n,)."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    def _table(self, X: Any) -> pd.DataFrame:
        names = list(self.parts.columns)
        table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X), columns=names)
        return table[names]

    def _asked(self, table: pd.DataFrame) -> Floats:
        """One Spark job over all rows; they come back with their numbers, in any order."""
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        if session is None:
            raise ModelError("there is no Spark session any more", do="explain while the session is there")
        kinds = [_spark_type(table[name]) for name in table]
        schema = ", ".join(f"`{name}` {kind}" for name, kind in zip(table, kinds, strict=True))
        cells = [
            [_cell(value, kind) for value in table[name].tolist()] for name, kind in zip(table, kinds, strict=True)
        ]
        rows = list(zip(range(len(table)), *cells, strict=True))
        data = session.createDataFrame(rows, f"`{_ROW}` bigint, {schema}")
        chances = self.parts.probability
        found = self._live.transform(data).select(_ROW, chances).collect()
        if len(found) != len(table):
            raise DataError(
                f"Spark gave scores for {len(found)} of {len(table)} rows",
                do="fit the pipeline's stages with handleInvalid='keep' or 'error' instead of 'skip'",
            )
        out = np.empty((len(table), len(self.classes_)))
        for row in found:
            out[row[_ROW]] = row[chances].toArray()
        return out


def _key(value: Any) -> Any:
    return None if value is pd.NA or value != value else value


def _cell(value: Any, kind: str) -> Any:
    """A cell as Spark takes it: a missing number is NaN, anything else that is missing is null."""
    if value is pd.NA or value != value:
        value = None
    if kind == "double":
        return float("nan") if value is None else float(value)
    return str(value) if kind == "string" and value is not None else value


def _spark_type(column: pd.Series) -> str:
    if pd.api.types.is_bool_dtype(column):
        return "boolean"
    if pd.api.types.is_integer_dtype(column):
        return "double" if column.isna().any() else "bigint"
    return "double" if pd.api.types.is_numeric_dtype(column) else "string"
