"""Mean SEV of split 0 beside what the authors' classes give on the same rows, with their reference's columns in order.

fewest paper table sev1 --out DIR; python benchmarks/sev1_agreement.py DIR/points.jsonl
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

# First 1,000 test rows of split 0: SEV1 (column order repaired where it was wrong), SEV-cluster as coded.
AUTHORS = {
    ("compas", "L2LR"): (1.24, 1.18), ("compas", "L1LR"): (1.24, 1.13), ("compas", "MLP"): (1.19, 1.11),
    ("compas", "GBDT"): (1.12, 1.20), ("fico", "L2LR"): (2.84, 2.24), ("fico", "L1LR"): (2.55, 1.78),
    ("fico", "MLP"): (2.67, 2.16), ("fico", "GBDT"): (2.37, 2.08), ("german", "L2LR"): (1.11, 1.11),
    ("german", "L1LR"): (1.00, 1.00), ("german", "MLP"): (1.22, 1.22), ("german", "GBDT"): (1.25, 1.23),
    ("adult", "L2LR"): (1.27, 1.51), ("adult", "L1LR"): (1.12, 1.29), ("adult", "MLP"): (1.38, 1.98),
    ("adult", "GBDT"): (1.24, 1.66), ("headline", "L2LR"): (1.87, 1.55), ("headline", "L1LR"): (1.80, 1.51),
    ("headline", "MLP"): (2.32, 1.65), ("headline", "GBDT"): (1.79, 1.74),
}  # fmt: skip
NEAR = 0.10


def main(path: str) -> None:
    figures = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        unit = json.loads(line)
        if unit["split"] == 0:
            figures.update({(unit["dataset"], record["method"]): record["figures"] for record in unit["records"]})
    print("| dataset | model | authors' SEV1, repaired | here, not rounded | here | authors' SEV-cluster | here |")
    print("|---|---|---|---|---|---|---|")
    near = total = 0
    for (name, kind), (one, cluster) in AUTHORS.items():
        if (name, kind) not in figures:
            continue
        loose, typed, clusters = (figures[name, kind + how]["sev"] for how in (" unrounded", "", " clusters"))
        agrees = abs(loose - one) <= NEAR
        near, total = near + agrees, total + 1
        mark = "" if agrees else " *"
        print(f"| {name} | {kind} | {one:.2f} | {loose:.3f}{mark} | {typed:.3f} | {cluster:.2f} | {clusters:.3f} |")
    print(f"\n{near} of {total} within {NEAR:.2f} (* marks the others).")


if __name__ == "__main__":
    main(sys.argv[1])
