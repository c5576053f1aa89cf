"""One part of a table over whole domains: score, search all values, let the model confirm what was found."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary, ref

import numpy as np
import pandas as pd

from fewest.constraints import Constraints, Implies, Linked
from fewest.decision import Verdicts
from fewest.engine import asked_values
from fewest.engine.choices import CODE, Choices, TableWork
from fewest.engine.cubes import DEFAULT_NODES, DEFAULT_OWN_NODES
from fewest.engine.domain_rows import DomainRows, DomainTask
from fewest.engine.model_reading import OTHER_COLUMNS, OTHER_DECISIONS, SAMPLE, ModelReader, ModelReading
from fewest.engine.search import Budget
from fewest.engine.search.domains.any_values import BoxAnswers, BoxQuestion, FeatureValues, TreeDomains, ValueSums
from fewest.engine.structure.base import Additive, Ensemble
from fewest.errors import DoubtError, UsageError
from fewest.references import Anyone
from fewest.references.domains import Domain
from fewest.results.answers import Answers
from fewest.results.explanation import Status
from fewest.tables.arrays import Bools, Floats, Ints, Ints32
from fewest.tables.schema import Schema

_ENCODED: WeakKeyDictionary[Domain, tuple[ref[ModelReading], FeatureValues]] = WeakKeyDictionary()
CREDIBLE = "rows have to be credible, so the model's own scores are asked"


class AnyoneGoals:
    """All values that accepted cases have: a case goes where the fewest changes lead."""

    reach = None

    def __init__(self, chosen: Choices, references: Anyone, reader: ModelReader) -> None:
        _refuse(chosen)
        self._chosen, self._references, self._reader = chosen, references, reader
        self._domains = tuple(_narrowed(chosen.constraints, references, j) for j in range(len(references.schema)))
        self._sight: tuple[ModelReading, Sight] | None = None

    def prepare(self, frame: pd.DataFrame, deadline: float, alternatives: int) -> TableWork:
        """How parts of this table are answered."""
        inside = self._reader.look(frame)
        why = unread(inside) if self._chosen.credibility is None else CREDIBLE
        if why:
            rows = DomainRows(self._references.schema, self._domains)
            asked = DomainTask(
                self._chosen, self._references, rows, deadline, alternatives, self._chosen.credibility
            )  # fmt: skip
            strategies = ("none", asked_values.STRATEGY)
            return TableWork(
                partial(asked_values.answer, asked), DEFAULT_OWN_NODES, strategies, (why,), references=asked.landed
            )
        task = self.task(frame, deadline, alternatives)
        return TableWork(
            partial(answer, task), max(len(self._domains), task.sight.inside.width),
            ("none", task.sight.search.strategy), references=task.landed,
        )  # fmt: skip

    def task(self, frame: pd.DataFrame, deadline: float, alternatives: int) -> AnyoneTask:
        """What is the same for all parts of this table, with the domains as the model sees them."""
        inside = self._reader.look(frame)
        if self._sight is None or self._sight[0] is not inside:
            self._sight = inside, Sight.build(self._references.schema, inside, self._domains)
        sight = self._sight[1]
        sight.check(frame.iloc[:SAMPLE])
        return AnyoneTask(self._chosen, self._references, sight, deadline, alternatives)


def _refuse(chosen: Choices) -> None:
    """Choices that say nothing without a reference point."""
    if chosen.plus:
        raise UsageError("SEV+ puts values onto a reference, and anyone is not one", do="use references.single with it")
    for kind in (Linked, Implies):
        for item in chosen.constraints.of(kind):
            raise UsageError(
                f"{item!r} says what moves with what towards a reference; with any value allowed it says nothing",
                do="use Immutable, Only, Range, OneOf, Forbidden or AtMost with references.anyone",
            )


def _narrowed(constraints: Constraints, references: Anyone, j: int) -> Domain:
    """The values of a feature that the constraints on it leave."""
    domain = references.domains[j]
    return domain.take(constraints.leave(references.schema, domain.feature, domain.frame))


def unread(inside: ModelReading) -> str:
    """Why the model's own scores have to be asked instead of what was read of it; empty where they need not."""
    structure = inside.structure
    if not isinstance(structure, Ensemble | Additive):
        kind = type(structure).__name__.lower()
        return getattr(structure, "reason", f"a {kind} is not bounded over all values: its own scores are asked")
    if inside.joint:
        return inside.encoding.reason or "the model has terms of several features"
    return ""


