"""What the cells of a table on disk may hold, by the kind of their column; text that is not of it is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from fewest.tables.schema import Schema

MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
TRUE, FALSE = ("True", "TRUE", "true", "1"), ("False", "FALSE", "false", "0")
WORDS = {"whole": "a whole number", "number": "a number", "truth": "true or false"}


def column_kinds(schema: Schema) -> dict[str, str]:
    """How the cells of each column are read: ``text``, ``whole``, ``number`` or ``truth``."""
    return {column: _kind(schema.dtypes.get(column)) for column in schema.columns}


def _kind(dtype: Any) -> str:
    if isinstance(dtype, pd.CategoricalDtype):
        inner = dtype.categories.dtype
        return "whole" if pd.api.types.is_integer_dtype(inner) else _kind(inner)
    if dtype is not None and pd.api.types.is_bool_dtype(dtype):
        return "truth"
    return "number" if dtype is not None and pd.api.types.is_numeric_dtype(dtype) else "text"


def readable_cells(piece: Any, kinds: Mapping[str, str]) -> tuple[Any, dict[int, str]]:
    """An Arrow batch whose text is of its columns' kinds, and the rows in which it is not: place -> why.

    A cell that is not of its kind is missing in what comes out. Columns that are not text stay as they are.
    """
    import pyarrow as pa

    columns: dict[str, Any] = {}
    wrong: dict[int, str] = {}
    for name in piece.schema.names:
        column, kind = piece[name], kinds.get(name, "text")
        if kind == "text" or column.type != pa.string():
            columns[name] = column
            continue
        try:
            columns[name] = _of_kind(column, kind)
        except pa.ArrowInvalid:
            cells = [_one(cell, kind) for cell in column]
            for place, (cell, text) in enumerate(zip(cells, column, strict=True)):
                if cell is None and text.is_valid:
                    wrong.setdefault(place, f'column "{name}": {text.as_py()!r} is not {WORDS[kind]}')
            columns[name] = pa.array(cells, _type(kind))
    return pa.RecordBatch.from_pydict(columns), wrong


def _type(kind: str) -> Any:
    import pyarrow as pa

    return {"whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}[kind]


def _of_kind(column: Any, kind: str) -> Any:
    """A column of text as numbers or truths; `ArrowInvalid` where a cell is neither that nor missing."""
    import pyarrow as pa
    from pyarrow import compute

    trimmed = compute.utf8_trim_whitespace(column)
    if kind != "truth":
        return trimmed.cast(_type(kind))
    known = compute.index_in(trimmed, pa.array([*TRUE, *FALSE]))
    if known.null_count > column.null_count:
        raise pa.ArrowInvalid("a cell is neither true nor false")
    return compute.less(known, len(TRUE))


def _one(cell: Any, kind: str) -> Any:
    """The value of a cell; None where it is not of its kind."""
    import pyarrow as pa

    try:
        return _of_kind(pa.array([cell]), kind)[0].as_py()
    except pa.ArrowInvalid:
        return None
