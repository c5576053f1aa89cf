"""`verify`: everything a run folder says, held against data and model, without a line of the search."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, FewestError, UsageError
from fewest.runs.bad_rows import bad_rows
from fewest.runs.cases import Cases, find
from fewest.runs.run_files import MANIFEST, RunFiles, read_references
from fewest.runs.verification import integrity
from fewest.runs.verification.base import KnownDensity, Report, Scorer
from fewest.runs.verification.claims import ClaimGoals, Claims, check_alternatives
from fewest.runs.verification.domains import DomainClaims, StatedDomains
from fewest.runs.verification.leaves import LeafProver, Node
from fewest.runs.verification.minimality import ClaimCubes, ClaimLimits, Refuted, refute
from fewest.runs.verification.rules import StatedRules
from fewest.runs.verification.statements import check_references, check_statements, check_tree
from fewest.tables.arrays import Bools, Ints
from fewest.tables.schema import Schema

CHEAP = 100
DRAWN_BUDGET = 20_000
DRAWN = 200
HEAD = 48
# What reading a folder can end in that holds other things than it should
NOT_UNDERSTOOD = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
ReadTree = Callable[[Decision, Schema, pd.DataFrame], Node]


def verify(
    run: str | Path,
    data: str | Path | Sequence[str | Path],
    decision: Decision,
    *,
    model_file: str | Path | None = None,
    references: pd.DataFrame | None = None,
    schema: Schema | None = None,
    credibility: KnownDensity | None = None,
    read_tree: ReadTree | None = None,
    cheap: int = CHEAP,
    sample: int = DRAWN,
    random_state: int | None = None,
) -> Report:
    """Check a finished run folder.

    Every answer is scored again by the model, every value shown is compared with the data and the references, every
    figure is counted again, every file compared with its checksum. That nothing smaller exists is proved again by
    asking the model about all smaller sets, for all cases in which there are few, and for some of the others; of the
    rest, some smaller sets of every case are asked about. What is left unproved is counted.

    Parameters
    ----------
    run : path
        The run folder.
    data : path or sequence of paths
        What was explained.
    decision : Decision
        The model with the class and the threshold that the run should have.
    model_file : path, optional
        The file the model came from; its checksum is compared.
    references : table, optional
        What cases should have been compared with, in this order; names are compared where the index has them.
    schema : Schema, optional
        What is known of the features; their labels and units are left unproved without it.
    credibility : Credibility, optional
        The density of a run with a floor. Without it, answers that depend on the floor are left unproved.
    read_tree : callable, optional
        How the tree of a model is read: `fewest.models.trees.read_plain`. It belongs to the search, so it is handed
        in, and what it gives is tried on the model. Without it, answers towards leaves are left unproved.
    cheap : int
        About this many smaller sets are asked about in every case; where there are no more, the claim is proved again.
    sample : int
        About this many of the other claims, at least one per part, get up to 20,000 sets: half of them the largest
        ones, half drawn.
    random_state : int, optional
        Seed for sampling. Default: one that nobody knows before; it is in the report.

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
    >>> report = verify(run.path, folder / "cases.csv", decision)
    >>> report.ok, report.complete, report.share, report.claimed["threshold"]
    (True, True, 1.0, '0.5 (function)')
    """
    seed = secrets.randbits(32) if random_state is None else random_state
    report, paths = Report(random_state=seed), find(data)
    try:
        opened = RunFiles.open(run)
    except NOT_UNDERSTOOD as error:
        if not (Path(run) / MANIFEST).is_file():
            raise
        report.add(getattr(error, "message", f"{MANIFEST} cannot be read: {type(error).__name__}"))
        return report
    try:
        integrity.check_manifest(opened, report)
        integrity.check_data(opened, paths, report)
        integrity.check_model(opened, None if model_file is None else Path(model_file), report)
        integrity.check_order(opened, report)
        check_statements(opened, decision, credibility, schema, report)
        verifier = RunVerifier(opened, decision, credibility, (cheap, sample), report)
        verifier.check(paths, references, read_tree)
    except FewestError:
        raise
    except NOT_UNDERSTOOD as error:
        report.add(f"the folder cannot be understood: {type(error).__name__}: {error}")
    return report


class RunVerifier:
    """One pass over the parts of a run."""

    def __init__(
        self, run: RunFiles, decision: Decision, density: KnownDensity | None, budget: tuple[int, int], report: Report
    ) -> None:  # fmt: skip
        self.run, self.density, self.report = run, density, report
        self.cheap, self.sample = budget
        self.draw = np.random.default_rng(report.random_state)
        self.settings: Mapping[str, Any] = run.manifest["settings"]
        self.scorer = Scorer(decision)
        self.schema = run.schema
        self.rules = StatedRules.read(self.schema, self.settings)
        self.content = run.references()
        names, frame = read_references(self.content)
        twins = [entry.get("twin_of") for entry in self.content["references"]]
        flexible_of = np.array([-1 if name is None else names.index(name) for name in twins], dtype=np.int64)
        made = self.content.get("provenance", {})
        domains = StatedDomains.read(self.schema, made["values"]) if made.get("kind") == "anyone" else None
        leaves = made.get("kind") == "leaves"
        self.goals = ClaimGoals(names, frame, flexible_of, str(self.settings["assignment"]), leaves, domains)
        self.prover: LeafProver | None = None

    def check(self, paths: tuple[Path, ...], references: pd.DataFrame | None, read_tree: ReadTree | None) -> None:
        """The references, the tree, and all parts, each beside its rows of the data."""
        check_references(self.content, self.goals.frame, self.run, references, self.scorer, self.report)
        size = int(self.settings["part_rows"])
        if size < 1:
            raise ValueError(f"part_rows is {size}")
        named = self.settings.get("id")
        cases = self._without_bad_rows(Cases(paths, self.schema, size, self.settings["unseen"], named))
        head = self._head(cases)
        if head is not None:
            integrity.check_scores(self.run, self.scorer.decision, (head, self.goals.frame), self.report)
        self._read_tree(head, read_tree)
        total: dict[str, Counter[str]] = {name: Counter() for name in integrity.FIGURES}
        for part, raw in zip_longest(self.run.manifest["parts"], self._raw(cases)):
            if part is None:
                self.report.add("the data have more rows than the run")
                break
            table = integrity.read_checked(self.run, part, self.report)
            if raw is None:
                self.report.add("{}: the data have no such rows", [part["table"]["name"]])
                break
            if table is None:
                continue
            counted = integrity.tally(table)
            integrity.check_figures(part, counted, part["table"]["name"], self.report)
            for name, counts in counted.items():
                total[name].update(counts)
            try:
                frame = cases.typed(raw)
            except FewestError as error:
                self.report.add(error.message)
                continue
            if len(frame) != len(table):
                what = f"{{}} speaks of {len(table)} rows, the data have {len(frame)}"
                self.report.add(what, [part["table"]["name"]])
                continue
            integrity.check_cases(self.run, part, frame, self.report)
            integrity.check_labels(table, cases.labels(raw), self.report)
            self._part(Claims(table, frame, self.goals, self.rules, self.settings))
        integrity.check_figures(self.run.manifest, total, MANIFEST, self.report)

    def _without_bad_rows(self, cases: Cases) -> Cases:
        """The data without the rows that cannot be explained, where the run left such rows out: they are found anew."""
        said = self.run.manifest.get("rejected")
        if said is None:
            return cases
        found = bad_rows(cases, self.scorer.decision.score)
        integrity.check_rejected(self.run, found, self.report)
        return replace(cases, left_out=tuple(found["row"].tolist()))

    def _head(self, cases: Cases) -> pd.DataFrame | None:
        """The first rows of the data; None where they cannot be read, which is reported with their part."""
        with suppress(DataError, UsageError):
            return cases.head(HEAD)
        return None

    def _read_tree(self, head: pd.DataFrame | None, read_tree: ReadTree | None) -> None:
        """The tree of the model, tried on it; where the run speaks of leaves, they are walked to."""
        tree, wanted = None, self.goals.leaves or self.run.manifest.get("tree") is not None
        if read_tree is not None and head is not None and wanted:
            with suppress(FewestError):
                tree = read_tree(self.scorer.decision, self.schema, head)
        check_tree(self.run, tree, self.report)
        if tree is not None and head is not None:
            prover = LeafProver.build(tree["tree"], self.rules)
            with suppress(FewestError):  # a model may refuse values at the very ends of a condition
                self.prover = prover if prover.holds(head, self.scorer, self.draw) else None
            if self.prover is None:
                self.report.leave("what was read of the model's tree does not decide as the model does")
        if self.goals.leaves and self.run.manifest.get("tree") is None and self.run.manifest["format"] > 1:
            self.report.add("the run speaks of leaves, but holds no tree")

    def _raw(self, cases: Cases) -> Iterator[Any]:
        try:
            yield from cases.parts()
        except FewestError as error:
            self.report.add(error.message)

    def _part(self, claims: Claims) -> None:
        self.report.rows += len(claims.table)
        claims.check(self.scorer, self.density, self.report)
        check_alternatives(claims, self.scorer, self.density, self.report)
        self._minimal(claims)
        self.report.rescored = self.scorer.rows

    def _minimal(self, claims: Claims) -> None:
        """Proofs again: all cheap ones, some of the others, and of every case at least single features."""
        limits, provable = claims.limits(self.density is not None)
        rows = np.flatnonzero(claims.is_("EXPLAINED", "UNREACHABLE", "BUDGET", "NOT_CREDIBLE"))
        if len(rows) == 0:
            return
        if self.goals.leaves:
            done, refuted = np.zeros(len(rows), dtype=bool), Refuted()
            if self.prover is not None:
                refuted = self.prover.refute(claims.frame.iloc[rows], limits.take(rows), self.scorer, self.density)
                done = ~refuted.among(len(rows))
            self._report(claims, rows, refuted)
            left, drawn, long = rows[~(done & provable[rows])], rows[:0], rows[:0]
        else:
            left = self._refute(claims, rows, limits, provable, self.cheap)
            drawn = self._drawn(claims, left[provable[left]], limits)
            long = self._refute(claims, drawn, limits, provable, DRAWN_BUDGET) if len(drawn) else drawn
        self.report.reproved += len(rows) - len(left)
        self.report.sampled += len(drawn) - len(long)
        self.report.unproved += len(left) - len(drawn) + len(long)

    def _refute(self, claims: Claims, rows: Ints, limits: ClaimLimits, provable: Bools, budget: float) -> Ints:
        """Ask about sets towards every reference that counts; the rows whose claim is not proved."""
        done, found = np.ones(len(rows), dtype=bool), Refuted()
        if self.goals.domains is not None:
            density = self.density if claims.floored else None
            asked = DomainClaims(self.goals.domains, self.rules, claims.frame.iloc[rows], limits.take(rows), density)
            done, found = asked.refute(self.scorer, int(budget), self.draw)
            self._report(claims, rows, found)
            return rows[~(done & provable[rows])]
        candidates = self.goals.candidates(claims.reference[rows])
        for column in range(candidates.shape[1]):
            towards = candidates[:, column]
            shown = claims.moved[rows] & (towards == claims.reference[rows])[:, None]
            cubes = ClaimCubes(
                self.rules, claims.frame.iloc[rows], self.goals.frame.iloc[towards], limits.take(rows), shown,
                claims.plus, self.density if claims.floored else None,
            )  # fmt: skip
            proved, refuted = refute(cubes, self.scorer, budget / candidates.shape[1], self.draw)
            done &= proved
            found = Refuted({**refuted.smaller, **found.smaller}, {**refuted.unlisted, **found.unlisted})
        self._report(claims, rows, found)
        return rows[~(done & provable[rows])]

    def _report(self, claims: Claims, rows: Ints, found: Refuted) -> None:
        for what, sets in (
            ("a smaller set changes the outcome", found.smaller),
            ("a smallest set is not listed, though all are said to be", found.unlisted),
        ):
            for k, moved in sorted(sets.items()):
                if int(rows[k]) not in claims.refuted:
                    names = ", ".join(np.array(self.schema.names)[moved])
                    claims.refuted.add(int(rows[k]))
                    self.report.add(f"row {{}}: {what}", [claims.rows[rows[k]]], f": {names}")

    def _drawn(self, claims: Claims, rows: Ints, limits: ClaimLimits) -> Ints:
        """Some of these rows: half of them those with the largest claims, half by chance."""
        wanted = -(-self.sample * len(claims.table) // max(1, self.run.rows))
        mixed = self.draw.permutation(rows)
        large = np.argsort(-np.maximum(limits.plain, limits.below)[mixed], kind="stable")[: -(-wanted // 2)]
        others = np.delete(mixed, large)[: max(0, wanted - len(large))]
        return np.sort(np.concatenate([mixed[large], others]))
