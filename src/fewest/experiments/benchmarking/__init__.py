"""The speed table: every workload with its target, measured as ratios inside one run (`fewest bench`)."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator
from dataclasses import asdict

from fewest.errors import UsageError
from fewest.experiments.benchmarking.measure import Row

__all__ = ["Row", "main", "rows"]


def rows(only: list[str] | None = None, quick: bool = False) -> Iterator[Row]:
    """Rows of the workloads, one after the other."""
    from threadpoolctl import threadpool_limits

    from fewest.experiments.benchmarking.workloads import QUICK, WORKLOADS

    unknown = set(only or ()) - set(WORKLOADS)
    if unknown:
        raise UsageError(f"there is no workload {sorted(unknown)[0]!r}", do=f"choose from {', '.join(WORKLOADS)}")
    with threadpool_limits(1):  # CPU seconds of one thread on both sides of every ratio
        for name, work in WORKLOADS.items():
            if (only and name in only) or (not only and (not quick or name in QUICK)):
                yield from work()


def main(json: bool = False, quick: bool = False, only: list[str] | None = None) -> int:
    """Print the table as it is measured; 0 when every target that could be measured is met, 1 otherwise."""
    missed = 0
    for row in rows(only, quick):
        missed += row.met is False
        if json:
            print(json_module.dumps(asdict(row)), flush=True)
        else:
            mark = {True: "met   ", False: "MISSED", None: "skip  "}[row.met]
            value = "-" if row.value is None else f"{row.value:g}"
            print(f"{mark} {row.name:<52} {value:>10} {row.unit} (target {row.target}) {row.detail}", flush=True)
    print(f"{missed} targets missed", file=sys.stderr)
    return 1 if missed else 0
