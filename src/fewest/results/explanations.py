"""Explanations: the result table. Columns are kept as arrays, so that a million cases are an ordinary job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.models.trees import Reach
from fewest.references.base import References
from fewest.results.answers import Answers
from fewest.results.explanation import STATUSES, Change, Explanation, Fact, Proof, Status
from fewest.results.summary import Summary, figure, likelihoods
from fewest.tables.files import write_text
from fewest.tables.frames import mix
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Schema
from fewest.tables.values import Cells

JSON_FORMAT = 1
SHOWN = 5
FRAME_COLUMNS = (
    "status", "sev", "features", "from", "to", "score", "score_after", "margin", "lower_bound", "proved", "strategy",
    "n_alternatives", "all_listed", "reference", "l_inf", "log_density",
)  # fmt: skip


@dataclass(eq=False)
class Explanations:
    """Verified answers, one per case, in the order of the table.

    Indexing gives one `Explanation`; `to_frame` the table; `summary` the figures.
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

    @property
    def schema(self) -> Schema:
        """The features spoken of."""
        return self.references.schema

    def __len__(self) -> int:
        return len(self.frame)

    def __iter__(self) -> Iterator[Explanation]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, row: int) -> Explanation:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        return replace(self._answer(row), facts=self.facts(row))

    def _answer(self, row: int) -> Explanation:
        """The answer for a case, without the features that do not change."""
        a, decision = self.answers, self.references.decision
        status = STATUSES[a.status[row]]
        explained = status == Status.EXPLAINED
        turned = bool(a.moved[row].any())
        return Explanation(
            row=row,
            label=self.frame.index[row],
            status=status,
            sev=int(a.moved[row].sum()) if explained else None,
            cost=float(a.cost[row]) if explained else None,
            changes=self.changes(row, a.moved[row]),
            score=float(a.score[row]),
            score_after=float(a.score_after[row]) if turned else None,
            margin=float(self._margin(row)) if turned else None,
            reference=self.references.names[a.reference[row]] if a.reference[row] >= 0 else None,
            proof=Proof(
                self.strategies[a.strategy[row]], int(a.nodes[row]), float(a.lower[row]), bool(a.proved[row]), turned
            ),
            alternatives=self._alternatives(row),
            support=self._support(int(a.reference[row])),
            credibility=self.references.credibility(int(a.reference[row])) if turned else None,
            l_inf=float(a.l_inf[row]) if turned else None,
            log_density=float(a.log_density[row]) if turned and not np.isnan(a.log_density[row]) else None,
            outcome=decision.negative_name,
            positive=decision.positive_name,
            shows_percent=decision.kind in ("proba", "torch") and len(decision.classes) <= 2,
            threshold=decision.cut,
            plus=self.plus,
            weighted=self.weighted,
            all_listed=bool(a.complete[row]),
        )

    def changes(self, row: int, moved: npt.NDArray[np.bool_]) -> tuple[Change, ...]:
        """The changes a set of features makes to a case towards its reference, in column order."""
        return self._changes(row, moved, *self._goal(row))

    def _changes(self, row: int, moved: npt.NDArray[np.bool_], goals: Cells, at: int) -> tuple[Change, ...]:
        """The same towards a row of another table."""
        before, after = ((goals, at), (self._cases, row)) if self.plus else ((self._cases, row), (goals, at))
        features = [feature for feature, is_moved in zip(self.schema.features, moved, strict=True) if is_moved]
        return tuple(Change.of(f, before[0].value(before[1], f), after[0].value(after[1], f)) for f in features)

    def facts(self, row: int) -> tuple[Fact, ...]:
        """All features of a case beside those of its reference; empty where it was compared with none of several.

        Examples
        --------
        >>> import fewest as fw
        >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
        >>> refs = fw.references.supplied(decision, {"debt": [20], "age": [50]})
        >>> out = fw.Explainer(decision, refs).explain({"debt": [90], "age": [30]})
        >>> [(fact.feature, fact.case, fact.after) for fact in out.facts(0)]
        [('debt', 90, 20), ('age', 30, 30)]
        """
        reference = int(self.answers.reference[row])
        if reference < 0 and len(self.references) > 1:
            return ()
        goals, at = self._goal(row)
        out = []
        for feature, moved in zip(self.schema.features, self.answers.moved[row].tolist(), strict=True):
            case = self._cases.value(row, feature)
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
        >>> from sklearn.linear_model import LogisticRegression
        >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
        >>> decision = fw.Decision(LogisticRegression().fit(X, y))
        >>> out = fw.Explainer(decision, fw.references.single(decision, X, y)).explain(X)
        >>> out.turned()["debt"].tolist()
        [1, 2, 2, 2]
        """
        if self.reach is not None:
            return self._entered
        goal_of = np.maximum(self.answers.reference, 0)
        start, goal = self.frame, self.references.frame
        if self.plus:
            start, goal = goal.iloc[goal_of].set_index(start.index), start
            goal_of = np.arange(len(start), dtype=np.int32)
        take = {column: self.answers.moved[:, j] for column, j in self.schema.feature_of.items()}
        return mix(start, goal, goal_of, take)

    @cached_property
    def _cases(self) -> Cells:
        return Cells.of(self.frame)

    @cached_property
    def _typical(self) -> Cells:
        return Cells.of(self.references.frame)

    def _goal(self, row: int) -> tuple[Cells, int]:
        """Where the moved features of a case take their values from: its reference, or the case inside its leaf."""
        if self.reach is not None:
            return self._entered_cells, row
        return self._typical, max(0, int(self.answers.reference[row]))

    @cached_property
    def _entered(self) -> pd.DataFrame:
        """Every case inside the leaf it was led to."""
        return _inside_leaves(self.reach, self.frame, self.answers.reference)

    @cached_property
    def _entered_cells(self) -> Cells:
        return Cells.of(self._entered)

    def _alternatives(self, row: int) -> tuple[tuple[Change, ...], ...]:
        sets = self.answers.alternatives.get(row, ())
        towards = self.answers.towards.get(row)
        if towards is None:
            return tuple(self.changes(row, moved) for moved in sets)
        if self.reach is None:
            goals, places = self._typical, towards
        else:
            case = self.frame.iloc[np.full(len(sets), row)]
            goals, places = Cells.of(_inside_leaves(self.reach, case, towards)), np.arange(len(sets), dtype=np.int32)
        return tuple(self._changes(row, moved, goals, int(k)) for moved, k in zip(sets, places, strict=True))

    def _support(self, number: int) -> int | None:
        support = int(self.references.support[number]) if number >= 0 else -1
        return support if support >= 0 else None

    def counts(self) -> dict[str, int]:
        """How many cases ended in each status."""
        tally = np.bincount(self.answers.status, minlength=len(STATUSES))
        return {status.value: int(count) for status, count in zip(STATUSES, tally, strict=True)}

    def sev(self) -> npt.NDArray[np.int64]:
        """SEV of the explained cases."""
        explained = self.answers.status == STATUSES.index(Status.EXPLAINED)
        return np.asarray(self.answers.moved[explained].sum(axis=1))

    def summary(self) -> Summary:
        """Figures of the whole table: counts by status, SEV, closeness, proof, time."""
        a, counts, sev = self.answers, self.counts(), self.sev()
        explained = a.status == STATUSES.index(Status.EXPLAINED)
        dense = a.log_density[explained & ~np.isnan(a.log_density)]
        return Summary(
            {
                "cases": len(self),
                "decided against": len(self) - counts["ALREADY_NEGATIVE"],
                "explained": counts["EXPLAINED"],
                "not possible (proved)": counts["UNREACHABLE"],
                "not credible": counts["NOT_CREDIBLE"],
                "stopped by the budget": counts["BUDGET"],
                "mean SEV": float(sev.mean()) if len(sev) else float("nan"),
                "largest SEV": int(sev.max()) if len(sev) else 0,
                "share with SEV 1": float((sev == 1).mean()) if len(sev) else float("nan"),
                "median l_inf (sd)": float(np.median(a.l_inf[explained])) if len(sev) else float("nan"),
                **likelihoods(dense),
                **({"flexibility used": self._flexibility_used(explained)} if self.references.flexible_of else {}),
                "proved smallest": int(a.proved[explained].sum()),
                "seconds": float(self.seconds),
            }
        )

    def _flexibility_used(self, explained: npt.NDArray[np.bool_]) -> float:
        """Share of the explained cases whose answer leads to a flexible twin: there it needs fewer features."""
        twin = np.array(self.references.flexible_of) >= 0
        return float(twin[self.answers.reference[explained]].mean()) if explained.any() else float("nan")

    def _margin(self, rows: int | slice) -> Any:
        """How far beyond the threshold answers lead."""
        gap = self.references.decision.cut - self.answers.score_after[rows]
        return -gap if self.plus else gap

    def to_frame(self) -> pd.DataFrame:
        """The answers as a pandas table with the columns of `FRAME_COLUMNS`, one row per case.

        ``features``, ``from`` and ``to`` hold lists; ``sev`` is missing unless the case is EXPLAINED.
        """
        a = self.answers
        explained = a.status == STATUSES.index(Status.EXPLAINED)
        changes = [self.changes(row, moved) if moved.any() else () for row, moved in enumerate(a.moved)]
        names = np.array([*self.references.names, None], dtype=object)
        counts = pd.array([len(a.alternatives[k]) if k in a.alternatives else pd.NA for k in range(len(self))], "Int64")
        return pd.DataFrame(
            {
                "status": pd.Categorical.from_codes(a.status, [status.value for status in STATUSES]),
                "sev": pd.array(np.where(explained, a.moved.sum(axis=1), 0), "Int64").copy(),
                "features": [[change.feature for change in row] for row in changes],
                "from": [[change.before for change in row] for row in changes],
                "to": [[change.after for change in row] for row in changes],
                "score": a.score,
                "score_after": a.score_after,
                "margin": self._margin(slice(None)),
                "lower_bound": a.lower,
                "proved": a.proved,
                "strategy": np.array(self.strategies, dtype=object)[a.strategy],
                "n_alternatives": counts,
                "all_listed": a.complete,
                "reference": pd.array(names[a.reference], dtype="string"),
                "l_inf": a.l_inf,
                "log_density": a.log_density,
            },
            index=self.frame.index,
        ).assign(sev=lambda table: table["sev"].mask(~explained))

    def to_dict(self) -> dict[str, Any]:
        """Plain values under a versioned schema, one record per case."""
        decision = self.references.decision
        return {
            "format": JSON_FORMAT,
            "kind": "explanations",
            "direction": "plus" if self.plus else "minus",
            "decision": {"positive": decision.positive_name, "outcome": decision.negative_name,
                         "threshold": decision.cut, "score": decision.kind},
            "references": self.references.to_dict(),
            "counts": self.counts(),
            "answers": [self._record(self._answer(row)) for row in range(len(self))],
        }  # fmt: skip

    def _record(self, answer: Explanation) -> dict[str, Any]:
        return {
            "row": answer.row,
            "label": plain(answer.label),
            "status": answer.status.value,
            "sev": answer.sev,
            "cost": answer.cost,
            "changes": [{"feature": c.feature, "from": plain(c.before), "to": plain(c.after)} for c in answer.changes],
            "score": answer.score,
            "score_after": answer.score_after,
            "margin": answer.margin,
            "reference": answer.reference,
            "lower_bound": plain(answer.proof.lower_bound),
            "proved": answer.proof.minimal,
            "verified": answer.proof.verified,
            "strategy": answer.proof.strategy,
            "nodes": answer.proof.nodes,
            "alternatives": [[c.feature for c in changes] for changes in answer.alternatives],
            "all_listed": answer.all_listed,
            "l_inf": answer.l_inf,
            "log_density": plain(answer.log_density),
            "support": answer.support,
            "credibility": answer.credibility,
            "sentence": str(answer),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """The answers as JSON text, also written to ``path`` where one is given."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False, default=plain)
        if path is not None:
            write_text(path, text + "\n")
        return text

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name.lower()}" for name, count in self.counts().items() if count)
        lines = [f"<Explanations of {len(self)} cases: {counts or 'none'}>"]
        lines += [f"  {self.frame.index[row]}: {self._answer(int(row))}" for row in self._explained[:SHOWN]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from fewest.results.notebook import Overview

        sizes, tally = np.unique(self.sev(), return_counts=True)
        first = [self._answer(int(row)) for row in self._explained[:SHOWN]]
        return Overview(
            repr(self).splitlines()[0][1:-1],
            self.counts(),
            dict(zip(sizes.tolist(), tally.tolist(), strict=True)),
            [(str(answer.label), str(answer)) for answer in first],
            [(name, figure(value)) for name, value in self.summary().items()],
        ).html()

    @property
    def _explained(self) -> npt.NDArray[np.int64]:
        """Rows with a SEV."""
        return np.flatnonzero(self.answers.status == STATUSES.index(Status.EXPLAINED))


def _inside_leaves(reach: Reach | None, frame: pd.DataFrame, leaf_of: npt.NDArray[np.int32]) -> pd.DataFrame:
    """Rows with the values they enter their leaves with."""
    if reach is None:
        raise TypeError("these explanations do not lead to leaves")
    after, moved, _ = reach.turn(reach.tree.encode(frame), leaf_of)
    return reach.turned(frame, after, moved)
