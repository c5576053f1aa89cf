"""Values of many rows, a column at a time: typed, or as JSON text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema

Read = Callable[[Feature, pd.DataFrame], list[Any]]


def numbers(values: npt.NDArray[Any]) -> list[str]:
    """Numbers as JSON text; what is not finite is null."""
    if len(values) == 0:
        return []
    text = json.dumps(values.tolist())
    return text.replace("-Infinity", "null").replace("Infinity", "null").replace("NaN", "null")[1:-1].split(", ")


def names(levels: Sequence[Any], codes: npt.NDArray[Any]) -> list[str]:
    """Levels as JSON text, by their codes; -1 is null."""
    texts = np.array([*(json.dumps(level, ensure_ascii=False) for level in levels), "null"], dtype=object)
    return texts[codes].tolist()  # type: ignore[no-any-return]


def lines(columns: Mapping[str, Sequence[str]]) -> bytes:
    """Columns of JSON text as JSON lines; any text can be the name of a column."""
    names = [json.dumps(name, ensure_ascii=False).replace("{", "{{").replace("}", "}}") for name in columns]
    fields = ", ".join(f"{name}: {{}}" for name in names)
    return "".join(map(f"{{{{{fields}}}}}\n".format, *columns.values())).encode("utf-8", "surrogatepass")


def texts(feature: Feature, frame: pd.DataFrame) -> list[str]:
    """A feature's value in each row as JSON text: the level of a one-hot group, the parts of any other."""
    if feature.kind == "indicators":
        on = frame[list(feature.columns)].to_numpy(dtype=float) == 1
        return names(feature.columns, np.where(on.any(axis=1), on.argmax(axis=1), -1))
    if len(feature.columns) == 1:
        return _column(feature, frame[feature.columns[0]])
    parts = [[f"{json.dumps(name)}: {text}" for text in _column(feature, frame[name])] for name in feature.columns]
    return [f"{{{', '.join(row)}}}" for row in zip(*parts, strict=True)]


def moved_cells(schema: Schema, frame: pd.DataFrame, moved: npt.NDArray[np.bool_], read: Read = texts) -> list[Any]:
    """The cells that are moved (n, p), row by row and in column order within a row.

    ``read`` reads a column: `texts`, or `fewest.tables.values.typed_column`.
    """
    rows, owner = np.nonzero(moved)
    out = np.empty(len(rows), dtype=object)
    for j, feature in enumerate(schema.features):
        mine = np.flatnonzero(owner == j)
        if len(mine):
            out[mine] = _objects(read(feature, frame[list(feature.columns)].iloc[rows[mine]]))
    return out.tolist()


def goal_cells(
    schema: Schema, goals: pd.DataFrame, goal_of: npt.NDArray[Any], moved: npt.NDArray[np.bool_], read: Read = texts
) -> list[Any]:
    """The same of the goals that rows lead to; the few goals are read once."""
    known = np.empty((len(schema), len(goals)), dtype=object)
    for j, feature in enumerate(schema.features):
        known[j] = _objects(read(feature, goals))
    rows, owner = np.nonzero(moved)
    return known[owner, goal_of[rows]].tolist()  # type: ignore[no-any-return]


def _objects(values: list[Any]) -> npt.NDArray[np.object_]:
    """A list as an array of the same objects, lists and mappings among them."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _column(feature: Feature, column: pd.Series[Any]) -> list[str]:
    if feature.kind in ("integer", "number") and pd.api.types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        if feature.kind == "integer" and np.isfinite(values).all() and (values % 1 == 0).all():
            return numbers(values.astype(np.int64))
        return [text.removesuffix(".0") for text in numbers(values)] if feature.kind == "integer" else numbers(values)
    codes, levels = pd.factorize(column)
    if feature.kind == "boolean":
        levels = [bool(level) for level in levels]
    return names([plain(level) for level in levels], codes)