@dataclass(frozen=True, eq=False)
class Sight(DomainRows):
    """The domains as the model sees them."""

    inside: ModelReading
    values: tuple[FeatureValues, ...]
    search: TreeDomains | ValueSums

    @classmethod
    def build(cls, schema: Schema, inside: ModelReading, domains: tuple[Domain, ...]) -> Sight:
        """Encode every value of every feature, and lay the model out over them."""
        structure = inside.structure
        assert isinstance(structure, Ensemble | Additive)
        feature_of = inside.feature_of()
        values = tuple(_encoded(inside, feature_of, domain, j) for j, domain in enumerate(domains))
        if isinstance(structure, Ensemble):
            return cls(schema, domains, inside, values, TreeDomains(structure, feature_of, values))
        most = np.zeros((1, len(feature_of)))
        for own in values:
            most[0, own.columns] = np.abs(own.block).max(axis=0, initial=0.0)
        inside = inside.wide_enough(most)
        assert isinstance(inside.structure, Additive)
        return cls(schema, domains, inside, values, ValueSums(inside.structure, feature_of, values))

    def check(self, cases: pd.DataFrame) -> None:
        """Try what was read on cases in which some features have a value drawn from their domain."""
        random = np.random.default_rng(0)
        cells = np.full((len(cases), len(self.domains)), -1, dtype=np.int64)
        for j, domain in enumerate(self.domains):
            drawn = random.integers(max(1, len(domain)), size=len(cases))
            cells[:, j] = np.where((random.random(len(cases)) < 0.5) & (len(domain) > 0), drawn, -1)
        prepared, mixed = self.prepared(cases), self.written(cases, cells)
        for j, own in enumerate(self.values):
            moved = np.flatnonzero(cells[:, j] >= 0)
            prepared[np.ix_(moved, own.columns)] = own.block[cells[moved, j]]
        seen = self.prepared(mixed)
        if not np.allclose(prepared, seen, rtol=1e-12, atol=1e-12, equal_nan=True):
            raise DoubtError(OTHER_COLUMNS)
        self.inside.wide_enough(seen).check_decisions(seen, self.inside.encoding.decision.refuses(mixed))

    def prepared(self, frame: pd.DataFrame) -> Floats:
        """Rows as the structure is defined on them."""
        return np.array(self.inside.prepare(self.inside.encoding.transform(frame)), dtype=np.float64)

    def places(self, cells: Ints32, own: Floats, direction: Ints) -> Ints:
        """The place of the nearest value to the case in each cell (n, p); -1 where nothing changes."""
        out = np.full(cells.shape, -1, dtype=np.int64)
        for j, domain in enumerate(self.domains):
            rows = np.flatnonzero(cells[:, j] >= 0)
            if len(rows) == 0:
                continue
            first, last = self.search.span(j, cells[rows, j])
            out[rows, j] = first
            if not domain.measured:
                continue
            number = own[rows, j]
            number = np.where(np.isnan(number), np.median(domain.number), number)
            above = np.searchsorted(domain.number, number)
            below = np.clip(above - 1, first, last)
            above = np.clip(above, first, last)
            gap = [np.abs(domain.number[at] - number) for at in (below, above)]
            nearer = gap[0] < gap[1] if direction[j] == 0 else np.full(len(rows), direction[j] < 0)
            out[rows, j] = np.where(nearer, below, above)
        return out


