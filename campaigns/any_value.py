"""Random models over whole domains, against every combination of allowed values through the user's model.

    python campaigns/any_value.py [--count N] [--seed N] [--kind NAME ...] [--features N] [--seconds N]

Four cases of each model, half of the models with constraints, half with weights. One line per hundred models, then the
count. Ends with 6 where an answer is wrong, with 7 where the time was over first.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

if __name__ == "__main__":  # one thread, said before anything counts the cores; tests import this among other things
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")
sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

import any_value_models

KINDS = ("trees", "histogram", "boosters", "strict", "linear", "strict_linear", "networks", "bare")
WIDEST = {"networks": 5}  # features, where the model is asked about every row within a budget
WRONG, OVER = 6, 7


def main(argv: list[str] | None = None) -> int:
    """Compare, and say what was compared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="models")
    parser.add_argument("--seed", type=int, default=1000, help="number of the first model")
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--features", type=int, default=8, help="features of a model at most")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this many")
    asked = parser.parse_args(argv)
    began, wrong, done = time.monotonic(), 0, 0
    warnings.simplefilter("ignore")
    for number in range(asked.count):
        if time.monotonic() - began > asked.seconds:
            break
        kind, seed = asked.kind[number % len(asked.kind)], asked.seed + number
        widest = min(asked.features, WIDEST.get(kind, asked.features))
        found = any_value_models.compare(getattr(any_value_models, kind), seed, widest=widest)
        done += 1
        wrong += bool(found)
        for line in found:
            print(f"{kind} {seed}: {line}", flush=True)
        if done % 100 == 0:
            print(f"{done} models, {wrong} with a wrong answer", flush=True)
    print(f"{done} models of {asked.count}, four cases each, {wrong} with a wrong answer")
    return WRONG if wrong else OVER if done < asked.count else 0


if __name__ == "__main__":
    sys.exit(main())
