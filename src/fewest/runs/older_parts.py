"""Parts as earlier versions wrote them, in the shape of today's: JSON lines, and sets listed by name alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd


def table_of(lines: Sequence[str]) -> pd.DataFrame:
    """A part of JSON lines as a table of typed columns."""
    frame = pd.DataFrame([row_of(json.loads(line)) for line in lines])
    numbers = ("cost", "score_after", "margin", "lower_bound", "l_inf", "log_density")
    return frame.astype({"sev": "Int64", "hash": "uint64", **dict.fromkeys(numbers, float)})


def row_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """One answer: a bound of null stands for infinity where the case was searched; hashes are hexadecimal text."""
    unbounded = record["status"] != "ALREADY_NEGATIVE" and record["lower_bound"] is None
    return {
        **record,
        "hash": int(record["hash"], 16),
        "lower_bound": float("inf") if unbounded else record["lower_bound"],
        "all_listed": record.get("all_listed", False),
    }


def changes_of(listed: Any) -> list[dict[str, Any]]:
    """A listed set: changes as they are, names alone, or names with the values they lead to.

    Examples
    --------
    >>> changes_of(["debt"]), changes_of({"debt": 20})
    ([{'feature': 'debt'}], [{'feature': 'debt', 'to': 20}])
    """
    if isinstance(listed, Mapping):
        return [{"feature": name, "to": value} for name, value in listed.items()]
    return [dict(change) if isinstance(change, Mapping) else {"feature": change} for change in listed]
