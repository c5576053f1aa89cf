"""What the package's classifiers share: raw mixed tables in, labels of two classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from fewest.errors import DataError, UsageError
from fewest.tables.frames import to_frame
from fewest.tables.schema import Schema
from fewest.tables.wording import show_label


class LabelsError(DataError, ValueError):
    """The labels are not those of two classes; a ValueError too, as scikit-learn's contract asks."""


class TableClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of raw tables; sub-classes say how it is fitted.

    It takes a frame (numbers, text, booleans) or an array of numbers, and labels of two classes. A level never seen in
    training is not an error. ``feature_names_in_`` is there when it is fitted on a table with text column names.
    """

    schema_: Schema  # features as read off the training table
    classes_: npt.NDArray[Any]  # (2,)
    n_features_in_: int
    positive: Any = None
    _missing_numbers = True

    def _read_training(self, X: Any, y: Any) -> tuple[pd.DataFrame, npt.NDArray[np.bool_]]:
        """Typed rows, and which are of the second class; sets what is known of the table."""
        if hasattr(X, "columns"):
            validate_data(self, X, y, skip_check_array=True)
            table = self._checked(X)
        else:
            array, y = validate_data(self, X, y, dtype="numeric", ensure_all_finite=self._finite)
            table = to_frame(array)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(table, labels)
        self.classes_, positive = two_classes(labels)
        schema = Schema.infer(table, groups={})
        # A column of fixed categories cannot hold a level that comes up later; without its dtype it is just levels.
        free = {name: kind for name, kind in schema.dtypes.items() if not isinstance(kind, pd.CategoricalDtype)}
        self.schema_ = replace(schema, dtypes=free)
        return self.schema_.conform(table, unseen="allow"), positive

    def _positive_label(self) -> Any:
        """The label whose decisions are to need few reasons; the second class unless ``positive`` names another."""
        if self.positive is None:
            return self.classes_[1]
        matching = [label for label in self.classes_ if label == self.positive]
        if not matching:
            known = ", ".join(map(show_label, self.classes_))
            raise UsageError(f"no row is labelled {show_label(self.positive)}", do=f"choose one of {known}")
        return matching[0]

    def _read_rows(self, X: Any) -> pd.DataFrame:
        """Typed rows of a table to predict."""
        check_is_fitted(self)
        if hasattr(X, "columns"):
            validate_data(self, X, reset=False, skip_check_array=True)
            table = self._checked(X)
        else:
            numeric = all(feature.is_numeric for feature in self.schema_.features)
            dtype = "numeric" if numeric else None
            table = validate_data(self, X, reset=False, dtype=dtype, ensure_all_finite=self._finite)
        return self.schema_.conform(table, unseen="allow")

    @property
    def _finite(self) -> bool | str:
        return "allow-nan" if self._missing_numbers else True

    def _checked(self, X: Any) -> pd.DataFrame:
        """A frame with text column names and without numbers that cannot be used."""
        if isinstance(X, pd.DataFrame) and not any(isinstance(name, str) for name in X.columns):
            X = X.set_axis([f"x{j}" for j in range(X.shape[1])], axis=1)
        frame = to_frame(X)
        for name in frame.columns:
            if pd.api.types.is_numeric_dtype(frame[name].dtype):
                values = frame[name].to_numpy(dtype=float, na_value=np.nan)
                self._refuse(frame, name, np.isinf(values), "infinite", "replace it by a number")
                if not self._missing_numbers:
                    do = "fill it in, or pass an encoder with an imputer"
                    self._refuse(frame, name, np.isnan(values), "missing", do)
        return frame

    def _refuse(self, frame: pd.DataFrame, name: str, bad: npt.NDArray[np.bool_], what: str, do: str) -> None:
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise DataError(f'row {row} (index {frame.index[row]}), column "{name}": the value is {what}', do=do)

    def __sklearn_tags__(self) -> Any:
        """Two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = self._missing_numbers
        return tags


def two_classes(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The two classes in order, and which rows are of the second."""
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    kind = type_of_target(labels, input_name="y")
    if kind != "binary":
        raise LabelsError(
            f"Only binary classification is supported. The type of the target is {kind}",
            do="fit on the rows of two classes, or on one class against all others",
        )
    classes, place = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise LabelsError(f"the labels have one class only, {show_label(classes[0])}", do="fit on rows of both classes")
    return classes, place == 1
