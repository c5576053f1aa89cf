"""One part of a table, from raw rows to verified answers: score, search, let the model confirm, search again if not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.constraints import Constraints
from fewest.credibility.base import Credibility, PointDensity
from fewest.credibility.mixture import GaussianDensity
from fewest.decision import Decision, Verdicts
from fewest.engine.model_reading import ModelReading
from fewest.engine.move_groups import MoveGroups
from fewest.engine.not_credible import floored, show_plain, without_floor
from fewest.engine.search import Budget, Found, Outcome, Problem, solve, vertex_rows
from fewest.engine.search.floor import Floor, MixtureCubes
from fewest.engine.smallest_sets import Listing
from fewest.engine.structure import Opaque
from fewest.engine.verification import Vertices
from fewest.references.base import References
from fewest.results.answers import Answers
from fewest.results.explanation import STATUSES, Status
from fewest.tables.closeness import Distances
from fewest.tables.schema import Schema

Rows = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

REJECTIONS = 12  # after so many sets that the model does not confirm, the model's own scores are searched instead
OWN_ROUNDS = 64
CODE = {status: np.int8(k) for k, status in enumerate(STATUSES)}


@dataclass(frozen=True)
class Task:
    """What is the same for all parts of a table."""

    decision: Decision
    references: References
    constraints: Constraints
    units: MoveGroups
    weights: Floats | None
    inside: ModelReading
    goals: Floats
    sign: int
    nodes: int
    own_nodes: int
    own_tolerance: float
    deadline: float
    alternatives: int
    n_jobs: int
    credibility: Credibility | None = None

    @property
    def schema(self) -> Schema:
        """The features spoken of."""
        return self.references.schema


@dataclass
class Attempt:
    """The cubes of some cases towards one reference each, with what is needed to search and to verify them."""

    problem: Problem
    vertices: Vertices
    differs: Bools
    distance: Floats
    units: MoveGroups
    found: Found
    score_after: Floats
    own: Bools
    credibility: Credibility | None
    log_density: Floats
    inside: ModelReading | None
    tried: bool = False

    def features(self, cubes: Rows, moved: Bools) -> Bools:
        """Features that sets of units change."""
        return self.units.features(moved, self.differs[cubes])

    def listed(self) -> list[Bools]:
        """Features that the sets listed for each cube change."""
        sets = self.found.sets or []
        return [self.features(np.full(len(part), cube), part) for cube, part in enumerate(sets)]

    def steps(self) -> Floats:
        """How far the sets found lead."""
        return np.asarray(np.round(np.where(self.found.moved, self.problem.distance, 0.0).sum(axis=1), 12))

    def probes(self) -> tuple[Rows, Bools]:
        """Vertices drawn to try what was read of the model on, once; none where nothing is believed."""
        count = 0 if self.inside is None or self.tried else self.inside.drawn(self.problem.n_cubes)
        self.tried = True
        if count == 0:
            return np.empty(0, dtype=np.int64), np.empty((0, self.problem.n_units), dtype=bool)
        rng = np.random.default_rng(crc32(self.problem.start[0].tobytes()))  # others for each part, the same each run
        return rng.integers(self.problem.n_cubes, size=count), rng.random((count, self.problem.n_units)) < 0.5

    def own_score(self, cubes: Rows, moved: Bools) -> Floats:
        """Signed scores of vertices by the user's own model, from raw rows."""
        return self.vertices.signed(cubes, self.features(cubes, moved))

    def block_score(self, final: Any, cubes: Rows, moved: Bools) -> Floats:
        """Signed scores of vertices by the final model alone, from mixed rows of its input."""
        decision, rows = self.vertices.decision, vertex_rows(self.problem, cubes, moved)
        return np.asarray(self.problem.sign * (decision.call(rows, model=final)[0] - decision.cut))


