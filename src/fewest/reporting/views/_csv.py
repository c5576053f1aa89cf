"""Answers as CSV that is safe to open in a spreadsheet: no cell begins a formula, and numbers stay numbers."""

from __future__ import annotations

import json
import re
from typing import Any

import pandas as pd

LISTS = ("features", "from", "to")
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def defused(text: str) -> str:
    """Text that no spreadsheet takes for a formula; a number stays as it is.

    Examples
    --------
    >>> defused("=1+1"), defused("-3.5"), defused("-1+cmd"), defused("rent")
    ("'=1+1", '-3.5', "'-1+cmd", 'rent')
    """
    return f"'{text}" if text.startswith(STARTS) and not NUMBER.fullmatch(text) else text


def as_csv(table: pd.DataFrame, header: bool = True) -> bytes:
    """A table of answers as CSV; the changed features and their values are JSON lists inside their cells.

    Examples
    --------
    >>> table = pd.DataFrame({"row": [3], "reference": ["@sum"], "features": [["debt"]]})
    >>> as_csv(table, header=True)
    b'row,reference,features\\n3,\\'@sum,"[""debt""]"\\n'
    """
    out = {}
    for name in table:
        column: Any = table[name]
        if name in LISTS:
            column = [json.dumps(list(cell), ensure_ascii=False, default=str) for cell in column]
        elif not pd.api.types.is_numeric_dtype(column.dtype):
            words = {word: defused(str(word)) for word in column.dropna().unique()}
            column = column.astype(object).map(words)
        out[name] = column
    text = pd.DataFrame(out).to_csv(index=False, header=header, lineterminator="\n")
    return str(text).encode("utf-8", "replace")
