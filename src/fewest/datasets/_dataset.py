"""Dataset: a raw typed table, its labels, and where both come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.datasets._books import Book
from fewest.datasets._cells import is_text
from fewest.tables.schema import Schema


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
        Terms of the source.
    protected : tuple of str
        Features that laws against discrimination commonly name or that give one away: sex, age, ethnicity, origin,
        marital status. A guess, to be checked for the case at hand.
    immutable : tuple of str
        Features a person cannot change, or only by waiting. A guess, for ``Immutable`` in a first try.

    Examples
    --------
    >>> from fewest.datasets import load
    >>> load("german")
    <german: 1,000 rows, 20 features, 300 x "bad credit risk (default)">
    >>> load("german").labels[:2].tolist()
    ['good', 'bad']
    >>> load("german").protected
    ('personal_status_sex', 'age', 'foreign_worker')
    """

    name: str
    X: pd.DataFrame
    y: npt.NDArray[np.int64]
    target: str
    classes: tuple[str, str]
    schema: Schema
    provenance: str
    licence: str
    protected: tuple[str, ...] = ()
    immutable: tuple[str, ...] = ()

    @property
    def labels(self) -> npt.NDArray[np.str_]:
        """The labels in words (n,)."""
        return np.where(self.y == 1, self.classes[1], self.classes[0])

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        n, p = self.X.shape
        return f'<{self.name}: {n:,} rows, {p} features, {int(self.y.sum()):,} x "{self.target}">'


def dataset(book: Book, X: pd.DataFrame, y: npt.NDArray[np.int64]) -> Dataset:
    """A table with what its codebook says of it; terms come from the package, never from a file."""
    return Dataset(
        book.name, X, y, book.target, book.classes, describe(X, book.columns), book.source, book.licence,
        book.marked("protected"), book.marked("immutable"),
    )  # fmt: skip


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
