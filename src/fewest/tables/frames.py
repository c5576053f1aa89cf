"""The border to pandas, polars, arrow, numpy and scipy: everything becomes one pandas frame here, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import DataError

MAX_DENSE_CELLS = 200_000_000


def to_frame(data: Any, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Turn a table of any supported kind into a pandas frame with unique text column names.

    A pandas frame is returned as it is, not copied. ``columns`` are names for tables that have none (arrays); without
    them they are ``x0, x1, ...``.
    """
    frame = _convert(data, columns)
    names = frame.columns
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise DataError(
            f"column names must be text, but {wrong[0]!r} is {type(wrong[0]).__name__}",
            do="rename them first: X.columns = X.columns.astype(str)",
        )
    if not names.is_unique:
        twice = names[names.duplicated()][0]
        raise DataError(f'column "{twice}" stands more than once in the table', do="keep one of them, or rename")
    return frame


def _convert(data: Any, columns: Sequence[str] | None) -> pd.DataFrame:
    if isinstance(data, pd.DataFrame):
        return data
    if isinstance(data, Mapping):
        return pd.DataFrame(dict(data))
    if isinstance(data, pd.Series):
        raise DataError("a pandas Series was given where a table is needed", do="pass X.loc[[row]] (two brackets)")
    if hasattr(data, "tocsr") and hasattr(data, "shape"):
        if data.shape[0] * data.shape[1] > MAX_DENSE_CELLS:
            raise DataError(
                f"the sparse matrix has {data.shape[0]:,} x {data.shape[1]:,} cells, too many to make dense",
                do="explain it in slices of rows",
            )
        data = data.toarray()
    if isinstance(data, np.ndarray) or (isinstance(data, Sequence) and not isinstance(data, str | bytes)):
        return _from_array(np.asarray(data), columns)
    return _from_foreign(data)


def _from_array(array: np.ndarray[Any, Any], columns: Sequence[str] | None) -> pd.DataFrame:
    if array.ndim != 2:
        raise DataError(
            f"a table with rows and columns is needed, but the array has {array.ndim} dimension(s)",
            do="pass X[None, :] for one row, X[:, None] for one column",
        )
    if columns is None or len(columns) != array.shape[1]:
        columns = [f"x{j}" for j in range(array.shape[1])]
    frame = pd.DataFrame(array, columns=list(columns))
    return frame.infer_objects() if array.dtype == object else frame


def _from_foreign(data: Any) -> pd.DataFrame:
    """Polars frames, arrow tables and whatever else narwhals knows."""
    import narwhals as nw

    try:
        table = nw.from_native(data, eager_only=True)
    except TypeError as error:
        raise DataError(
            f"a table of type {type(data).__name__} is not understood",
            do="pass a pandas or polars DataFrame, an arrow table or a 2-d numpy array (collect lazy frames first)",
        ) from error
    return pd.DataFrame({name: _series(table[name]) for name in table.columns})


def _series(column: Any) -> pd.Series[Any]:
    """One narwhals column as a pandas Series, without needing pyarrow."""
    dtype = str(column.dtype)
    has_null = column.null_count() > 0
    if dtype.startswith(("Categorical", "Enum")):
        return pd.Series(pd.Categorical(column.to_list()))
    if dtype.startswith(("Int", "UInt", "Float", "Boolean")) and not has_null:
        return pd.Series(column.to_numpy())
    if dtype.startswith(("Int", "UInt", "Float", "Decimal")):
        return pd.Series([np.nan if value is None else float(value) for value in column.to_list()], dtype=float)
    if dtype.startswith("Boolean"):
        return pd.Series(column.to_list(), dtype="boolean")
    if dtype.startswith(("Date", "Datetime")):
        return pd.to_datetime(pd.Series(column.to_list()))
    if dtype.startswith("String"):
        return pd.Series(column.to_list(), dtype="str")
    return pd.Series(column.to_list())


def mix(
    frame: pd.DataFrame, other: pd.DataFrame, rows: np.ndarray[Any, Any], take: Mapping[str, np.ndarray[Any, Any]]
) -> pd.DataFrame:
    """Rows of ``frame`` in which some cells are taken from ``rows`` (n,) of ``other``, which has the same columns.

    ``take``: column -> (n,) bool, True where the cell comes from ``other``. Columns left out keep their values.
    """
    touched = [name for name in frame.columns if name in take and take[name].any()]
    new = {name: _replace(frame[name].array, other[name].array, rows, take[name]) for name in touched}
    if 4 * len(touched) > len(frame.columns):
        new = {name: new[name] if name in new else frame[name].array for name in frame.columns}
        return pd.DataFrame(new, index=frame.index, copy=False)
    out = frame.copy(deep=False)
    for name, values in new.items():
        out[name] = values
    return out


def _is_plain_number(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "if"


def _replace(values: Any, source: Any, rows: np.ndarray[Any, Any], chosen: np.ndarray[Any, Any]) -> Any:
    """A copy of ``values`` with ``source[rows]`` where chosen, in a dtype that holds both."""
    where = np.flatnonzero(chosen)
    cells = source[rows[where]]
    if values.dtype == source.dtype:
        out = values.copy()
    elif _is_plain_number(values.dtype) and _is_plain_number(source.dtype):
        out = values.astype(np.result_type(values.dtype, source.dtype))
    else:
        both = pd.Series(values).astype(object)
        both.iloc[where] = np.asarray(cells, dtype=object)
        return both.infer_objects().array
    out[where] = cells
    return out
