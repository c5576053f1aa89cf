"""Mean SEV while explanations have to be credible: the paper's Section 4.3, which prints no table of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from fewest import credibility, references
from fewest.decision import Decision
from fewest.experiments.paper.base import Published, Record, Table, TableColumn, Tell
from fewest.experiments.paper.models import CLUSTERS, accepted, changed_defaults, clusters_of, fit
from fewest.explainer import Explainer
from fewest.results.explanation import Status

KINDS = ("L2LR", "GBDT")
FLOORS = (0.0, 0.01, 0.05, 0.10, 0.25)
QUICK_KINDS, QUICK_FLOORS = ("L2LR",), (0.0, 0.05)
WAYS = ("SEV1", "SEV-cluster")
CASES, QUICK_CASES = 60, 8  # of those decided against among the first test rows
SECONDS, QUICK_SECONDS = 20.0, 2.0  # of one line on one split; cases left then are counted as stopped


class FloorsTable(Table):
    """SEV of the same cases at every floor; what is not credible, and what was not finished, is counted apart."""

    name: ClassVar[str] = "floors"
    stored_as: ClassVar[str] = "floors"
    title: ClassVar[str] = "SEV- while explanations have to be credible"
    datasets: ClassVar[tuple[str, ...]] = tuple(CLUSTERS)
    methods: ClassVar[tuple[str, ...]] = tuple(
        f"{kind} {way} floor {floor:.2f}" for kind in KINDS for way in WAYS for floor in FLOORS
    )
    columns: ClassVar[tuple[TableColumn, ...]] = (
        TableColumn("decided", "cases decided positive", 1),
        TableColumn("explained", "explained", 1),
        TableColumn("sev", "mean SEV"),
        TableColumn("same", "the same at floor 0"),
        TableColumn("not_credible", "none is credible", 1),
        TableColumn("unreachable", "not possible", 1),
        TableColumn("stopped", "stopped", 1),
        TableColumn("log_density", "mean log-density", 1),
    )
    published: ClassVar[Published] = {}
    notes: ClassVar[tuple[str, ...]] = (
        "Floor: the quantile of the accepted training rows' own log-densities below which no explanation may lead; 0 "
        "sets none. The density is the regularised mixture, with as many components as there are clusters.",
        f"Cases: the first {CASES} decided positive (quick: {QUICK_CASES}). Mean SEV is over the explained ones, which "
        "are fewer at a higher floor; beside it the same cases without a floor. None is credible: proved.",
        f"Stopped: not finished {SECONDS:g} s (quick: {QUICK_SECONDS:g} s) after the first case of the line was begun.",
    )

    def settings(self, dataset: str) -> Mapping[str, Any]:
        """Everything that decides the figures beside the data and the split."""
        count, m = clusters_of(dataset, self.folder)
        kinds, floors = (QUICK_KINDS, QUICK_FLOORS) if self.quick else (KINDS, FLOORS)
        return {"models": kinds, "floors": floors, "cases": QUICK_CASES if self.quick else CASES, "n_clusters": count,
                "m": m, "seconds": QUICK_SECONDS if self.quick else SECONDS, **changed_defaults()}  # fmt: skip

    def shown(self, method: str) -> str:
        """Whose procedure SEV-cluster is here."""
        return method.replace(WAYS[1], f"{WAYS[1]}, ours (default),")

    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        """Fit both models on one split and explain the same cases at every floor."""
        rows, settings, records = self.rows(dataset, split), self.settings(dataset), []
        X, y = rows.X_train, rows.y_train
        for kind in settings["models"]:
            decision = Decision(fit(kind, dataset, X, y, self.quick), positive=1)
            density = credibility.mixture(decision, X, y, n_components=settings["n_clusters"])
            cases = rows.X_test[decision.refuses(rows.X_test)].iloc[: settings["cases"]]
            centres = accepted(references.clusters, decision, X, y, n_clusters=settings["n_clusters"], m=settings["m"])
            ways = (references.single(decision, X, y, on_positive="allow"), centres)
            for way, refs in zip(WAYS, ways, strict=True):
                tell(f"    {dataset}, split {split}: {kind} {way}")
                free: Any = None
                for floor in settings["floors"]:
                    name = f"{kind} {way} floor {floor:.2f}"
                    if refs is None or len(cases) == 0:
                        records.append(Record(dataset, name, {"decided": float(len(cases))}))
                        continue
                    wanted = density.at(floor) if floor else None
                    explainer = Explainer(decision, refs, credibility=wanted, n_jobs=1, unseen="allow")
                    explainer.explain(cases.iloc[:1], time_limit=settings["seconds"])  # compiles what there is to
                    out = explainer.explain(cases, time_limit=settings["seconds"])
                    free = out if free is None else free
                    records.append(Record(dataset, name, _figures(out, free, density)))
        return records


def _figures(out: Any, free: Any, density: Any) -> dict[str, float]:
    """Counts by outcome, and SEV of what is explained; of the same cases where nothing was asked of credibility."""
    counts = out.counts()
    sizes, before = (each.answers.moved.sum(axis=1) for each in (out, free))
    found = sizes > 0
    return {
        "decided": float(len(out)),
        "explained": float(counts[Status.EXPLAINED]),
        "sev": float(sizes[found].mean()) if found.any() else math.nan,
        "same": float(before[found].mean()) if found.any() else math.nan,
        "not_credible": float(counts[Status.NOT_CREDIBLE]),
        "unreachable": float(counts[Status.UNREACHABLE]),
        "stopped": float(counts[Status.BUDGET]),
        "log_density": float(density.log_density(out.turned()[found]).mean()) if found.any() else math.nan,
    }
