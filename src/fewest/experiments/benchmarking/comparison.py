"""What it costs that everything read of a model is compared with the model: explain with and without it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.engine.model_reading import ModelReading
from fewest.experiments.benchmarking import subjects
from fewest.experiments.benchmarking.measure import Row, at_most
from fewest.experiments.benchmarking.workloads import needs_data, paper_data
from fewest.tables.schema import Schema

ROUNDS = 15


@dataclass(frozen=True)
class Blind(ModelReading):
    """What was read of a model, believed without any comparison: for measurements alone."""

    def check_decisions(self, prepared: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_]) -> None:
        """Believe it."""

    def check_part(
        self, schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame, absent: npt.NDArray[np.bool_]
    ) -> None:
        """Believe it."""

    def drawn(self, cubes: int) -> int:
        """No vertices are drawn."""
        return 0


def comparison() -> Iterator[Row]:
    """CPU of explain with the comparison over that without, in turns: for a table, and for one case after another."""
    for name in ("german", "fico"):
        for kind in ("l2lr", "gbdt", "histgb", "forest8", "mlp"):
            title = f"comparing what was read with the model, {kind}, {name}"
            if name not in paper_data((name,)):
                yield needs_data(title, "<= 1.05")
                continue
            subject = subjects.subject(name, kind)
            whole, alone = (_ratio(subject, cases) for cases in (subject.cases, subject.cases.iloc[:1]))
            detail = f"{len(subject.cases)} cases at once; one case alone {alone:.3f}"
            yield at_most(title, whole, 1.05, "x explain without it", detail)


def _ratio(subject: subjects.Subject, cases: pd.DataFrame) -> float:
    sighted, blind = (subject.explainer(unseen="allow") for _ in range(2))
    inside = blind.look_inside(subject.cases)
    sighted.look_inside(subject.cases)
    blind.reader.reading = Blind(**{part.name: getattr(inside, part.name) for part in fields(ModelReading)})
    return in_turns(partial(sighted.explain, cases), partial(blind.explain, cases))


def in_turns(first: Callable[[], Any], second: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Median of the ratios of two calls' CPU seconds, measured one after the other: both see the same machine."""
    first(), second()  # compiled
    loops = max(1, int(0.05 / max(_seconds(first, 1), 1e-6)))
    return statistics.median(_seconds(first, loops) / _seconds(second, loops) for _ in range(rounds))


def _seconds(work: Callable[[], Any], loops: int) -> float:
    began = time.process_time()
    for _ in range(loops):
        work()
    return time.process_time() - began
