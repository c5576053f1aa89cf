"""References written by a domain expert: a table, a CSV or a JSON file, checked against the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError
from fewest.frames import to_frame
from fewest.references.base import FORMAT, Assignment, OnPositive, References, build
from fewest.schema import Schema


def supplied(
    decision: Decision,
    table: Any,
    *,
    schema: Schema | None = None,
    X: Any = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    names: Sequence[str] | None = None,
    on_positive: OnPositive = "error",
    assignment: Assignment | None = None,
) -> References:
    """References that somebody wrote down.

    Parameters
    ----------
    decision : Decision
    table : table or path
        One row per reference. A path ends in .csv, or in .json for what `References.save` wrote.
    schema : Schema, optional
        Default: read off X, or off the table itself where X is not given (distances are then in raw units).
    X : table, optional
        Training rows to read the schema from.
    names : sequence of str, optional
        Default: the table's ``name`` column if it is no feature, otherwise r1, r2, ...
    on_positive : str
        As in `single`.
    assignment : str, optional
        ``nearest`` or ``sparsest``; default: what the file says, otherwise ``nearest``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9]}); y = [0, 0, 1, 1]
    >>> supplied(Decision(LogisticRegression().fit(X, y)), {"debt": [2, 3]}, X=X).names
    ('r1', 'r2')
    """
    if schema is None and X is not None:
        schema = Schema.infer(X, groups, decision.columns)
    frame, support, given, stored = _read(table, decision, schema)
    if schema is None:
        schema = Schema.infer(frame, groups, decision.columns)
    if names is None and "name" in frame.columns and "name" not in schema.columns:
        names = [str(name) for name in frame["name"]]
    names = list(names or given or [f"r{k + 1}" for k in range(len(frame))])
    if len(frame) == 0:
        raise DataError("the table of references is empty", do="write at least one row")
    if len(names) != len(frame):
        raise DataError(f"there are {len(frame)} references but {len(names)} names", do="pass one name each")
    typed = schema.conform(frame)
    _refuse_infinite(typed)
    rows = [dict(typed.iloc[k]) for k in range(len(typed))]
    return build(
        decision, schema, rows, names, support, on_positive=on_positive, assignment=assignment or stored,
        provenance={"kind": "supplied", "rows": len(rows)},
    )  # fmt: skip


def _read(
    table: Any, decision: Decision, schema: Schema | None
) -> tuple[pd.DataFrame, list[int], list[str], Assignment]:
    """The table, how many cases each row stands for, the names a file gives, and how it assigns."""
    if isinstance(table, str | Path):
        path = Path(table)
        if not path.exists():
            raise DataError(f"there is no file {path.name}", do="check the path of the references")
        if path.suffix == ".json":
            return _read_json(path)
        text = [] if schema is None else [c for f in schema.features if f.kind == "category" for c in f.columns]
        try:
            table = pd.read_csv(path, dtype=dict.fromkeys(text, "str"))
        except ValueError as error:
            raise DataError(f"{path.name} cannot be read as a table: {error}", do="check that it is whole") from error
    frame = to_frame(table, decision.columns)
    return frame, [-1] * len(frame), [], "nearest"


def _read_json(path: Path) -> tuple[pd.DataFrame, list[int], list[str], Assignment]:
    """What `References.save` wrote."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.get("format") != FORMAT:
            raise DataError(f"{path.name} is not a references file of format {FORMAT}", do="save it again")
        entries = content["references"]
        frame = pd.DataFrame([entry["values"] for entry in entries])
        support = [int(entry.get("support", -1)) for entry in entries]
        names = [str(entry["name"]) for entry in entries]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path.name} is not a references file ({error})", do="save the references again") from error
    return frame, support, names, "sparsest" if content.get("assignment") == "sparsest" else "nearest"


def _refuse_infinite(frame: pd.DataFrame) -> None:
    for column in frame.columns:
        if pd.api.types.is_float_dtype(frame[column].dtype):
            infinite = np.isinf(frame[column].to_numpy(dtype=float, na_value=np.nan))
            if infinite.any():
                row = int(np.flatnonzero(infinite)[0])
                raise DataError(f'reference {row}, column "{column}": it is infinite', do="write a finite number")
