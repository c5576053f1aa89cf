"""Answers as people look at them, from memory or a run folder: what the report and the explorer show."""

from fewest.reporting.views._case import CaseLine, CaseView
from fewest.reporting.views._groups import GroupLine, ReferenceView
from fewest.reporting.views._index import SORTS, Filter
from fewest.reporting.views._view import PopulationView, as_csv, defused, plain_columns

__all__ = [
    "SORTS", "CaseLine", "CaseView", "Filter", "GroupLine", "PopulationView", "ReferenceView", "as_csv", "defused",
    "plain_columns",
]  # fmt: skip
