"""Answers towards the leaves of a tree, proved again: every negative leaf is walked to, and the model is asked there.

The tree is handed in as plain values, read from the user's model, and is tried on the model before it is believed:
inside every leaf, at the very ends of its conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.runs.verification.base import KnownDensity, Scorer, entered
from fewest.runs.verification.minimality import ClaimLimits, Refuted, is_credible
from fewest.runs.verification.rules import StatedRules, as_order
from fewest.tables.arrays import Bools, Floats
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema

TRIED = 64  # rows that are put into each leaf
Node = Mapping[str, Any]  # as in tree.json
Steps = tuple[tuple[Node, bool], ...]  # tests of a path, and whether they are passed


@dataclass(frozen=True)
class LeafWay:
    """One leaf: for each feature, the tests of its path, and values inside."""

    positive: bool
    tests: Mapping[int, Steps]
    entries: Mapping[int, Sequence[Any]]  # Where a leaf may be entered at all, one of these values will do


def _paths(node: Node, path: Steps = ()) -> Iterator[tuple[Node, Steps]]:
    if "feature" not in node:
        yield node, path
    else:
        for side in ("yes", "no"):
            yield from _paths(node[side], (*path, (node, side == "yes")))


def _levels(feature: Feature, frame: pd.DataFrame) -> Floats:
    """Places of levels (n,): their number for one that is not known, NaN where missing."""
    count = len(feature.levels)
    if feature.kind == "indicators":
        on = frame[list(feature.columns)].to_numpy(dtype=float) == 1
        return np.where(on.any(axis=1), on.argmax(axis=1), count).astype(float)
    column = frame[feature.columns[0]]
    place = pd.Index(list(feature.levels)).get_indexer(column.astype(object)).astype(float)
    return np.where(column.isna(), np.nan, np.where(place < 0, count, place))


def is_inside(feature: Feature, frame: pd.DataFrame, steps: Steps) -> Bools:
    """Which rows go along the path, as far as it tests this feature."""
    out = np.ones(len(frame), dtype=bool)
    values = _levels(feature, frame) if "levels" in steps[0][0] else as_order(frame[feature.columns[0]], feature)
    missing = np.isnan(values)
    for node, way in steps:
        if "levels" in node:
            passes = np.array([*(plain(level) in node["levels"] for level in feature.levels), node["unknown"] == "yes"])
            goes = passes[np.where(missing, 0, values).astype(int)]
        else:
            goes = values <= _threshold(node)
        out &= np.where(missing, node["missing"] == "yes", goes) == way
    return out


def _threshold(node: Node) -> float:
    return np.inf if node["at_most"] is None else float(node["at_most"])


def _entries(feature: Feature, steps: Steps, rules: StatedRules) -> list[Any]:
    """Typed values inside: all levels; of numbers the ends, those of ranges, and the values that are allowed."""
    if "levels" in steps[0][0]:
        return [
            level for level in feature.levels if all((plain(level) in node["levels"]) == way for node, way in steps)
        ]
    low = max((_threshold(node) for node, way in steps if not way), default=-np.inf)
    high = min((_threshold(node) for node, way in steps if way), default=np.inf)
    ends = [float(np.nextafter(low, np.inf)) if np.isfinite(low) else low, high]
    for item in rules.items:
        if item.get("name") == feature.name:
            ends += [float(end) for end in (item.get("low"), item.get("high")) if end is not None]
            ends += [float(level) for level in item.get("levels", ())]
    if feature.kind == "integer":
        ends = sorted({float(side(end)) for end in ends if np.isfinite(end) for side in (np.floor, np.ceil)})
    return [end for end in ends if low < end <= high and np.isfinite(end)]


@dataclass(frozen=True)
class LeafProver:
    """The leaves of a tree under the rules of a run."""

    rules: StatedRules
    ways: tuple[LeafWay, ...]

    @classmethod
    def build(cls, root: Node, rules: StatedRules) -> LeafProver:
        """Walk all paths."""
        ways, schema = [], rules.schema
        for leaf, path in _paths(root):
            tests: dict[int, Steps] = {}
            for step in path:
                j = schema.index(step[0]["feature"])
                tests[j] = (*tests.get(j, ()), step)
            entries = {j: _entries(schema.features[j], steps, rules) for j, steps in tests.items()}
            ways.append(LeafWay(bool(leaf["positive"]), tests, entries))
        return cls(rules, tuple(ways))

    @property
    def schema(self) -> Schema:
        """The features of the run."""
        return self.rules.schema

    def outside(self, way: LeafWay, frame: pd.DataFrame) -> Bools:
        """Which features of each row are not in a leaf, (n, p)."""
        out = np.zeros((len(frame), len(self.schema)), dtype=bool)
        for j, steps in way.tests.items():
            out[:, j] = ~is_inside(self.schema.features[j], frame, steps)
        return out

    def holds(self, frame: pd.DataFrame, scorer: Scorer, draw: np.random.Generator) -> bool:
        """Whether the model decides as the tree does: these rows, and others that are put into every leaf."""
        names = self.schema.names
        for way in self.ways:
            rows = frame.iloc[draw.integers(0, len(frame), TRIED)].reset_index(drop=True)
            moved = self.outside(way, rows) | (draw.random((TRIED, len(names))) < 0.5)  # some values are inside already
            values = [
                {
                    names[j]: known[int(draw.integers(len(known)))]
                    for j, known in way.entries.items()
                    if known and one[j]
                }
                for one in moved
            ]
            rows = pd.concat([frame, entered(self.schema, rows, values)], ignore_index=True)
            rows = rows[~self.outside(way, rows).any(axis=1)]
            if len(rows) and ((scorer.score(rows) >= scorer.decision.cut) != way.positive).any():
                return False
        return True

    def refute(self, frame: pd.DataFrame, limits: ClaimLimits, scorer: Scorer, density: KnownDensity | None) -> Refuted:
        """Enter every negative leaf that is nearer than claimed, or as near where all sets are said to be listed."""
        refuted = Refuted()
        limit = np.minimum(limits.asked_up_to, self.rules.most * (1 + 1e-12))
        for way in self.ways:
            if way.positive:
                continue
            moved = self.outside(way, frame)
            cost = moved @ self.rules.weights
            rows = np.flatnonzero((cost <= limit) & moved.any(axis=1))
            against = limits.broken(rows, moved[rows], cost[rows], np.ones(len(rows), dtype=bool))
            rows = rows[np.logical_or(*against)]
            open_, after = self._enter(way, frame.iloc[rows].reset_index(drop=True), moved[rows])
            turns = np.flatnonzero(open_)[scorer.turned(scorer.score(after[open_]))]
            hit = rows[turns]
            refuted.note(limits, hit, moved[hit], cost[hit], is_credible(density, after.iloc[turns]))
        return refuted

    def _enter(self, way: LeafWay, case: pd.DataFrame, moved: Bools) -> tuple[Bools, pd.DataFrame]:
        """Cases put into a leaf with values they may take, and where there are such values, (n,)."""
        everything = np.ones_like(moved)
        open_ = self.rules.allowed(moved, everything, everything)
        values: list[dict[str, Any]] = [{} for _ in range(len(case))]
        for j in np.flatnonzero(moved.any(axis=0)).tolist():
            name, found = self.schema.names[j], ~moved[:, j]
            for value in way.entries[j]:
                fits = ~found & self._may(case, j, value)
                for row in np.flatnonzero(fits):
                    values[row][name] = value
                found |= fits
            open_ &= found
        return open_, entered(self.schema, case, values)

    def _may(self, case: pd.DataFrame, j: int, value: Any) -> Bools:
        """Which cases may take a value."""
        there = entered(self.schema, case, [{self.schema.names[j]: value}] * len(case))
        return np.asarray(self.rules.permitted(case, there)[:, j])


def trees_differ(said: Node, known: Node) -> bool:
    """Whether two trees, as tree.json has them, are not the same.

    Leaves may need more decimals of a feature; older versions wrote ranges with the values of people.
    """
    open_ = ("decimals", "minimum", "maximum")

    def described(tree: Node) -> list[dict[str, Any]]:
        return [{name: value for name, value in one.items() if name not in open_} for one in tree["features"]]

    parts = ("kind", "names", "tree")
    return any(said.get(part) != known.get(part) for part in parts) or described(said) != described(known)