def _encoded(inside: ModelReading, feature_of: Ints32, domain: Domain, j: int) -> FeatureValues:
    """The values of a feature as the model sees them; encoded once for a reading, whatever is asked of it."""
    known = _ENCODED.get(domain)
    if known is not None and known[0]() is inside:
        return known[1]
    columns = np.flatnonzero(feature_of == j)
    block = np.empty((0, len(columns)))
    if len(domain):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an encoder may warn of levels it does not know, once per table
            block = np.asarray(inside.prepare(inside.encoding.transform(domain.frame)), dtype=np.float64)[:, columns]
    values = FeatureValues(columns, np.ascontiguousarray(block), domain.number, not domain.measured)
    _ENCODED[domain] = ref(inside), values
    return values


@dataclass(frozen=True)
class AnyoneTask(DomainTask):
    """What is the same for all parts of a table of a model that was read."""

    sight: Sight

    def question(self, cases: pd.DataFrame, prepared: Floats) -> BoxQuestion:
        """What is asked of the search."""
        structure, schema = self.sight.inside.structure, self.sight.schema
        assert isinstance(structure, Ensemble | Additive)
        own, may, direction, weight, forbidden = self.allowed(cases)
        return BoxQuestion(
            np.ascontiguousarray(prepared), own, may, direction,
            np.array([domain.measured for domain in self.sight.domains]),
            np.array([feature.scale for feature in schema.features], dtype=np.float64), weight, forbidden,
            float(self.chosen.constraints.most), float(structure.reading.cut), float(structure.reading.tolerance),
            float(self.sight.search.base), self.sight.search.left_levels,
            self.chosen.weights is None, int(self.alternatives),
        )  # fmt: skip


def answer(task: AnyoneTask, frame: pd.DataFrame) -> Answers:
    """Verified answers for a part of the table."""
    decision, sight = task.chosen.decision, task.sight
    model_input = sight.inside.encoding.transform(frame)
    scores, precision = decision.call(model_input, frame, sight.inside.encoding.final)
    verdicts = decision.settle(scores, precision, frame)
    prepared = np.asarray(sight.inside.prepare(model_input), dtype=np.float64)
    sight.inside.wide_enough(prepared).check_decisions(prepared, verdicts.positive)
    answers = Answers.blank(len(frame), len(sight.domains))
    answers.score[:] = verdicts.score
    rows = np.flatnonzero(verdicts.positive)
    if len(rows) == 0:
        return answers
    answers.strategy[rows], answers.reference[rows] = 1, 0
    cases = frame.iloc[rows]
    asked = task.question(cases, prepared[rows])
    budget = Budget(task.chosen.max_nodes or DEFAULT_NODES, task.deadline)
    found = sight.search.solve(asked, budget, task.chosen.n_jobs)
    best = _Confirmed(task, cases, asked, found)
    answers.nodes[rows] = found.nodes
    answers.lower[rows] = best.lower
    proved = np.isfinite(best.cost) & (best.lower >= best.cost * (1 - 1e-9))
    none = ~np.isfinite(best.cost) & (found.outcome == 1) & ~best.open
    status = np.where(proved, CODE[Status.EXPLAINED], CODE[Status.BUDGET])
    answers.status[rows] = np.where(none, CODE[Status.UNREACHABLE], status)
    answers.proved[rows] = proved | none
    best.write(answers, rows, proved & (found.outcome == 0))
    return answers


