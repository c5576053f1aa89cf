"""What may change, read from the run's settings and applied plainly; written apart from `fewest.constraints`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.tables.arrays import Bools, Floats
from fewest.tables.schema import Feature, Schema


@dataclass(frozen=True)
class StatedRules:
    """Constraints and weights of a run."""

    schema: Schema
    items: Sequence[Mapping[str, Any]]  # Constraints as the manifest holds them
    weights: Floats  # (p,) float

    @classmethod
    def read(cls, schema: Schema, settings: Mapping[str, Any]) -> StatedRules:
        """The rules of a run's settings."""
        weights = np.array([float(settings["weights"].get(name, 1.0)) for name in schema.names])
        return cls(schema, settings["constraints"], weights)

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """Constraints of one kind."""
        return [item for item in self.items if item["kind"] == kind]

    @property
    def most(self) -> float:
        """Largest cost that is allowed."""
        return min((float(item["most"]) for item in self.of("AtMost")), default=np.inf)

    def units(self) -> npt.NDArray[np.int64]:
        """Unit of each feature (p,): linked features are one."""
        unit = np.arange(len(self.schema))
        for item in self.of("Linked"):
            members = unit[[self.schema.index(name) for name in item["names"]]]
            unit[np.isin(unit, members)] = members.min()
        return np.asarray(np.unique(unit, return_inverse=True)[1])

    def permitted(self, case: pd.DataFrame, reference: pd.DataFrame) -> Bools:
        """Which features may go from each case's value to that of the reference beside it, (n, p)."""
        out = np.ones((len(case), len(self.schema)), dtype=bool)
        for item in self.items:
            if item["kind"] not in ("Immutable", "Only", "Range", "OneOf"):
                continue
            j = self.schema.index(item["name"])
            out[:, j] &= _permits(item, self.schema.features[j], case, reference)
        return out

    def allowed(self, moved: Bools, differs: Bools, permitted: Bools) -> Bools:
        """Which sets (s, p) obey all constraints, given what differs and what may move in each row."""
        fine = ~(moved & ~(differs & permitted)).any(axis=1)
        unit = self.units()
        for linked in np.flatnonzero(np.bincount(unit) > 1):
            at = np.flatnonzero(unit == linked)
            fine &= (moved[:, at] == (differs[:, at] & moved[:, at].any(axis=1, keepdims=True))).all(axis=1)
        for item in self.of("Implies"):
            cause, effect = self.schema.index(item["cause"]), self.schema.index(item["effect"])
            fine &= ~moved[:, cause] | (moved[:, effect] == differs[:, effect])
        for item in self.of("Forbidden"):
            fine &= ~moved[:, [self.schema.index(name) for name in item["names"]]].all(axis=1)
        return np.asarray(fine & (moved @ self.weights <= self.most * (1 + 1e-12)))


def differing(schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> Bools:
    """Which features have another value in the row beside, (n, p); missing equals missing."""
    out = np.zeros((len(start), len(schema)), dtype=bool)
    for j, feature in enumerate(schema.features):
        for column in feature.columns:
            a, b = _comparable(start[column]), _comparable(goal[column])
            lost, gone = pd.isna(a), pd.isna(b)
            out[:, j] |= (lost != gone) | (~lost & ~gone & np.asarray(a != b, dtype=bool))
    return out


def _comparable(column: pd.Series[Any]) -> npt.NDArray[Any]:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
    return np.asarray(column.to_numpy(dtype=object, na_value=np.nan))


def _permits(item: Mapping[str, Any], feature: Feature, case: pd.DataFrame, reference: pd.DataFrame) -> Bools:
    if item["kind"] == "Immutable":
        return np.zeros(len(case), dtype=bool)
    if item["kind"] == "OneOf":
        levels = set(item["levels"])
        if feature.kind == "indicators":
            on = [reference[column].to_numpy(dtype=float) == 1 for column in feature.columns if column in levels]
            return np.asarray(np.any(on, axis=0)) if on else np.zeros(len(case), dtype=bool)
        return np.asarray(reference[feature.columns[0]].isin(list(levels)))
    before, after = (as_order(frame[feature.columns[0]], feature) for frame in (case, reference))
    if item["kind"] == "Range":
        low = -np.inf if item["low"] is None else item["low"]
        high = np.inf if item["high"] is None else item["high"]
        return np.asarray((after >= low) & (after <= high))
    return np.asarray(after >= before if item["direction"] == "up" else after <= before)


def as_order(column: pd.Series[Any], feature: Feature) -> Floats:
    """Values as numbers that can be compared; missing is NaN and compares with nothing."""
    if feature.kind == "category":
        place = pd.Index(list(feature.levels)).get_indexer(column.astype(object))
        return np.where(place < 0, np.nan, place.astype(float))
    if feature.kind == "datetime":
        return np.where(column.isna(), np.nan, column.astype("int64").to_numpy(dtype=float))
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
