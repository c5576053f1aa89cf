"""What every epoch of a training run came to, kept and shown on stderr: loss, accuracy, the estimate of mean SEV."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pandas as pd


class Epoch(NamedTuple):
    """One pass over the rows: mean loss over the steps, accuracy of the rows as they were met."""

    phase: str
    loss: float
    accuracy: float


class History:
    """Keeps every epoch, and moves a bar where that is wanted."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, float, float, float]] = []
        self.bar: Any = None
        self.task: Any = None

    def add(self, epoch: Epoch, sev: float) -> None:
        """Take note of an epoch; the estimate of mean SEV is NaN where there is none."""
        self.rows.append((len(self.rows) + 1, *epoch, sev))
        if self.bar is not None:
            shown = "" if math.isnan(sev) else f"  mean SEV about {sev:.2f}"
            line = f"{epoch.phase}  loss {epoch.loss:.4f}  accuracy {epoch.accuracy:.3f}{shown}"
            self.bar.update(self.task, advance=1, description=line)

    def table(self) -> pd.DataFrame:
        """Epoch by epoch."""
        return pd.DataFrame(self.rows, columns=["epoch", "phase", "loss", "accuracy", "sev_estimate"])

    @contextmanager
    def shown(self, epochs: int, wanted: bool) -> Iterator[None]:
        """While this lasts, every epoch moves a bar on stderr."""
        if not wanted:
            yield
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=Console(stderr=True)) as self.bar:
            self.task = self.bar.add_task("training", total=epochs)
            yield
        self.bar = None
