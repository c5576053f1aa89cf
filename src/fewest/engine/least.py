"""How little is needed: the set of an answer kept, and each number moved from the case only as far as it has to go.

Least largest step in standard deviations, then least sum, among the values between the case's and the one shown, on
the grid of each feature. Tree ensembles and additive models are searched exactly; of other models nearer values are
tried, and what is shown is what their own scores confirmed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fewest.constraints import Constraints
from fewest.decision import Decision
from fewest.engine.choices import CODE, Choices
from fewest.engine.model_reading import OTHER_COLUMNS, OTHER_DECISIONS, SAMPLE, ModelReader, ModelReading
from fewest.engine.search.domains.nearest_values import Nearest, Ways, WayValues
from fewest.engine.structure.base import Additive, Ensemble
from fewest.errors import DoubtError, UsageError
from fewest.references.domains import MOST_VALUES, Domain, domain_of
from fewest.references.landing_rows import Landed
from fewest.results.answers import Answers
from fewest.results.decimals import NOT_ASKED
from fewest.results.explanation import Status
from fewest.results.explanations import Explanations
from fewest.tables.arrays import Bools, Floats, Ints
from fewest.tables.closeness import as_numbers, feature_distances
from fewest.tables.frames import mix
from fewest.tables.schema import Feature, Schema

PROVED, TRIED = "least values", "nearer values"
NODES = 200_000  # boxes or sums of a case
ALL_ASKED = 2_000  # values of a single feature that are asked of the model one by one
LEVELS, ROUNDS = 16, 4  # steps that are tried at once, and how often the nearest is closed in on


def least_of(chosen: Choices, reader: ModelReader, out: Explanations) -> Explanations:
    """The same answers with values no further from the case than they have to be."""
    if out.plus or chosen.credibility is not None:
        what = "SEV+" if out.plus else "a credibility floor"
        raise UsageError(f"how little is needed is not defined with {what}", do='use direction="minus" without a floor')
    if out.schema.names != chosen.references.schema.names:
        raise UsageError("the answers speak of other features than the explainer", do="pass answers of this explainer")
    rows = np.flatnonzero(
        out.answers.moved.any(axis=1) & np.isin(out.answers.status, [CODE[Status.EXPLAINED], CODE[Status.BUDGET]])
    )
    if len(rows) == 0:
        return out
    roads = Roads.read(chosen.constraints, out.schema, out.frame.iloc[rows], out.turned().iloc[rows], out, rows)
    found = _searched(roads, reader.look(out.frame), chosen.max_nodes or NODES)
    places, sure = _confirmed(chosen.decision, chosen.constraints, roads, found)
    return _written(chosen.decision, roads, out, rows, places, sure, found.nodes)


@dataclass(frozen=True, eq=False)
class Roads:
    """For each case and changed number the values from the case's own to the one shown."""

    schema: Schema
    cases: pd.DataFrame
    shown: pd.DataFrame
    moved: Bools  # (n, p)
    domains: tuple[Domain, ...]  # Values of each feature; of those that are not numbers none
    own: Floats  # (n, p)
    first: Ints  # (n, p): Place among the values of its feature; -1 where the value stays as it is shown
    last: Ints
    whole: Bools  # (p,): Whether all values of the grid are there

    @classmethod
    def read(
        cls, constraints: Constraints, schema: Schema, cases: pd.DataFrame, shown: pd.DataFrame, out: Explanations,
        rows: Ints,
    ) -> Roads:  # fmt: skip
        """Lay the values out."""
        n, p, moved = len(cases), len(schema), out.answers.moved[rows]
        first, last, own = np.full((n, p), -1), np.full((n, p), -1), np.full((n, p), np.nan)
        whole, domains = np.ones(p, dtype=bool), []
        for j, feature in enumerate(schema.features):
            going, values = np.zeros(n, dtype=bool), np.empty(0)
            if feature.is_numeric:
                own[:, j] = as_numbers(cases[feature.columns[0]], feature)
                to = as_numbers(shown[feature.columns[0]], feature)
                going = moved[:, j] & np.isfinite(own[:, j]) & np.isfinite(to) & (own[:, j] != to)
                values, whole[j] = _grid(feature, own[going, j], to[going])
            domain = domain_of(schema, feature, shown, values)
            if going.any():
                kept = constraints.leave(schema, feature, domain.frame) | np.isin(domain.number, to[going])
                domain = domain.take(kept)
                up = to > own[:, j]
                nearest = np.where(
                    up, np.searchsorted(domain.number, own[:, j], side="right"),
                    np.searchsorted(domain.number, own[:, j], side="left") - 1,
                )  # fmt: skip
                first[going, j] = nearest[going]
                last[going, j] = np.searchsorted(domain.number, to[going])
            domains.append(domain)
        return cls(schema, cases, shown, moved, tuple(domains), own, first, last, whole)

    def take(self, rows: Ints) -> Roads:
        """Those of some cases."""
        return replace(
            self, cases=self.cases.iloc[rows], shown=self.shown.iloc[rows], moved=self.moved[rows], own=self.own[rows],
            first=self.first[rows], last=self.last[rows],
        )  # fmt: skip

    def written(self, places: Ints) -> pd.DataFrame:
        """The rows as shown, with the values at these places (n, p); -1 leaves what is shown."""
        frame = self.shown
        for j in np.flatnonzero((places >= 0).any(axis=0)).tolist():
            domain = self.domains[j]
            take = {domain.feature.columns[0]: places[:, j] >= 0}
            frame = mix(frame, domain.frame, np.maximum(places[:, j], 0), take)
        return frame

    def far(self, places: Ints) -> Floats:
        """How far the values at these places are, in standard deviations (n, p); zero at -1."""
        out = np.zeros(places.shape)
        for j, domain in enumerate(self.domains):
            going = places[:, j] >= 0
            number = domain.number[places[going, j]]
            out[going, j] = np.abs(number - self.own[going, j]) / domain.feature.scale
        return out

    def within(self, most: Floats) -> Ints:
        """The furthest values that are not further than ``most`` (n, p), the nearest where none is as near."""
        places = np.where(self.first >= 0, self.last, -1)
        for j, domain in enumerate(self.domains):
            going = self.first[:, j] >= 0
            if not going.any():
                continue
            own, reach = self.own[going, j], most[going, j] * domain.feature.scale * (1 + 1e-12)
            up = self.last[going, j] >= self.first[going, j]
            above = np.searchsorted(domain.number, own + reach, side="right") - 1
            below = np.searchsorted(domain.number, own - reach, side="left")
            ends = np.sort(np.column_stack([self.first[going, j], self.last[going, j]]), axis=1)
            places[going, j] = np.clip(np.where(up, above, below), ends[:, 0], ends[:, 1])
        return places


