"""The files of one part: answers, certificates and cases as Parquet tables; written here, and read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError, FewestError
from fewest.results import record
from fewest.results.record import Answered
from fewest.runs.storage import first_line, need_arrow
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema

Words = npt.NDArray[np.uint64]
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
FEW = 16  # cells that are read one by one sooner than sorted by their level
OWN = ("row", "hash", "from")  # columns in which hardly a value comes twice; so it is with floating numbers,
FEW_VALUES = ("cost", "lower_bound")  # but for these
JSON_TEXT = ("from", "to", "alternatives")  # columns whose lists hold JSON text


def row_hashes(schema: Schema, frame: pd.DataFrame) -> Words:
    """Fingerprint of each row (n,) uint64; 3 and 3.0 are the same, and so are all ways to say "missing".

    The rows are conformed to the schema.
    """
    owners = [(column, feature) for feature in schema.features for column in feature.columns]
    words = _few_words(owners, frame) if len(frame) <= FEW else (_words(frame[name], owner) for name, owner in owners)
    out = np.full(len(frame), _word("\x1f".join(schema.columns)), dtype=np.uint64)
    for column in words:
        out = _stir(out ^ column)
    return out


def _few_words(owners: Sequence[tuple[str, Feature]], frame: pd.DataFrame) -> Iterator[Words]:
    """The columns of a few rows: taken out of the table at once, and then cell by cell."""
    names = [name for name, _ in owners]
    frame = frame if list(frame.columns) == names else frame[names]
    cells = frame.to_numpy(dtype=object)
    missing = pd.isna(cells)
    for k, ((_, feature), dtype) in enumerate(zip(owners, frame.dtypes, strict=True)):
        if feature.kind != "category" and pd.api.types.is_numeric_dtype(dtype):
            yield _bits(np.where(missing[:, k], np.nan, cells[:, k]).astype(np.float64))
        else:
            words = [
                MISSING if lacks else _word(_text(cell)) for cell, lacks in zip(cells[:, k], missing[:, k], strict=True)
            ]
            yield np.array(words, dtype=np.uint64)


def _stir(words: Words) -> Words:
    """Spread every bit over the whole word, so that the order of columns counts."""
    words = words * FIRST
    words ^= words >> np.uint64(31)
    words *= SECOND
    return words ^ (words >> np.uint64(29))


def _words(column: pd.Series[Any], feature: Feature) -> Words:
    if feature.kind != "category" and pd.api.types.is_numeric_dtype(column.dtype):
        return _bits(column.to_numpy(dtype=np.float64, na_value=np.nan))
    codes, levels = pd.factorize(column)
    words = np.array([*(_word(_text(level)) for level in levels), MISSING], dtype=np.uint64)
    return np.asarray(words[codes])


def _bits(values: npt.NDArray[np.float64]) -> Words:
    values = values + 0.0  # -0.0 becomes 0.0
    return np.where(np.isnan(values), np.nan, values).view(np.uint64)


def _text(level: Any) -> str:
    if isinstance(level, float | np.floating) and float(level).is_integer():
        return str(int(level))
    return level.isoformat() if isinstance(level, pd.Timestamp) else str(level)


def _word(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "little"))


MISSING = _word("\x00missing")


def as_arrow(answered: Answered) -> Any:
    """The answers as a pyarrow Table; ``from``, ``to`` and ``alternatives`` hold JSON text."""
    import pyarrow as pa

    kept = [field for field in record.fields_in("part") if record.is_kept(field, answered)]
    return pa.table({field.name: field.arrow(answered) for field in kept})


def as_parquet(table: Any) -> bytes:
    """A pyarrow Table as a Parquet file of one row group; the same bytes for the same rows."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    repeated = [
        f"{column.name}.list.element" if pa.types.is_list(column.type) else column.name
        for column in table.schema
        if column.name not in OWN and (column.name in FEW_VALUES or not pa.types.is_floating(column.type))
    ]
    parquet.write_table(
        table, sink, compression="zstd", row_group_size=max(1, len(table)), use_dictionary=repeated or False
    )
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def certificates(table: Any) -> Any:
    """What is claimed of each row, and what proves it: columns of the answers as a pyarrow Table."""
    chosen = {field.name: field.certificate or field.name for field in record.fields_in("certificate")}
    kept = [name for name in chosen if name in table.column_names]
    return table.select(kept).rename_columns([chosen[name] for name in kept])


def read_certificates(path: Path) -> pd.DataFrame:
    """The certificates of a part; those of earlier versions are JSON lines, with hashes as hexadecimal text."""
    with readable(path):
        said = load(path)
        if not isinstance(said, list):
            return said.to_pandas()
        frame = pd.DataFrame(json.loads(f"[{','.join(said)}]"))
        return frame.assign(hash=np.array([int(text, 16) for text in frame["hash"]], dtype=np.uint64))


