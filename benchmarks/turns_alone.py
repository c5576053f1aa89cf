"""Every answer on every positive test row, rebuilt from its displayed values and scored alone by the user's model.

python benchmarks/turns_alone.py [dataset ...] [-- kind ...]
"""

from __future__ import annotations

import sys
import time

from fewest import checks
from fewest.experiments.benchmarking import subjects

DATASETS = ("compas", "german", "adult", "fico", "headline", "diabetes")
KINDS = ("l1lr", "l2lr", "gbdt", "mlp", "histgb", "xgboost", "lightgbm")


def main(arguments: list[str]) -> None:
    datasets = [name for name in arguments if name in DATASETS] or DATASETS
    kinds = [name for name in arguments if name in KINDS] or KINDS
    total = 0
    for name in datasets:
        for kind in kinds:
            began = time.monotonic()
            subject = subjects.subject(name, kind)
            out = subject.explainer(unseen="allow").explain(subject.cases)
            turned = checks.check_turns(out)
            total += turned
            counts = {status: count for status, count in out.counts().items() if count}
            print(
                f"{name:9} {kind:9} {len(out):6} cases, {turned:6} answers, all turn the model alone; {counts}, "
                f"mean SEV {out.summary()['mean SEV']:.3f}, {time.monotonic() - began:.0f} s",
                flush=True,
            )
    print(f"{total} answers, 0 that do not turn the model")


if __name__ == "__main__":
    main(sys.argv[1:])
