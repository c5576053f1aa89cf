"""The columns of all answers: lists that are filtered and sorted, and one pass that draws and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError
from fewest.results.explanation import Status
from fewest.results.population import Population
from fewest.tables.closeness import feature_distances
from fewest.tables.schema import Feature, Schema

COLUMNS = ("row", "status", "sev", "score", "score_after", "margin", "l_inf", "log_density", "lower_bound", "reference")
SURVEYED = ("row", "status", "sev", "score", "margin", "l_inf", "log_density", "reference", "strategy")
MOST_ROWS = 2_000_000
SORTS = ("row", "sev", "score", "margin", "closeness", "density")
DRAWN, HARDEST, OPEN = 1000, 10, 20
OPEN_ENDS = (Status.UNREACHABLE.value, Status.NOT_CREDIBLE.value, Status.BUDGET.value)


@dataclass(frozen=True)
class Filter:
    """Which cases are wanted; what is left empty does not matter."""

    status: str = ""  # such as EXPLAINED; AGAINST for every case the model refused
    sev: int | None = None  # number of features changed
    feature: str = ""  # name of a feature that is changed
    reference: str = ""  # name of the reference compared with


@dataclass(frozen=True, eq=False)
class Index:
    """The figures of the first two million cases, one row each, in order; more are listed up to there."""

    population: Population
    table: pd.DataFrame

    @classmethod
    def of(cls, population: Population) -> Index:
        """Read the columns part by part."""
        parts, rows = [], 0
        columns = (*COLUMNS, "label") if population.origin.names_cases else COLUMNS
        for part in population.tables(columns):
            words = {name: pd.Categorical(part[name]) for name in ("status", "reference")}
            parts.append(part.assign(**words, sev=part["sev"].fillna(0).astype("int16")))
            rows += len(part)
            if rows >= MOST_ROWS:
                break
        return cls(population, _joined(parts, columns))

    def find(self, label: str) -> int | None:
        """The first case with a name; None where there is none."""
        if "label" not in self.table:
            return None
        found = np.flatnonzero(self.table["label"] == label)
        return int(found[0]) if len(found) else None

    @cached_property
    def moved(self) -> dict[str, npt.NDArray[np.int64]]:
        """Feature -> rows in which it is changed."""
        out: dict[str, list[npt.NDArray[np.int64]]] = {}
        at = 0
        for part in self.population.tables(("features",)):
            if at >= len(self.table):
                break
            listed = part["features"].reset_index(drop=True).explode().dropna()
            for name, rows in listed.groupby(listed).groups.items():
                out.setdefault(str(name), []).append(np.asarray(rows, dtype=np.int64) + at)
            at += len(part)
        return {name: np.concatenate(rows) for name, rows in out.items()}

    def select(self, wanted: Filter) -> npt.NDArray[np.int64]:
        """Rows that fit, in order."""
        table = self.table
        keep = np.ones(len(table), dtype=bool)
        if wanted.status == "AGAINST":
            keep &= (table["status"] != Status.ALREADY_NEGATIVE.value).to_numpy()
        elif wanted.status:
            keep &= (table["status"] == wanted.status).to_numpy()
        if wanted.sev is not None:
            keep &= (table["sev"] == wanted.sev).to_numpy()
        if wanted.reference:
            keep &= (table["reference"] == wanted.reference).to_numpy()
        if wanted.feature:
            keep &= np.isin(np.arange(len(table)), self.moved.get(wanted.feature, ()))
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
        """The refused cases before and after a row."""
        low, high = np.searchsorted(self._against, [row, row + 1])
        return (
            int(self._against[low - 1]) if low > 0 else None,
            int(self._against[high]) if high < len(self._against) else None,
        )

    @cached_property
    def _against(self) -> npt.NDArray[np.int64]:
        return self.select(Filter(status="AGAINST"))


def _joined(parts: Sequence[pd.DataFrame], names: Sequence[str]) -> pd.DataFrame:
    """Parts below each other; words stay coded."""
    out: dict[str, Any] = {}
    for name in names:
        columns = [part[name] for part in parts]
        if isinstance(columns[0].dtype, pd.CategoricalDtype):
            out[name] = pd.api.types.union_categoricals(columns)
        else:
            out[name] = np.concatenate([column.to_numpy() for column in columns])
    return pd.DataFrame(out)


@dataclass(frozen=True)
class Survey:
    """What one pass over the parts keeps, however many there are."""

    drawn: pd.DataFrame  # (up to 1000, columns): Explained cases drawn with the seed, the first drawn first
    hardest: tuple[int, ...]  # Rows with the most features changed, in the order of the table among equals
    open_ends: tuple[int, ...]  # The first rows without a proved answer
    used: Counter[str]  # Name of a reference -> cases compared with it
    strategies: tuple[str, ...] = ()  # The searches that were used

    @classmethod
    def of(cls, tables: Iterable[pd.DataFrame], random_state: int = 0) -> Survey:
        """Look at every part once; the draw depends on the seed and the row numbers, not on how the table was cut."""
        drawn = hardest = pd.DataFrame()
        open_ends: list[int] = []
        used: Counter[str] = Counter()
        strategies: dict[str, None] = {}
        for table in tables:
            explained = table[table["status"] == Status.EXPLAINED.value]
            ticket = tickets(explained["row"].to_numpy(dtype=np.int64), random_state)
            drawn = _least(drawn, explained.assign(ticket=ticket), ["ticket"], DRAWN)
            hard = explained[["row"]].assign(ease=-explained["sev"].astype("int64"))
            hardest = _least(hardest, hard, ["ease", "row"], HARDEST)
            if len(open_ends) < OPEN:
                open_ends += table.loc[table["status"].isin(OPEN_ENDS), "row"].tolist()[: OPEN - len(open_ends)]
            used.update(table["reference"].value_counts().to_dict())
            strategies |= dict.fromkeys(name for name in table["strategy"].dropna().unique() if name != "none")
        return cls(drawn, tuple(hardest.get("row", ())), tuple(open_ends), used, tuple(strategies))

    def examples(self, random: int = 5, hard: int = 5) -> list[tuple[int, str]]:
        """Rows to show and why each was chosen: some drawn, then the hardest of the rest."""
        rows = self.drawn["row"].tolist()[:random] if len(self.drawn) else []
        rest = [row for row in self.hardest if row not in rows]
        return [(int(row), "drawn at random") for row in sorted(rows)] + [
            (int(row), "most features changed") for row in rest[:hard]
        ]


def _least(kept: pd.DataFrame, more: pd.DataFrame, by: list[str], count: int) -> pd.DataFrame:
    """The least of both, up to that many."""
    both = more if kept.empty else pd.concat([kept, more])
    return both.sort_values(by, kind="stable").head(count)


def tickets(rows: npt.NDArray[np.int64], random_state: int) -> npt.NDArray[np.uint64]:
    """A number for each row that looks random and depends on the row and the seed alone."""
    seed = pd.util.hash_array(np.array([random_state + 1], dtype=np.uint64))
    return np.asarray(pd.util.hash_array(rows.astype(np.uint64) ^ seed))


def distances(population: Population, rows: Sequence[int]) -> dict[int, float]:
    """How far the answers of some rows lead, summed over what changes; measured as answers are chosen by."""
    table = population.records(rows, ("row", "features", "from", "to"))
    far = {int(row): 0.0 for row in table["row"]}
    moves: dict[str, list[tuple[int, Any, Any]]] = {}
    for row, names, start, end in table.itertuples(index=False):
        for name, before, after in zip(names, start, end, strict=True):
            moves.setdefault(name, []).append((int(row), before, after))
    schema = population.schema
    for name, moved in moves.items():
        feature = schema.features[schema.index(name)]
        alone = Schema((feature,), schema.dtypes)
        start, goal = (alone.conform(_columns([move[side] for move in moved], feature), "allow") for side in (1, 2))
        steps = feature_distances(alone, start, goal, np.arange(len(moved)))
        for (row, _, _), step in zip(moved, steps[:, 0].tolist(), strict=True):
            far[row] += step
    return far


def _columns(values: Sequence[Any], feature: Feature) -> pd.DataFrame:
    """The columns of one feature, from its values as a part holds them."""
    if feature.kind == "indicators":
        return pd.DataFrame({column: [int(value == column) for value in values] for column in feature.columns})
    if len(feature.columns) > 1:
        return pd.DataFrame({column: [value[column] for value in values] for column in feature.columns})
    known = pd.to_datetime(pd.Series(values)) if feature.kind == "datetime" else list(values)
    return pd.DataFrame({feature.columns[0]: known})
