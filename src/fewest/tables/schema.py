"""The ORIGINAL features: what a person calls one fact, however many columns a model makes of it (rule 1)."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError, UsageError, check_word
from fewest.tables.cards import Rows, ShownAsCard
from fewest.tables.frames import to_frame
from fewest.tables.one_hot import warn_of_one_hot
from fewest.tables.wording import heading, shortest, show_label

Kind = Literal["number", "integer", "boolean", "category", "datetime", "indicators", "group"]
Unseen = Literal["error", "allow"]
UNSEEN = get_args(Unseen)
NUMERIC: frozenset[str] = frozenset({"number", "integer"})
NOT_NUMBERS = {
    "boolean": "true and false", "datetime64": "times", "datetime": "times", "date": "dates",
    "timedelta64": "durations", "timedelta": "durations", "period": "periods", "time": "times of day",
}  # fmt: skip
ODD_CELLS = (bool, np.bool_, dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64, pd.Period)
MAX_DECIMALS = 6
SHOWN = 5  # features that a schema names when it is printed


@dataclass(frozen=True)
class Feature:
    """One original feature.

    Parameters
    ----------
    name : str
        The feature's name; that of its column unless it is a group.
    kind : str
        number, integer, boolean, category, datetime; ``indicators`` is a group of 0/1 columns of which exactly one is
        set (its levels are the column names); ``group`` is any other set of columns that moves as one.
    columns : tuple of str
        Raw columns that hold it.
    levels : tuple
        Known values of a category, in order where there is one.
    decimals : int
        Decimals a number of this feature is shown and set with.
    scale : float
        Standard deviation in the data the schema was read from; distances are measured in it.
    minimum, maximum : float
        Range seen.
    label : str, optional
        What people call it, in place of the name.
    unit : str, optional
        What its numbers count; printed behind them.
    reason_code : str, optional
        The code of a reason that names it, where no table of codes has one.
    protected : bool
        Whether the law forbids deciding by it: such a feature is never given to anybody as a reason.
    better : str, optional
        ``up`` or ``down``, for whoever is decided on. Answers that go the other way are warned of, and not in letters.

    Examples
    --------
    >>> Feature("age", "integer", ("age",), scale=11.4).is_numeric
    True
    """

    name: str
    kind: Kind
    columns: tuple[str, ...]
    levels: tuple[Any, ...] = ()
    ordered: bool = False
    decimals: int = 0
    scale: float = 1.0
    minimum: float = -np.inf
    maximum: float = np.inf
    label: str | None = None
    unit: str | None = None
    reason_code: str | None = None
    protected: bool = False
    better: str | None = None

    def __post_init__(self) -> None:
        check_word("kind", self.kind, get_args(Kind))
        if self.better is not None:
            check_word("better", self.better, ("up", "down"))

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers that can be averaged."""
        return self.kind in NUMERIC

    @property
    def title(self) -> str:
        """What people call it."""
        return self.label or self.name

    @property
    def heading(self) -> str:
        """The same with the unit, where values stand below or beside it without one."""
        return heading(self.title, self.unit)


