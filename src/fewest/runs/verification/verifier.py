"""`verify`: everything a run folder says, held against data and model, without a line of the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.decision import Decision
from fewest.errors import DataError, FewestError
from fewest.runs.cases import Cases, find
from fewest.runs.run_files import MANIFEST, RunFiles, read_references
from fewest.runs.verification.alternatives import check_alternatives
from fewest.runs.verification.claims import ClaimGoals, Claims
from fewest.runs.verification.integrity import check_data, check_manifest, check_model, check_sums, read_checked
from fewest.runs.verification.minimality import ClaimCubes, refute
from fewest.runs.verification.model_scores import Scorer
from fewest.runs.verification.report import Report
from fewest.runs.verification.rules import StatedRules

CHEAP = 100
DRAWN_BUDGET = 20_000
DRAWN = 200


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

    def _refute(
        self, claims: Claims, rows: npt.NDArray[np.int64], below: npt.NDArray[np.float64], budget: float
    ) -> npt.NDArray[np.int64]:
        """Prove claims again towards every reference that counts; the rows for which that is too much."""
        done = np.ones(len(rows), dtype=bool)
        smaller: dict[int, npt.NDArray[np.bool_]] = {}
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

    def _draw(self, claims: Claims, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Some of these rows; the draw depends on the seed and the row numbers alone."""
        wanted = -(-self.sample * len(claims.table) // max(1, self.run.rows))
        with np.errstate(over="ignore"):
            ticket = (claims.rows[rows].astype(np.uint64) + np.uint64(1 + self.random_state)) * np.uint64(
                0x9E3779B97F4A7C15
            )
            ticket ^= ticket >> np.uint64(29)
            ticket *= np.uint64(0xBF58476D1CE4E5B9)
        return np.sort(rows[np.argsort(ticket, kind="stable")[:wanted]])
