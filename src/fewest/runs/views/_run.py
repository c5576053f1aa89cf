"""A run folder as pages show it: cheap to open, read once, never the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.models.trees import Tree
from fewest.models.trees.file import load_tree
from fewest.results.drawing import Bar, Bars, Point, percent
from fewest.results.explanation import show_score
from fewest.results.record import names_in
from fewest.runs import Run
from fewest.runs.run import TREE
from fewest.runs.views import _survey
from fewest.runs.views._case import CaseLine, CaseView, case_view
from fewest.runs.views._csv import as_csv
from fewest.runs.views._groups import GroupLine, group_lines
from fewest.runs.views._index import Filter, Index
from fewest.runs.views._references import ReferenceView, reference_views
from fewest.runs.views._survey import Survey, distances
from fewest.runs.views._warnings import often, protected_used, stopped, unsigned
from fewest.tables.values import decoded_row

PAGE = 50
CSV_COLUMNS = names_in("csv")


@dataclass(frozen=True, eq=False)
class RunView:
    """A finished run, ready to be shown.

    Attributes
    ----------
    run : Run
    random_state : int
        Of the draws: examples, and points where there are too many to draw.

    Examples
    --------
    >>> import tempfile
    >>> import fewest as fw
    >>> from fewest.runs import explain_files
    >>> folder = Path(tempfile.mkdtemp())
    >>> pd.DataFrame({"debt": [10, 90, 80], "age": [30, 40, 50]}).to_csv(folder / "cases.csv", index=False)
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [20], "age": [35]})
    >>> _ = explain_files(fw.Explainer(decision, refs), folder / "cases.csv", folder / "run", n_jobs=1, title="Debts")
    >>> view = open_run(folder / "run")
    >>> view.title, view.summary
    ('Debts', '2 of 3 cases were predicted refused; for 100 % one feature turns the decision.')
    >>> [(line.row, line.features) for line in view.cases(Filter(status="EXPLAINED"))]
    [(1, ('debt',)), (2, ('debt',))]
    >>> [(row.feature, row.case, row.after) for row in view.case(1).rows]
    [('debt', '90', '20'), ('age', '40', '40')]
    """

    run: Run
    random_state: int = 0
    _groups: dict[str, list[GroupLine]] = field(default_factory=dict, repr=False)

    @property
    def title(self) -> str:
        """What the run is called."""
        return str(self.about.get("title") or self.run.path.name)

    @property
    def model_name(self) -> str:
        """What the model is called."""
        return str(self.about.get("model") or self.run.manifest["model"]["class"])

    @property
    def about(self) -> dict[str, Any]:
        """Names of the outcomes, and what else sentences need."""
        return vars(self.run.about)

    @property
    def settings(self) -> dict[str, Any]:
        """The choices the run was made with."""
        return dict(self.run.manifest["settings"])

    @property
    def rows(self) -> int:
        """Cases in all."""
        return self.run.rows

    @property
    def counts(self) -> dict[str, int]:
        """How many cases ended in each status."""
        return self.run.counts

    @property
    def explained(self) -> int:
        """Cases with a proved answer."""
        return self.counts.get("EXPLAINED", 0)

    @property
    def against(self) -> int:
        """Cases the model decided against."""
        return self.rows - self.counts.get("ALREADY_NEGATIVE", 0)

    @cached_property
    def titles(self) -> dict[str, str]:
        """Feature -> what people call it."""
        return {feature.name: feature.title for feature in self.run.schema.features}

    @cached_property
    def protected(self) -> dict[str, bool]:
        """Feature -> whether people are protected by it."""
        return {feature.name: feature.protected for feature in self.run.schema.features}

    @property
    def immutable(self) -> tuple[str, ...]:
        """Features that were never changed, by the run's own rules."""
        return tuple(str(item["name"]) for item in self.settings["constraints"] if item["kind"] == "Immutable")

    @property
    def summary(self) -> str:
        """The whole run in one sentence."""
        head = f"{self.against:,} of {self.rows:,} cases were predicted {self.about['positive']}"
        if self.against == 0:
            return f"{head}: there is nothing to explain."
        one = int(self.run.manifest["sev"].get("1", 0)) / self.against
        what = "one value alone brings the decision about" if self.about["plus"] else "one feature turns the decision"
        return f"{head}; for {percent(one)} {what}."

    def figures(self) -> dict[str, float | int]:
        """The figures of the whole run, by what people call them."""
        sev = {int(size): int(count) for size, count in self.run.manifest["sev"].items()}
        out: dict[str, float | int] = {"cases": self.rows, "decided against": self.against, "explained": self.explained}
        if sev:
            drawn = self.survey.drawn
            of = "" if self.explained <= len(drawn) else f" (of {len(drawn):,} drawn cases)"
            out["mean number of features changed"] = sum(k * count for k, count in sev.items()) / sum(sev.values())
            out["largest number of features changed"] = max(sev)
            out[f"median of the largest change, in standard deviations{of}"] = float(drawn["l_inf"].median())
        return out

    def sev_bars(self) -> Bars:
        """How many features must change, for the explained cases."""
        rows = [(int(size), int(count)) for size, count in self.run.manifest["sev"].items()]
        bars = [
            Bar(f"{size} feature{'s' if size != 1 else ''}", count, count / max(1, self.explained))
            for size, count in rows
        ]
        return Bars("Features changed", "How many features must change?", tuple(bars))

    def feature_bars(self) -> Bars:
        """Which features come up, for the explained cases."""
        bars = [
            Bar(self.titles.get(name, name), count, count / max(1, self.explained), self._note(name))
            for name, count in self.run.manifest["features"].items()
        ]
        return Bars("Features in the explanations", "Which features come up?", tuple(bars))

    def _note(self, name: str) -> str:
        return "protected" if self.protected.get(name) else ""

    @cached_property
    def survey(self) -> Survey:
        """One pass over the parts, done once."""
        return Survey.of(self.run.tables(_survey.COLUMNS), self.random_state)

    @cached_property
    def index(self) -> Index:
        """The figures of all cases, read once."""
        return Index.of(self.run)

    @property
    def has_density(self) -> bool:
        """Whether it is known how usual the answers are."""
        return self.settings["credibility"] is not None

    @property
    def axes(self) -> tuple[str, str]:
        """What the two axes of `closeness_points` say."""
        second = "log-density among accepted cases" if self.has_density else "score beyond the cut-off"
        return "distance (standard deviations; 1 for another level)", second

    def closeness_points(
        self, limit: int = 1000, random_state: int | None = None, link: Callable[[int], str] | None = None
    ) -> list[Point]:
        """How close and how usual the answers are: a draw of at most ``limit`` explained cases.

        Parameters
        ----------
        limit : int
            At most 1000.
        random_state : int, optional
            Default: that of the view.
        link : callable, optional
            Gives the page of a row.
        """
        survey = (
            self.survey
            if random_state in (None, self.random_state)
            else Survey.of(self.run.tables(_survey.COLUMNS), random_state or 0)
        )
        drawn = survey.drawn.head(limit)
        if drawn.empty:
            return []
        drawn = drawn.sort_values(["sev", "row"], kind="stable")
        far = distances(self.run, drawn["row"].tolist())
        x = [far[row] for row in drawn["row"].tolist()]
        y = drawn["log_density" if self.has_density else "margin"].tolist()
        figures = zip(drawn["row"].tolist(), drawn["sev"].tolist(), x, y, strict=True)
        return [
            Point(x, height, f"{sev} feature{'s' if sev != 1 else ''}", f"case {row}", link(row) if link else None)
            for row, sev, x, height in figures
        ]

    def cases(self, wanted: Filter | None = None, sort: str = "row", page: int = 1, size: int = PAGE) -> list[CaseLine]:
        """One page of the cases that fit, in an order of `SORTS`.

        Parameters
        ----------
        wanted : Filter, optional
        sort : str
            One of `SORTS`; with ``-`` before it descending.
        page : int
            From 1 on; an empty list beyond the last.
        size : int
            Cases per page.
        """
        if page < 1 or size < 1:
            raise UsageError(f"page {page} of {size} cases each", do="use numbers from 1 on")
        rows = self.index.sort(self.index.select(wanted or Filter()), sort)
        return self._lines(rows[(page - 1) * size : page * size].tolist())

    def count(self, wanted: Filter | None = None) -> int:
        """How many cases fit."""
        return len(self.index.select(wanted or Filter()))

    def _lines(self, rows: list[int]) -> list[CaseLine]:
        changed = self.run.records(rows, ("row", "features")).set_index("row")["features"]
        return [self._line(row, changed[row]) for row in rows]

    def _line(self, row: int, features: list[str]) -> CaseLine:
        known = self.index.table.iloc[row]
        return CaseLine(
            row=row,
            status=str(known["status"]),
            sev=int(known["sev"]) or None,
            score=show_score(float(known["score"]), float(self.settings["threshold"]), self.about["percent"]),
            features=tuple(self.titles.get(name, name) for name in features),
            reference="" if pd.isna(known["reference"]) else str(known["reference"]),
            l_inf=_known(known["l_inf"]),
            log_density=_known(known["log_density"]),
            margin=_known(known["margin"]),
        )

    def case(self, row: int) -> CaseView:
        """Everything that is known of one case; an `IndexError` where there is no such row."""
        answer, schema = self.run.explanation(row), self.run.schema
        case = None if answer.facts else self.run.case(row)
        values = {} if case is None else decoded_row(case, schema)
        own = [(feature.title, values[feature.name]) for feature in schema.features if case is not None]
        return case_view(answer, self.settings, self.protected, own)

    def neighbours(self, row: int) -> tuple[int | None, int | None]:
        """The cases decided against before and after a row; None at the ends."""
        return self.index.beside(row)

    def references(self) -> list[ReferenceView]:
        """The references, with who signed them and how many cases were compared with each."""
        return reference_views(self.run, self.survey.used)

    @cached_property
    def tree(self) -> Tree | None:
        """The tree that decides, where the run has one."""
        return load_tree(self.run.file(TREE)) if self.run.manifest.get("tree") else None

    def groups(self, column: str) -> list[GroupLine]:
        """How many features must change in each group of a feature; empty where the cases were not kept.

        Parameters
        ----------
        column : str
            Name of the feature; one of several columns makes no groups.
        """
        feature = self.run.schema.features[self.run.schema.index(column)]
        if not self.run.keeps_cases or len(feature.columns) != 1:
            return []
        if column not in self._groups:
            name = feature.columns[0]
            beside = zip(self.run.cases((name,)), self.run.tables(("status", "sev")), strict=True)
            self._groups[column] = group_lines(((frame[name], table) for frame, table in beside), feature)
        return self._groups[column]

    def warnings(self) -> list[str]:
        """Warnings to read before anything is concluded."""
        used = {name: int(count) for name, count in self.run.manifest["features"].items() if self.protected.get(name)}
        return [
            *often(self.feature_bars().bars, self.explained),
            *protected_used({self.titles.get(name, name): count for name, count in used.items()}),
            *unsigned([view.name for view in self.references() if not view.is_signed]),
            *stopped(self.counts.get("BUDGET", 0)),
        ]

    def fingerprints(self) -> list[tuple[str, str]]:
        """What the run was made of: name -> SHA-256 or version."""
        manifest = self.run.manifest
        settings = self.run.digest_of("settings")
        return [
            ("model", f"{manifest['model']['sha256']} ({manifest['model']['file'] or 'by its scores'})"),
            *(("data", f"{file['sha256']} ({file['name']})") for file in manifest["data"]["files"]),
            ("references", str(manifest["references"]["sha256"])),
            ("schema", str(manifest["schema"]["sha256"])),
            ("settings", settings),
            ("version of fewest", str(manifest["version"])),
            ("whole run", str(manifest.get("seal", "not sealed"))),
        ]

    def csv(self, wanted: Filter | None = None) -> bytes:
        """The cases that fit as CSV that is safe to open in a spreadsheet."""
        return b"".join(self.csv_parts(wanted))

    def csv_parts(self, wanted: Filter | None = None) -> Iterator[bytes]:
        """The same part by part, for runs that are larger than memory."""
        rows = None if wanted in (None, Filter()) else self.index.select(wanted or Filter())
        first = True
        for table in self.run.tables(CSV_COLUMNS):
            kept = table if rows is None else table[np.isin(table["row"].to_numpy(), rows)]
            if first or len(kept):
                yield as_csv(kept, header=first)
            first = False


def _known(value: Any) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def open_run(path: str | Path, random_state: int = 0) -> RunView:
    """Open a finished run folder to be shown; only its manifest is read at once.

    Parameters
    ----------
    path : path
        The folder.
    random_state : int
        Of the draws.

    Examples
    --------
    >>> open_run("nowhere")
    Traceback (most recent call last):
    ...
    fewest.errors.DataError: nowhere is not a run folder: it has no manifest.json
      Try: pass the folder that `fewest explain --out` made
    """
    return RunView(Run.open(path), random_state)