@dataclass(frozen=True)
class Schema(ShownAsCard):
    """All original features in column order, with the dtypes their columns have.

    Examples
    --------
    >>> schema = Schema.infer(pd.DataFrame({"age": [30, 40], "housing": ["rent", "own"]}))
    >>> schema
    <schema of 2 features: age (integer), housing (category)>
    """

    features: tuple[Feature, ...]
    dtypes: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = ", ".join(f"{feature.name} ({feature.kind})" for feature in self.features[:SHOWN])
        more = f" and {len(self) - SHOWN} more" if len(self) > SHOWN else ""
        return f"<schema of {len(self)} feature{'s' if len(self) != 1 else ''}: {shown}{more}>"

    def _card_rows(self) -> tuple[Sequence[str], Rows]:
        spans = [f"{one.minimum:g} to {one.maximum:g}" if one.is_numeric else "" for one in self.features]
        pairs = zip(self.features, spans, strict=True)
        rows = [(one.heading, one.kind, ", ".join(map(str, one.levels)) or span) for one, span in pairs]
        return ("feature", "kind", "values"), rows

    @classmethod
    def infer(
        cls, data: Any, groups: Mapping[str, Sequence[str]] | None = None, columns: Sequence[str] | None = None
    ) -> Schema:
        """Read the schema off a table, best the training table.

        Parameters
        ----------
        data : table
            Anything `fewest` reads.
        groups : mapping, optional
            Feature name -> the columns that make it up, e.g. ``{"housing": ["housing_own", "housing_rent"]}``. Without
            it a warning names columns of 0 and 1 that look like the levels of one feature; ``{}`` says there are none.
        columns : sequence of str, optional
            Names for an array without any.
        """
        frame = to_frame(data, columns)
        if frame.shape[1] == 0:
            raise DataError("the table has no columns", do="pass the feature columns the model was fitted on")
        if len(frame) == 0:
            raise DataError("the table has no rows", do="pass at least one row to read the schema from")
        if groups is None:
            warn_of_one_hot(frame)
        owner = _owners(frame, groups or {})
        features: list[Feature] = []
        for name in frame.columns:
            group = owner.get(name)
            if group is None:
                features.append(_read_feature(frame[name]))
            elif all(feature.name != group for feature in features):
                features.append(_read_group(group, frame[list((groups or {})[group])]))
        return cls(tuple(features), dict(frame.dtypes))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Raw columns, feature by feature."""
        return tuple(column for feature in self.features for column in feature.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Feature names in order."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def feature_of(self) -> dict[str, int]:
        """Raw column -> position of its feature."""
        return {column: j for j, feature in enumerate(self.features) for column in feature.columns}

    def __len__(self) -> int:
        return len(self.features)

    def index(self, name: str) -> int:
        """Position of a feature; an error that lists the near names when there is none."""
        try:
            return self.names.index(name)
        except ValueError:
            near = difflib.get_close_matches(name, self.names, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"the features are {', '.join(self.names[:12])}"
            raise UsageError(f'there is no feature "{name}"', do=hint) from None

    def with_(self, name: str, **changes: Any) -> Schema:
        """The schema with some attributes of one feature replaced (label, unit, decimals, levels, ...).

        Examples
        --------
        >>> schema = Schema.infer(pd.DataFrame({"Seniority": [1, 9], "Age": [30, 40]}))
        >>> schema = schema.with_("Seniority", label="Years in current job", unit="years")
        >>> [feature.heading for feature in schema.features]
        ['Years in current job (years)', 'Age']
        """
        j = self.index(name)
        label = changes.get("label")
        taken = [other.name for other in self.features if other.name != name and label in (other.name, other.label)]
        if label and taken:
            raise UsageError(
                f'the label "{label}" of "{name}" is also what "{taken[0]}" is called: nobody could tell them apart',
                do="choose another label",
            )
        features = list(self.features)
        features[j] = replace(features[j], **changes)
        return replace(self, features=tuple(features))

    def conform(self, data: Any, unseen: Unseen = "error") -> pd.DataFrame:
        """The table in this schema's columns, order and dtypes, or a `DataError` that names the cell.

        Extra columns are left out; missing ones are an error. Reordered columns are put in order.
        """
        check_word("unseen", unseen, UNSEEN)
        frame = to_frame(data, self.columns)
        missing = [column for column in self.columns if column not in frame.columns]
        if missing:
            shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            marks = [mark for mark in (";", "\t", "|") if len(frame.columns) == 1 and mark in str(frame.columns[0])]
            do = f"separate its columns with commas: they are separated with {marks[0]!r}" if marks else "add them"
            raise DataError(f"the table lacks {len(missing)} of {len(self.columns)} columns: {shown}", do=do)
        if unseen == "allow" and tuple(frame.columns) == self.columns and self.dtypes == dict(frame.dtypes):
            return frame.copy(deep=False)
        out = {}
        for feature in self.features:
            for column in feature.columns:
                out[column] = _conform_column(frame[column], feature, self.dtypes.get(column), unseen)
        return pd.DataFrame(out, index=frame.index, copy=False)

    def snap(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Column values as this schema shows them: integers whole, numbers rounded to the feature's decimals."""
        out = dict(values)
        for feature in self.features:
            for column in feature.columns:
                if column in out and feature.is_numeric and not pd.isna(out[column]):
                    out[column] = _snapped(out[column], feature)
        return out