class _Confirmed:
    """What the model confirms of what was found: the best point of each case."""

    def __init__(self, task: AnyoneTask, cases: pd.DataFrame, asked: BoxQuestion, found: BoxAnswers) -> None:
        self._task, self._cases, self._asked, self._found = task, cases, asked, found
        n = len(cases)
        self.cost, self.places = np.full(n, np.inf), np.full(asked.may.shape, -1, dtype=np.int64)
        self.score, self.far = np.full(n, np.nan), np.full(n, np.inf)
        self.lower, self.open = found.lower.copy(), np.zeros(n, dtype=bool)
        sure = np.flatnonzero(np.isfinite(found.cost))
        turned, places, verdicts = self._ask(sure, found.points[sure, 0])
        self._doubt(sure[~turned], places[~turned])
        self._keep(sure[turned], places[turned], verdicts.score[turned], found.cost[sure[turned]])
        self._near_threshold()

    def _ask(self, case: Ints, cells: Ints32) -> tuple[Bools, Ints, Verdicts]:
        """Whether the user's own model turns at these points."""
        task = self._task
        places = task.sight.places(cells, self._asked.own[case], self._asked.direction)
        rows = task.sight.written(self._cases.iloc[case], places)
        verdicts = task.chosen.decision.verdicts(rows)
        return ~verdicts.positive, places, verdicts

    def _doubt(self, case: Ints, places: Ints) -> None:
        """Points that surely turn what was read and do not turn the model: what was read is not the model."""
        if len(case):
            raise DoubtError(OTHER_DECISIONS)

    def _keep(self, case: Ints, places: Ints, score: Floats, cost: Floats) -> None:
        self.cost[case], self.places[case], self.score[case] = cost, places, score

    def _near_threshold(self) -> None:
        """Let the model say where rounding could, for points that would be cheaper than what is sure."""
        found = self._found
        case, number = np.nonzero(np.arange(found.band.shape[1]) < found.band_count[:, None])
        cost = found.band_cost[case, number]
        wanted = cost < self.cost[case] * (1 - 1e-9)
        case, number, cost = case[wanted], number[wanted], cost[wanted]
        order = np.lexsort((found.band_far[case, number], cost, case))
        case, number, cost = case[order], number[order], cost[order]
        turned, places, verdicts = self._ask(case, found.band[case, number])
        for k in np.flatnonzero(turned).tolist():
            if cost[k] < self.cost[case[k]] * (1 - 1e-9):
                at = case[k : k + 1]
                self._keep(at, places[k : k + 1], verdicts.score[k : k + 1], cost[k : k + 1])
        # Points that there was no room for, and may turn the model, are not excluded.
        spilled = found.spilled < self.cost * (1 - 1e-9)
        self.open = spilled
        self.lower = np.minimum(np.where(spilled, np.minimum(self.lower, found.spilled), self.lower), self.cost)

    def write(self, answers: Answers, rows: Ints, whole: Bools) -> None:
        """Enter the answers, with the values they lead to."""
        task, hit = self._task, np.flatnonzero(np.isfinite(self.cost))
        if len(hit) == 0:
            return
        task.write(answers, rows[hit], self._cases.iloc[hit], self.places[hit], self.score[hit])
        answers.cost[rows[hit]] = self.cost[hit]
        if task.alternatives:
            self._list(answers, rows, hit, whole)

    def _list(self, answers: Answers, rows: Ints, hit: Ints, whole: Bools) -> None:
        """The sets that cost the same, each with its nearest values, the one shown first."""
        found, most = self._found, self._task.alternatives
        for k in hit.tolist():
            row = int(rows[k])
            shown = answers.moved[row]
            same = found.cost[k] <= self.cost[k] * (1 + 1e-9)
            cells = found.points[k, 1 : 1 + min(int(found.met[k]), most)] if same else found.points[k, :0]
            cells = cells[(cells >= 0).any(axis=1) & ((cells >= 0) != shown).any(axis=1)]
            turned, places, _ = self._ask(np.full(len(cells), k), cells)
            numbers = self._task.enter(places[turned])[: most - 1]
            answers.alternatives[row] = np.vstack([shown[None], (places >= 0)[turned][: most - 1]])
            answers.towards[row] = np.append(answers.reference[row], numbers).astype(np.int32)
            near = np.arange(found.band.shape[1]) < found.band_count[k]
            tied = (near & (found.band_cost[k] <= self.cost[k] * (1 + 1e-9))).any()
            tied |= found.spilled[k] <= self.cost[k] * (1 + 1e-9)
            answers.complete[row] = whole[k] and same and turned.all() and found.met[k] <= most and not tied
