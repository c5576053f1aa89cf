"""A table of the paper: what is measured on one split of one dataset, and what the paper says of it."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar, NamedTuple

from fewest.errors import UsageError
from fewest.experiments.paper.data import Place, Rows, checksum, load_split
from fewest.experiments.paper.own_data import OwnData

Tell = Callable[[str], None]


class Printed(NamedTuple):
    """A figure as the paper prints it: mean and, in most tables, standard deviation over ten splits."""

    mean: float
    sd: float = math.nan

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if math.isnan(self.sd) else f" ± {self.sd:.2f}")


# (dataset, method) -> figure -> what is printed.
Published = Mapping[tuple[str, str], Mapping[str, Printed]]


@dataclass(frozen=True)
class Record:
    """Figures of one method on one split of one dataset: name -> number, NaN where there is none."""

    dataset: str
    method: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class TableColumn:
    """One figure of a table as it is shown: its name in the records, a heading, and decimals."""

    figure: str
    heading: str
    decimals: int = 3


PERFORMANCE = (
    TableColumn("train_accuracy", "train acc."),
    TableColumn("test_accuracy", "test acc."),
    TableColumn("train_auc", "train AUC"),
    TableColumn("test_auc", "test AUC"),
)
LIKELIHOOD = (
    TableColumn("log_likelihood", "mean log-lik. (paper's mixture)", 1),
    TableColumn("log_likelihood_median", "median", 1),
    TableColumn("sane_log_likelihood", "mean log-lik. (regularised)", 1),
    TableColumn("sane_log_likelihood_median", "median", 1),
)


@dataclass(frozen=True)
class Table(ABC):
    """One of the paper's tables, bound to a data folder and to full or quick settings.

    Examples
    --------
    >>> from fewest.experiments.paper import find
    >>> table = find("trees")
    >>> table.methods, table.settings("german")["CART"]
    (('CART', 'C4.5', 'GOSDT', 'TOpt', 'TOpt paper'), {'max_depth': 4})
    """

    name: ClassVar[str]
    stored_as: ClassVar[str]  # name of the file its units are kept in; tables that are measured together share one
    title: ClassVar[str]
    datasets: ClassVar[tuple[str, ...]]  # those it can be measured on, in the order shown
    methods: ClassVar[tuple[str, ...]]  # what is measured, in the order shown
    columns: ClassVar[tuple[TableColumn, ...]]
    published: ClassVar[Published]  # the paper's figures
    notes: ClassVar[tuple[str, ...]]  # what is measured, in sentences
    differences: ClassVar[tuple[str, ...]] = ()  # why figures here and the printed ones differ
    quick_rows: ClassVar[int] = 400  # of either part of a split with quick settings
    presets: ClassVar[tuple[str, ...]] = ()  # whose procedure can be asked for; none where there is one only
    # Presets whose units the page of everything has beside those of none: lines that are not measured without a preset.
    beside: ClassVar[tuple[str, ...]] = ()

    folder: Place = None  # where the paper's data are (default: FEWEST_DATA), or a table of yours
    quick: bool = False  # few rows and small models: to see that everything runs, not to compare
    # One of `presets`: this table's own lines of that procedure alone. Default: all lines, with tables stored together.
    preset: str | None = None

    def __post_init__(self) -> None:
        bind(self)

    @abstractmethod
    def settings(self, dataset: str) -> Mapping[str, Any]:
        """Everything that decides the figures beside the data and the split, as plain values."""

    @abstractmethod
    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        """Figures of all methods; they depend on the dataset, the split and the settings alone."""

    def lines(self) -> tuple[str, ...]:
        """All methods there can be a line of, in the order shown."""
        return self.methods

    def shown(self, method: str) -> str:
        """A method as it is named in the table."""
        return method

    def rows(self, dataset: str, split: int) -> Rows:
        """One split of a dataset; of the first rows of its parts where quick settings do."""
        rows = load_split(dataset, split, self.folder)
        return rows.first(self.quick_rows) if self.quick else rows


def bind(made: Any) -> None:
    """A table or figure bound to a table of yours knows that alone, and nothing is printed of it anywhere."""
    if isinstance(made.folder, OwnData):
        for name, value in (("datasets", (made.folder.name,)), ("published", {}), ("differences", ())):
            object.__setattr__(made, name, value)


class NotOfThisTableError(UsageError):
    """What is asked for cannot be made of this table, for a reason that lies in the table: it is left out."""


class Unit(NamedTuple):
    """The part of a table that is computed, and stored, at once."""

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


def printed(file: str, table: str = "") -> dict[tuple[str, str], dict[str, Printed]]:
    """What the paper prints, typed in as it stands there, errors included: all of a file, or one table in it."""
    out = {}
    with files("fewest.experiments.paper").joinpath(file).open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            of, dataset, method = row.pop("table", ""), row.pop("dataset"), row.pop("method")
            if of == table:
                out[dataset, method] = {name: Printed(*map(float, text.split())) for name, text in row.items() if text}
    return out
