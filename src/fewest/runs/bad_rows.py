"""Rows that cannot be explained, found before a run begins: each is left out, with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from fewest.errors import DataError, ModelError
from fewest.runs.cases import Cases, RawPart
from fewest.runs.cell_kinds import column_kinds, readable_cells

REJECTED = "rejected.csv"
Check = Callable[[pd.DataFrame], object]


def bad_rows(cases: Cases, check: Check) -> pd.DataFrame:
    """The rows of tables on disk that cannot be read, or that a check refuses: ``row``, ``case`` and ``reason``."""
    lenient, kinds = replace(cases, left_out=()), column_kinds(cases.schema)
    found: list[tuple[int, str, str]] = []
    for start, texts in lenient.stream():
        piece, reasons = readable_cells(texts, kinds)
        readable = np.setdiff1d(np.arange(len(piece)), list(reasons))

        def conform(places: np.ndarray) -> None:
            check(lenient.typed(RawPart(0, start, [piece.take(places)])))  # noqa: B023 - called before the next piece

        reasons |= dict(refused_places(readable, conform))
        names = texts[cases.id_column].cast("string").to_pylist() if cases.id_column is not None else None
        for place in sorted(reasons):
            row = start + place
            found.append((row, str(row) if names is None else str(names[place]), reasons[place]))
    return pd.DataFrame(found, columns=["row", "case", "reason"])


def refused_places(places: np.ndarray, check: Callable[[np.ndarray], object]) -> Iterator[tuple[int, str]]:
    """Which places a check refuses, and why, found by halving: a part that goes through is not looked at again.

    Examples
    --------
    >>> def check(places):
    ...     if 3 in places:
    ...         raise DataError('row 3, column "job": "yacht" is unknown')
    >>> list(refused_places(np.arange(5), check))
    [(3, 'column "job": "yacht" is unknown')]
    """
    parts = [places] if len(places) else []
    while parts:
        part = parts.pop()
        try:
            check(part)
        except (DataError, ModelError) as error:
            if len(part) > 1:
                parts += np.array_split(part, 2)
            else:
                where = r"^(rows [\d,]+ to [\d,]+ of the data: )?(row [\d,]+( \(index .*?\)| of the data)?, )?"
                yield int(part[0]), re.sub(where, "", error.message)
