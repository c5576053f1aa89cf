"""Explanations: the result table. Columns are kept as arrays, so that a million cases are an ordinary job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError
from fewest.models.trees import Reach
from fewest.references.base import References
from fewest.references.file import Saved
from fewest.results import decimals, record
from fewest.results.answers import Answers
from fewest.results.enough import Enough, Profiles, enough_by_row
from fewest.results.explanation import STATUSES, About, Change, Explanation, Fact, Status
from fewest.results.export import also_written, as_csv, write_excel
from fewest.results.lookup import ByLabel, places_of
from fewest.results.population import Origin, Summary, Tally, figure, summarize
from fewest.results.score_steps import score_steps
from fewest.tables.frames import mix
from fewest.tables.json_cells import Read, goal_cells, moved_cells
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import Cells, shortened

JSON_FORMAT = 2
SHOWN = 5
FRAME_COLUMNS = record.names_in("frame")


@dataclass(eq=False)
class Explanations:
    """Verified answers, one per case, in the order of the table.

    Indexing gives one `Explanation` by place (by label with `loc`), or the `Explanations` of a slice or a mask;
    `to_frame` gives the table, `summary` the figures.
    """

    frame: pd.DataFrame
    references: References
    answers: Answers
    strategies: tuple[str, ...]
    plus: bool = False
    weighted: bool = False
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    reach: Reach | None = None
    rows: npt.NDArray[np.int64] | None = None  # of a part: places in the table that was explained
    profiles: Profiles | None = field(default=None, repr=False)  # scores over values, as they were read of the model

    @property
    def schema(self) -> Schema:
        """The features spoken of."""
        return self.references.schema

    def __len__(self) -> int:
        return len(self.frame)

    def __iter__(self) -> Iterator[Explanation]:
        return (self._whole(row, answer) for row, answer in enumerate(self.brief(range(len(self)))))

    @overload
    def __getitem__(self, key: int) -> Explanation: ...
    @overload
    def __getitem__(self, key: slice | Sequence[Any] | npt.NDArray[Any] | pd.Series[Any]) -> Explanations: ...
    def __getitem__(self, key: Any) -> Explanation | Explanations:
        """The answer of one case by its place in the table; those of several by a slice, a mask or a list of places."""
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            return self.explanation(int(key))
        return self._take(places_of(key, len(self)))

    def explanation(self, row: int) -> Explanation:
        """The answer of one case, by its place in the table."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self._whole(row % len(self), next(self.brief([row % len(self)])))

    def _whole(self, row: int, answer: Explanation) -> Explanation:
        enough = None if self.plus else partial(self.enough, row)
        return replace(answer, facts=self.facts(row), steps=partial(self.steps, row), enough=enough)

    def steps(self, row: int) -> list[tuple[str, float, float]]:
        """The changed features of a case, at each step the one that helps most, with the scores before and after it."""
        start, end = self.frame.iloc[[row]], self._after.iloc[[row]]
        if self.plus:
            start = self.references.frame.iloc[[max(0, int(self.answers.reference[row]))]].set_index(end.index)
        moved = [self.schema.features[j] for j in np.flatnonzero(self.answers.moved[row]).tolist()]
        return score_steps(self.references.decision, moved, start, end, -1 if self.plus else 1)

    def plot(self, *, style: str = "screen") -> Any:
        """Draw how many features must change, and which come up how often; returns the figure."""
        return import_module("fewest.reporting.plots").overview(self, style)

    def _take(self, rows: npt.NDArray[np.int64]) -> Explanations:
        numbers = rows if self.rows is None else self.rows[rows]
        return replace(self, frame=self.frame.iloc[rows], answers=self.answers.take(rows.tolist()), rows=numbers)

    @property
    def loc(self) -> ByLabel:
        """Answers by the labels of their cases: one label, a list of them, a slice or a mask.

        Examples
        --------
        >>> import fewest as fw
        >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
        >>> refs = fw.references.supplied(decision, {"debt": [20]})
        >>> out = fw.Explainer(decision, refs).explain(pd.DataFrame({"debt": [90, 10, 60]}, index=["A", "B", "C"]))
        >>> out.loc["C"].label, len(out.loc[["A", "B"]]), len(out[:2]), len(out.explained)
        ('C', 2, 2, 2)
        """
        return ByLabel(self.frame.index, self.__getitem__)

    @property
    def explained(self) -> Explanations:
        """The cases with a proved answer."""
        return self._take(self._explained)

    @property
    def sentences(self) -> pd.Series[str]:
        """The answer of each case in one sentence, by its label."""
        return pd.Series(map(str, self.brief(range(len(self)))), self.frame.index, dtype=object, name="sentence")

    @cached_property
    def about(self) -> About:
        """Names of the outcomes, and what else sentences need."""
        decision = self.references.decision
        dense = not np.isnan(self.answers.log_density).all()
        return About(
            positive=decision.positive_name, outcome=decision.negative_name, threshold=decision.cut,
            percent=decision.shows_percent, number=decision.number, plus=self.plus, weighted=self.weighted,
            has_density=dense,
        )  # fmt: skip

    def answered(self, first: int = 0, hashes: Any = None, labels: Sequence[str] | None = None) -> record.Answered:
        """What the columns of the answers are computed from; the first row has that number."""
        return self._answered(self.answers, np.arange(first, first + len(self)), hashes, labels)

    def _answered(self, answers: Answers, rows: Any, hashes: Any = None, labels: Any = None) -> record.Answered:
        names, ends = self.references.names, self._ends
        return record.Answered(answers, rows, self.schema, self.about, names, self.strategies, ends, hashes, labels)

    def _ends(
        self, moved: npt.NDArray[np.bool_], of: npt.NDArray[np.int64], goal_of: npt.NDArray[Any], read: Read
    ) -> record.Ends:
        """The changed cells of sets before and after."""
        cases = self.frame if len(of) == len(self) and (of == np.arange(len(self))).all() else self.frame.iloc[of]
        case = moved_cells(self.schema, cases, moved, read)
        if self.reach is None:
            goal = goal_cells(self.schema, self.references.frame, goal_of, moved, read)
        else:  # a leaf is a box: each case enters it with values of its own
            goal = moved_cells(self.schema, self.reach.entered(cases, goal_of), moved, read)
        return (goal, case) if self.plus else (case, goal)

    def brief(self, rows: Sequence[int]) -> Iterator[Explanation]:
        """The answers for some cases, without the features that do not change."""
        places = np.asarray(rows, dtype=np.int64)
        decimals.ask(self, rows)
        answered = self._answered(self.answers.take(rows), places if self.rows is None else self.rows[places])
        columns = [field.values(answered) for field in record.SCALARS]
        for row, *cells in zip(rows, *columns, strict=True):
            moved, number = self.answers.moved[row], int(self.answers.reference[row])
            values = dict(zip(record.SCALAR_NAMES, cells, strict=True))
            support = int(self.references.support[number]) if number >= 0 else -1
            values |= {"label": self.frame.index[row], "support": support if support >= 0 else None}
            values["credibility"] = self.references.credibility(number) if moved.any() else None
            yield record.to_explanation(values, self.about, self.changes(row, moved), self._alternatives(row))

    def changes(self, row: int, moved: npt.NDArray[np.bool_]) -> tuple[Change, ...]:
        """The changes a set of features makes to a case towards its reference, in column order."""
        return self._changes(row, moved, *self._goal(row))

    def _changes(self, row: int, moved: npt.NDArray[np.bool_], goals: Cells, at: int) -> tuple[Change, ...]:
        """The same towards a row of another table."""
        features = [feature for feature, is_moved in zip(self.schema.features, moved, strict=True) if is_moved]
        ends = [(self._own(row, feature), goals.value(at, feature)) for feature in features]
        order = slice(None, None, -1 if self.plus else 1)
        return tuple(Change.of(f, *pair[order]) for f, pair in zip(features, ends, strict=True))

    def _own(self, row: int, feature: Feature) -> Any:
        """A case's own value."""
        return shortened(self._cases.value(row, feature), feature, int(self.answers.decimals[row]))

    def facts(self, row: int) -> tuple[Fact, ...]:
        """All features of a case beside those of its reference; empty where it was compared with none of several."""
        reference = int(self.answers.reference[row])
        if reference < 0 and len(self.references) > 1:
            return ()
        goals, at = self._goal(row)
        out = []
        for feature, moved in zip(self.schema.features, self.answers.moved[row].tolist(), strict=True):
            case = self._own(row, feature)
            typical = self._typical.value(max(0, reference), feature)
            goal = goals.value(at, feature) if moved and self.reach is not None else typical
            after = (case if moved else typical) if self.plus else (goal if moved else case)
            out.append(Fact(feature.title, case, typical, after, moved, feature.unit, feature.name))
        return tuple(out)

    def turned(self) -> pd.DataFrame:
        """Every case as it would have been: the displayed values, typed, where an answer was found.

        Scored by the model, these rows have the other outcome; rows without an answer are the cases themselves (for
        SEV+ the references).

        Examples
        --------
        >>> import fewest as fw
        >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
        >>> refs = fw.references.supplied(decision, {"debt": [20]})
        >>> fw.Explainer(decision, refs).explain({"debt": [90, 10]}).turned()["debt"].tolist()
        [20, 10]
        """
        if self.reach is not None:
            return self.reach.entered(self.frame, self.answers.reference)
        start, goal, goal_of = self.frame, self.references.frame, np.maximum(self.answers.reference, 0)
        if self.plus:
            start, goal = goal.iloc[goal_of].set_index(start.index), start
            goal_of = np.arange(len(start), dtype=np.int32)
        take = {column: self.answers.moved[:, j] for column, j in self.schema.feature_of.items()}
        return mix(start, goal, goal_of, take)

    def enough(self, row: int) -> tuple[Enough, ...]:
        """For each changed feature the values on its grid, inside the range seen, that the model confirms are enough.

        Examples
        --------
        >>> import fewest as fw
        >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
        >>> refs = fw.references.supplied(decision, {"debt": [20]}, X={"debt": [0, 20, 100]})
        >>> str(fw.Explainer(decision, refs).explain({"debt": [90]}).enough(0)[0])
        'debt 49 or less'
        """
        return self._enough([range(len(self))[row]])[0]

    def _enough(self, rows: list[int]) -> list[tuple[Enough, ...]]:
        if self.plus:
            raise UsageError("how much is enough is not defined for SEV+", do='use direction="minus"')
        decision, moved = self.references.decision, self.answers.moved[rows]
        return enough_by_row(decision, self.schema, self._after.iloc[rows], moved, self.profiles)

    @cached_property
    def _after(self) -> pd.DataFrame:
        return self.turned()

    @cached_property
    def _cases(self) -> Cells:
        return Cells.of(self.frame)

    @cached_property
    def _typical(self) -> Cells:
        return Cells.of(self.references.frame)

    def _goal(self, row: int) -> tuple[Cells, int]:
        """Where the moved features of a case take their values from: its reference, or the case inside its leaf."""
        if self.reach is not None:
            return self._after_cells, row
        return self._typical, max(0, int(self.answers.reference[row]))

    @cached_property
    def _after_cells(self) -> Cells:
        return Cells.of(self._after)

    def _alternatives(self, row: int) -> tuple[tuple[Change, ...], ...]:
        sets, towards = self.answers.alternatives.get(row, ()), self.answers.towards.get(row)
        if towards is None:
            return tuple(self.changes(row, moved) for moved in sets)
        if self.reach is None:
            goals, places = self._typical, towards
        else:
            case = self.frame.iloc[np.full(len(sets), row)]
            goals, places = Cells.of(self.reach.entered(case, towards)), np.arange(len(sets), dtype=np.int32)
        return tuple(self._changes(row, moved, goals, int(k)) for moved, k in zip(sets, places, strict=True))

    @property
    def tally(self) -> Tally:
        """Counts by status, by SEV and by feature, with the figures that follow from them."""
        moved = self.answers.moved[self._explained]
        sizes, tally = np.unique(moved.sum(axis=1), return_counts=True)
        features = dict(zip(self.schema.names, moved.sum(axis=0).tolist(), strict=True))
        return Tally.total([Tally(self.counts(), dict(zip(sizes.tolist(), tally.tolist(), strict=True)), features)])

    def counts(self) -> dict[str, int]:
        """How many cases ended in each status."""
        tally = np.bincount(self.answers.status, minlength=len(STATUSES))
        return {status.value: int(count) for status, count in zip(STATUSES, tally, strict=True)}

    @property
    def sev(self) -> pd.Series[Any]:
        """SEV of every case, in their order and under their index; missing where there is none.

        Examples
        --------
        >>> import fewest as fw
        >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
        >>> refs = fw.references.supplied(decision, {"debt": [10]})
        >>> fw.Explainer(decision, refs).explain({"debt": [20, 90]}).sev.tolist()
        [<NA>, 1]
        """
        sizes = pd.Series(pd.NA, self.frame.index, "Int64", "sev")
        sizes.iloc[self._explained] = self.answers.moved[self._explained].sum(axis=1)
        return sizes

    def summary(self) -> Summary:
        """Figures of the whole table: counts by status, SEV, closeness, proof, time."""
        return summarize(self, self.seconds)

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The answers in the columns of a run folder, or in those that are named, as one table."""
        labels = self.frame.index.astype(str).tolist() if self.origin.names_cases else None
        wanted = columns or [name for name in record.names_in("part") if name != "hash"]
        yield record.table(self.answered(labels=labels), wanted)

    def cases(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The cases themselves as one table, indexed by row number."""
        yield self.frame[list(columns or self.frame.columns)].reset_index(drop=True)

    def records(self, rows: Sequence[int], columns: Sequence[str]) -> pd.DataFrame:
        """Some rows of the answers, in the order of the data."""
        decimals.ask(self, rows if "decimals" in columns else ())
        return next(self.tables(columns)).iloc[sorted(set(rows))]

    @property
    def origin(self) -> Origin:
        """What the search has to add; settings and fingerprints belong to run folders."""
        return Origin(notes=self.notes, names_cases=not self.frame.index.equals(pd.RangeIndex(len(self))))

    def saved_references(self) -> Saved:
        """The references as a file holds them."""
        return self.references.saved()

    def to_frame(self, *, sentences: bool = False) -> pd.DataFrame:
        """The answers as a pandas table; ``sentences`` adds them as sentences, which takes longer than the rest.

        ``features``, ``from`` and ``to`` hold lists; ``sev`` is missing unless the case is EXPLAINED.
        """
        table = record.table(self.answered(), FRAME_COLUMNS, typed=True).set_axis(self.frame.index)
        return table.assign(sentence=self.sentences.to_numpy()) if sentences else table

    def to_csv(self, path: str | Path | None = None) -> str:
        """The answers as CSV text that spreadsheets can open safely, sentences included; also written to ``path``.

        The first column, ``case``, holds the labels; lists are JSON inside their cells.
        """
        return also_written(as_csv(self.to_frame(sentences=True)), path)

    def to_excel(self, path: str | Path) -> None:
        """Write the same table as an Excel file, with a header that stays and columns that can be filtered."""
        write_excel(self.to_frame(sentences=True), Path(path))

    def to_dict(self, *, enough: bool = False) -> dict[str, Any]:
        """Plain values under a versioned schema, one record per case; ``enough`` adds which values are enough."""
        decision, rows = self.references.decision, list(range(len(self)))
        more = [{"enough": [part.to_dict() for part in own]} for own in (self._enough(rows) if enough else ())]
        answers = [record.to_json(answer) for answer in self.brief(rows)]
        return {
            "format": JSON_FORMAT,
            "kind": "explanations",
            "direction": "plus" if self.plus else "minus",
            "decision": {"positive": decision.positive_name, "outcome": decision.negative_name,
                         "threshold": decision.cut, "score": decision.kind},
            "references": self.references.to_dict(),
            "counts": self.counts(),
            "answers": [own | extra for own, extra in zip(answers, more, strict=True)] if enough else answers,
        }  # fmt: skip

    def to_json(self, path: str | Path | None = None, *, enough: bool = False) -> str:
        """The answers as JSON text, also written to ``path``; ``enough`` adds which values are enough."""
        text = json.dumps(self.to_dict(enough=enough), indent=1, allow_nan=False, default=plain)
        return also_written(text, path, end="\n")

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {Status(name).words}" for name, count in self.counts().items() if count)
        lines = [f"  {answer.label}: {answer}" for answer in self.brief(self._explained[:SHOWN].tolist())]
        return "\n".join([f"<Explanations of {len(self)} cases: {counts or 'none'}>", *lines])

    def _repr_html_(self) -> str:
        from fewest.results.notebook import Overview

        first = list(self.brief(self._explained[:SHOWN].tolist()))
        return Overview(
            repr(self).splitlines()[0][1:-1],
            {Status(name).words: count for name, count in self.counts().items()},
            dict(self.tally.sev),
            [(str(answer.label), str(answer)) for answer in first],
            [(name, figure(value)) for name, value in self.summary().items()],
        ).html()

    @property
    def _explained(self) -> npt.NDArray[np.int64]:
        """Rows with a SEV."""
        return np.flatnonzero(self.answers.status == STATUSES.index(Status.EXPLAINED))
