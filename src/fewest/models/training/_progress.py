"""How training shows itself on stderr: a bar with loss, accuracy and the estimate of mean SEV."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd

from fewest.models.training._trainer import Epoch


class Diary:
    """Keeps what every epoch came to, and shows it where that is wanted.

    Examples
    --------
    >>> diary = Diary()
    >>> diary(Epoch("SEV", 0.61, 0.7), 1.25)
    >>> diary.table()
       epoch phase  loss  accuracy  sev_estimate
    0      1   SEV  0.61       0.7          1.25
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, float, float, float]] = []
        self.bar: Any = None
        self.task: Any = None

    def __call__(self, epoch: Epoch, sev: float) -> None:
        """Take note of an epoch."""
        self.rows.append((len(self.rows) + 1, *epoch, sev))
        if self.bar is not None:
            self.bar.update(self.task, advance=1, description=_words(epoch, sev))

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


def _words(epoch: Epoch, sev: float) -> str:
    shown = "" if math.isnan(sev) else f"  mean SEV about {sev:.2f}"
    return f"{epoch.phase}  loss {epoch.loss:.4f}  accuracy {epoch.accuracy:.3f}{shown}"
