"""Published pipelines against brute force: every set of features, through the pipeline's own scores of raw rows.

Prints a line per pipeline: how it is searched, cases compared, how many were proved, wrong answers, microseconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

import fewest as fw
from fewest.engine.structure import Opaque
from fewest.tables.frames import mix
from published_pipelines import PIPELINES, fitted

WRONG = 6


def ask(model: Any, rows: pd.DataFrame, positive: int) -> np.ndarray:
    """The model's own scores."""
    if hasattr(model, "predict_proba"):
        return np.array(model.predict_proba(rows)[:, positive])
    return np.array(model.decision_function(rows))


def smallest(model: Any, cases: pd.DataFrame, goal: pd.DataFrame, positive: int) -> np.ndarray:
    """The least number of features that turns each case (0 where none does), by asking for every vertex."""
    n, p = cases.shape
    masks = (np.arange(1, 2**p)[:, None] >> np.arange(p)) & 1 == 1
    own, which = np.repeat(np.arange(n), len(masks)), np.tile(np.arange(len(masks)), n)
    take = {name: masks[which, j] for j, name in enumerate(cases.columns)}
    rows = mix(cases.iloc[own].reset_index(drop=True), goal, np.zeros(len(own), dtype=int), take)
    score, cut = ask(model, rows, positive), 0.5 if hasattr(model, "predict_proba") else 0.0
    turned = score < cut
    for near in np.flatnonzero(np.abs(score - cut) < 1e-9):  # a row by itself may round otherwise than beside others
        turned[near] = ask(model, rows.iloc[[near]], positive)[0] < cut
    turned = turned.reshape(n, len(masks))
    size = np.where(turned, masks.sum(axis=1), p + 1).min(axis=1)
    return np.where(size <= p, size, 0)


def compare(name: str, n: int, seed: int) -> dict[str, Any]:
    """Fit, explain and compare one pipeline."""
    model, X, y = fitted(name, n, seed)
    X = X.reset_index(drop=True)
    decision = fw.Decision(model, positive=1)
    references = fw.references.single(decision, X, y, on_positive="allow")
    explainer = fw.Explainer(decision, references, n_jobs=1)
    explainer.look_inside(X)
    began = time.perf_counter()
    out = explainer.explain(X)
    spent = time.perf_counter() - began
    inside = explainer.look_inside(X)  # what was believed to the end
    answers = [answer for answer in out if answer.status != fw.Status.ALREADY_NEGATIVE]
    cases = X.iloc[[answer.row for answer in answers]]
    truth = np.concatenate([
        smallest(model, cases.iloc[low : low + 200], references.frame, 1) for low in range(0, len(cases), 200)
    ])  # fmt: skip
    given = np.array([answer.sev or 0 for answer in answers])
    read = not isinstance(inside.structure, Opaque)
    return {
        "read": read, "strategy": next((answer.proof.strategy for answer in answers if answer.changes), "none"),
        "reason": "" if read else inside.structure.reason, "cases": len(answers),
        "proved": sum(answer.proof.minimal for answer in answers), "wrong": int((given != truth).sum()),
        "seconds": spent,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500, help="rows of each table")
    parser.add_argument("--seeds", type=int, default=4, help="tables of each pipeline")
    parser.add_argument("--pipeline", action="append", help="only these (default: all whose packages are there)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    totals = {"pipelines": 0, "read": 0, "cases": 0, "wrong": 0}
    for name in options.pipeline or PIPELINES:
        needs = PIPELINES[name][1]
        if needs and importlib.util.find_spec(needs) is None:
            print(f"{name:45} left out: pip install {needs}", flush=True)
            continue
        parts = [compare(name, options.rows, seed) for seed in range(options.seeds)]
        cases, wrong = sum(p["cases"] for p in parts), sum(p["wrong"] for p in parts)
        each = 1e6 * sum(p["seconds"] for p in parts[1:]) / max(1, sum(p["cases"] for p in parts[1:]))
        proved = sum(p["proved"] for p in parts)
        print(
            f"{name:45} {parts[0]['strategy']:10} {cases:6} cases {proved:6} proved {wrong:3} wrong {each:8.0f} us"
            f"  {next((p['reason'] for p in parts if p['reason']), '')}", flush=True,
        )  # fmt: skip
        totals["pipelines"] += 1
        totals["read"] += all(p["read"] for p in parts)
        totals["cases"] += cases
        totals["wrong"] += wrong
    print("{read} of {pipelines} pipelines read, {cases} cases, {wrong} wrong".format(**totals))
    return WRONG if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
