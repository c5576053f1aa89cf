"""The cases of a part, kept beside its answers: raw columns, so that a reader needs neither the data nor the model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from fewest.errors import DataError, FewestError, MissingExtraError
from fewest.runs.cells import lines, texts
from fewest.tables.schema import Feature, Schema


def write_cases(schema: Schema, frame: pd.DataFrame, kind: str) -> tuple[str, bytes]:
    """Ending and content of the file of cases; columns that Arrow cannot hold make it JSON lines.

    Parameters
    ----------
    schema : Schema
    frame : (n, columns)
        Rows conformed to the schema.
    kind : str
        ``parquet`` or ``jsonl``.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [30, 40], "job": ["a", None]})
    >>> write_cases(Schema.infer(X), X, "jsonl")
    ('cases.jsonl', b'{"age": 30, "job": "a"}\\n{"age": 40, "job": null}\\n')
    """
    if kind == "parquet":
        import pyarrow as pa

        try:
            return "cases.parquet", _parquet(frame[list(schema.columns)])
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # levels of several types in one column
            pass
    return "cases.jsonl", _lines(schema, frame)


def _parquet(frame: pd.DataFrame) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pandas(frame, preserve_index=False, nthreads=1).replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd", row_group_size=max(1, len(frame)))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _lines(schema: Schema, frame: pd.DataFrame) -> bytes:
    return lines(
        {column: texts(_alone(feature, column), frame) for feature in schema.features for column in feature.columns}
    )


def _alone(feature: Feature, column: str) -> Feature:
    """One column of a feature as a feature of its own."""
    kind = "number" if feature.kind == "indicators" else feature.kind
    return replace(feature, kind=kind, columns=(column,))


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Name the file where it cannot be understood."""
    try:
        yield
    except FewestError:
        raise
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path.name} cannot be read: {first}", do="restore it, or explain again") from error


def read_cases(path: Path, schema: Schema, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """All cases of a part in the schema's dtypes: all columns, or those that are named."""
    if columns is not None:
        features = [_alone(feature, name) for name in columns for feature in [schema.features[schema.feature_of[name]]]]
        schema = replace(schema, features=tuple(features))
    with readable(path):
        return schema.conform(_frame(load(path, columns)), unseen="allow")


def read_one(path: Path, place: int) -> dict[str, Any]:
    """One row of a part as plain values by column; the part is read once."""
    with readable(path):
        whole = loaded(path)
        if isinstance(whole, list):
            return dict(json.loads(whole[place]))
        return dict(whole.slice(place, 1).to_pylist()[0])


def _frame(rows: Any) -> pd.DataFrame:
    return pd.DataFrame([json.loads(line) for line in rows]) if isinstance(rows, list) else rows.to_pandas()


def loaded(path: Path) -> Any:
    """A part as it is in its file, lines or an Arrow table, remembered until the file changes."""
    return _remembered(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _remembered(path: Path, _changed: int) -> Any:
    return load(path)


def load(path: Path, columns: Sequence[str] | None = None) -> Any:
    """The lines of a JSON file, or the Arrow table of a Parquet file, which can be told the columns to read."""
    if path.suffix == ".jsonl":
        # Not splitlines: it would cut at characters such as U+2028, which may stand inside a text.
        return path.read_bytes().decode("utf-8", "surrogatepass").split("\n")[:-1]
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(f"reading {path.name} needs pyarrow", do='pip install "fewest[scale]"') from error
    return parquet.ParquetFile(path).read(columns=None if columns is None else list(columns), use_threads=False)
