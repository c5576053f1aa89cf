"""One answer of a run folder as the `Explanation` it was: nothing here needs the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import ACCEPTED, REFUSED
from fewest.results.explanation import Change, Explanation, Fact, Proof, Status
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import Cells, typed

NARROW = (np.dtype("float32"), np.dtype("float16"))


@dataclass(frozen=True)
class RunContext:
    """What a run says of all its cases together.

    Attributes
    ----------
    schema : Schema
    manifest : mapping
    references : mapping
        The references file.
    names : tuple of str
    rows : (m, columns)
        The references' typed values.
    """

    schema: Schema
    manifest: Mapping[str, Any]
    references: Mapping[str, Any]
    names: tuple[str, ...]
    rows: pd.DataFrame

    @property
    def about(self) -> dict[str, Any]:
        """How the outcomes are called; read off the settings where a run of format 1 does not say."""
        settings = self.manifest["settings"]
        positive = REFUSED if settings["positive"] is None else str(settings["positive"])
        outcome = ACCEPTED if settings["positive"] is None else str(settings["outcome"])
        two = settings["against"] is None and not outcome.startswith("not ")
        return {
            "positive": positive,
            "outcome": outcome,
            "percent": settings["score"] == "torch" or (settings["score"] == "proba" and two),
            "plus": settings["direction"] == "plus",
            "weighted": bool(settings["weights"]),
            **self.manifest.get("about", {}),
        }

    @cached_property
    def goals(self) -> dict[str, dict[str, Any]]:
        """Name of a reference -> feature -> its value."""
        cells = Cells.of(self.rows)
        return {
            name: {feature.name: cells.value(k, feature) for feature in self.schema.features}
            for k, name in enumerate(self.names)
        }

    def goal(self, name: str | None) -> dict[str, Any] | None:
        """The reference of that name; the only one where a case was compared with none."""
        if name is None and len(self.names) > 1:
            return None
        return self.goals[self.names[0] if name is None else name]

    def support(self, name: str | None) -> int | None:
        """Rows a reference stands for, where that is known."""
        known = [int(entry.get("support", -1)) for entry in self.references["references"] if entry["name"] == name]
        return known[0] if known and known[0] >= 0 else None

    def credibility(self, name: str | None) -> float | None:
        """Share of the accepted cases that are in a leaf; None for references that are points."""
        made, support = self.references["provenance"], self.support(name)
        return support / made["negatives"] if made.get("kind") == "leaves" and support is not None else None


def rebuild(record: Mapping[str, Any], case: Mapping[str, Any] | None, context: RunContext) -> Explanation:
    """The answer in one row of a part.

    Parameters
    ----------
    record : mapping
        The row.
    case : mapping, optional
        Column -> value of the case itself, where it was kept.
    context : Told
    """
    about = context.about
    mine = None if case is None else {f.name: value_of(case, f, context.schema) for f in context.schema.features}
    goal = context.goal(record["reference"])
    changes = _changes(record, context.schema)
    turned = len(changes) > 0
    return Explanation(
        row=int(record["row"]),
        label=int(record["row"]),
        status=Status(record["status"]),
        sev=None if record["sev"] is None else int(record["sev"]),
        cost=_known(record["cost"]),
        changes=changes,
        score=float(record["score"]),
        score_after=_known(record["score_after"]),
        margin=_known(record["margin"]),
        reference=record["reference"],
        proof=Proof(
            record["strategy"], int(record["nodes"]), float(record["lower_bound"]), bool(record["proved"]), turned
        ),
        alternatives=_alternatives(record["alternatives"], mine, goal, context.schema, about["plus"]),
        l_inf=_known(record["l_inf"]),
        outcome=about["outcome"],
        positive=about["positive"],
        shows_percent=about["percent"],
        threshold=float(context.manifest["settings"]["threshold"]),
        plus=about["plus"],
        weighted=about["weighted"],
        support=context.support(record["reference"]),
        credibility=context.credibility(record["reference"]) if turned else None,
        log_density=_known(record["log_density"]),
        facts=_facts(changes, mine, goal, context.schema, about["plus"]) if goal is not None else (),
        all_listed=bool(record.get("all_listed", False)),  # parts written before it was kept do not know
    )


def _known(figure: Any) -> float | None:
    return None if figure is None or np.isnan(figure) else float(figure)


def _changes(record: Mapping[str, Any], schema: Schema) -> tuple[Change, ...]:
    features = {feature.name: feature for feature in schema.features}
    return tuple(
        Change.of(features[name], decoded(before, features[name], schema), decoded(after, features[name], schema))
        for name, before, after in zip(record["features"], record["from"], record["to"], strict=True)
    )


def _alternatives(
    sets: Sequence[Any], case: Mapping[str, Any] | None, goal: Mapping[str, Any] | None, schema: Schema, plus: bool
) -> tuple[tuple[Change, ...], ...]:
    """All listed sets with their values; a set towards a leaf brings its own."""
    if case is None or goal is None:
        return ()

    def change(name: str, ways: Any) -> Change:
        mine, theirs = case[name], goal[name]
        feature = schema.features[schema.index(name)]
        if isinstance(ways, dict):
            theirs = decoded(ways[name], feature, schema)
        return Change.of(feature, theirs, mine) if plus else Change.of(feature, mine, theirs)

    return tuple(tuple(change(name, names) for name in names) for names in sets)


def _facts(
    changes: Sequence[Change], case: Mapping[str, Any] | None, goal: Mapping[str, Any], schema: Schema, plus: bool
) -> tuple[Fact, ...]:
    """Every feature beside the reference; without the case's values, the changed ones alone."""
    changed = {change.feature: change for change in changes}
    facts = []
    for feature in schema.features:
        change = changed.get(feature.name)
        if case is not None:
            mine = case[feature.name]
        elif change is not None:
            mine = change.after if plus else change.before
        else:
            continue
        theirs = goal[feature.name]
        start = theirs if plus else mine
        after = start if change is None else change.after
        facts.append(Fact(feature.title, mine, theirs, after, change is not None, feature.unit, feature.name))
    return tuple(facts)


def value_of(row: Mapping[str, Any], feature: Feature, schema: Schema) -> Any:
    """A feature's value in a row of plain values: the level of a one-hot group, the parts of any other.

    Examples
    --------
    >>> value_of({"own": 0, "rent": 1}, Feature("home", "indicators", ("own", "rent")), Schema(()))
    'rent'
    """
    if feature.kind == "indicators":
        return next((column for column in feature.columns if row[column] == 1), None)
    if len(feature.columns) > 1:
        return {column: _cell(row[column], column, feature, schema) for column in feature.columns}
    return _cell(row[feature.columns[0]], feature.columns[0], feature, schema)


def decoded(value: Any, feature: Feature, schema: Schema) -> Any:
    """A value as JSON held it, typed again.

    Examples
    --------
    >>> decoded("2026-01-05T00:00:00", Feature("day", "datetime", ("day",)), Schema(()))
    Timestamp('2026-01-05 00:00:00')
    """
    if isinstance(value, dict):
        return {column: _cell(part, column, feature, schema) for column, part in value.items()}
    return value if feature.kind == "indicators" else _cell(value, feature.columns[0], feature, schema)


def _cell(value: Any, column: str, feature: Feature, schema: Schema) -> Any:
    dtype = schema.dtypes.get(column)
    if value is not None and (feature.kind == "datetime" or getattr(dtype, "kind", "") == "M"):
        return typed(pd.Timestamp(value), feature)
    if isinstance(value, float) and dtype in NARROW:
        return typed(dtype.type(value), feature)
    return typed(value, feature)
