"""A 64-bit fingerprint of each row, from its values alone: the same in every file format."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.tables.schema import Feature, Schema

Words = npt.NDArray[np.uint64]
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def row_hashes(schema: Schema, frame: pd.DataFrame) -> Words:
    """Fingerprint of each row (n,) uint64; 3 and 3.0 are the same, and so are all ways to say "missing".

    The rows are conformed to the schema.
    """
    out = np.full(len(frame), _word("\x1f".join(schema.columns)), dtype=np.uint64)
    for feature in schema.features:
        for column in feature.columns:
            out = _stir(out ^ _words(frame[column], feature))
    return out


def _stir(words: Words) -> Words:
    """Spread every bit over the whole word, so that the order of columns counts."""
    words = words * FIRST
    words ^= words >> np.uint64(31)
    words *= SECOND
    return words ^ (words >> np.uint64(29))


def _words(column: pd.Series[Any], feature: Feature) -> Words:
    if feature.kind != "category" and pd.api.types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan) + 0.0  # -0.0 becomes 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    codes, levels = pd.factorize(column)
    words = np.array([*(_word(_text(level)) for level in levels), _word("\x00missing")], dtype=np.uint64)
    return np.asarray(words[codes])


def _text(level: Any) -> str:
    if isinstance(level, float | np.floating) and float(level).is_integer():
        return str(int(level))
    return level.isoformat() if isinstance(level, pd.Timestamp) else str(level)


def _word(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "little"))
