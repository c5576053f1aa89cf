"""What a part says of its rows, held against the rows, the references and the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.runs.row_hashes import row_hashes
from fewest.runs.verification.leaf_entry import entered
from fewest.runs.verification.model_scores import Scorer, replaced
from fewest.runs.verification.report import Report
from fewest.runs.verification.rules import StatedRules, differing
from fewest.tables.arrays import Bools, Floats
from fewest.tables.json_cells import moved_cells
from fewest.tables.schema import Schema

STATUSES = ("EXPLAINED", "ALREADY_NEGATIVE", "UNREACHABLE", "NOT_CREDIBLE", "BUDGET")
FAR = 1e-9


@dataclass(frozen=True)
class ClaimGoals:
    """The references of a run."""

    names: tuple[str, ...]
    frame: pd.DataFrame  # (m, columns)
    flexible_of: npt.NDArray[np.int64]  # (m,) int: The reference each is the flexible twin of, -1 for none
    assignment: str
    leaves: bool = False  # Whether they are the leaves of a tree, which each case enters with values of its own

    def candidates(self, given: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """References each case was compared with (n, c), by the one it was given in the end."""
        plain = np.flatnonzero(self.flexible_of < 0)
        twin = {int(of): k for k, of in enumerate(self.flexible_of) if of >= 0}
        if self.assignment == "sparsest":
            return np.tile(np.arange(len(self.names)), (len(given), 1))
        own = np.where(self.flexible_of[given] < 0, given, self.flexible_of[given])
        if not twin:
            return np.asarray(own[:, None])
        pair = np.array([twin.get(int(k), int(k)) for k in range(len(plain))])
        return np.column_stack([own, pair[own]])


@dataclass(frozen=True)
class Claims:
    """One part: its table, the rows it speaks of, and what they are compared with."""

    table: pd.DataFrame  # (n, ...)
    frame: pd.DataFrame  # (n, columns): The rows of the data
    goals: ClaimGoals
    rules: StatedRules
    settings: Mapping[str, Any]

    @property
    def schema(self) -> Schema:
        """The features spoken of."""
        return self.rules.schema

    @property
    def plus(self) -> bool:
        """Whether the case's values are put onto the reference."""
        return bool(self.settings["direction"] == "plus")

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """Row numbers, as stated."""
        return np.asarray(self.table["row"].to_numpy(dtype=np.int64))

    def is_(self, *statuses: str) -> Bools:
        """Rows that ended in one of these ways."""
        return np.asarray(self.table["status"].isin(statuses))

    def stated(self, column: str) -> Floats:
        """A column of figures."""
        return np.asarray(self.table[column].to_numpy(dtype=float, na_value=np.nan))

    @cached_property
    def moved(self) -> Bools:
        """Features that are said to change, (n, p)."""
        place = {name: j for j, name in enumerate(self.schema.names)}
        sizes = self.table["features"].map(len).to_numpy(dtype=np.int64)
        flat = np.array([place.get(name, -1) for row in self.table["features"] for name in row], dtype=np.int64)
        known = flat >= 0
        out = np.zeros((len(self.table), len(self.schema)), dtype=bool)
        out[np.repeat(np.arange(len(sizes)), sizes)[known], flat[known]] = True
        return out

    @cached_property
    def reference(self) -> npt.NDArray[np.int64]:
        """Number of the reference of each row; 0 where there is none."""
        place = {name: k for k, name in enumerate(self.goals.names)}
        return np.array([place.get(name, 0) for name in self.table["reference"]], dtype=np.int64)

    @cached_property
    def beside(self) -> pd.DataFrame:
        """The reference's row beside each case; towards a leaf, the case as it is said to enter it."""
        if self.goals.leaves:
            stated = zip(self.table["features"], self.table["to"], strict=True)
            return entered(self.schema, self.frame, [dict(zip(*pair, strict=True)) for pair in stated])
        return self.goals.frame.iloc[self.reference]

    @cached_property
    def differs(self) -> Bools:
        """Where case and reference differ."""
        return differing(self.schema, self.frame, self.beside)

    def check(self, scorer: Scorer, report: Report) -> None:
        """Everything but minimality."""
        self._shape(report)
        self._figures(report)
        self._values(report)
        self._allowed(report)
        self._assigned(report)
        self._scores(scorer, report)

    def _shape(self, report: Report) -> None:
        """Rows are the data's rows, in order; words are known ones."""
        rows = self.rows
        report.rows_wrong(rows, rows != self.frame.index.to_numpy(), "its number is not its place in the data")
        hashes = row_hashes(self.schema, self.frame)
        stated = self.table["hash"].to_numpy(dtype=np.uint64)
        report.rows_wrong(rows, stated != hashes, "the data have another row in this place (its hash differs)")
        report.rows_wrong(rows, ~self.is_(*STATUSES), "its status is not a known word")
        order = {name: j for j, name in enumerate(self.schema.names)}
        sets = self.table["features"]
        wrong = [[order.get(name, -1) for name in row] != sorted({order.get(name, -1) for name in row}) for row in sets]
        strange = [any(name not in order for name in row) for row in sets]
        report.rows_wrong(rows, np.array(wrong) | np.array(strange), "its set names no features, or not in order")
        unknown = self.table["reference"].map(lambda name: name is not None and name not in self.goals.names)
        report.rows_wrong(rows, unknown.to_numpy(dtype=bool), "its reference is not one of the run")

    def _figures(self, report: Report) -> None:
        """SEV, cost, bound and proof agree with the status and with each other."""
        size, cost = self.moved.sum(axis=1), self.moved @ self.rules.weights
        explained, none = self.is_("EXPLAINED"), self.is_("ALREADY_NEGATIVE", "UNREACHABLE")
        sev, stated, lower = self.stated("sev"), self.stated("cost"), self.stated("lower_bound")
        proved = self.table["proved"].to_numpy(dtype=bool)
        near = FAR * np.maximum(1.0, cost)

        def wrong(where: Bools, what: str) -> None:
            report.rows_wrong(self.rows, where, what)

        wrong(explained & ((sev != size) | (size == 0)), "its SEV is not the size of its set")
        wrong(~explained & ~np.isnan(sev), "it has a SEV, but is not explained")
        wrong(none & (size > 0), "it has a set, but its status says there is none")
        wrong(explained & ~(np.abs(stated - cost) <= near), "its cost is not that of its set")
        wrong(explained & ~(np.abs(lower - cost) <= near), "its lower bound does not meet its cost")
        wrong(explained & ~proved, "it is explained, but not proved")
        wrong(self.is_("BUDGET") & ((lower > cost + near) & (size > 0)), "its lower bound is above its cost")
        wrong(self.is_("ALREADY_NEGATIVE") & (lower != 0), "its lower bound is not 0")
        wrong(self.is_("UNREACHABLE") & ~(lower > min(self.rules.most, 1e300)), "its lower bound leaves sets open")
        wrong(~(self.stated("nodes") >= 0), "its nodes are not a count")
        turned = size > 0
        for column in ("score_after", "margin", "l_inf"):
            wrong(
                turned != ~np.isnan(self.stated(column)),
                f"its {column} is given though it has no answer, or is missing",
            )

    def _values(self, report: Report) -> None:
        """What is shown is the case's value and the reference's, and they differ."""
        before, after = (self.beside, self.frame) if self.plus else (self.frame, self.beside)
        sizes = self.moved.sum(axis=1)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        for column, frame, whose in (("from", before, "from"), ("to", after, "to")):
            shown = [value for row in self.table[column] for value in row]
            lengths = self.table[column].map(len).to_numpy()
            report.rows_wrong(self.rows, lengths != sizes, f'"{whose}" has not one value per feature')
            if len(shown) != len(owner):
                continue
            known = json.loads(f"[{','.join(moved_cells(self.schema, frame, self.moved))}]")
            bad = np.array([a != b for a, b in zip(shown, known, strict=True)], dtype=bool)
            wrong = np.zeros(len(sizes), dtype=bool)
            wrong[owner[bad]] = True
            side = "reference" if (column == "to") != self.plus else "case"
            report.rows_wrong(self.rows, wrong, f'a value in "{column}" is not the {side}\'s')

    def _allowed(self, report: Report) -> None:
        permitted = self.rules.permitted(self.frame, self.beside)
        turned = self.moved.any(axis=1)
        fine = self.rules.allowed(self.moved, self.differs, permitted)
        report.rows_wrong(self.rows, turned & ~fine, "its set is not allowed: a constraint, or nothing to change")
        far = steps(self.schema, self.frame, self.beside)
        numeric = np.array([feature.is_numeric for feature in self.schema.features])
        l_inf = np.where(self.moved & numeric, far, 0.0).max(axis=1)
        stated = self.stated("l_inf")
        report.rows_wrong(self.rows, turned & ~(np.abs(stated - l_inf) <= FAR * (1 + l_inf)), "its l_inf is another")

    def _assigned(self, report: Report) -> None:
        """Each case is compared with the reference that is nearest to it, where the run says so."""
        positive = ~self.is_("ALREADY_NEGATIVE")
        named = self.table["reference"].notna().to_numpy()
        # Of a case that enters no leaf, no leaf is named.
        wanted = self.moved.any(axis=1) if self.goals.leaves else positive
        report.rows_wrong(self.rows, named != wanted, "it has a reference without being decided against, or lacks it")
        plain = np.flatnonzero(self.goals.flexible_of < 0)
        if self.goals.assignment != "features" or len(plain) < 2 or self.goals.leaves:
            return
        total = np.column_stack(
            [
                steps(self.schema, self.frame, self.goals.frame.iloc[np.full(len(self.frame), k)]).sum(axis=1)
                for k in plain
            ]
        )
        own = np.where(
            self.goals.flexible_of[self.reference] < 0, self.reference, self.goals.flexible_of[self.reference]
        )
        mine = total[np.arange(len(total)), own]
        best = total.min(axis=1)
        report.rows_wrong(self.rows, positive & (mine > best + FAR * (1 + best)), "another reference is nearer to it")

    def _scores(self, scorer: Scorer, report: Report) -> None:
        """The model's own scores, before and after."""
        cut, rows = scorer.decision.cut, self.rows
        before = scorer.score(self.frame)
        report.rows_wrong(rows, ~scorer.same(self.stated("score"), before), "the model's score of it is another")
        negative = self.is_("ALREADY_NEGATIVE")
        report.rows_wrong(rows, (before < cut) != negative, "the model's decision on it is another")
        turned = np.flatnonzero(self.moved.any(axis=1))
        if len(turned) == 0:
            return
        start, goal = (self.beside, self.frame) if self.plus else (self.frame, self.beside)
        after = scorer.score(replaced(self.schema, start.iloc[turned], goal.iloc[turned], self.moved[turned]))
        flips = after >= cut if self.plus else after < cut
        report.rows_wrong(rows[turned], ~flips, "its answer does not turn the model")
        stated = self.stated("score_after")[turned]
        report.rows_wrong(rows[turned], ~scorer.same(stated, after), "the model's score after the change is another")
        margin = (stated - cut) if self.plus else (cut - stated)
        wrong = ~(np.abs(self.stated("margin")[turned] - margin) <= FAR * np.maximum(1.0, np.abs(margin)))
        report.rows_wrong(rows[turned], wrong, "its margin is not the way from the threshold")


def steps(schema: Schema, case: pd.DataFrame, reference: pd.DataFrame) -> Floats:
    """How far each feature goes (n, p): standard deviations for numbers and dates, one step for everything else.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [30, 50], "job": ["a", "b"]})
    >>> steps(Schema.infer(X), X, X.iloc[[1, 0]]).tolist()
    [[2.0, 1.0], [2.0, 1.0]]
    """
    out = differing(schema, case, reference).astype(float)
    for j, feature in enumerate(schema.features):
        if not (feature.is_numeric or feature.kind == "datetime"):
            continue
        for column in feature.columns:
            a, b = (_measured(frame[column], feature.kind) for frame in (case, reference))
            out[:, j] = np.where(np.isnan(a) | np.isnan(b), out[:, j], np.abs(a - b) / feature.scale)
    return out


def _measured(column: pd.Series[Any], kind: str) -> Floats:
    if kind == "datetime":
        return np.where(column.isna(), np.nan, column.astype("int64").to_numpy(dtype=float))
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