def answer(task: Task, frame: pd.DataFrame) -> Answers:
    """Verified answers for a part of the table.

    Where it is proved that nothing credible turns a case, the best answer without a floor is shown instead, and says
    so: NOT_CREDIBLE.
    """
    answers = _answer(task, frame)
    none = np.flatnonzero(answers.status == CODE[Status.UNREACHABLE])
    if not floored(task.credibility) or len(none) == 0:
        return answers
    plain = replace(task, credibility=without_floor(task.credibility), alternatives=0)
    return show_plain(answers, none, _answer(plain, frame.iloc[none]))


def _answer(task: Task, frame: pd.DataFrame) -> Answers:
    """Verified answers, those that are not credible left out."""
    verdicts, prepared, inside = _score(task, frame)
    answers = Answers.blank(len(frame), len(task.schema))
    answers.score[:] = verdicts.score
    rows = np.flatnonzero(verdicts.positive)
    if len(rows) == 0:
        return answers
    answers.status[rows] = CODE[Status.UNREACHABLE]
    answers.strategy[rows] = 1
    task = replace(task, inside=inside)
    cases = frame.iloc[rows]
    far = Distances.read(task.schema, cases, task.references.frame)
    task.inside.check_part(task.schema, cases, task.references.frame, far.absent())
    candidates = task.references.candidates(cases, far)
    answers.reference[rows] = candidates[:, 0]
    race = BestSoFar(np.full(len(rows), np.inf), np.full(len(rows), np.inf), np.full(len(rows), np.inf))
    listing = Listing(task.alternatives, task.sign < 0, np.full(len(rows), np.inf))
    for columns, strict in _rounds(task.references, candidates.shape[1]):
        fewer = strict and not task.alternatives  # with all sets, those as small as the best are listed as well
        limit = np.minimum(task.constraints.most, race.best - _least_step(task, race.best) if fewer else race.best)
        todo = np.flatnonzero(limit >= _cheapest(task))
        if len(todo) == 0:
            break
        case, column = np.repeat(todo, len(columns)), np.tile(columns, len(todo))
        goal_of = candidates[case, column]
        towards = CasePairs(cases, far, case, goal_of)
        attempt = _set_up(task, towards, limit[case], prepared[rows[case]])
        _search(task, attempt, race.best[case], race.length[case])
        if attempt.found.sets is not None:
            listing.note(case, goal_of, attempt.found, attempt.listed())
        length = np.full(len(case), -np.inf) if strict else race.length[case]  # strict: closer is not enough
        _drop_worse(task, attempt, np.arange(len(case)), race.best[case], length)
        race.enter(case, attempt)
        _write(task, answers, rows[case], goal_of, attempt)
    _close(answers, rows, race.best, np.maximum(race.lower, _cheapest(task)))
    listing.write(answers, rows, race.best)
    return answers


@dataclass
class BestSoFar:
    """The best that is known of each case: its cost, how far it leads, and the proved bound."""

    best: Floats
    length: Floats
    lower: Floats

    def enter(self, case: Rows, attempt: Attempt) -> None:
        """Keep, for each case, the best of what was found towards several references; forget the rest."""
        found = attempt.found
        best = self.best[case]
        # Nothing within the limit means nothing cheaper than the best so far: a bound as good as the best itself.
        none = (found.outcome == Outcome.NONE) & np.isfinite(best)
        np.minimum.at(self.lower, case, np.where(none, np.maximum(found.lower, best), found.lower))
        steps = attempt.steps()
        order = np.lexsort((steps, found.cost, ~found.known, case))
        first = np.concatenate([[True], case[order][1:] != case[order][:-1]])
        winner = np.zeros(len(case), dtype=bool)
        winner[order[first]] = True
        found.known &= winner
        kept = np.flatnonzero(found.known)
        self.best[case[kept]] = found.cost[kept]
        self.length[case[kept]] = steps[kept]


def _rounds(references: References, count: int) -> Iterator[tuple[npt.NDArray[np.int64], bool]]:
    """Candidates that are searched together, and whether they must need fewer features to be preferred.

    First the nearest reference; then, within its cost, all others at once; flexible twins come last and take no tie.
    """
    equals = count // 2 if references.flexible_of else count
    for first, last, strict in ((0, 1, False), (1, equals, False), (equals, count, True)):
        if last > first:
            yield np.arange(first, last), strict


