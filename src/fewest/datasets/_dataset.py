"""Dataset: a raw typed table, its labels, and where both come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.schema import Schema


@dataclass(frozen=True, eq=False)
class Dataset:
    """One table with its labels.

    Attributes
    ----------
    name : str
        Short name.
    X : (n, features)
        Raw typed features: text levels as text, whole numbers as integers, missing values left missing.
    y : (n,) int
        0 or 1; 1 is the class being explained.
    target : str
        What 1 means.
    classes : tuple of two str
        Short words for 0 and 1.
    schema : Schema
        The original features with their units and levels.
    provenance : str
        Where the values come from.
    licence : str

    Examples
    --------
    >>> from fewest.datasets import load
    >>> load("german")
    <german: 1,000 rows, 20 features, 300 x "bad credit risk (default)">
    >>> load("german").labels[:2].tolist()
    ['good', 'bad']
    """

    name: str
    X: pd.DataFrame
    y: npt.NDArray[np.int64]
    target: str
    classes: tuple[str, str]
    schema: Schema
    provenance: str
    licence: str

    @property
    def labels(self) -> npt.NDArray[np.str_]:
        """The labels in words (n,)."""
        return np.where(self.y == 1, self.classes[1], self.classes[0])

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        n, p = self.X.shape
        return f'<{self.name}: {n:,} rows, {p} features, {int(self.y.sum()):,} x "{self.target}">'


def describe(X: pd.DataFrame, columns: Sequence[Mapping[str, Any]]) -> Schema:
    """The schema of a table, with the units, level order and kinds that the codebook knows.

    Parameters
    ----------
    X : (n, features)
    columns : sequence of mappings
        Codebook entries with ``name``, ``type`` and, where there are any, ``unit`` and ``levels``.
    """
    schema = Schema.infer(X)
    for entry in columns:
        changes: dict[str, Any] = {}
        if "unit" in entry:
            changes["unit"] = entry["unit"]
        levels = entry.get("levels")
        if levels and (is_text(entry) or entry["type"] == "categorical"):
            changes.update(kind="category", levels=tuple(levels), ordered=entry["type"] == "ordinal", decimals=0)
        if changes:
            schema = schema.with_(entry["name"], **changes)
    return schema


def is_text(entry: Mapping[str, Any]) -> bool:
    """Whether a codebook entry is a column of text levels."""
    return bool(entry.get("levels")) and isinstance(entry["levels"][0], str)
