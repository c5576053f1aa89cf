"""`verify`: everything a run folder says, held against data and model, without a line of the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, zip_longest
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, FewestError
from fewest.runs.cases import Cases, find
from fewest.runs.run_files import MANIFEST, RunFiles, read_references
from fewest.runs.verification.base import Report, Scorer
from fewest.runs.verification.claims import ClaimGoals, Claims, check_alternatives
from fewest.runs.verification.integrity import check_data, check_manifest, check_model, check_sums, read_checked
from fewest.runs.verification.rules import StatedRules, differing
from fewest.tables.arrays import Bools, Floats, Ints

CHEAP = 100
DRAWN_BUDGET = 20_000
DRAWN = 200
VERTICES = 20_000
LEAST = 1e-9


def verify(
    run: str | Path,
    data: str | Path | Sequence[str | Path],
    decision: Decision,
    *,
    model_file: str | Path | None = None,
    cheap: int = CHEAP,
    sample: int = DRAWN,
    random_state: int = 0,
) -> Report:
    """Check a finished run folder.

    Every answer is scored again by the model, every value shown is compared with the data and the references, every
    file with its checksum. That nothing smaller exists is proved again by asking the model about all smaller sets,
    for all cases in which there are few, and for a sample of the others.

    Parameters
    ----------
    run : path
        The run folder.
    data : path or sequence of paths
        What was explained.
    decision : Decision
    model_file : path, optional
        The file the model came from; its checksum is compared.
    cheap : int
        Claims with at most this many smaller sets are all proved again.
    sample : int
        About this many of the others are drawn, at least one per part; of these, claims with at most 20,000 smaller
        sets are proved again.
    random_state : int
        Of the draw.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import fewest as fw
    >>> from fewest.runs import explain_files
    >>> folder = Path(tempfile.mkdtemp())
    >>> pd.DataFrame({"debt": [10, 90], "age": [30, 40]}).to_csv(folder / "cases.csv", index=False)
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [20], "age": [50]})
    >>> run = explain_files(fw.Explainer(decision, refs), folder / "cases.csv", folder / "run", n_jobs=1)
    >>> print(verify(run.path, folder / "cases.csv", decision))
    2 answers checked, 3 rows scored again, 1 proofs done again, 0 of the longer ones drawn, 0 left. Nothing is wrong.
    """
    report, paths = Report(), find(data)
    try:
        opened = RunFiles.open(run)
    except DataError as error:
        if not (Path(run) / MANIFEST).is_file():
            raise
        report.add(error.message)
        return report
    try:
        check_manifest(opened, report)
        check_data(opened, paths, report)
        check_model(opened, None if model_file is None else Path(model_file), report)
        check_sums(opened, report)
        RunVerifier(opened, decision, cheap, sample, random_state, report).parts(paths)
    except FewestError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, OSError) as error:
        report.add(f"the folder cannot be understood: {type(error).__name__}: {error}")
    return report


class RunVerifier:
    """One pass over the parts of a run."""

    def __init__(
        self, run: RunFiles, decision: Decision, cheap: int, sample: int, random_state: int, report: Report
    ) -> None:  # fmt: skip
        self.run, self.cheap, self.sample, self.random_state, self.report = run, cheap, sample, random_state, report
        self.settings: Mapping[str, Any] = run.manifest["settings"]
        self.scorer = Scorer(decision)
        self.schema = run.schema
        self.rules = StatedRules.read(self.schema, self.settings)
        content = run.references()
        names, frame = read_references(content)
        twins = [entry.get("twin_of") for entry in content["references"]]
        flexible_of = np.array([-1 if name is None else names.index(name) for name in twins], dtype=np.int64)
        leaves = content.get("provenance", {}).get("kind") == "leaves"
        self.goals = ClaimGoals(names, frame, flexible_of, str(self.settings["assignment"]), leaves)
        if abs(decision.cut - float(self.settings["threshold"])) > 0:
            report.add(f"the threshold is {decision.cut:g}, the run's is {self.settings['threshold']:g}")

    def parts(self, paths: tuple[Path, ...]) -> None:
        """All parts, each beside its rows of the data."""
        size = int(self.settings["part_rows"])
        cases = Cases(paths, self.schema, size, self.settings["unseen"])
        for part, raw in zip_longest(self.run.manifest["parts"], self._raw(cases)):
            if part is None:
                self.report.add("the data have more rows than the run")
                break
            table = read_checked(self.run, part, self.report)
            if raw is None:
                self.report.add(f"{part['table']['name']}: the data have no such rows")
                break
            if table is None:
                continue
            try:
                frame = cases.typed(raw)
            except FewestError as error:
                self.report.add(error.message)
                continue
            if len(frame) != len(table):
                self.report.add(f"{part['table']['name']} speaks of {len(table)} rows, the data have {len(frame)}")
                continue
            self._part(Claims(table, frame, self.goals, self.rules, self.settings))

    def _raw(self, cases: Cases) -> Iterator[Any]:
        try:
            yield from cases.parts()
        except FewestError as error:
            self.report.add(error.message)

    def _part(self, claims: Claims) -> None:
        self.report.rows += len(claims.table)
        claims.check(self.scorer, self.report)
        check_alternatives(claims, self.scorer, self.report)
        self._minimal(claims)
        self.report.rescored = self.scorer.rows

    def _minimal(self, claims: Claims) -> None:
        """Proofs again: all cheap ones, and a draw of the others."""
        below = np.where(claims.is_("EXPLAINED"), claims.stated("cost"), claims.stated("lower_bound"))
        below = np.where(claims.is_("UNREACHABLE"), np.inf, below)
        claimed = claims.is_("EXPLAINED", "UNREACHABLE", "BUDGET", "NOT_CREDIBLE")
        if self.settings["credibility"] is not None or self.goals.leaves:
            self.report.unproved += int(claimed.sum())
            return
        rows = np.flatnonzero(claimed)
        if len(rows) == 0:
            return
        left = self._refute(claims, rows, below, self.cheap)
        self.report.reproved += len(rows) - len(left)
        drawn = self._draw(claims, left)
        long = self._refute(claims, drawn, below, DRAWN_BUDGET) if len(drawn) else drawn
        self.report.sampled += len(drawn) - len(long)
        self.report.unproved += len(left) - len(drawn) + len(long)

    def _refute(self, claims: Claims, rows: Ints, below: Floats, budget: float) -> Ints:
        """Prove claims again towards every reference that counts; the rows for which that is too much."""
        done = np.ones(len(rows), dtype=bool)
        smaller: dict[int, Bools] = {}
        candidates = self.goals.candidates(claims.reference[rows])
        for column in range(candidates.shape[1]):
            beside = self.goals.frame.iloc[candidates[:, column]]
            cubes = ClaimCubes(self.rules, claims.frame.iloc[rows], beside, below[rows], claims.plus)
            proved, found = refute(cubes, self.scorer, budget / candidates.shape[1])
            done &= proved
            smaller = {**found, **smaller}
        for k, moved in sorted(smaller.items()):
            names = ", ".join(np.array(self.schema.names)[moved])
            self.report.add(f"row {claims.rows[rows[k]]}: a smaller set turns the model: {names}")
        return rows[~done]

    def _draw(self, claims: Claims, rows: Ints) -> Ints:
        """Some of these rows; the draw depends on the seed and the row numbers alone."""
        wanted = -(-self.sample * len(claims.table) // max(1, self.run.rows))
        ticket = claims.rows[rows].astype(np.uint64) + np.uint64(1 + self.random_state)
        ticket *= np.uint64(0x9E3779B97F4A7C15)
        ticket ^= ticket >> np.uint64(29)
        ticket *= np.uint64(0xBF58476D1CE4E5B9)
        return np.sort(rows[np.argsort(ticket, kind="stable")[:wanted]])


@dataclass(frozen=True)
class ClaimCubes:
    """Cases, each with the reference beside it, and the claim that no set cheaper than ``below`` turns it."""

    rules: StatedRules
    case: pd.DataFrame  # (n, columns)
    reference: pd.DataFrame  # (n, columns)
    below: Floats  # (n,) float: Infinite where no set at all is said to turn the case
    plus: bool  # Whether the case's values are put onto the reference, instead of the other way round


@dataclass(frozen=True)
class ClaimUnits:
    """What can move in each case, as units."""

    members: Bools  # (u, p) bool
    differs: Bools  # (n, p) bool
    permitted: Bools  # (n, p) bool
    movable: Bools  # (n, u) bool
    cost: Floats  # (n, u) float

    @classmethod
    def of(cls, cubes: ClaimCubes) -> ClaimUnits:
        """The units of cases towards their references."""
        rules = cubes.rules
        unit = rules.units()
        members = unit == np.arange(unit.max() + 1)[:, None]
        differs = differing(rules.schema, cubes.case, cubes.reference)
        permitted = rules.permitted(cubes.case, cubes.reference)
        held = (differs & ~permitted).astype(int) @ members.T.astype(int) > 0
        present = differs.astype(int) @ members.T.astype(int) > 0
        cost = (differs * rules.weights) @ members.T.astype(float)
        return cls(members, differs, permitted, present & ~held, cost)

    def levels(self, below: Floats, most: float) -> tuple[Ints, Floats]:
        """For each case the largest number of units that can cost less than ``below``, and how many sets that makes."""
        limit = np.minimum(below * (1 - LEAST), most)
        cheapest = np.cumsum(np.sort(np.where(self.movable, self.cost, np.inf), axis=1), axis=1)
        deepest = (cheapest <= limit[:, None]).sum(axis=1)
        width = self.movable.sum(axis=1)
        pairs, which = np.unique(np.column_stack([width, deepest]), axis=0, return_inverse=True)
        sets = [float(sum(comb(m, k) for k in range(1, depth + 1))) for m, depth in pairs.tolist()]
        return deepest, np.array(sets)[which]


def refute(cubes: ClaimCubes, scorer: Scorer, budget: float) -> tuple[Bools, dict[int, Bools]]:
    """Which claims were proved again within a budget of sets per case (n,), and the cheaper set where one is false."""
    units = ClaimUnits.of(cubes)
    deepest, sets = units.levels(cubes.below, cubes.rules.most)
    cheap = sets <= budget
    found: dict[int, Bools] = {}
    width = units.movable.sum(axis=1)
    order = np.argsort(~units.movable, axis=1, kind="stable")
    for m, depth in sorted({(int(m), int(d)) for m, d in zip(width[cheap], deepest[cheap], strict=True) if d}):
        rows = np.flatnonzero(cheap & (width == m) & (deepest == depth))
        for size in range(1, depth + 1):
            chosen = _choices(m, size)
            for part in _pieces(rows, len(chosen)):
                for piece in _pieces(np.arange(len(chosen)), 1):
                    _ask(cubes, units, scorer, part, order[part][:, chosen[piece]], found)
    return cheap, found


def _ask(
    cubes: ClaimCubes, units: ClaimUnits, scorer: Scorer, rows: Ints, chosen: Ints, found: dict[int, Bools]
) -> None:
    """Ask the model about sets of units (rows, sets, size); note those that turn it and should not."""
    r, c, _ = chosen.shape
    case = np.repeat(rows, c)
    member = np.zeros((r * c, units.movable.shape[1]), dtype=bool)
    np.put_along_axis(member, chosen.reshape(r * c, -1), True, axis=1)
    moved = (member.astype(int) @ units.members.astype(int) > 0) & units.differs[case]
    cost = moved @ cubes.rules.weights
    below = cubes.below[case]
    fits = cost < below * (1 - LEAST)
    fits &= cubes.rules.allowed(moved, units.differs[case], units.permitted[case])
    case, moved = case[fits], moved[fits]
    if len(case) == 0:
        return
    start, goal = cubes.case.iloc[case], cubes.reference.iloc[case]
    for k in np.flatnonzero(scorer.after(cubes.rules.schema, start, goal, moved, cubes.plus)[1]):
        found.setdefault(int(case[k]), moved[k])


@lru_cache(maxsize=64)
def _choices(m: int, size: int) -> Ints:
    """All sets of ``size`` out of m, one per row."""
    return np.array(list(combinations(range(m), size)), dtype=np.int64).reshape(-1, size)


def _pieces(rows: Ints, each: int) -> Iterator[Ints]:
    """Rows in pieces that make at most this many vertices."""
    step = max(1, VERTICES // max(1, each))
    for first in range(0, len(rows), step):
        yield rows[first : first + step]