def _grid(feature: Feature, own: Floats, to: Floats) -> tuple[Floats, bool]:
    """The values of a feature's grid that lie on some way, the ends among them; whether they are all."""
    if len(own) == 0:
        return np.empty(0), True
    power = 10.0 ** (0 if feature.kind == "integer" else feature.decimals)
    ends = np.concatenate([own, to])
    first, last = np.ceil(np.round(ends.min() * power, 6)), np.floor(np.round(ends.max() * power, 6))
    count = int(last - first) + 1
    steps = first + np.unique(np.linspace(0, max(count - 1, 0), min(max(count, 0), MOST_VALUES)).round())
    return np.union1d(np.round(steps / power, max(feature.decimals, 0)), to), count <= MOST_VALUES


def _searched(roads: Roads, inside: ModelReading, nodes: int) -> Nearest:
    """What the exact search finds, asked of nothing but what was read of the model."""
    n = len(roads.cases)
    nothing = Nearest(np.zeros(n, dtype=bool), np.where(roads.first >= 0, roads.last, -1), np.zeros(n, dtype=np.int64))
    if not isinstance(inside.structure, Ensemble | Additive):
        return nothing
    feature_of = inside.feature_of()
    prepared = _prepared(inside, roads.shown)
    blocks = [
        _prepared(inside, domain.frame)[:, feature_of == j] if len(domain) else np.empty((0, 0))
        for j, domain in enumerate(roads.domains)
    ]
    try:
        inside = _checked(roads, inside, prepared, blocks)
    except DoubtError:
        return nothing  # what was read is not the model between the values it was tried on
    structure = inside.structure
    assert isinstance(structure, Ensemble | Additive)
    start = np.cumsum([0, *map(len, roads.domains)])[:-1]
    going: Bools = roads.first >= 0
    still: Bools = np.asarray(~going.any(axis=1))
    ways = Ways(
        np.ascontiguousarray(prepared), np.concatenate([np.zeros(0), *(domain.number for domain in roads.domains)]),
        np.ascontiguousarray(roads.own), np.array([feature.scale for feature in roads.schema.features]),
        np.where(going, roads.first + start, -1), np.where(going, roads.last + start, -1),
    )  # fmt: skip
    wall = structure.reading.cut + structure.reading.tolerance
    found = WayValues(structure, feature_of, blocks).solve(ways, still, wall, nodes)
    return found._replace(place=np.where(going, found.place - start, -1))


