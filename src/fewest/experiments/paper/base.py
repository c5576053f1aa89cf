"""A table of the paper: what is measured on one split of one dataset, and what the paper says of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from fewest.experiments.paper.data import checksum

Tell = Callable[[str], None]


class Printed(NamedTuple):
    """A figure as the paper prints it: mean and standard deviation over ten splits.

    Examples
    --------
    >>> str(Printed(0.84, 0.01))
    '0.84 ± 0.01'
    """

    mean: float
    sd: float

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if math.isnan(self.sd) else f" ± {self.sd:.2f}")


# (dataset, method) -> figure -> what is printed.
Published = Mapping[tuple[str, str], Mapping[str, Printed]]


@dataclass(frozen=True)
class Record:
    """Figures of one method on one split of one dataset.

    Attributes
    ----------
    dataset, method : str
    figures : mapping
        Name -> number; NaN where there is none.

    Examples
    --------
    >>> Record("german", "CART", {"sev_t": 1.0}).figures["sev_t"]
    1.0
    """

    dataset: str
    method: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class TableColumn:
    """One figure of a table as it is shown.

    Attributes
    ----------
    figure : str
        Its name in the records.
    heading : str
    decimals : int

    Examples
    --------
    >>> Column("sev_t", "mean SEV-T", 2).heading
    'mean SEV-T'
    """

    figure: str
    heading: str
    decimals: int = 3


class Table(Protocol):
    """What a module of this package gives; an instance is bound to a data folder and to full or quick settings.

    Attributes
    ----------
    name, title : str
    stored_as : str
        Name of the file its units are kept in; tables that are measured together share one.
    datasets : tuple of str
        Those it can be measured on, in the order shown.
    methods : tuple of str
        In the order shown.
    columns : tuple of Column
    published : mapping
        The paper's figures.
    notes : tuple of str
        Why figures here and there differ, in sentences.

    Examples
    --------
    >>> from fewest.experiments.paper import find
    >>> table = find("trees")
    >>> table.methods, table.settings("german")["CART"]
    (('CART', 'C4.5', 'GOSDT', 'TOpt'), {'max_depth': 4})
    """

    name: ClassVar[str]
    stored_as: ClassVar[str]
    title: ClassVar[str]
    datasets: ClassVar[tuple[str, ...]]
    methods: ClassVar[tuple[str, ...]]
    columns: ClassVar[tuple[TableColumn, ...]]
    published: ClassVar[Published]
    notes: ClassVar[tuple[str, ...]]

    @property
    def folder(self) -> str | Path | None:
        """Where the paper's data are; None: where FEWEST_DATA says."""
        ...

    @property
    def quick(self) -> bool:
        """Whether smaller tables and fewer settings do."""
        ...

    def settings(self, dataset: str) -> Mapping[str, Any]:
        """Everything that decides the figures beside the data and the split, as plain values."""
        ...

    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        """Figures of all methods; they depend on the dataset, the split and the settings alone."""
        ...


class Unit(NamedTuple):
    """The part of a table that is computed, and stored, at once.

    Examples
    --------
    >>> str(Unit("german", 3))
    'german, split 3'
    """

    dataset: str
    split: int

    def __str__(self) -> str:
        return f"{self.dataset}, split {self.split}"


def fingerprint(table: Table, dataset: str) -> str:
    """Short text that changes with the settings or the data, so that stored figures are never mistaken for others."""
    parts = {"settings": table.settings(dataset), "data": checksum(dataset, table.folder), "quick": table.quick}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def silent(line: str) -> None:
    """Tell nobody."""
