"""What a column of an instance may hold: read off the schema once, checked cell by cell, told as JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
import pandas as pd

from fewest.apps.serving.refusals import instance_refusal
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema

Holds = Literal["number", "whole", "flag", "level", "text", "time", "indicator"]
LARGEST_NUMBER = 1e30
LARGEST_WHOLE = 2**53 - 1
DAY = r"^[12][0-9]{3}-(0[1-9]|1[0-2])-([01][0-9]|2[0-8])(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])?$"


class CellError(ValueError):
    """A value that a column cannot hold, and why."""


@dataclass(frozen=True)
class Column:
    """One raw column of an instance.

    Attributes
    ----------
    name : str
    holds : str
        What kind of value.
    missing : bool
        Whether null is taken.
    levels : tuple
        Values of a ``level`` column; empty where any text is.
    zone : bool
        Whether times come with an offset.

    Examples
    --------
    >>> Column("age", "whole").cell(30.0)
    30
    >>> Column("age", "whole").cell("30")
    Traceback (most recent call last):
    ...
    fewest.apps.serving.columns.CellError: a whole number is expected
    """

    name: str
    holds: Holds
    missing: bool = False
    levels: tuple[Any, ...] = ()
    zone: bool = False

    def cell(self, value: Any) -> Any:
        """A JSON value in the column's type, or `CellError`."""
        if value is None:
            if not self.missing:
                raise CellError("the model takes no missing value here")
            return None
        if self.holds in ("number", "whole", "indicator"):
            return self._number(value)
        if self.holds == "flag":
            return _of_type(value, bool, "true or false")
        if self.holds == "time":
            return self._time(value)
        return self._level(value)

    def _number(self, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CellError("a whole number is expected" if self.holds == "whole" else "a number is expected")
        if self.holds == "indicator" and value not in (0, 1):
            raise CellError("0 or 1 is expected")
        if self.holds != "number" and value != int(value):
            raise CellError("a whole number is expected")
        if abs(value) > (LARGEST_NUMBER if self.holds == "number" else LARGEST_WHOLE):
            raise CellError("the number is too large")
        return float(value) if self.holds == "number" else int(value)

    def _time(self, value: Any) -> Any:
        try:
            moment = pd.Timestamp(datetime.fromisoformat(_of_type(value, str, "a time as text")))
        except (ValueError, OverflowError):
            raise CellError("a day or time in ISO 8601 is expected, such as 2026-01-31") from None
        if (moment.tzinfo is not None) != self.zone:
            raise CellError("the time needs an offset" if self.zone else "the time must not have an offset")
        return moment

    def _level(self, value: Any) -> Any:
        if isinstance(value, list | dict):
            raise CellError("a single value is expected")
        if self.holds == "text":
            return value
        for level in self.levels:
            if isinstance(level, bool) == isinstance(value, bool) and plain(level) == value:
                return level
        known = ", ".join(str(level) for level in self.levels[:8]) + (" ..." if len(self.levels) > 8 else "")
        raise CellError(f"the known values ({len(self.levels)}) are {known}")

    def cells(self, values: list[Any]) -> list[Any]:
        """The column of many instances, typed, or a `RefusedError` that names the first cell that is wrong."""
        out: list[Any] = []
        for row, value in enumerate(values):
            try:
                out.append(self.cell(value))
            except CellError as error:
                raise instance_refusal(
                    f"{_short(value)} does not fit", f"instances[{row}].{self.name}", str(error), "correct this value"
                ) from None
        return out

    def series(self, cells: list[Any]) -> pd.Series[Any]:
        """Typed cells as a column of a table."""
        if self.holds in ("number", "whole", "indicator"):
            is_float = self.holds == "number" or None in cells
            return pd.Series(np.array(cells, dtype=np.float64 if is_float else np.int64))
        if self.holds == "flag" and None not in cells:
            return pd.Series(np.array(cells, dtype=bool))
        return pd.Series(cells, dtype=None if self.holds == "time" else object)

    def json_schema(self) -> dict[str, Any]:
        """What the column takes, as JSON Schema."""
        kinds: dict[str, dict[str, Any]] = {
            "number": {"type": "number", "minimum": -LARGEST_NUMBER, "maximum": LARGEST_NUMBER},
            "whole": {"type": "integer", "minimum": -LARGEST_WHOLE, "maximum": LARGEST_WHOLE},
            "indicator": {"type": "integer", "enum": [0, 1]},
            "flag": {"type": "boolean"},
            "time": {"type": "string"} if self.zone else {"type": "string", "pattern": DAY},
            "level": {"enum": [plain(level) for level in self.levels]},
            "text": {"type": ["string", "number", "boolean"]},
        }
        out = kinds[self.holds]
        return {"anyOf": [out, {"type": "null"}]} if self.missing else out


def _of_type(value: Any, kind: type, words: str) -> Any:
    if not isinstance(value, kind):
        raise CellError(f"{words} is expected")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def columns_of(schema: Schema, *, any_level: bool, missing: Iterable[str]) -> tuple[Column, ...]:
    """The columns of a schema, feature by feature.

    Parameters
    ----------
    schema : Schema
    any_level : bool
        Whether levels that were never seen are left to the model.
    missing : iterable of str
        Columns in which the model takes missing values.

    Examples
    --------
    >>> schema = Schema.infer(pd.DataFrame({"age": [30, 40], "home": ["own", "rent"]}))
    >>> [(column.name, column.holds) for column in columns_of(schema, any_level=False, missing=())]
    [('age', 'whole'), ('home', 'level')]
    """
    nullable = frozenset(missing)
    out = []
    for feature in schema.features:
        for name in feature.columns:
            holds, zone = _holds(feature, schema.dtypes.get(name), any_level)
            levels = feature.levels if holds == "level" else ()
            out.append(Column(name, holds, name in nullable and holds != "indicator", levels, zone))
    return tuple(out)


def _holds(feature: Feature, dtype: Any, any_level: bool) -> tuple[Holds, bool]:
    if feature.kind == "indicators":
        return "indicator", False
    if feature.kind == "category":
        fixed = isinstance(dtype, pd.CategoricalDtype) or not any_level
        return ("level" if feature.levels and fixed else "text"), False
    if feature.kind == "datetime":
        return "time", isinstance(dtype, pd.DatetimeTZDtype)
    if dtype is not None and pd.api.types.is_bool_dtype(dtype):
        return "flag", False
    if dtype is not None and pd.api.types.is_integer_dtype(dtype):
        return "whole", False
    numeric = dtype is None or pd.api.types.is_numeric_dtype(dtype)
    return ("number" if numeric else "text"), False
