"""Credible SEV: milliseconds per query, and what the floor does to SEV, on the paper's data.

A Gaussian mixture of the negatives (the authors' number of components, our regularisation unless --paper), floor at the
5 % quantile of their own densities; one thread, CPU seconds of `explain` end to end on raw rows, compiled code warm.

    python benchmarks/credible_speed.py [dataset ...] [--kinds l2lr gbdt ...] [--paper] [--reference mean|medoid]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from fewest import credibility, references
from fewest.experiments.benchmarking import subjects

COMPONENTS = {"compas": 5, "german": 3, "adult": 7, "headline": 2, "fico": 4}
CASES = 300


def measured(name: str, kind: str, paper: bool, centre: str, floor: float) -> dict[str, Any]:
    """Figures of one model on one dataset."""
    subject = subjects.subject(name, kind)
    X_train, _, y_train, _ = subjects.load(name)
    dense = credibility.mixture(
        subject.decision, X_train, y_train, quantile=floor, n_components=COMPONENTS[name], paper=paper,
        schema=subject.references.schema,
    )  # fmt: skip
    refs = subject.references
    if centre == "medoid":
        refs = references.single(
            subject.decision, X_train, y_train, centre="medoid", schema=refs.schema, on_positive="allow"
        )
    plain = subject.explainer(unseen="allow").with_(references=refs)
    explainer = plain.with_(credibility=dense)
    cases = subject.cases.iloc[:CASES]
    explainer.explain(cases.iloc[:4])
    began = time.process_time()
    out = explainer.explain(cases)
    spent = time.process_time() - began
    counts = out.counts()
    return {
        "cases": len(cases),
        "ms": 1e3 * spent / len(cases),
        "sev plain": plain.explain(cases).summary()["mean SEV"],
        "sev": out.summary()["mean SEV"],
        "largest": out.summary()["largest SEV"],
        "not credible": counts["NOT_CREDIBLE"] / len(cases),
        "unreachable": counts["UNREACHABLE"] / len(cases),
        "budget": counts["BUDGET"] / len(cases),
        "nodes": float(np.mean(out.answers.nodes)),
        "most nodes": int(np.max(out.answers.nodes)),
        "reference": float(dense.log_density(refs.frame)[0]),
        "floor": dense.floor,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(COMPONENTS))
    parser.add_argument("--kinds", nargs="*", default=["l2lr", "gbdt"])
    parser.add_argument("--paper", action="store_true")
    parser.add_argument("--reference", choices=["mean", "medoid"], default="mean")
    parser.add_argument("--floor", type=float, default=0.05)
    options = parser.parse_args()
    for name in options.names:
        for kind in options.kinds:
            row = measured(name, kind, options.paper, options.reference, options.floor)
            figures = ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
            print(f"{name:9} {kind:5} {options.reference}: {figures}", flush=True)


if __name__ == "__main__":
    main()
