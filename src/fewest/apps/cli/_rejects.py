"""Rows that cannot be explained do not end a batch: they are set aside, each with the reason."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from fewest.apps.cli._text import clean
from fewest.errors import DataError
from fewest.explainer import Explainer
from fewest.reporting.views import as_csv
from fewest.runs.bad_rows import REJECTED, refused_places
from fewest.tables.files import write_text

NAME = REJECTED


def sound_rows(explainer: Explainer, cases: pd.DataFrame, place: Path) -> pd.DataFrame:
    """The cases that the schema and the model take; the others go to a CSV file with their row and the reason."""
    reasons = reasons_against(explainer, cases)
    if not reasons:
        return cases
    rows = sorted(reasons)
    table = pd.DataFrame({"row": rows, "case": cases.index[rows].astype(str), "reason": [reasons[row] for row in rows]})
    write_text(place, as_csv(table).decode())
    print(clean(f"{len(rows):,} of {len(cases):,} rows are left out, see {place}"), file=sys.stderr)
    if len(rows) == len(cases):
        raise DataError(f"no row can be explained; the first: {reasons[0]}", do=f"mend them; {place} lists all")
    return cases.iloc[np.setdiff1d(np.arange(len(cases)), rows)]


def reasons_against(explainer: Explainer, cases: pd.DataFrame) -> dict[int, str]:
    """Row -> why it cannot be explained."""

    def check(rows: np.ndarray) -> None:
        explainer.decision.score(explainer.schema.conform(cases.iloc[rows], unseen=explainer.unseen))

    return dict(refused_places(np.arange(len(cases)), check))