def _prepared(inside: ModelReading, frame: pd.DataFrame) -> Floats:
    return np.array(inside.prepare(inside.encoding.transform(frame)), dtype=np.float64)


def _checked(roads: Roads, inside: ModelReading, prepared: Floats, blocks: list[Floats]) -> ModelReading:
    """Try what was read on values in between, drawn; the reading with a tolerance that covers them."""
    rows = np.arange(len(prepared))[:SAMPLE]
    some = roads.take(rows)
    drawn = np.random.default_rng(0).random(some.first.shape)
    places = np.where(some.first >= 0, np.round(some.first + (some.last - some.first) * drawn).astype(np.int64), -1)
    mixed, frame = prepared[rows].copy(), some.written(places)
    for j, block in enumerate(blocks):
        going = np.flatnonzero(places[:, j] >= 0)
        if len(going):
            mixed[np.ix_(going, np.flatnonzero(inside.feature_of() == j))] = block[places[going, j]]
    seen = _prepared(inside, frame)
    if not np.allclose(mixed, seen, rtol=1e-12, atol=1e-12, equal_nan=True):
        raise DoubtError(OTHER_COLUMNS)
    most = np.abs(prepared).max(axis=0, keepdims=True, initial=0.0)
    for j, block in enumerate(blocks):
        if len(block):
            columns = np.flatnonzero(inside.feature_of() == j)
            most[0, columns] = np.maximum(most[0, columns], np.abs(block).max(axis=0))
    wide = inside.wide_enough(most)
    positive = inside.encoding.decision.refuses(frame)
    try:
        wide.check_decisions(seen, positive)
    except DoubtError:
        raise DoubtError(OTHER_DECISIONS) from None
    return wide


def _confirmed(
    decision: Decision, constraints: Constraints, roads: Roads, found: Nearest
) -> tuple[Ints, Bools]:  # fmt: skip
    """Places that the model confirms, and whether they are proved to be the nearest."""
    shown = np.where(roads.first >= 0, roads.last, -1)
    still = (roads.first < 0).all(axis=1)  # nothing can go less far: levels are one step from each other
    places, sure = np.where(found.found[:, None], found.place, shown), found.found | still
    turned = _turned(decision, constraints, roads, places)
    sure &= turned | still
    open_rows = np.flatnonzero(~sure)
    if len(open_rows):
        some = roads.take(open_rows)
        places[open_rows], sure[open_rows] = _tried(decision, constraints, some)
    whole = (roads.whole | (roads.first < 0)).all(axis=1)
    return places, sure & whole


def _turned(decision: Decision, constraints: Constraints, roads: Roads, places: Ints) -> Bools:
    """Whether the model's outcome is the other one at these places, and all values are allowed."""
    frame = roads.written(places)
    allowed = constraints.permitted(roads.schema, roads.cases, frame)
    return np.asarray(~decision.refuses(frame) & (allowed | ~roads.moved).all(axis=1))


def _tried(decision: Decision, constraints: Constraints, roads: Roads) -> tuple[Ints, Bools]:
    """The nearest values that asking the model finds, from those shown on; sure where it was asked about all."""
    going: Bools = roads.first >= 0
    places = np.where(going, roads.last, -1)
    alone = (going.sum(axis=1) == 1) & (np.abs(roads.last - roads.first).max(axis=1) < ALL_ASKED)
    for k in np.flatnonzero(alone).tolist():
        j = int(np.argmax(going[k]))
        ends = int(roads.first[k, j]), int(roads.last[k, j])
        way = np.arange(ends[0], ends[1] + (1 if ends[1] >= ends[0] else -1), 1 if ends[1] >= ends[0] else -1)
        asked = np.full((len(way), going.shape[1]), -1)
        asked[:, j] = way
        places[k, j] = way[np.argmax(_turned(decision, constraints, roads.take(np.full(len(way), k)), asked))]
    rows = np.flatnonzero(~alone)
    if len(rows):
        some = roads.take(rows)
        now = _close_in(decision, constraints, some, places[rows], np.ones(going.shape[1], dtype=bool))
        for j in np.flatnonzero(going[rows].any(axis=0)).tolist():
            now = _close_in(decision, constraints, some, now, np.arange(going.shape[1]) == j)
        places[rows] = now
    return places, alone