def _snapped(value: Any, feature: Feature) -> int | float:
    if feature.kind == "number":
        return round(shortest(value), feature.decimals)
    # As a float, a whole number beyond 2**53 would be another one.
    return int(value) if isinstance(value, int | np.integer) else round(float(value))


def _owners(frame: pd.DataFrame, groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    owner: dict[str, str] = {}
    for group, columns in groups.items():
        if len(columns) == 0:
            raise UsageError(f'group "{group}" has no columns', do="name the columns that make it up")
        for column in columns:
            if column not in frame.columns:
                raise UsageError(f'group "{group}" names column "{column}", which is not in the table', do="correct it")
            if column in owner:
                raise UsageError(f'column "{column}" is in the groups "{owner[column]}" and "{group}"', do="keep one")
            owner[column] = group
    for group in groups:
        if group in frame.columns and owner.get(group) != group:
            raise UsageError(f'group "{group}" has the name of a column outside it', do="choose another name")
    return owner


def _read_feature(column: pd.Series[Any]) -> Feature:
    name = str(column.name)
    dtype = column.dtype
    if pd.api.types.is_bool_dtype(dtype):
        return Feature(name, "boolean", (name,), levels=(False, True))
    if isinstance(dtype, pd.CategoricalDtype):
        return Feature(name, "category", (name,), levels=tuple(dtype.categories), ordered=bool(dtype.ordered))
    if pd.api.types.is_datetime64_any_dtype(dtype):
        stamps = column.dropna().astype("int64").to_numpy(dtype=float)
        return Feature(name, "datetime", (name,), scale=_scale(stamps))
    if pd.api.types.is_numeric_dtype(dtype):
        return _read_number(name, column)
    present = column.dropna()
    levels = present.unique().tolist()
    try:
        levels = sorted(levels)
    except TypeError:
        levels = sorted(levels, key=lambda level: (type(level).__name__, str(level)))
    return Feature(name, "category", (name,), levels=tuple(levels))


def _read_number(name: str, column: pd.Series[Any]) -> Feature:
    values = column.dropna().to_numpy(dtype=float)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (-np.inf, np.inf)
    scale = _scale(values)
    if pd.api.types.is_integer_dtype(column.dtype) or (len(values) > 0 and bool(np.all(values == np.round(values)))):
        return Feature(name, "integer", (name,), scale=scale, minimum=low, maximum=high)
    decimals = _decimals(values, scale, getattr(column.dtype, "itemsize", 8))
    return Feature(name, "number", (name,), decimals=decimals, scale=scale, minimum=low, maximum=high)


def _scale(values: npt.NDArray[Any]) -> float:
    """Standard deviation, one where it is zero or not defined."""
    spread = float(np.std(values)) if len(values) else 0.0
    return spread if np.isfinite(spread) and spread > 0 else 1.0


def _decimals(values: npt.NDArray[Any], scale: float, itemsize: int) -> int:
    """Decimals the values are written with, but no more than a thousandth of their spread needs."""
    sample = values[:: max(1, len(values) // 1000)]
    if itemsize < sample.itemsize:
        # A narrow 0.1 is 0.10000000149 as a wide number; it was written with one decimal.
        sample = np.array([shortest(value) for value in sample.astype(f"f{itemsize}")])
    enough = max(0, 3 - int(np.floor(np.log10(scale))))
    near = min(1e-9, 1e-6 * scale)
    for decimals in range(min(enough, MAX_DECIMALS)):
        if np.allclose(sample, np.round(sample, decimals), rtol=0, atol=near):
            return decimals
    return enough


def _read_group(name: str, frame: pd.DataFrame) -> Feature:
    columns = tuple(str(column) for column in frame.columns)
    try:
        cells = frame.to_numpy(dtype=float)
    except (TypeError, ValueError):
        return Feature(name, "group", columns)
    one_hot = bool(np.isin(cells, (0.0, 1.0)).all() and (cells.sum(axis=1) == 1).all())
    return Feature(name, "indicators" if one_hot else "group", columns, levels=columns if one_hot else ())


def _conform_column(column: pd.Series[Any], feature: Feature, dtype: Any, unseen: Unseen) -> pd.Series[Any]:
    if feature.kind == "category":
        # A column of fixed categories cannot hold another level: it would silently turn into a missing value.
        if feature.levels and (unseen == "error" or isinstance(dtype, pd.CategoricalDtype)):
            _refuse_unseen(column, feature)
        if isinstance(dtype, pd.CategoricalDtype) and column.dtype != dtype:
            return column.astype(dtype)
        return column if dtype is None or column.dtype == dtype else column.astype(dtype)
    if feature.kind == "datetime":
        return column if column.dtype == dtype else pd.to_datetime(column).astype(dtype)
    if dtype is None or column.dtype == dtype:
        return column
    if feature.is_numeric:
        _refuse_kinds_other_than_numbers(column)
    return _conform_number(column, feature, dtype)


def _refuse_kinds_other_than_numbers(column: pd.Series[Any]) -> None:
    """Times and truth values turn into numbers without a word, and mean something else then."""
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    if numeric and not pd.api.types.is_bool_dtype(column.dtype):
        return
    odd = column.dropna()
    if not numeric and odd.dtype == object:
        odd = odd[odd.map(lambda cell: isinstance(cell, ODD_CELLS))]
    kind = pd.api.types.infer_dtype(odd.astype(object))
    if kind in NOT_NUMBERS:
        raise DataError(
            f'column "{column.name}" holds {NOT_NUMBERS[kind]}, where the model was trained on numbers',
            do="write the numbers the model was trained on",
        )


def _conform_number(column: pd.Series[Any], feature: Feature, dtype: Any) -> pd.Series[Any]:
    """A numeric or boolean column in the schema's dtype, where that loses nothing."""
    if not pd.api.types.is_numeric_dtype(column.dtype):
        numbers = pd.to_numeric(column, errors="coerce")
        bad = numbers.isna() & column.notna()
        if bad.any():
            row = int(np.flatnonzero(bad.to_numpy())[0])
            said = show_label(column.iloc[row])
            raise DataError(
                f'row {row} (index {column.index[row]}), column "{column.name}": {said} is not a number',
                do="correct the cell, or read the column as numbers",
            )
        column = numbers
    if column.isna().any() and not pd.api.types.is_extension_array_dtype(dtype):
        return column.astype(float)
    values = column.to_numpy(dtype=float, na_value=np.nan)
    if pd.api.types.is_bool_dtype(dtype):
        fits = bool(np.isin(values[~np.isnan(values)], (0.0, 1.0)).all())
    elif pd.api.types.is_integer_dtype(dtype):
        fits = not np.isinf(values).any() and bool(np.all(values[~np.isnan(values)] % 1 == 0))
    else:
        fits = True
    return column.astype(dtype) if fits else column.astype(float)


def _refuse_unseen(column: pd.Series[Any], feature: Feature) -> None:
    strange = ~column.isin(list(feature.levels)) & column.notna()
    if strange.any():
        row = int(np.flatnonzero(strange.to_numpy())[0])
        known = ", ".join(str(level) for level in feature.levels[:8]) + (" ..." if len(feature.levels) > 8 else "")
        raise DataError(
            f'row {row} (index {column.index[row]}), column "{column.name}": value {show_label(column.iloc[row])} '
            f"was never seen when the schema was read. Known values ({len(feature.levels)}): {known}",
            do='map it to a known value, or pass unseen="allow" if the model accepts it',
        )
