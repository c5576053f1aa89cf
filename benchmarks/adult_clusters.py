"""Why SEV-cluster of Adult's logistic regressions is above what the paper prints: the authors' preset, changed in turn.

python benchmarks/adult_clusters.py SPLITS

appends to docs/benchmarks/units/adult_clusters.jsonl, split by split, the mean SEV of

- ``authors``: the preset with their 7 clusters and m = 3;
- ``m 1.01``: with the m that another of their scripts has;
- ``no level``: their medians of one-hot columns, which have no level where none has half of a cluster's rows: such
  features of the references have a level that no row has, so that all its columns are zero.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from fewest import references
from fewest.decision import Decision
from fewest.experiments.paper.data import Rows, load_split
from fewest.experiments.paper.models import CASES, CLUSTERS, fit, quietly
from fewest.explainer import Explainer
from fewest.references import References

UNITS = Path(__file__).parents[1] / "docs" / "benchmarks" / "units" / "adult_clusters.jsonl"
KINDS = ("L1LR", "L2LR")
COUNT, M = CLUSTERS["adult"]
OTHER_M = 1.01
NO_LEVEL = "(none)"


def mean_sev(decision: Decision, refs: References, rows: Rows) -> float:
    """Over the cases that the tables explain."""
    cases = rows.X_test.iloc[:CASES]
    cases = cases[decision.refuses(cases)]
    return float(Explainer(decision, refs, n_jobs=1, unseen="allow").explain(cases).sev.mean())


def without_levels(decision: Decision, refs: References, rows: Rows) -> tuple[References, int]:
    """Levels taken off where none has half of a reference's rows, and how many; its rows: accepted, nearest to it."""
    assert refs.assigner is not None
    accepted = rows.X_train[(rows.y_train == 0) & ~decision.refuses(rows.X_train)]
    nearest = refs.assigner.assign(accepted)
    frame, count = refs.frame.astype(dict.fromkeys(refs.frame.select_dtypes(exclude="number"), object)), 0
    for number in range(len(frame)):
        own = accepted[nearest == number]
        for name in frame.select_dtypes(exclude="number"):
            if own[name].nunique() > 2 and own[name].value_counts(normalize=True).iloc[0] < 0.5:
                frame.iloc[number, frame.columns.get_loc(name)] = NO_LEVEL
                count += 1
    frame = frame.astype(refs.frame.dtypes.to_dict()) if count == 0 else frame
    return replace(refs, frame=frame, score=decision.verdicts(frame).score), count


def measure(split: int) -> list[dict[str, Any]]:
    """Both models on one split."""
    rows, out = load_split("adult", split), []
    for kind in KINDS:
        decision = Decision(fit(kind, "adult", rows.X_train, rows.y_train), positive=1)
        with quietly():
            made = {
                m: references.clusters(decision, rows.X_train, rows.y_train, n_clusters=COUNT, m=m, preset="authors")
                for m in (M, OTHER_M)
            }
        bare, taken = without_levels(decision, made[M], rows)
        lines = {"authors": made[M], f"m {OTHER_M}": made[OTHER_M], "no level": bare}
        figures = {name: mean_sev(decision, refs, rows) for name, refs in lines.items()}
        out.append({"split": split, "model": kind, "references": len(made[M]), "levels taken off": taken, **figures})
    return out


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        with UNITS.open("a", encoding="utf-8") as file:
            for line in measure(number):
                print(line, flush=True)
                file.write(json.dumps(line) + "\n")
