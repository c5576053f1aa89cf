"""The choices of an explainer as plain values: rows, constraints, labels; numbers to the last bit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest import constraints as kinds
from fewest.constraints import Constraint, Constraints
from fewest.errors import UsageError
from fewest.persistence._reading import refused
from fewest.tables.saved_schema import plain, schema_from_json, schema_to_json
from fewest.tables.schema import Schema

CONSTRAINTS: dict[str, type[Constraint]] = {
    kind: getattr(kinds, kind)
    for kind in ("AtMost", "Forbidden", "Immutable", "Implies", "Linked", "OneOf", "Only", "Range")
}
OF_NAMES = ("Forbidden", "Linked")
OPEN_ENDS = {"low": -math.inf, "high": math.inf}


def constraints_to_json(constraints: Constraints) -> list[dict[str, Any]]:
    """Constraints as plain values; an open end of a range is null."""
    out = []
    for item in constraints:
        kind = type(item).__name__
        if CONSTRAINTS.get(kind) is not type(item):
            raise UsageError(f"a constraint of your own, {kind}, cannot be saved", do="use those of fewest")
        parts = fields(item)  # type: ignore[arg-type]
        out.append({"kind": kind, **{part.name: plain(getattr(item, part.name)) for part in parts}})
    return out


def constraints_from_json(content: Sequence[Mapping[str, Any]], name: str) -> Constraints:
    """The constraints that `constraints_to_json` was given."""
    out = []
    for item in content:
        values = dict(item)
        kind = str(values.pop("kind"))
        if kind not in CONSTRAINTS:
            raise refused(name, f"it has an unknown constraint {kind!r}", do="use a newer fewest")
        values.update({end: limit for end, limit in OPEN_ENDS.items() if end in values and values[end] is None})
        out.append(CONSTRAINTS[kind](*values["names"]) if kind in OF_NAMES else CONSTRAINTS[kind](**values))
    return Constraints(*out)


def frame_to_json(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Rows as plain values, column by column; what is missing is null."""
    return {str(column): [plain(value) for value in frame[column]] for column in frame.columns}


def frame_from_json(content: Mapping[str, Sequence[Any]], schema: Schema) -> pd.DataFrame:
    """The rows that `frame_to_json` was given, typed by a schema."""
    columns = {column: pd.Series(list(content[column]), dtype=object) for column in schema.columns}
    # Untyped where nothing is missing, so that the schema sees numbers as numbers.
    typed = {column: values if values.isna().any() else values.infer_objects() for column, values in columns.items()}
    return schema.conform(pd.DataFrame(typed), unseen="allow")


def labels_to_json(labels: npt.NDArray[Any]) -> dict[str, Any]:
    """Class labels as plain values."""
    return {"values": [plain(label) for label in labels.tolist()], "objects": labels.dtype == object}


def labels_from_json(content: Mapping[str, Any]) -> npt.NDArray[Any]:
    """The labels that `labels_to_json` was given."""
    values = list(content["values"])
    return np.array(values, dtype=object) if content["objects"] else np.array(values)


def same_schema(schema: Schema, what: str) -> dict[str, Any]:
    """A schema as plain values, or an error where they would not bring back the same one."""
    content = schema_to_json(schema)
    again = schema_from_json(**content)
    if again.features != schema.features or dict(again.dtypes) != dict(schema.dtypes):
        raise UsageError(
            f"the features of the {what} have levels that a file does not keep", do="use text or numbers as levels"
        )
    return content