def _drop_worse(task: Task, attempt: Attempt, cubes: Rows, best: Floats, length: Floats) -> None:
    """Forget sets that cost more than the best so far, or as much and lead as far: they need not be confirmed."""
    found = attempt.found
    cheaper = found.cost[cubes] <= best[cubes] - _least_step(task, best[cubes])
    found.known[cubes] &= cheaper | (attempt.steps()[cubes] < length[cubes])


def _least_step(task: Task, best: Floats) -> Floats:
    """How much less a later reference must cost to be preferred however far it leads."""
    if task.weights is None:
        return np.ones_like(best)
    return 1e-9 * np.where(np.isfinite(best), best, 1.0)


def _cheapest(task: Task) -> float:
    return 1.0 if task.weights is None else float(task.weights.min())


def _score(task: Task, frame: pd.DataFrame) -> tuple[Verdicts, Floats, ModelReading]:
    """Verdicts on the cases, their prepared rows, and what was read as it holds for these; transformers run once."""
    if not task.inside.known():
        return task.decision.verdicts(frame), np.empty((len(frame), 0)), task.inside
    encoding = task.inside.encoding
    model_input = encoding.transform(frame)
    scores, precision = task.decision.call(model_input, frame, encoding.final)
    verdicts, prepared = task.decision.settle(scores, precision, frame), task.inside.prepare(model_input)
    inside = task.inside.wide_enough(prepared, task.goals)
    if not inside.blocks:  # those were just scored by the final model itself
        inside.check_decisions(prepared, verdicts.positive)
    return verdicts, prepared, inside


