"""Answers over all values, proved again: the model is asked about every cheaper set with every allowed value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from fewest.runs.verification.base import KnownDensity, Scorer
from fewest.runs.verification.minimality import ClaimLimits, Refuted, is_credible
from fewest.runs.verification.rules import StatedRules, differing
from fewest.tables.arrays import Bools, Floats, Ints
from fewest.tables.json_cells import texts
from fewest.tables.schema import Schema
from fewest.tables.values import written

AT_ONCE = 20_000  # rows that the model is asked about
MOST_SETS = 200_000  # that are looked at for one cost


@dataclass(frozen=True, eq=False)
class StatedDomains:
    """The values that each feature may take, as the run says; each frame has the columns of one feature."""

    schema: Schema
    frames: tuple[pd.DataFrame, ...]

    @classmethod
    def read(cls, schema: Schema, stated: Mapping[str, Any]) -> StatedDomains:
        """From the references of the run."""
        frames = []
        for feature in schema.features:
            said = stated[feature.name]
            values = said["values"] if "values" in said else _grid(feature.kind == "integer", **said)
            rows = pd.DataFrame([written(schema, feature.name, value) for value in values], columns=feature.columns)
            frames.append(rows.astype({name: schema.dtypes.get(name, rows[name].dtype) for name in feature.columns}))
        return cls(schema, tuple(frames))

    @cached_property
    def _known(self) -> tuple[frozenset[str], ...]:
        pairs = zip(self.schema.features, self.frames, strict=True)
        return tuple(frozenset(_keys(feature, frame)) for feature, frame in pairs)

    def hold(self, frame: pd.DataFrame) -> Bools:
        """Which values of rows are among those of their feature, (n, p)."""
        pairs = zip(self.schema.features, self._known, strict=True)
        cells = [[key in known for key in _keys(feature, frame)] for feature, known in pairs]
        return np.array(cells, dtype=bool).reshape(len(self.frames), len(frame)).T


def _grid(whole: bool, low: float, high: float, decimals: int) -> list[Any]:
    """All values from the low to the high end."""
    first, last = (round(end * 10**decimals) for end in (low, high))
    return [k if whole else round(k / 10**decimals, decimals) for k in range(first, last + 1)]


def _keys(feature: Any, frame: pd.DataFrame) -> list[str]:
    """Values as text; a whole number is the same with a point and without."""
    if not feature.is_numeric:
        return texts(feature, frame)
    return [json.dumps(float(value)) for value in frame[feature.columns[0]].to_numpy(dtype=float, na_value=np.nan)]


@dataclass(frozen=True, eq=False)
class DomainClaims:
    """Cases, and that no cheaper set of theirs changes the outcome with any values."""

    domains: StatedDomains
    rules: StatedRules
    frame: pd.DataFrame  # (n, columns)
    limits: ClaimLimits
    density: KnownDensity | None

    def refute(self, scorer: Scorer, budget: int, draw: np.random.Generator) -> tuple[Bools, Refuted]:
        """Ask about up to ``budget`` rows of each case: which claims that proves, and which are false."""
        refuted, proved = Refuted(), np.ones(len(self.frame), dtype=bool)
        waiting: list[tuple[int, Ints]] = []
        rows = 0
        limit = np.minimum(self.limits.asked_up_to, self.rules.most * (1 + 1e-12))
        for case, most in enumerate(limit.tolist()):
            places, proved[case] = self._places(most, budget, draw)
            waiting.append((case, places))
            rows += len(places)
            if rows >= AT_ONCE:
                self._ask(waiting, scorer, refuted)
                waiting, rows = [], 0
        self._ask(waiting, scorer, refuted)
        return proved & ~refuted.among(len(self.frame)), refuted

    def _places(self, most: float, budget: int, draw: np.random.Generator) -> tuple[Ints, bool]:
        """Places (r, p) of values, -1 where a feature stays, of sets up to a cost; and whether these are all."""
        counts = [len(frame) for frame in self.domains.frames]
        able, left = [j for j, count in enumerate(counts) if count], budget
        found: list[Ints] = []
        for features, size in _sets(able, self.rules.weights, most, counts):
            if features is None:
                return _stacked(found, len(counts)), False
            place = np.full((min(size, left), len(counts)), -1, dtype=np.int64)
            chosen = np.arange(size) if size <= left else draw.integers(size, size=left)
            grid = np.unravel_index(chosen, [counts[j] for j in features])
            place[:, list(features)] = np.column_stack(grid)
            found.append(place)
            if size > left:
                return _stacked(found, len(counts)), False
            left -= size
        return _stacked(found, len(counts)), True

    def _ask(self, waiting: list[tuple[int, Ints]], scorer: Scorer, refuted: Refuted) -> None:
        """Let the model say what turns it."""
        owner = np.repeat([case for case, _ in waiting], [len(places) for _, places in waiting]).astype(np.int64)
        if len(owner) == 0:
            return
        place, start = np.vstack([places for _, places in waiting]), self.frame.iloc[owner].reset_index(drop=True)
        after = start.copy()
        for frame, feature_place in zip(self.domains.frames, place.T, strict=True):
            at = np.flatnonzero(feature_place >= 0)
            for column in frame.columns if len(at) else ():
                cells = after[column].astype(object).to_numpy(copy=True)
                cells[at] = frame[column].astype(object).to_numpy()[feature_place[at]]
                after[column] = pd.Series(cells, index=after.index).infer_objects()
        after = self.domains.schema.conform(after, unseen="allow")
        moved = place >= 0
        fine = self.rules.allowed(
            moved, differing(self.domains.schema, start, after), self.rules.permitted(start, after)
        )
        at = np.flatnonzero(fine)
        turns = at[scorer.turned(scorer.score(after.iloc[at]))] if len(at) else at
        cost = moved[turns] @ self.rules.weights
        refuted.note(self.limits, owner[turns], moved[turns], cost, is_credible(self.density, after.iloc[turns]))


def _stacked(found: list[Ints], p: int) -> Ints:
    return np.vstack([np.empty((0, p), dtype=np.int64), *found])


def _sets(able: list[int], weights: Floats, most: float, counts: list[int]) -> Any:
    """Sets up to a cost with the number of their rows, fewest features first; None where they are too many."""
    seen = 0
    for k in range(1, len(able) + 1):
        if sum(sorted(weights[able])[:k]) > most:
            return
        for features in combinations(able, k):
            seen += 1
            if seen > MOST_SETS:
                yield None, 0
                return
            if sum(weights[j] for j in features) <= most:
                yield features, int(np.prod([counts[j] for j in features], dtype=float))
