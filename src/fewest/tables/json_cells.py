"""Values of many rows, a column at a time: typed, or as JSON text in a list or in an Arrow column."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.tables.arrays import true_cells
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema

Read = Callable[[Feature, pd.DataFrame], Any]  # gives a list, or an Arrow array


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


def texts(feature: Feature, frame: pd.DataFrame) -> list[str]:
    """A feature's value in each row as JSON text: the level of a one-hot group, the parts of any other."""
    if feature.kind == "indicators":
        on = frame[list(feature.columns)].to_numpy(dtype=float) == 1
        return names(feature.columns, np.where(on.any(axis=1), on.argmax(axis=1), -1))
    if len(feature.columns) == 1:
        return _column(feature, frame[feature.columns[0]])
    parts = [[f"{json.dumps(name)}: {text}" for text in _column(feature, frame[name])] for name in feature.columns]
    return [f"{{{', '.join(row)}}}" for row in zip(*parts, strict=True)]


def arrow_texts(feature: Feature, frame: pd.DataFrame) -> Any:
    """The same as an Arrow array; numbers are written without Python, some of them in another way (1e+10)."""
    import pyarrow as pa
    from pyarrow import compute

    column = frame[feature.columns[0]]
    if len(feature.columns) > 1 or feature.kind not in ("integer", "number") or not _is_numeric(column):
        return pa.array(texts(feature, frame), pa.string())
    values = column.to_numpy(dtype=float, na_value=np.nan)
    finite = np.isfinite(values)
    if feature.kind == "integer" and finite.all() and (values % 1 == 0).all():
        return pa.array(values.astype(np.int64)).cast(pa.string())
    written = pa.array(values, mask=~finite).cast(pa.string())
    if feature.kind == "number":  # 1 would be read as a whole number
        whole = compute.invert(compute.match_substring_regex(written, "[.e]"))
        written = compute.if_else(whole, compute.binary_join_element_wise(written, ".0", ""), written)
    return compute.fill_null(written, "null")


def moved_cells(schema: Schema, frame: pd.DataFrame, moved: npt.NDArray[np.bool_], read: Read = texts) -> Any:
    """The cells that are moved (n, p), row by row and in column order within a row.

    ``read`` reads a column: `texts`, `arrow_texts` or `fewest.tables.values.typed_column`.
    """
    rows, owner = true_cells(moved)
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(len(schema) + 1))
    pieces = [
        read(feature, _some(frame, feature, rows[order[ends[j] : ends[j + 1]]]))
        for j, feature in enumerate(schema.features)
        if ends[j] < ends[j + 1]
    ]
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return _placed(pieces, back)


def _some(frame: pd.DataFrame, feature: Feature, rows: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Rows of a feature's columns."""
    if len(feature.columns) == 1:  # three times as fast as a table of one column
        return frame[feature.columns[0]].iloc[rows].to_frame()
    return frame[list(feature.columns)].iloc[rows]


def goal_cells(
    schema: Schema, goals: pd.DataFrame, goal_of: npt.NDArray[Any], moved: npt.NDArray[np.bool_], read: Read = texts
) -> Any:
    """The same of the goals that rows lead to; the few goals are read once."""
    rows, owner = true_cells(moved)
    used, place = np.unique(owner, return_inverse=True)
    return _placed([read(schema.features[j], goals) for j in used], place * len(goals) + goal_of[rows])


def _placed(pieces: list[Any], places: npt.NDArray[np.int64]) -> Any:
    """Values out of lists, or out of Arrow arrays, that stand one after the other."""
    if pieces and not isinstance(pieces[0], list):
        import pyarrow as pa

        return pa.concat_arrays(pieces).take(pa.array(places))
    return _objects([value for piece in pieces for value in piece])[places].tolist()


def _objects(values: list[Any]) -> npt.NDArray[np.object_]:
    """A list as an array of the same objects, lists and mappings among them."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _is_numeric(column: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column.dtype))


def _column(feature: Feature, column: pd.Series[Any]) -> list[str]:
    if feature.kind in ("integer", "number") and _is_numeric(column):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        if feature.kind == "integer" and np.isfinite(values).all() and (values % 1 == 0).all():
            return numbers(values.astype(np.int64))
        return [text.removesuffix(".0") for text in numbers(values)] if feature.kind == "integer" else numbers(values)
    codes, levels = pd.factorize(column)
    if feature.kind == "boolean":
        levels = [bool(level) for level in levels]
    return names([plain(level) for level in levels], codes)
