"""Answers as files for spreadsheets: text that nobody takes for a formula, lists as JSON inside their cells."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from fewest.errors import MissingExtraError, UsageError
from fewest.tables.files import write_text
from fewest.tables.wording import printable

MOST_ROWS, MOST_TEXT = 1_048_575, 32_767  # of an Excel sheet below its header; of a cell
WIDTHS = {"sentence": 100, "case": 16, "features": 30, "from": 24, "to": 24}


def also_written(text: str, path: str | Path | None, end: str = "") -> str:
    """The text, also written to a file where one is named."""
    if path is not None:
        write_text(path, text + end)
    return text


def as_csv(table: pd.DataFrame) -> str:
    """A table of answers as CSV text; its labels are the first column."""
    return str(_views().as_csv(_labelled(table)).decode())


def write_excel(table: pd.DataFrame, path: Path) -> None:
    """Write a table of answers as an Excel file."""
    if find_spec("openpyxl") is None:
        raise MissingExtraError("Excel files need openpyxl", do='pip install "fewest[excel]"')
    if len(table) > MOST_ROWS:
        raise UsageError(f"an Excel sheet holds {MOST_ROWS:,} rows, not {len(table):,}", do="use to_csv")
    plain = _views().plain_columns(_labelled(table))
    plain = plain.map(lambda cell: printable(cell)[:MOST_TEXT] if isinstance(cell, str) else cell)
    with pd.ExcelWriter(path, engine="openpyxl") as file:
        plain.to_excel(file, sheet_name="answers", index=False, freeze_panes=(1, 1))
        sheet = file.sheets["answers"]
        sheet.auto_filter.ref = sheet.dimensions
        for column, name in zip(sheet.columns, plain.columns, strict=True):
            sheet.column_dimensions[column[0].column_letter].width = WIDTHS.get(str(name), 12)


def _labelled(table: pd.DataFrame) -> pd.DataFrame:
    table = table.copy()
    table.insert(0, "case", table.index)
    return table


def _views() -> Any:
    """How tables are shown: by name, as it belongs to reporting, which imports this."""
    return import_module("fewest.reporting.views")
