"""Search times of an isolation forest and of extra trees of the same number and depth, on FICO.

FEWEST_DATA=../shared/data python benchmarks/detector_search.py. CPU time of the search alone, per case: of all
cases, of rows that differ (one call each), and of these by size of the answer. Flagged rows repeat: most have every
value missing.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, IsolationForest

import fewest as fw
from fewest.datasets import load
from fewest.engine.search import first_answers

CASES, TRAIN = 400, 6000


def main() -> None:
    warnings.simplefilter("ignore")
    clock, solve = [0.0], first_answers.solve

    def timed(structure: Any, *given: Any, **more: Any) -> Any:
        first_answers.READINESS.loaded.add(type(structure))
        began = time.process_time()
        found = solve(structure, *given, **more)
        clock[0] += time.process_time() - began
        return found

    first_answers.solve = timed
    fico = load("fico")
    X, y = fico.X.select_dtypes("number"), np.asarray(fico.y)
    train, labels = X.iloc[:TRAIN], y[:TRAIN]
    models = {
        "IsolationForest, 100 trees of 256 rows": (IsolationForest(max_samples=256, random_state=0).fit(train), None),
        "ExtraTreesClassifier, 100 of depth 8": (
            ExtraTreesClassifier(max_depth=8, random_state=0).fit(train, labels), labels,
        ),
    }  # fmt: skip
    for name, (model, known) in models.items():
        decision = fw.Decision(model)
        explainer = fw.Explainer(decision, fw.references.single(decision, train, known, on_positive="allow"), n_jobs=1)
        cases = X[decision.refuses(X)].iloc[:CASES]
        explainer.explain(cases.iloc[:20])
        clock[0] = 0.0
        explainer.explain(cases)
        together = clock[0] / len(cases)
        alone: dict[int, list[float]] = {}
        distinct = cases.drop_duplicates()
        for row in range(len(distinct)):
            clock[0] = 0.0
            answer = explainer.explain(distinct.iloc[[row]])[0]
            alone.setdefault(answer.sev or 0, []).append(clock[0])
        each = [spent for size in alone for spent in alone[size]]
        print(f"{name}: {1e3 * together:.2f} ms a case of {len(cases)}", end="; ")
        print(f"{1e3 * np.mean(each):.2f} ms a row of {len(each)} that differ")
        for size in sorted(alone):
            says = f"{size} features" if size else "unreachable"
            print(f"  {says}: {len(alone[size])} rows, {1e3 * np.mean(alone[size]):.2f} ms each")


if __name__ == "__main__":
    main()
