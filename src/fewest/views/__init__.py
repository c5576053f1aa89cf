"""Run folders as people look at them: what a report and the explorer show, without the model and without the data."""

from fewest.views._case import CaseLine, CaseView
from fewest.views._csv import as_csv, defused
from fewest.views._groups import GroupLine
from fewest.views._index import SORTS, Filter
from fewest.views._references import ReferenceView
from fewest.views._report import report
from fewest.views._run import RunView, open_run

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
