"""A model as its clients see it: features, and what an instance must look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fewest.apps.serving.columns import Column
from fewest.explainer import Explainer
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema


def describe(
    explainer: Explainer, columns: tuple[Column, ...], limits: Mapping[str, Any], notes: list[str]
) -> dict[str, Any]:
    """Features, decision, limits, and the JSON Schema of an instance."""
    decision = explainer.decision
    return {
        "positive": decision.positive_name,
        "outcome": decision.negative_name,
        "threshold": float(decision.cut),
        "direction": explainer.direction,
        "references": list(explainer.references.names),
        "features": [_feature(feature) for feature in explainer.schema.features],
        "limits": dict(limits),
        "notes": notes,
        "instance": instance_schema(explainer.schema, columns),
    }


def _feature(feature: Feature) -> dict[str, Any]:
    """What is told of a feature; not the range seen, whose ends are values of people."""
    return {
        "name": feature.name,
        "title": feature.title,
        "kind": feature.kind,
        "columns": list(feature.columns),
        "levels": [plain(level) for level in feature.levels],
        "unit": feature.unit,
    }


def instance_schema(schema: Schema, columns: tuple[Column, ...]) -> dict[str, Any]:
    """What an instance must be, as JSON Schema.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewest.apps.serving.columns import columns_of
    >>> schema = Schema.infer(pd.DataFrame({"home": ["own", "rent"]}))
    >>> instance_schema(schema, columns_of(schema, any_level=False, missing=()))["properties"]
    {'home': {'enum': ['own', 'rent']}}
    """
    out: dict[str, Any] = {
        "type": "object",
        "properties": {column.name: column.json_schema() for column in columns},
        "required": [column.name for column in columns],
        "additionalProperties": False,
    }
    groups = [feature for feature in schema.features if feature.kind == "indicators"]
    if groups:
        out["allOf"] = [{"oneOf": [_only(level, feature) for level in feature.columns]} for feature in groups]
    return out


def _only(level: str, feature: Feature) -> dict[str, Any]:
    """That one level of a group holds, and no other."""
    return {"properties": {column: {"const": int(column == level)} for column in feature.columns}}
