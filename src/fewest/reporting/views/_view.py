"""Answers as pages show them, from memory or from a run folder: cheap to open, read once, never the model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import REFUSED
from fewest.errors import UsageError
from fewest.reporting.views import _groups
from fewest.reporting.views._case import CaseLine, CaseView, case_view
from fewest.reporting.views._groups import GroupLine, ReferenceView
from fewest.reporting.views._index import SURVEYED, Filter, Index, Survey, distances
from fewest.results.drawing import Bar, Bars, Point, counted, percent
from fewest.results.explanation import Change, Status, show_score
from fewest.results.population import Population, Tally, summarize, wrong_way_line, wrong_ways
from fewest.results.record import names_in
from fewest.tables.values import decoded, shortened

PAGE = 50
LISTS = ("features", "from", "to")
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
CSV_COLUMNS = names_in("csv")
FIGURES = {
    "mean SEV": "mean features changed", "largest SEV": "most features changed",
    "share with SEV 1": "share with one feature changed", "proved smallest": "proved",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class PopulationView:
    """Answers of many cases, ready to be shown.

    Attributes
    ----------
    population : Population
        `Explanations`, or a finished `Run`.
    random_state : int
        Seed for sampling: examples, and points where there are too many to draw.
    verb : str
        What happened to the cases explained; default: "refused", or "predicted" and the name of the outcome.

    Examples
    --------
    >>> import fewest as fw
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [20], "age": [35]})
    >>> out = fw.Explainer(decision, refs).explain({"debt": [10, 90, 80], "age": [30, 40, 50]})
    >>> view = PopulationView(out)
    >>> view.summary
    '2 of 3 cases were refused; for 100 % one feature changes the outcome.'
    >>> [(line.row, line.features) for line in view.cases(Filter(status="EXPLAINED"))]
    [(1, ('debt',)), (2, ('debt',))]
    >>> [(row.feature, row.case, row.after) for row in view.case(1).rows]
    [('debt', '90', '20'), ('age', '40', '40')]
    """

    population: Population
    random_state: int = 0
    verb: str = ""
    _by_column: dict[str, list[GroupLine]] = field(default_factory=dict, repr=False)

    @property
    def title(self) -> str:
        """What the answers are called."""
        return self.population.about.title or "Which features decided?"

    @property
    def model_name(self) -> str:
        """What the model is called."""
        return self.population.about.model

    @property
    def settings(self) -> Mapping[str, Any]:
        """The choices the answers were made with; empty where they are not known."""
        return self.population.origin.settings

    @property
    def tally(self) -> Tally:
        """Counts of all cases."""
        return self.population.tally

    @property
    def rows(self) -> int:
        """Cases in all."""
        return len(self.population)

    @property
    def explained(self) -> int:
        """Cases with a proved answer."""
        return self.tally.explained

    @property
    def against(self) -> int:
        """Cases the model refused."""
        return self.tally.against

    @cached_property
    def titles(self) -> dict[str, str]:
        """Feature -> what people call it."""
        return {feature.name: feature.title for feature in self.population.schema.features}

    @cached_property
    def protected(self) -> dict[str, bool]:
        """Feature -> whether people are protected by it."""
        return {feature.name: feature.protected for feature in self.population.schema.features}

    @property
    def summary(self) -> str:
        """All answers in one sentence."""
        about = self.population.about
        verb = self.verb or (REFUSED if about.positive == REFUSED else f"predicted {about.positive}")
        head = f"{self.against:,} of {self.rows:,} cases were {verb}"
        if self.against == 0:
            return f"{head}: there is nothing to explain."
        one = self.tally.sev.get(1, 0) / self.against
        what = "one value alone is enough for the outcome" if about.plus else "one feature changes the outcome"
        return f"{head}; for {percent(one)} {what}."

    def figures(self) -> dict[str, float | int]:
        """The figures of all cases, by what people call them."""
        figures = {FIGURES.get(name, name): value for name, value in summarize(self.population).items()}
        if self.explained:
            return figures
        return {name: value for name, value in figures.items() if isinstance(value, int)}

    def sev_bars(self) -> Bars:
        """How many features must change, for the explained cases."""
        return self._bars("Features changed", "How many features must change?", [
            (counted(size, "feature"), count, "") for size, count in self.tally.sev.items()
        ])  # fmt: skip

    def feature_bars(self) -> Bars:
        """Which features come up, for the explained cases."""
        return self._bars("Features changed most often", "Which features come up?", [
            (self.titles.get(name, name), count, "protected" if self.protected.get(name) else "")
            for name, count in self.tally.features.items()
        ])  # fmt: skip

    def _bars(self, title: str, question: str, rows: list[tuple[str, int, str]]) -> Bars:
        share = 1 / max(1, self.explained)
        return Bars(title, question, tuple(Bar(name, count, count * share, note) for name, count, note in rows))

    @cached_property
    def survey(self) -> Survey:
        """One pass over the parts, done once."""
        return Survey.of(self.population.tables(SURVEYED), self.random_state)

    @cached_property
    def index(self) -> Index:
        """The figures of all cases, read once."""
        return Index.of(self.population)

    @property
    def axes(self) -> tuple[str, str]:
        """What the two axes of `closeness_points` say."""
        dense = self.population.about.has_density
        second = "log-density among accepted cases" if dense else "score beyond the cut-off"
        return "distance (SD; 1 for another level)", second

    def closeness_points(self, limit: int = 500, link: Callable[[int], str] | None = None) -> list[Point]:
        """How far the answers of drawn cases lead, and how usual or how clear the end is; up to 1000."""
        drawn = self.survey.drawn.head(limit)
        if drawn.empty:
            return []
        drawn = drawn.sort_values(["sev", "row"], kind="stable")
        rows = drawn["row"].tolist()
        far, labels = distances(self.population, rows), self._labels(rows)
        heights = drawn["log_density" if self.population.about.has_density else "margin"].tolist()
        return [
            Point(far[row], height, counted(sev, "feature"), f"case {labels[row]}", link(row) if link else None)
            for row, sev, height in zip(rows, drawn["sev"].tolist(), heights, strict=True)
        ]

    def cases(self, wanted: Filter | None = None, sort: str = "row", page: int = 1, size: int = PAGE) -> list[CaseLine]:
        """One page of the cases that fit, in an order of `SORTS` (``-`` before it: descending); pages count from 1."""
        if page < 1 or size < 1:
            raise UsageError(f"page {page} of {size} cases each", do="use numbers from 1 on")
        rows = self.index.sort(self.index.select(wanted or Filter()), sort)[(page - 1) * size : page * size].tolist()
        columns = ("row", "features", "from", "to", "decimals")
        changed = self.population.records(rows, columns).set_index("row")
        labels = self._labels(rows)
        return [self._line(row, labels[row], *changed.loc[row]) for row in rows]

    def count(self, wanted: Filter | None = None) -> int:
        """How many cases fit."""
        return len(self.index.select(wanted or Filter()))

    def label(self, row: int) -> str:
        """What a case is called: its name, or else its row."""
        return self._labels([row])[row]

    def _labels(self, rows: Sequence[int]) -> dict[int, str]:
        if not self.population.origin.names_cases:
            return {row: str(row) for row in rows}
        return dict(self.population.records(rows, ("row", "label")).itertuples(index=False))

    def find(self, label: str) -> int | None:
        """The row of the case with a name; None where there is none."""
        return self.index.find(label)

    def _line(
        self, row: int, label: str, features: list[str], before: list[Any], after: list[Any], more: Any
    ) -> CaseLine:
        known, about, schema = self.index.table.iloc[row], self.population.about, self.population.schema
        moved = [schema.features[schema.index(name)] for name in features]
        ends = [[decoded(value, f, schema) for value, f in zip(side, moved, strict=True)] for side in (before, after)]
        own, more = int(about.plus), None if pd.isna(more) else int(more)
        ends[own] = [shortened(value, f, more) for value, f in zip(ends[own], moved, strict=True)]
        return CaseLine(
            row=row,
            label=label,
            changes=tuple(Change.of(f, a, b).arrow for f, a, b in zip(moved, *ends, strict=True)),
            status=str(known["status"]),
            sev=int(known["sev"]) or None,
            score=show_score(float(known["score"]), about.threshold, about.percent, about.number),
            features=tuple(self.titles.get(name, name) for name in features),
            reference="" if pd.isna(known["reference"]) else str(known["reference"]),
            **{
                name: None if pd.isna(known[name]) else float(known[name])
                for name in ("l_inf", "log_density", "margin")
            },
        )

    def case(self, row: int) -> CaseView:
        """Everything that is known of one case; an `IndexError` where there is no such row."""
        return case_view(self.population.explanation(row), self.settings, self.protected)

    def neighbours(self, row: int) -> tuple[int | None, int | None]:
        """The refused cases before and after a row; None at the ends."""
        return self.index.beside(row)

    def references(self) -> list[ReferenceView]:
        """The references, with who signed them and how many cases were compared with each."""
        return _groups.reference_views(self.population, self.survey.used)

    def groups(self, column: str) -> list[GroupLine]:
        """How many features must change in each group of a feature; empty where it has several columns or no cases."""
        schema = self.population.schema
        feature = schema.features[schema.index(column)]
        if not self.population.origin.keeps_cases or len(feature.columns) != 1:
            return []
        if column not in self._by_column:
            name = feature.columns[0]
            beside = zip(self.population.cases((name,)), self.population.tables(("status", "sev")), strict=True)
            self._by_column[column] = _groups.group_lines(((frame[name], table) for frame, table in beside), feature)
        return self._by_column[column]

    def warnings(self) -> list[str]:
        """Warnings to read before anything is concluded."""
        used = {self.titles[name]: n for name, n in self.tally.features.items() if self.protected.get(name)}
        unsigned = [view.name for view in self.references() if not view.is_signed]
        shown = ", ".join(f'"{name}"' for name in unsigned[:5]) + (" and others" if len(unsigned) > 5 else "")
        early = self.tally.count(Status.BUDGET)
        return [
            *_groups.often(self.feature_bars().bars, self.explained),
            *(
                f'{count:,} explanation{"s use" if count != 1 else " uses"} the protected feature "{name}".'
                for name, count in used.items()
                if count
            ),
            *(f"{wrong_way_line(*found)}." for found in wrong_ways(self.population)),
            *([f"Nobody has signed off the reference{'s' if len(unsigned) > 1 else ''} {shown}."] if unsigned else []),
            *([f"{counted(early, 'case')} stopped early, before an end was proved."] if early else []),
        ]

    def csv(self, wanted: Filter | None = None) -> bytes:
        """The cases that fit as CSV that is safe to open in a spreadsheet."""
        return b"".join(self.csv_parts(wanted))

    def csv_parts(self, wanted: Filter | None = None) -> Iterator[bytes]:
        """The same part by part, for runs that are larger than memory."""
        rows = None if wanted in (None, Filter()) else self.index.select(wanted or Filter())
        first = True
        named = self.population.origin.names_cases
        for table in self.population.tables([name for name in CSV_COLUMNS if named or name != "label"]):
            kept = table if rows is None else table[np.isin(table["row"].to_numpy(), rows)]
            if first or len(kept):
                yield as_csv(kept, header=first)
            first = False


def defused(text: str) -> str:
    """Text that no spreadsheet takes for a formula; a number stays as it is.

    Examples
    --------
    >>> defused("=1+1"), defused("-3.5"), defused("-1+cmd"), defused("rent")
    ("'=1+1", '-3.5', "'-1+cmd", 'rent')
    """
    return f"'{text}" if text.startswith(STARTS) and not NUMBER.fullmatch(text) else text


def as_csv(table: pd.DataFrame, header: bool = True) -> bytes:
    """A table of answers as CSV; the changed features and their values are JSON lists inside their cells.

    Examples
    --------
    >>> table = pd.DataFrame({"row": [3], "reference": ["@sum"], "features": [["debt"]]})
    >>> as_csv(table, header=True)
    b'row,reference,features\\n3,\\'@sum,"[""debt""]"\\n'
    """
    text = plain_columns(table).to_csv(index=False, header=header, lineterminator="\n")
    return str(text).encode("utf-8", "replace")


def plain_columns(table: pd.DataFrame) -> pd.DataFrame:
    """A table of answers in columns of numbers and text: lists are JSON, and nothing is taken for a formula."""
    out = {}
    for name in table:
        column: Any = table[name]
        if name in LISTS:
            column = [json.dumps(list(cell), ensure_ascii=False, default=str) for cell in column]
        elif not pd.api.types.is_numeric_dtype(column.dtype):
            words = {word: defused(str(word)) for word in column.dropna().unique()}
            column = column.astype(object).map(words)
        out[name] = column
    return pd.DataFrame(out)