@dataclass(frozen=True)
class CasePairs:
    """Pairs of a case and a reference: a cube each.

    Attributes
    ----------
    cases : (k, columns)
    far : Distances
        From the cases to all references.
    case, reference : (n,) int
        Row of ``cases`` and number of the reference of each cube.
    """

    cases: pd.DataFrame
    far: Distances
    case: Rows
    reference: npt.NDArray[np.int32]

    def frames(self, references: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Case and reference of each cube as tables, labelled as the cases are."""
        cases = self.cases.iloc[self.case]
        return cases, references.iloc[self.reference].set_index(cases.index)


def _set_up(task: Task, towards: CasePairs, limit: Floats, prepared: Floats) -> Attempt:
    """The hypercubes of cases towards their references."""
    references, schema, units = task.references.frame, task.schema, task.units
    distance = towards.far.between(towards.case, towards.reference)
    differs = distance > 0
    n = len(limit)
    permitted = np.ones_like(differs)
    if len(task.constraints):
        permitted = task.constraints.permitted(schema, *towards.frames(references))
    if task.sign > 0:
        start, goal, goal_of = prepared, task.goals, towards.reference
        vertices = Vertices(task.decision, schema, towards.cases, references, goal_of, start_of=towards.case)
    else:
        start, goal, goal_of = task.goals[towards.reference], prepared, np.arange(n, dtype=np.int32)
        cases, starts = towards.frames(references)
        vertices = Vertices(task.decision, schema, starts, cases, goal_of, sign=-1)
    weighted = task.weights is not None or not units.trivial
    weights = np.ones(len(schema)) if task.weights is None else task.weights
    opaque = isinstance(task.inside.structure, Opaque)
    feature_of = task.inside.feature_of()
    problem = Problem(
        start=np.ascontiguousarray(start),
        goal=np.ascontiguousarray(goal),
        goal_of=goal_of,
        unit_of=np.where(feature_of >= 0, units.unit_of[feature_of], -1).astype(np.int32),
        movable=units.movable(differs, permitted),
        distance=distance if units.trivial else units.total(distance, differs),
        limit=limit,
        cost=units.total(weights, differs) if weighted else None,
        sign=task.sign,
        rules=units.rules_for(differs),
        all_sets=task.alternatives,
        budget=Budget(task.own_nodes if opaque else task.nodes, task.deadline),
    )
    attempt = Attempt(
        problem, vertices, differs, distance, units, Found.blank(problem), np.full(n, np.nan), np.zeros(n, dtype=bool),
        task.credibility, np.full(n, np.nan), task.inside,
    )  # fmt: skip
    attempt.problem = replace(problem, floor=_floor(attempt))
    return attempt


def _floor(attempt: Attempt) -> Floor | None:
    """The condition that vertices are credible, asked of points where the density is defined on them."""
    credibility, vertices, units = attempt.credibility, attempt.vertices, attempt.units
    if credibility is None or not floored(credibility):
        return None
    cubes, density = np.arange(attempt.problem.n_cubes), credibility.density
    if not isinstance(density, PointDensity):

        def of_rows(which: Rows, moved: Bools) -> Floats:
            return credibility.log_density(vertices.rows(which, attempt.features(which, moved)))

        return Floor(credibility.floor, of_rows, cubes)
    start, goal = (
        density.points(credibility.schema.conform(frame, unseen="allow")) for frame in (vertices.start, vertices.goal)
    )
    if vertices.start_of is not None:
        start = start[vertices.start_of]
    unit_of = units.unit_of[density.feature_of]

    def of_points(which: Rows, moved: Bools) -> Floats:
        return density.at(np.where(moved[:, unit_of], goal[vertices.goal_of[which]], start[which]))

    bodies = MixtureCubes(density.mixture, start, goal, unit_of) if isinstance(density, GaussianDensity) else None
    return Floor(credibility.floor, of_points, cubes, bodies)


def _search(task: Task, attempt: Attempt, best: Floats, length: Floats) -> None:
    """Search until the user's own model confirms every answer that beats the best so far; no other is returned."""
    problem, found = attempt.problem, attempt.found
    structure = task.inside.structure
    pending = np.arange(problem.n_cubes)
    rejected: dict[int, Bools] = {}
    for turn in range(REJECTIONS + OWN_ROUNDS):
        inside = structure if turn < REJECTIONS else Opaque("the model's own scores decide near ties")
        part = problem.take(pending, {k: rejected[c] for k, c in enumerate(pending.tolist()) if c in rejected})
        if turn >= REJECTIONS:
            part = replace(part, budget=Budget(task.own_nodes, task.deadline))
            attempt.own[pending] = True
            attempt.inside = None
        blocks = task.inside.blocks and turn < REJECTIONS
        score = partial(attempt.block_score, task.inside.encoding.final) if blocks else attempt.own_score

        def own_score(local: Rows, moved: Bools, score: Any = score, cubes: Rows = pending) -> Floats:
            return np.asarray(score(cubes[local], moved))

        found.put(pending, solve(inside, part, own_score, task.own_tolerance, task.n_jobs))
        if not problem.all_sets:  # with all sets, those as good as the best are listed, so they are confirmed as well
            _drop_worse(task, attempt, pending, best, length)
        refused = _confirm(attempt, pending)
        for cube in refused.tolist():
            earlier = rejected.get(cube, np.zeros((0, problem.n_units), dtype=bool))
            rejected[cube] = np.vstack([earlier, found.moved[cube]])
        stopped = refused[found.outcome[refused] == Outcome.STOPPED]
        _forget(found, stopped)
        pending = refused[found.outcome[refused] == Outcome.FOUND]
        if len(pending) == 0:
            break
    found.outcome[pending] = Outcome.STOPPED
    _forget(found, pending)
    if problem.all_sets:
        _confirm_sets(attempt)


def _forget(found: Found, cubes: Rows) -> None:
    """Drop sets that the model did not confirm."""
    found.known[cubes] = False
    found.moved[cubes] = False
    found.cost[cubes] = np.nan


def _confirm(attempt: Attempt, cubes: Rows) -> Rows:
    """Score the sets found with the user's own model; the cubes whose set does not turn it, or is not credible."""
    cubes = cubes[attempt.found.known[cubes]]
    probes, drawn = attempt.probes()
    everywhere, moved = np.concatenate([cubes, probes]), np.concatenate([attempt.found.moved[cubes], drawn])
    if len(everywhere) == 0:
        return cubes
    rows = attempt.vertices.rows(everywhere, attempt.features(everywhere, moved))
    verdicts = attempt.vertices.decision.verdicts(rows)
    good = attempt.vertices.turned(verdicts)
    # A set was found because what was read says that it turns: where the model agrees there is nothing to compare.
    doubtful = np.flatnonzero(np.append(~good[: len(cubes)], np.ones(len(probes), dtype=bool)))
    if attempt.inside is not None and len(doubtful):
        assumed = vertex_rows(attempt.problem, everywhere[doubtful], moved[doubtful])
        attempt.inside.check_decisions(assumed, verdicts.positive[doubtful])
    good = good[: len(cubes)]
    attempt.score_after[cubes] = verdicts.score[: len(cubes)]
    if attempt.credibility is not None:
        attempt.log_density[cubes] = attempt.credibility.log_density(rows.iloc[: len(cubes)])
        good &= attempt.log_density[cubes] >= attempt.credibility.floor
    return np.asarray(cubes[~good])


def _confirm_sets(attempt: Attempt) -> None:
    """Keep only those alternatives that turn the user's own model and are credible."""
    found = attempt.found
    if found.sets is None:
        return
    cubes = np.repeat(np.arange(len(found.sets)), [len(sets) for sets in found.sets])
    if len(cubes) == 0:
        return
    moved = np.concatenate(found.sets)
    rows = attempt.vertices.rows(cubes, attempt.features(cubes, moved))
    turned = attempt.vertices.turned(attempt.vertices.decision.verdicts(rows))
    if attempt.credibility is not None:
        turned &= attempt.credibility.log_density(rows) >= attempt.credibility.floor
    ends = np.cumsum(np.bincount(cubes[turned], minlength=len(found.sets)))[:-1]
    found.sets = np.split(moved[turned], ends)


def _write(task: Task, answers: Answers, rows: Rows, goal_of: npt.NDArray[np.int32], attempt: Attempt) -> None:
    """Enter what this attempt found where it is better than what stands there."""
    found = attempt.found
    np.add.at(answers.nodes, rows, found.nodes)
    ended = found.outcome == Outcome.STOPPED
    answers.status[rows[ended]] = CODE[Status.BUDGET]
    hit = np.flatnonzero(found.known)
    if len(hit) == 0:
        return
    features = attempt.features(hit, found.moved[hit])
    into = rows[hit]
    answers.moved[into] = features
    answers.reference[into] = goal_of[hit]
    answers.score_after[into] = attempt.score_after[hit]
    answers.cost[into] = found.cost[hit]
    answers.log_density[into] = attempt.log_density[hit]
    answers.strategy[into] = 1 + attempt.own[hit]
    numeric = np.array([feature.is_numeric for feature in task.schema.features])
    answers.l_inf[into] = np.where(features & numeric, attempt.distance[hit], 0.0).max(axis=1)


def _close(answers: Answers, rows: Rows, best: Floats, lower: Floats) -> None:
    """Turn costs and bounds into statuses: an answer at its lower bound is proved, whatever else was stopped."""
    reached = np.isfinite(best)
    target = np.where(reached, best, 0.0)
    proved = reached & (lower >= target * (1 - 1e-9))
    answers.lower[rows] = np.where(reached, np.minimum(lower, best), lower)
    answers.proved[rows[proved]] = True
    answers.status[rows[proved]] = CODE[Status.EXPLAINED]
    answers.status[rows[reached & ~proved]] = CODE[Status.BUDGET]
    answers.proved[rows[~reached & (answers.status[rows] == CODE[Status.UNREACHABLE])]] = True
