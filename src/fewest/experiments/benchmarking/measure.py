"""CPU seconds, medians and rows: ratios inside one run, because the machine is shared and noisy."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

REPEATS = 5


@dataclass(frozen=True)
class Row:
    """One line of the table: a measured value against its target.

    ``met`` is None where the workload could not be run; ``detail`` says why, or gives the figures behind the value.
    ``points`` are what a ladder measured: what was varied, and CPU seconds per case.
    """

    name: str
    value: float | None
    target: str
    met: bool | None
    unit: str
    detail: str = ""
    points: tuple[tuple[float, float], ...] = ()


def at_most(name: str, value: float, limit: float, unit: str, detail: str = "") -> Row:
    """A row whose value may not exceed the limit."""
    return Row(name, _short(value), f"<= {limit:g}", bool(value <= limit), unit, detail)


def at_least(name: str, value: float, limit: float, unit: str, detail: str = "") -> Row:
    """A row whose value must reach the limit."""
    return Row(name, _short(value), f">= {limit:g}", bool(value >= limit), unit, detail)


def skipped(name: str, target: str, why: str) -> Row:
    """A workload that could not be run here."""
    return Row(name, None, target, None, "", why)


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def cpu(work: Callable[[], Any], repeats: int = REPEATS, at_least_seconds: float = 0.02) -> float:
    """Median CPU seconds of a call; short calls are repeated inside one measurement."""
    loops = max(1, int(at_least_seconds / max(timed(work)[1], 1e-6)))
    gc.collect()
    return statistics.median(timed(work, loops)[1] / loops for _ in range(repeats))


def timed(work: Callable[[], Any], loops: int = 1) -> tuple[Any, float]:
    """What a call gives, and its CPU seconds; of several calls, all together."""
    began = time.process_time()
    for _ in range(loops):
        out = work()
    return out, time.process_time() - began


def fresh(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """The last line that Python prints in a process of its own."""
    call = [sys.executable, *arguments]
    done = subprocess.run(call, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return done.stdout.strip().splitlines()[-1]
