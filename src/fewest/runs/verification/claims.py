"""What a part says of its rows, held against the rows, the references and the model."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fewest.runs.parts import row_hashes
from fewest.runs.verification.base import KnownDensity, Report, Scorer, changed, entered
from fewest.runs.verification.domains import StatedDomains
from fewest.runs.verification.minimality import ClaimLimits, is_credible
from fewest.runs.verification.rules import StatedRules, as_order, differing
from fewest.tables.arrays import Bools, Floats, Ints
from fewest.tables.json_cells import moved_cells
from fewest.tables.schema import Schema
from fewest.tables.values import as_printed

STATUSES = ("EXPLAINED", "ALREADY_NEGATIVE", "UNREACHABLE", "NOT_CREDIBLE", "BUDGET")
FAR = 1e-9
Sets = Sequence[Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class ClaimGoals:
    """The references of a run."""

    names: tuple[str, ...]
    frame: pd.DataFrame  # (m, columns)
    flexible_of: Ints  # (m,) int: The reference each is the flexible twin of, -1 for none
    assignment: str
    leaves: bool = False  # Whether they are the leaves of a tree, which each case enters with values of its own
    domains: StatedDomains | None = None  # The values that features may take, where each case has values of its own

    @property
    def own_values(self) -> bool:
        """Whether each case takes values of its own, not those of a reference."""
        return self.leaves or self.domains is not None

    def unmoved(self, given: Ints) -> Ints:
        """The references themselves where flexible twins were given."""
        return np.where(self.flexible_of[given] < 0, given, self.flexible_of[given])

    def candidates(self, given: Ints) -> Ints:
        """References each case was compared with (n, c), by the one it was given in the end."""
        plain = np.flatnonzero(self.flexible_of < 0)
        twin = {int(of): k for k, of in enumerate(self.flexible_of) if of >= 0}
        if self.assignment == "sparsest":
            return np.tile(np.arange(len(self.names)), (len(given), 1))
        own = self.unmoved(given)
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
    refuted: set[int] = field(default_factory=set)  # Rows of the part whose claim is false

    @property
    def schema(self) -> Schema:
        """The features spoken of."""
        return self.rules.schema

    @property
    def plus(self) -> bool:
        """Whether the case's values are put onto the reference."""
        return bool(self.settings["direction"] == "plus")

    @property
    def floored(self) -> bool:
        """Whether answers must be as dense as a floor."""
        return self.settings["credibility"] is not None and self.settings["credibility"]["floor"] is not None

    def limits(self, density_is_known: bool) -> tuple[ClaimLimits, Bools]:
        """What is claimed of each row, and whether that can be proved without what is not known."""
        cost, explained = self.moved @ self.rules.weights, self.is_("EXPLAINED")
        below = np.where(explained, cost, np.where(self.is_("BUDGET"), self.stated("lower_bound"), np.inf))
        below = np.nan_to_num(below, nan=np.inf, posinf=np.inf)
        whole = self.table["all_listed"].to_numpy(dtype=bool) & explained
        listed = np.full(len(below), None, dtype=object)
        for row in np.flatnonzero(whole):
            names = [[change["feature"] for change in changes] for changes in self.table["alternatives"].iloc[row]]
            listed[row] = {one.tobytes() for one in self.sets(names)}
        if not self.floored:
            return ClaimLimits(below, below, listed), np.ones(len(below), dtype=bool)
        proved = self.is_("NOT_CREDIBLE") & self.table["proved"].to_numpy(dtype=bool)
        plain = np.where(self.is_("UNREACHABLE"), np.inf, np.where(proved, cost, 0.0))
        if density_is_known:
            return ClaimLimits(plain, below, listed), np.ones(len(below), dtype=bool)
        return ClaimLimits(plain, np.zeros(len(below)), np.full(len(below), None, dtype=object)), self.is_(
            "UNREACHABLE"
        )

    @cached_property
    def rows(self) -> Ints:
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
        return self.sets(self.table["features"])

    def sets(self, named: Collection[Sequence[str]]) -> Bools:
        """Sets of features by their names (s, p); names that are not known are left out."""
        place = {name: j for j, name in enumerate(self.schema.names)}
        sizes = [len(one) for one in named]
        flat = np.array([place.get(name, -1) for one in named for name in one], dtype=np.int64)
        known = flat >= 0
        out = np.zeros((len(sizes), len(self.schema)), dtype=bool)
        out[np.repeat(np.arange(len(sizes)), sizes)[known], flat[known]] = True
        return out

    @cached_property
    def reference(self) -> Ints:
        """Number of the reference of each row; 0 where there is none."""
        place = {name: k for k, name in enumerate(self.goals.names)}
        return np.array([place.get(name, 0) for name in self.table["reference"]], dtype=np.int64)

    @cached_property
    def beside(self) -> pd.DataFrame:
        """The reference's row beside each case; towards a leaf, or any value, the case as it is said to become."""
        if self.goals.own_values:
            stated = zip(self.table["features"], self.table["to"], strict=True)
            return entered(self.schema, self.frame, [dict(zip(*pair, strict=True)) for pair in stated])
        return self.goals.frame.iloc[self.reference]

    @cached_property
    def differs(self) -> Bools:
        """Where case and reference differ."""
        return differing(self.schema, self.frame, self.beside)

    def check(self, scorer: Scorer, density: KnownDensity | None, report: Report) -> None:
        """Everything but minimality."""
        self._shape(report)
        self._figures(report)
        self._values(report)
        self._allowed(report)
        self._assigned(report)
        self._scores(scorer, density, report)
        self._printed(scorer, report)

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
        wrong(self.is_("UNREACHABLE") & ~proved, "it is said not to be possible, but not proved")
        wrong(self.is_("BUDGET", "ALREADY_NEGATIVE") & proved, "it was stopped early or not searched, but is proved")
        wrong(self.is_("NOT_CREDIBLE") & ((size == 0) | (not self.floored)), "nothing makes it not credible")
        wrong(self.table["all_listed"].to_numpy(dtype=bool) & ~explained, "all its sets are listed, but it has none")
        wrong(self.is_("BUDGET") & ((lower > cost + near) & (size > 0)), "its lower bound is above its cost")
        wrong(self.is_("ALREADY_NEGATIVE") & (lower != 0), "its lower bound is not 0")
        wrong(self.is_("UNREACHABLE") & ~(lower > min(self.rules.most, 1e300)), "its lower bound leaves sets open")
        wrong(~(self.stated("nodes") >= 0), "its nodes are not a count")
        turned = size > 0
        dense = turned if self.settings["credibility"] is not None else np.zeros_like(turned)
        for column in ("score_after", "margin", "l_inf", "log_density"):
            given = ~np.isnan(self.stated(column))
            there = dense if column == "log_density" else turned
            wrong(there != given, f"its {column} is given though it has no answer, or is missing")
        if self.floored:
            floor = float(self.settings["credibility"]["floor"])
            wrong(explained & ~(self.stated("log_density") >= floor), "it is less dense than the floor")

    def _values(self, report: Report) -> None:
        """What is shown is the case's value and the reference's, and they differ."""
        before, after = (self.beside, self.frame) if self.plus else (self.frame, self.beside)
        sizes = self.moved.sum(axis=1)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        for column, frame in (("from", before), ("to", after)):
            shown = [value for row in self.table[column] for value in row]
            lengths = self.table[column].map(len).to_numpy()
            report.rows_wrong(self.rows, lengths != sizes, f'"{column}" has not one value per feature')
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
        if self.goals.domains is not None:
            strange = np.asarray((self.moved & ~self.goals.domains.hold(self.beside)).any(axis=1))
            report.rows_wrong(self.rows, strange, "a value it takes is not one that the run allows")
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
        report.rows_wrong(self.rows, named != wanted, "it has a reference without being refused, or lacks it")
        plain = np.flatnonzero(self.goals.flexible_of < 0)
        if self.goals.assignment != "features" or len(plain) < 2 or self.goals.leaves:
            return
        goals = [self.goals.frame.iloc[np.full(len(self.frame), k)] for k in plain]
        total = np.column_stack([steps(self.schema, self.frame, goal).sum(axis=1) for goal in goals])
        mine = total[np.arange(len(total)), self.goals.unmoved(self.reference)]
        best = total.min(axis=1)
        report.rows_wrong(self.rows, positive & (mine > best + FAR * (1 + best)), "another reference is nearer to it")

    def _scores(self, scorer: Scorer, density: KnownDensity | None, report: Report) -> None:
        """The model's own scores, before and after; and the density there, where it is known."""
        cut, rows = scorer.decision.cut, self.rows
        before = scorer.score(self.frame)
        report.rows_wrong(rows, ~scorer.same(self.stated("score"), before), "the model's score of it is another")
        negative = self.is_("ALREADY_NEGATIVE")
        report.rows_wrong(rows, (before < cut) != negative, "the model's decision on it is another")
        turned = np.flatnonzero(self.moved.any(axis=1))
        if len(turned) == 0:
            return
        case, goal = self.frame.iloc[turned], self.beside.iloc[turned]
        landed = changed(self.schema, case, goal, self.moved[turned], self.plus)
        after = scorer.score(landed)
        report.rows_wrong(rows[turned], ~scorer.turned(after, self.plus), "its answer does not change the outcome")
        if density is not None:
            dense, said = density.log_density(landed), self.stated("log_density")[turned]
            same = (dense == said) | (np.abs(dense - said) <= 1e-6 * np.maximum(1.0, np.abs(dense)))
            report.rows_wrong(rows[turned], ~same, "its log_density is another")
        stated = self.stated("score_after")[turned]
        report.rows_wrong(rows[turned], ~scorer.same(stated, after), "the model's score after the change is another")
        margin = (stated - cut) if self.plus else (cut - stated)
        wrong = ~(np.abs(self.stated("margin")[turned] - margin) <= FAR * np.maximum(1.0, np.abs(margin)))
        report.rows_wrong(rows[turned], wrong, "its margin is not the way from the threshold")

    def _printed(self, scorer: Scorer, report: Report) -> None:
        """The case's numbers with the decimals they are shown with lead to the same outcomes, and changes are seen."""
        schema, cut, decimals = self.schema, scorer.decision.cut, self.stated("decimals")
        wrong = ~np.isnan(decimals) & ~np.isin(decimals, range(18))
        for more in np.unique(decimals[~wrong & ~np.isnan(decimals)]):
            at = np.flatnonzero(decimals == more)
            short = as_printed(schema, self.frame.iloc[at], int(more))
            rounded = differing(schema, short, self.frame.iloc[at]).any(axis=1)
            at, short = at[rounded], short[rounded]
            if len(at) == 0:
                continue
            case, beside, moved = self.frame.iloc[at], self.beside.iloc[at], self.moved[at]
            unseen = (moved & self.differs[at] & ~differing(schema, short, beside)).any(axis=1)
            for shown in (short, changed(schema, case, short, moved, False)):
                unseen |= (scorer.score(shown) < cut) != self.is_("ALREADY_NEGATIVE")[at]
            led = scorer.score(changed(schema, short, beside, moved, self.plus))
            wrong[at] = unseen | (moved.any(axis=1) & ~scorer.turned(led, self.plus))
        report.rows_wrong(self.rows, wrong, "its numbers, as they are shown, lead to another outcome")