def _close_in(decision: Decision, constraints: Constraints, roads: Roads, places: Ints, which: Bools) -> Ints:
    """Bring these features nearer, all to the same largest step, as long as the model confirms it."""
    n = len(places)
    nearest = np.where(roads.first >= 0, roads.first, -1)
    low = np.where(which, roads.far(nearest), 0.0).max(axis=1)
    high = np.where(which, roads.far(places), 0.0).max(axis=1)
    current = places
    for _ in range(ROUNDS):
        levels = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, LEVELS)[:-1]
        rows = np.repeat(np.arange(n), LEVELS - 1)
        some, most = roads.take(rows), np.broadcast_to(levels.reshape(-1, 1), (len(rows), places.shape[1]))
        closer = some.within(most)
        further = some.far(closer) > roads.far(current)[rows]
        closer = np.where(which & ~further & (closer >= 0), closer, current[rows])
        good = _turned(decision, constraints, some, closer).reshape(n, LEVELS - 1)
        some_good: Bools = np.asarray(good.any(axis=1))
        best = np.where(some_good, np.argmax(good, axis=1), LEVELS - 1)
        picked = np.minimum(best, LEVELS - 2) + np.arange(n) * (LEVELS - 1)
        current = np.where(some_good[:, None], closer[picked], current)
        width = (high - low) / (LEVELS - 1)
        high = low + best * width
        low = np.maximum(low, high - width)
    return current


def _written(
    decision: Decision, roads: Roads, out: Explanations, rows: Ints, places: Ints, sure: Bools, nodes: Ints
) -> Explanations:
    """The answers with these values, scored by the model once more."""
    landed = roads.written(places)
    verdicts = decision.verdicts(landed)
    if verdicts.positive.any():  # pragma: no cover - every place was confirmed before
        raise DoubtError(OTHER_DECISIONS)
    old, references = out.answers, out.references
    answers = Answers(**{**vars(old), **{name: column.copy() for name, column in vars(old).items()
                                         if isinstance(column, np.ndarray)}})  # fmt: skip
    was = np.maximum(old.reference[rows], 0)
    goals = mix(
        references.frame.iloc[was].reset_index(drop=True), landed.reset_index(drop=True), np.arange(len(rows)),
        {column: roads.moved[:, j] for column, j in roads.schema.feature_of.items()},
    )  # fmt: skip
    m, count = len(references), len(out.strategies)
    answers.reference[rows] = np.arange(m, m + len(rows), dtype=np.int32)
    answers.score_after[rows] = verdicts.score
    step = feature_distances(roads.schema, roads.cases, landed, np.arange(len(rows)))
    numeric = np.array([feature.is_numeric for feature in roads.schema.features])
    answers.l_inf[rows] = np.where(roads.moved & numeric, step, 0.0).max(axis=1)
    answers.nodes[rows] += nodes
    answers.strategy[rows] += np.where(sure, count, 2 * count).astype(np.int8)
    answers.alternatives = {} if out.reach is not None else old.alternatives
    answers.towards = {} if out.reach is not None else dict(old.towards)
    for k, row in enumerate(rows.tolist()):
        if row in answers.alternatives:
            goal_of = answers.towards.get(row, np.full(len(answers.alternatives[row]), was[k], dtype=np.int32)).copy()
            goal_of[0] = answers.reference[row]
            answers.towards[row] = goal_of
    frame = pd.concat([references.frame, goals], ignore_index=True)
    led = Landed(
        decision=decision, schema=roads.schema, frame=frame,
        names=(*references.names, *(references.names[k] for k in was)),
        support=np.concatenate([references.support, np.full(len(rows), -1)]),
        score=np.concatenate([references.score, verdicts.score]), provenance=references.provenance,
        spread=references.spread, made=getattr(references, "made", references),
    )  # fmt: skip
    strategies = (*out.strategies, *(f"{name}, {kind}" for kind in (PROVED, TRIED) for name in out.strategies))
    answers.decimals[:] = NOT_ASKED
    return replace(out, references=led, answers=answers, strategies=strategies, reach=None)
