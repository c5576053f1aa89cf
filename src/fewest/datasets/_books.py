"""What the package knows of a dataset without having it, and the table with what its codebook says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError
from fewest.tables.schema import Schema

NAMES = ("german", "adult", "compas", "diabetes", "fico", "headline", "mimic", "mimic_demo")


@dataclass(frozen=True, eq=False)
class Book:
    """The codebook of one dataset.

    Attributes
    ----------
    name, target, classes, source, licence
        As in `Dataset`.
    get : str
        Where to get it and under which terms, in one line.
    files : tuple of str
        Names the original file goes by.
    rows, positives : int
        Rows after the steps, and the positives of them; None where that is not known.
    digest : str
        Of the table after the steps; empty where editions differ.
    known : frozenset of str
        sha256 of files that are known to hold it.
    columns : tuple of mappings
        One per feature: ``name`` and ``type``; where they apply ``source_name``, ``unit``, ``levels``, ``codes``,
        ``immutable``, ``protected``, ``paper_set``, ``group``, and ``made`` for a column the source does not have.

    Examples
    --------
    >>> from fewest.datasets import book
    >>> book("compas").rows, book("compas").marked("protected")
    (6907, ('sex', 'age'))
    """

    name: str
    target: str
    classes: tuple[str, str]
    source: str
    licence: str
    get: str
    files: tuple[str, ...]
    rows: int
    positives: int | None
    digest: str
    known: frozenset[str]
    columns: tuple[Mapping[str, Any], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Feature names in order."""
        return tuple(entry["name"] for entry in self.columns)

    def marked(self, mark: str) -> tuple[str, ...]:
        """Names of the features with a mark, such as ``immutable``."""
        return tuple(entry["name"] for entry in self.columns if entry.get(mark))


@lru_cache
def book(name: str) -> Book:
    """The codebook of a dataset, or an error that lists the names there are."""
    if name not in NAMES:
        raise UsageError(f'there is no dataset "{name}"', do=f"choose from {', '.join(NAMES)}")
    content = json.loads((resources.files("fewest.datasets") / "books" / f"{name}.json").read_text(encoding="utf-8"))
    columns = book(content["like"]).columns if "like" in content else tuple(content["columns"])
    content |= {"columns": columns, "classes": tuple(content["classes"]), "files": tuple(content["files"])}
    content["known"] = frozenset(content["known"])
    return Book(**{field.name: content[field.name] for field in fields(Book)})


def owner(sha256: str) -> Book | None:
    """The dataset a file with this checksum is known to hold, if any."""
    return next((known for known in map(book, NAMES) if sha256 in known.known), None)


def is_text(entry: Mapping[str, Any]) -> bool:
    """Whether a codebook entry is a column of text; codes without listed levels, such as ICD-9's, are text."""
    levels = entry.get("levels")
    return isinstance(levels[0], str) if levels else entry["type"] == "categorical"


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
    """The schema of a table, with the units, level order and kinds that the codebook's entries know."""
    schema = Schema.infer(X)
    for entry in columns:
        changes: dict[str, Any] = {}
        # "3 count" and "2 years, coded 1-4" do not read as amounts.
        if entry["type"] == "numeric" and entry.get("unit", "count") not in ("count", "score"):
            changes["unit"] = entry["unit"]
        levels = entry.get("levels")
        if levels and (is_text(entry) or entry["type"] == "categorical"):
            changes.update(kind="category", levels=tuple(levels), ordered=entry["type"] == "ordinal", decimals=0)
        if changes:
            schema = schema.with_(entry["name"], **changes)
    return schema
