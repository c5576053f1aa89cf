"""What the package knows of a dataset without having it: columns, terms, where to get it, how to recognise it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from fewest.errors import UsageError

NAMES = ("german", "adult", "compas", "diabetes", "fico", "headline", "mimic", "mimic_demo")


@dataclass(frozen=True, eq=False)
class Book:
    """The codebook of one dataset.

    Attributes
    ----------
    name, target, source, licence : str
        As in `Dataset`.
    classes : tuple of two str
    get : str
        Where to get it and under which terms, in one line.
    files : tuple of str
        Names the original file goes by.
    rows : int
        Rows after the steps.
    positives : int, optional
        Of them; None where that is not known.
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
    """The codebook of a dataset, or an error that lists the names there are.

    Examples
    --------
    >>> from fewest.datasets import book
    >>> book("adult").licence
    'CC BY 4.0'
    """
    if name not in NAMES:
        raise UsageError(f'there is no dataset "{name}"', do=f"choose from {', '.join(NAMES)}")
    content = json.loads((resources.files("fewest.datasets") / "books" / f"{name}.json").read_text(encoding="utf-8"))
    columns = book(content["like"]).columns if "like" in content else tuple(content["columns"])
    return Book(
        name=name, target=content["target"], classes=tuple(content["classes"]), source=content["source"],
        licence=content["licence"], get=content["get"], files=tuple(content["files"]), rows=content["rows"],
        positives=content["positives"], digest=content["digest"], known=frozenset(content["known"]), columns=columns,
    )  # fmt: skip


def owner(sha256: str) -> Book | None:
    """The dataset a file with this checksum is known to hold, if any."""
    return next((known for known in map(book, NAMES) if sha256 in known.known), None)
