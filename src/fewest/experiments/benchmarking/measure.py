"""CPU seconds, medians and rows: ratios inside one run, because the machine is shared and noisy."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

REPEATS = 5


@dataclass(frozen=True)
class Row:
    """One line of the table: a measured value against its target.

    ``met`` is None where the workload could not be run; ``detail`` says why, or gives the figures behind the value.
    """

    name: str
    value: float | None
    target: str
    met: bool | None
    unit: str
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


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
    began = time.process_time()
    work()
    once = max(time.process_time() - began, 1e-6)
    loops = max(1, int(at_least_seconds / once))
    seconds = []
    gc.collect()
    for _ in range(repeats):
        began = time.process_time()
        for _ in range(loops):
            work()
        seconds.append((time.process_time() - began) / loops)
    return statistics.median(seconds)