def write_cases(schema: Schema, frame: pd.DataFrame) -> tuple[str, bytes]:
    """Ending and content of the file of cases; a column with levels of several types makes it JSON lines."""
    import pyarrow as pa

    frame = frame[list(schema.columns)]
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False, nthreads=1).replace_schema_metadata(None)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        rows = [json.dumps(plain(row), ensure_ascii=False) for row in frame.astype(object).to_dict("records")]
        return "cases.jsonl", "".join(f"{row}\n" for row in rows).encode("utf-8", "surrogatepass")
    return "cases.parquet", as_parquet(table)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Name the file where it cannot be understood."""
    try:
        yield
    except FewestError:
        raise
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        why = first_line(error)
        raise DataError(f"{path.name} cannot be read: {why}", do="restore it, or explain again") from error


def load(path: Path, columns: Sequence[str] | None = None) -> Any:
    """The lines of a JSON file, or the Arrow table of a Parquet file with all columns or those that are named."""
    if path.suffix == ".jsonl":
        # Not splitlines: it would cut at characters such as U+2028, which may stand inside a text.
        return path.read_bytes().decode("utf-8", "surrogatepass").split("\n")[:-1]
    need_arrow(f"reading {path.name}")
    from pyarrow import parquet

    file = parquet.ParquetFile(path)
    known = None if columns is None else [name for name in columns if name in file.schema_arrow.names]
    return file.read(columns=known, use_threads=False)


@lru_cache(maxsize=4)
def _remembered(path: Path, _changed: int) -> Any:
    return load(path)


def read_one(path: Path, place: int) -> dict[str, Any]:
    """One row of a file as plain values by column; the file is read once, until it changes."""
    with readable(path):
        whole = _remembered(path, path.stat().st_mtime_ns)
        if isinstance(whole, list):
            return dict(json.loads(whole[place]))
        return dict(whole.slice(place, 1).to_pylist()[0])


def read_cases(path: Path, schema: Schema, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """All cases of a part in the schema's dtypes: all columns, or those that are named."""
    if columns is not None:
        features = [_alone(schema.features[schema.feature_of[name]], name) for name in columns]
        schema = replace(schema, features=tuple(features))
    with readable(path):
        rows = load(path, columns)
        frame = pd.DataFrame([json.loads(line) for line in rows]) if isinstance(rows, list) else rows.to_pandas()
        return schema.conform(frame, unseen="allow")


def _alone(feature: Feature, column: str) -> Feature:
    """One column of a feature as a feature of its own."""
    return replace(feature, kind="number" if feature.kind == "indicators" else feature.kind, columns=(column,))


def read_answer(path: Path, place: int) -> dict[str, Any]:
    """One answer of a part by column, with plain values."""
    row = read_one(path, place)
    with readable(path):
        if path.suffix == ".jsonl":
            row = _older_row(row)
        else:
            row = {**row, **{name: [json.loads(text) for text in row[name]] for name in JSON_TEXT}}
        sets = [_older_changes(one) for one in row["alternatives"]]
        return {"all_listed": False, "decimals": None, **row, "alternatives": sets}


def read_answers(
    path: Path, columns: Sequence[str] | None = None, places: npt.NDArray[np.int64] | None = None
) -> pd.DataFrame:
    """The answers of a part, all or some of them; lists hold plain values."""
    with readable(path):
        rows = load(path, columns)
        if places is not None:
            rows = [rows[place] for place in places] if isinstance(rows, list) else rows.take(places)
        frame = _older_table(rows) if isinstance(rows, list) else rows.to_pandas()
        if "all_listed" not in frame and (columns is None or "all_listed" in columns):
            frame["all_listed"] = False  # parts written before it was kept do not know
        if "decimals" not in frame and (columns is None or "decimals" in columns):
            frame["decimals"] = pd.array([pd.NA] * len(frame), "Int64")
        for name in frame.columns:
            frame[name] = _plain_column(frame[name], decode=not isinstance(rows, list))
        return frame if columns is None else frame[list(columns)]


def _plain_column(column: pd.Series[Any], decode: bool) -> Any:
    """A column of a part as people use it: words are objects, unknown ones None; lists hold values."""
    field = {field.name: field for field in record.fields_in("part")}[column.name]
    kind = field.kind
    if kind == "whole":
        return column.astype("Int64") if field.optional else column
    if kind == "word":
        words = np.array(column.to_numpy(dtype=object))
        words[column.isna().to_numpy()] = None
        return pd.Series(words, index=column.index, dtype=object)
    if kind in ("values", "sets") and decode:
        values = json.loads(f"[{','.join(text for cell in column for text in cell)}]")
        column = pd.Series(record.split(values, column.map(len).to_numpy(dtype=np.int64)), dtype=object)
    if kind == "sets":
        return [[_older_changes(one) for one in row] for row in column]
    return [list(cell) for cell in column] if kind in ("features", "values") else column


def _older_table(lines: Sequence[str]) -> pd.DataFrame:
    """A part of JSON lines, as earlier versions wrote them, as a table of typed columns."""
    frame = pd.DataFrame([_older_row(json.loads(line)) for line in lines])
    numbers = ("cost", "score_after", "margin", "lower_bound", "l_inf", "log_density")
    return frame.astype({"sev": "Int64", "hash": "uint64", **dict.fromkeys(numbers, float)})


def _older_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """One answer: a bound of null stands for infinity where the case was searched; hashes are hexadecimal text."""
    unbounded = record["status"] != "ALREADY_NEGATIVE" and record["lower_bound"] is None
    return {
        **record,
        "hash": int(record["hash"], 16),
        "lower_bound": float("inf") if unbounded else record["lower_bound"],
        "all_listed": record.get("all_listed", False),
    }


def _older_changes(listed: Any) -> list[dict[str, Any]]:
    """A listed set: changes as they are; earlier versions wrote names alone, or with the values they lead to."""
    if isinstance(listed, Mapping):
        return [{"feature": name, "to": value} for name, value in listed.items()]
    return [dict(change) if isinstance(change, Mapping) else {"feature": change} for change in listed]
