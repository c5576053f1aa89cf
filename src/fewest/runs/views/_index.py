"""All cases of a run as a few columns of figures, for lists that are filtered, sorted and turned over page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError
from fewest.runs import Run

COLUMNS = ("row", "status", "sev", "score", "score_after", "margin", "l_inf", "log_density", "lower_bound", "reference")
MOST_ROWS = 2_000_000
SORTS = ("row", "sev", "score", "margin", "closeness", "density")


@dataclass(frozen=True)
class Filter:
    """Which cases are wanted; what is left empty does not matter.

    Attributes
    ----------
    status : str
        E.g. ``EXPLAINED``; ``AGAINST`` for every case the model decided against.
    sev : int, optional
        Number of features changed.
    feature : str
        Name of a feature that is changed.
    reference : str
        Name of the reference compared with.

    Examples
    --------
    >>> Filter(sev=2, feature="debt").sev
    2
    """

    status: str = ""
    sev: int | None = None
    feature: str = ""
    reference: str = ""


@dataclass(frozen=True, eq=False)
class Index:
    """The figures of a run's first two million cases; a run of more is listed so far.

    Attributes
    ----------
    run : Run
    table : (n, columns)
        One row per case, in order.
    """

    run: Run
    table: pd.DataFrame

    @classmethod
    def of(cls, run: Run) -> Index:
        """Read the columns part by part."""
        parts, rows = [], 0
        for part in run.tables(COLUMNS):
            words = {name: pd.Categorical(part[name]) for name in ("status", "reference")}
            parts.append(part.assign(**words, sev=part["sev"].fillna(0).astype("int16")))
            rows += len(part)
            if rows >= MOST_ROWS:
                break
        return cls(run, _joined(parts))

    @cached_property
    def moved(self) -> dict[str, npt.NDArray[np.int64]]:
        """Feature -> rows in which it is changed."""
        out: dict[str, list[npt.NDArray[np.int64]]] = {}
        at = 0
        for part in self.run.tables(("features",)):
            if at >= len(self.table):
                break
            listed = part["features"].explode().dropna()
            for name, rows in listed.groupby(listed).groups.items():
                out.setdefault(str(name), []).append(np.asarray(rows, dtype=np.int64) + at)
            at += len(part)
        return {name: np.concatenate(rows) for name, rows in out.items()}

    def select(self, wanted: Filter) -> npt.NDArray[np.int64]:
        """Rows that fit, in order."""
        table = self.table
        keep = np.ones(len(table), dtype=bool)
        if wanted.status == "AGAINST":
            keep &= (table["status"] != "ALREADY_NEGATIVE").to_numpy()
        elif wanted.status:
            keep &= (table["status"] == wanted.status).to_numpy()
        if wanted.sev is not None:
            keep &= (table["sev"] == wanted.sev).to_numpy()
        if wanted.reference:
            keep &= (table["reference"] == wanted.reference).to_numpy()
        if wanted.feature:
            named = np.zeros(len(table), dtype=bool)
            named[self.moved.get(wanted.feature, np.empty(0, dtype=np.int64))] = True
            keep &= named
        return np.flatnonzero(keep)

    def sort(self, rows: npt.NDArray[np.int64], by: str) -> npt.NDArray[np.int64]:
        """Rows in the order of a figure, in that of the table among equals; ``-`` before it turns the order round."""
        name, down = by.removeprefix("-"), by.startswith("-")
        if name not in SORTS:
            raise UsageError(f'there is no order "{by}"', do=f"choose from {', '.join(SORTS)}, with - for descending")
        column = {"closeness": "l_inf", "density": "log_density"}.get(name, name)
        figures = self.table[column].to_numpy(dtype=float, na_value=np.nan)[rows]
        # What is not known comes last, whichever way round.
        order = np.argsort(np.where(np.isnan(figures), np.inf, -figures if down else figures), kind="stable")
        return np.asarray(rows[order])

    def beside(self, row: int) -> tuple[int | None, int | None]:
        """The cases decided against before and after a row."""
        against = self._against
        at = int(np.searchsorted(against, row))
        after = at + (at < len(against) and against[at] == row)
        return (
            int(against[at - 1]) if at > 0 else None,
            int(against[after]) if after < len(against) else None,
        )

    @cached_property
    def _against(self) -> npt.NDArray[np.int64]:
        return self.select(Filter(status="AGAINST"))


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Parts below each other; words stay coded."""
    out: dict[str, Any] = {}
    for name in COLUMNS:
        columns = [part[name] for part in parts]
        if isinstance(columns[0].dtype, pd.CategoricalDtype):
            out[name] = pd.api.types.union_categoricals(columns)
        else:
            out[name] = np.concatenate([column.to_numpy() for column in columns])
    return pd.DataFrame(out)
