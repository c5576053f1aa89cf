"""Run folders as people look at them: what a report and the explorer show, without the model and without the data."""

from fewest.runs.views._case import CaseLine, CaseView
from fewest.runs.views._csv import as_csv, defused
from fewest.runs.views._groups import GroupLine
from fewest.runs.views._index import SORTS, Filter
from fewest.runs.views._references import ReferenceView
from fewest.runs.views._report import report
from fewest.runs.views._run import RunView, open_run

__all__ = [
    "SORTS",
    "CaseLine",
    "CaseView",
    "Filter",
    "GroupLine",
    "ReferenceView",
    "RunView",
    "as_csv",
    "defused",
    "open_run",
    "report",
]
