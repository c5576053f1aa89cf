"""The audit of references: who each stands for, whether its values are possible, and what is odd about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.references.file import Saved
from fewest.references.spread import FEW, Range, middle_range
from fewest.tables.arrays import Floats
from fewest.tables.cards import Rows, ShownAsCard
from fewest.tables.closeness import feature_distances
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import value_of

FEATURE_COLUMNS = ("reference", "feature", "value", "low", "high", "nearest", "possible", "note")
REFERENCE_COLUMNS = (
    "name", "people", "score", "accepted", "log_density", "density_quantile", "signed", "signature", "flexible_of",
    "note",
)  # fmt: skip


SHOWN = 5  # warnings in the short form


class Dense(Protocol):
    """What an audit asks of a density of accepted cases."""

    @property
    def negatives(self) -> Floats:
        """Log-densities of the accepted training rows, sorted."""
        ...

    def log_density(self, X: Any) -> Floats:
        """Log-density of each row of a table."""
        ...


@dataclass(frozen=True, eq=False)
class People:
    """Training rows seen from the references; they are looked at, and not kept."""

    ranges: tuple[Mapping[str, Range], ...]  # For each reference: column -> 10 % and 90 % quantile of its people
    counts: tuple[int, ...]  # How many these are
    nearest: pd.DataFrame  # (m, columns): The real row nearest to each reference

    @classmethod
    def of(cls, schema: Schema, frame: pd.DataFrame, rows: pd.DataFrame, reference_of: Sequence[int]) -> People:
        """Rows as the people of the references they are compared with; all conformed to the schema."""
        groups = [rows[np.asarray(reference_of) == number] for number in range(len(frame))]
        goal_of = np.zeros(len(rows), dtype=np.int32)
        far = [
            feature_distances(schema, rows, frame.iloc[[number]], goal_of).sum(axis=1) for number in range(len(frame))
        ]
        nearest = rows.iloc[[int(np.argmin(np.round(steps, 12))) for steps in far]]
        ranges = tuple(middle_range(schema, group) if len(group) else {} for group in groups)
        return cls(ranges, tuple(len(group) for group in groups), nearest.reset_index(drop=True))

    def with_twins(self, flexible_of: Sequence[int]) -> People:
        """The same, where a flexible twin stands for the people of the reference it was moved from."""
        own = [number if original < 0 else original for number, original in enumerate(flexible_of)]
        if not own:
            return self
        return People(tuple(self.ranges[k] for k in own), tuple(self.counts[k] for k in own), self.nearest)


@dataclass(frozen=True, eq=False, repr=False)
class Audit(ShownAsCard):
    """What to look at before references are used on people.

    Attributes
    ----------
    references : DataFrame
        One row per reference: ``name``, ``people`` it stands for (-1: not known), ``score``, ``accepted``,
        ``log_density`` and ``density_quantile`` (its rank among the accepted cases, 0 to 1), ``signed``, ``signature``,
        ``flexible_of`` (the reference a flexible one was moved from, empty for others) and ``note``.
    table : DataFrame
        One row per reference and feature: ``reference``, ``feature``, ``value``, ``low`` and ``high`` (10 % and 90 %
        quantile of its people), ``nearest`` (the value of the nearest real row, where training rows were given),
        ``possible`` and ``note``.
    schema : Schema
    threshold : float
        Scores below it are accepted; NaN where not known.

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> audit = fw.references.single(decision, X, y).audit(X, y)
    >>> audit.table[["feature", "value", "nearest", "possible"]].to_dict("records")[0]
    {'feature': 'debt', 'value': 2, 'nearest': 2, 'possible': True}
    >>> audit.flags()
    ['mean: it stands for 2 people, fewer than 10']
    >>> audit
    <audit of 1 reference, 0 signed; warnings: 1>
      mean: it stands for 2 people, fewer than 10
    """

    references: pd.DataFrame
    table: pd.DataFrame
    schema: Schema
    threshold: float

    def __repr__(self) -> str:
        count, flags = len(self.references), self.flags()
        signed = int(self.references["signed"].astype(bool).sum())
        head = f"<audit of {count} reference{'s' if count != 1 else ''}, {signed} signed; warnings: {len(flags)}>"
        more = [f"  ... and {len(flags) - SHOWN} more: audit.flags()"] if len(flags) > SHOWN else []
        return "\n".join([head, *(f"  {flag}" for flag in flags[:SHOWN]), *more])

    def _card_rows(self) -> tuple[Sequence[str], Rows]:
        shown = self.table[["reference", "feature", "value", "low", "high", "nearest", "note"]]
        return tuple(shown.columns), shown.itertuples(index=False, name=None)

    def flags(self) -> list[str]:
        """Everything that is wrong or worth a look, one sentence each; signatures that are lacking are not."""
        notes = zip(self.references["name"], self.references["note"], strict=True)
        odd = [f"{name}: {part}" for name, note in notes for part in note.split("; ") if part]
        impossible = self.table[~self.table["possible"].astype(bool)]
        return odd + [f"{row['reference']}: {row['feature']}: {row['note']}" for _, row in impossible.iterrows()]


def audit(saved: Saved, *, people: People | None = None, density: Dense | None = None) -> Audit:
    """The audit of what a file of references holds."""
    schema = saved.schema or Schema.infer(saved.frame)
    ranges = people.ranges if people is not None else saved.spread.ranges or ({},) * len(saved)
    nearest = [None] * len(saved) if people is None else [people.nearest.iloc[k] for k in range(len(saved))]
    table = [
        _feature_row(saved.names[k], feature, saved.values[k], ranges[k], nearest[k])
        for k in range(len(saved))
        for feature in schema.features
    ]
    threshold = saved.decision.get("threshold")
    cut = np.nan if threshold is None else float(threshold)
    support = saved.support if people is None else people.counts
    dense = _densities(saved, schema, density)
    rows = [_reference_row(saved, k, int(support[k]), cut, dense[k]) for k in range(len(saved))]
    by_reference = pd.DataFrame(rows, columns=list(REFERENCE_COLUMNS))
    return Audit(by_reference, pd.DataFrame(table, columns=list(FEATURE_COLUMNS)), schema, cut)


def _densities(saved: Saved, schema: Schema, density: Dense | None) -> list[tuple[float, float]]:
    """Log-density of each reference, and the share of the accepted cases that are no denser."""
    if density is None:
        return [(np.nan, np.nan)] * len(saved)
    frame = pd.DataFrame([schema.snap(row) for row in saved.values], columns=list(schema.columns))
    values = density.log_density(frame)
    ranks = np.searchsorted(density.negatives, values, side="right") / max(1, len(density.negatives))
    return [(float(value), float(rank)) for value, rank in zip(values, ranks, strict=True)]


def _reference_row(saved: Saved, number: int, people: int, cut: float, dense: tuple[float, float]) -> tuple[Any, ...]:
    score, broken = saved.score[number], saved.broken(number)
    signature = saved.signatures[number] if saved.signatures else None
    accepted = None if np.isnan(cut) or np.isnan(score) else bool(score < cut)
    state = "not signed" if signature is None else str(signature)
    if broken:
        state += f", but that no longer holds: {', '.join(broken)} changed"
    notes = [
        f"it stands for {people} people, fewer than {FEW}" if 0 <= people < FEW else "",
        f"the model refuses it ({score:.4g} >= {cut:.4g})" if accepted is False else "",
        f"its signature no longer holds: {', '.join(broken)} changed" if broken else "",
    ]
    signed = signature is not None and not broken
    note = "; ".join(part for part in notes if part)
    twin = saved.names[saved.flexible_of[number]] if saved.flexible_of and saved.flexible_of[number] >= 0 else ""
    return saved.names[number], people, score, accepted, *dense, signed, state, twin, note


def _feature_row(
    name: str, feature: Feature, values: Mapping[str, Any], ranges: Mapping[str, Range], nearest: pd.Series[Any] | None
) -> tuple[Any, ...]:
    low, high = ranges.get(feature.columns[0], (np.nan, np.nan))
    value = value_of(feature, values)
    problem = impossible(feature, values)
    note = problem
    if not problem and feature.is_numeric and value is not None and not low <= float(value) <= high and low <= high:
        note = "outside the middle 80 % of its people"
    real = None if nearest is None else value_of(feature, nearest)
    return name, feature.name, value, low, high, real, not problem, note


def impossible(feature: Feature, values: Mapping[str, Any]) -> str:
    """Why nobody can have this value; empty where somebody can."""
    absent = [column for column in feature.columns if column not in values]
    if absent:
        return f"there is no value for {', '.join(absent)}"
    if feature.kind == "indicators":
        fits = sum(values[column] == 1 for column in feature.columns) == 1
        return "" if fits else "not exactly one of its columns is set"
    value = values[feature.columns[0]]
    if len(feature.columns) > 1 or value is None or pd.isna(value):
        return ""
    if feature.is_numeric:
        return _impossible_number(feature, value)
    if feature.kind == "category" and feature.levels and value not in feature.levels:
        return "a level that was never seen"
    return "neither yes nor no" if feature.kind == "boolean" and value not in (False, True) else ""


def _impossible_number(feature: Feature, value: Any) -> str:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return "not a number"
    if not np.isfinite(number):
        return "not a finite number"
    if feature.kind == "integer" and not number.is_integer():
        return f"not a whole number: use {round(number)}"
    if not feature.minimum <= number <= feature.maximum:
        return f"outside what was seen, {feature.minimum:g} to {feature.maximum:g}"
    return ""


def check_rows(X: Any, y: Any) -> None:
    """Refuse rows without labels and the other way round."""
    if (X is None) != (y is None):
        raise UsageError("an audit needs both the training rows and their labels", do="pass X and y, or neither")
