"""Run folders as people look at them: what a report and the explorer show, without the model and without the data."""

from __future__ import annotations

from pathlib import Path

from fewest.reporting.page import html as report
from fewest.reporting.views import SORTS, CaseLine, CaseView, Filter, PopulationView, as_csv, defused
from fewest.runs.run import Run

__all__ = [
    "SORTS",
    "CaseLine",
    "CaseView",
    "Filter",
    "PopulationView",
    "as_csv",
    "defused",
    "open_run",
    "report",
]


def open_run(path: str | Path, random_state: int = 0) -> PopulationView:
    """Open a finished run folder to be shown; only its manifest is read at once.

    Parameters
    ----------
    path : path
        The folder.
    random_state : int
        Seed for sampling.

    Examples
    --------
    >>> open_run("nowhere")
    Traceback (most recent call last):
    ...
    fewest.errors.DataError: nowhere is not a run folder: it has no manifest.json
      Try: pass the folder that `fewest explain --out` made
    """
    return PopulationView(Run.open(path), random_state)
