"""The choices of an explainer as plain values: rows, constraints, labels; numbers to the last bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.constraints import KINDS, Constraints
from fewest.errors import UsageError
from fewest.persistence._readers import refused
from fewest.tables.saved_schema import plain, schema_from_json, schema_to_json, without_extremes
from fewest.tables.schema import Schema


def constraints_to_json(constraints: Constraints) -> list[dict[str, Any]]:
    """Constraints as plain values; those of somebody else could not be read again."""
    for item in constraints:
        if KINDS.get(type(item).__name__) is not type(item):
            raise UsageError(
                f"a constraint of your own, {type(item).__name__}, cannot be saved", do="use those of fewest"
            )
    return constraints.to_plain()


def constraints_from_json(content: Sequence[Mapping[str, Any]], name: str) -> Constraints:
    """The constraints that `constraints_to_json` was given."""
    strange = [str(item["kind"]) for item in content if item["kind"] not in KINDS]
    if strange:
        raise refused(name, f"it has an unknown constraint {strange[0]!r}", do="use a newer fewest")
    return Constraints.from_plain(content)


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
    if again.features != tuple(map(without_extremes, schema.features)) or dict(again.dtypes) != dict(schema.dtypes):
        raise UsageError(
            f"the features of the {what} have levels that a file does not keep", do="use text or numbers as levels"
        )
    return content
