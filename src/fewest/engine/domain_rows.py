"""Rows with values of whole domains: what a case may change to, and how answers that lead there are written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from fewest.constraints import Forbidden, Only
from fewest.credibility import Credibility
from fewest.engine.choices import Choices
from fewest.references import Anyone, References
from fewest.references.domains import Domain
from fewest.results.answers import Answers
from fewest.tables.arrays import Bools, Floats, Ints, Ints32
from fewest.tables.closeness import feature_distances, ordered_numbers
from fewest.tables.frames import mix
from fewest.tables.schema import Schema


@dataclass(frozen=True, eq=False)
class DomainRows:
    """The values that each feature may take."""

    schema: Schema
    domains: tuple[Domain, ...]

    def written(self, frame: pd.DataFrame, places: Ints) -> pd.DataFrame:
        """Rows in which features take the value at a place (n, p) of their domain; -1 leaves them as they are."""
        for j in np.flatnonzero((places >= 0).any(axis=0)).tolist():
            moved = places[:, j] >= 0
            columns = dict.fromkeys(self.domains[j].feature.columns, moved)
            frame = mix(frame, self.domains[j].frame, np.maximum(places[:, j], 0), columns)
        return frame


class Allowed(NamedTuple):
    """What n cases may change."""

    own: Floats  # (n, p): Their values as numbers or ranks; NaN where missing, or without order
    may: Bools  # (n, p): Features that may change
    direction: Ints  # (p,): 1 where only up, -1 where only down, else 0
    weight: Floats  # (p,)
    forbidden: Bools  # (f, p): Sets that may not all change


@dataclass(frozen=True)
class DomainTask:
    """What is the same for all parts of a table; ``rows`` collects where its answers lead."""

    chosen: Choices
    references: Anyone
    sight: DomainRows
    deadline: float
    alternatives: int
    credibility: Credibility | None = None
    rows: list[pd.DataFrame] = field(default_factory=list)

    def landed(self) -> References:
        """Where the answers lead, as references."""
        return self.references.landed(pd.concat(self.rows, ignore_index=True) if self.rows else pd.DataFrame())

    def enter(self, places: Ints) -> Ints32:
        """Keep the values of these answers; the numbers of the references they are."""
        first = 1 + sum(len(part) for part in self.rows)
        typical = self.references.frame.iloc[np.zeros(len(places), dtype=int)].reset_index(drop=True)
        self.rows.append(self.sight.written(typical, places))
        return np.arange(first, first + len(places), dtype=np.int32)

    def allowed(self, cases: pd.DataFrame) -> Allowed:
        """What these cases may change."""
        chosen, schema, domains = self.chosen, self.sight.schema, self.sight.domains
        own = np.column_stack([ordered_numbers(feature, cases) for feature in schema.features])
        direction, opposed = np.zeros(len(domains), dtype=np.int64), np.zeros(len(domains), dtype=bool)
        for item in chosen.constraints.of(Only):
            j, way = schema.index(item.name), 1 if item.direction == "up" else -1
            opposed[j] |= direction[j] == -way
            direction[j] = way
        able = np.array([len(domain) > 0 for domain in domains]) & ~opposed
        weight = np.ones(len(domains)) if chosen.weights is None else chosen.weights
        forbidden = [np.isin(schema.names, item.names) for item in chosen.constraints.of(Forbidden)]
        return Allowed(
            np.ascontiguousarray(own), able & ~((direction != 0) & np.isnan(own)), direction, weight,
            np.array(forbidden, dtype=bool).reshape(-1, len(domains)),
        )  # fmt: skip

    def write(self, answers: Answers, rows: Ints, cases: pd.DataFrame, places: Ints, score: Floats) -> None:
        """Enter answers that lead to places (n, p) of the domains, scored by the model."""
        landed = self.sight.written(cases, places)
        step = feature_distances(self.sight.schema, cases, landed, np.arange(len(cases)))
        numeric = np.array([feature.is_numeric for feature in self.sight.schema.features])
        answers.moved[rows] = places >= 0
        answers.reference[rows] = self.enter(places)
        answers.score_after[rows] = score
        answers.l_inf[rows] = np.where((places >= 0) & numeric, step, 0.0).max(axis=1)