def steps(schema: Schema, case: pd.DataFrame, reference: pd.DataFrame) -> Floats:
    """How far each feature goes (n, p): standard deviations for numbers and dates, one step for everything else."""
    out = differing(schema, case, reference).astype(float)
    for j, feature in enumerate(schema.features):
        if not (feature.is_numeric or feature.kind == "datetime"):
            continue
        for column in feature.columns:
            a, b = (as_order(frame[column], feature) for frame in (case, reference))
            out[:, j] = np.where(np.isnan(a) | np.isnan(b), out[:, j], np.abs(a - b) / feature.scale)
    return out


def check_alternatives(claims: Claims, scorer: Scorer, density: KnownDensity | None, report: Report) -> None:
    """Score every listed set again; the one shown is the first of them."""
    listed = claims.table["alternatives"]
    counts = listed.map(len).to_numpy(dtype=np.int64)
    many = counts > int(claims.settings.get("alternatives", counts.max(initial=0)))
    report.rows_wrong(claims.rows, many, "it lists more sets than were asked for")
    whole = claims.table["all_listed"].to_numpy(dtype=bool) & (counts == 0)
    report.rows_wrong(claims.rows, whole, "all its sets are said to be listed, but none is")
    if not counts.any():
        return
    owner = np.repeat(np.arange(len(counts)), counts)
    sets = [changes for row in listed for changes in row]
    moved = claims.sets([[change["feature"] for change in changes] for changes in sets])
    rows, cost = claims.rows[owner], moved @ claims.rules.weights
    shown = claims.moved[owner] @ claims.rules.weights
    report.rows_wrong(rows, np.abs(cost - shown) > FAR * np.maximum(1.0, shown), "an alternative costs more or less")
    first = np.concatenate([[True], owner[1:] != owner[:-1]])
    other = first & (moved != claims.moved[owner]).any(axis=1)
    report.rows_wrong(rows, other, "the first alternative is not the set shown")
    again = pd.Series([(k, one.tobytes()) for k, one in zip(owner, moved, strict=True)]).duplicated().to_numpy()
    report.rows_wrong(rows, again, "a set is listed twice")
    case = claims.frame.iloc[owner]
    report.rows_wrong(rows, _foreign(claims, case, moved, sets), "a value in an alternative is not the case's")
    allowed, turns = _held(claims, owner, case, moved, sets, scorer, density)
    report.rows_wrong(rows, ~allowed, "an alternative is not allowed, or leads to no reference")
    report.rows_wrong(rows, ~turns, "an alternative does not change the outcome, or is not credible")


