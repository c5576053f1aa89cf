"""What cluster references cost: CPU seconds of explaining all positive test rows against SEV1, in the same run.

python benchmarks/cluster_cost.py [dataset ...]
"""

from __future__ import annotations

import sys
import time
import warnings

from fewest import references
from fewest.decision import Decision
from fewest.errors import FewestWarning
from fewest.experiments.benchmarking.measure import cpu
from fewest.experiments.paper.data import load_split
from fewest.experiments.paper.models import CLUSTERS, MODELS, fit
from fewest.explainer import Explainer


def main(names: list[str]) -> None:
    print("| dataset | model | cases | building clusters, s | SEV1, us/case | clusters, x | by features, x |")
    print("|---|---|---|---|---|---|---|")
    for name in names or list(CLUSTERS):
        rows = load_split(name, 0)
        for kind in MODELS:
            decision = Decision(fit(kind, name, rows.X_train, rows.y_train), positive=1)
            single = references.single(decision, rows.X_train, rows.y_train, on_positive="allow")
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FewestWarning)
                centres = references.clusters(decision, rows.X_train, rows.y_train)
            built = time.process_time() - began
            cases = single.schema.conform(rows.X_test, unseen="allow")
            cases = cases[decision.refuses(cases)]
            ways = (single, centres, centres.with_assignment("features"))
            seconds = [_seconds(decision, refs, cases) for refs in ways]
            ratios = " | ".join(f"{part / seconds[0]:.2f}" for part in seconds[1:])
            print(f"| {name} | {kind} | {len(cases)} | {built:.1f} | {1e6 * seconds[0] / len(cases):.1f} | {ratios} |",
                  flush=True)  # fmt: skip


def _seconds(decision: Decision, refs: references.References, cases: object) -> float:
    explainer = Explainer(decision, refs, n_jobs=1, unseen="allow")
    explainer.explain(cases)
    return cpu(lambda: explainer.explain(cases), repeats=3)


if __name__ == "__main__":
    main(sys.argv[1:])