def _foreign(claims: Claims, case: pd.DataFrame, moved: Bools, sets: Sets) -> Bools:
    """Which sets show a value of the case that it does not have; earlier versions showed none."""
    side = "to" if claims.plus else "from"
    known = iter(json.loads(f"[{','.join(moved_cells(claims.schema, case, moved))}]"))
    names = set(claims.schema.names)
    own = [[(change, next(known)) for change in changes if change["feature"] in names] for changes in sets]
    return np.array([any(change.get(side, value) != value for change, value in pairs) for pairs in own], dtype=bool)


def _held(
    claims: Claims,
    owner: Ints,
    case: pd.DataFrame,
    moved: Bools,
    sets: Sets,
    scorer: Scorer,
    density: KnownDensity | None,
) -> tuple[Bools, Bools]:
    """Which sets the rules allow, and which change the outcome: towards a leaf, or a reference they are like."""
    side, schema, rules = "from" if claims.plus else "to", claims.schema, claims.rules
    stated = [{change["feature"]: change[side] for change in changes if side in change} for changes in sets]
    beside = entered(schema, case if claims.goals.own_values else claims.beside.iloc[owner], stated)
    candidates = claims.goals.candidates(claims.reference[owner]).T
    goals = [] if claims.goals.own_values else [claims.goals.frame.iloc[compared] for compared in candidates]
    allowed, turns = np.zeros(len(owner), dtype=bool), np.zeros(len(owner), dtype=bool)
    for goal in [*goals, beside]:
        like = ~(differing(schema, beside, goal) & moved).any(axis=1)
        if goal is not beside or claims.goals.own_values:
            allowed |= like & rules.allowed(moved, differing(schema, case, goal), rules.permitted(case, goal))
            if claims.goals.domains is not None:
                allowed &= ~(moved & ~claims.goals.domains.hold(goal)).any(axis=1)
        at = np.flatnonzero(like & ~turns)
        if len(at):
            landed = changed(schema, case.iloc[at], goal.iloc[at], moved[at], claims.plus)
            turns[at] = scorer.turned(scorer.score(landed), claims.plus)
            turns[at] &= is_credible(density if claims.floored else None, landed)
    return allowed, turns
