"""One part of a table, from raw rows to verified answers: score, search, let the model confirm, search again if not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from fewest.credibility.mixture import GaussianDensity
from fewest.decision import Verdicts
from fewest.engine.choices import CODE, Choices, TableWork, floored, or_plain
from fewest.engine.cubes import Attempt, CasePairs, Engine, Task, credible_floor, set_up_cubes
from fewest.engine.model_reading import ModelReader, ModelReading
from fewest.engine.move_groups import MoveGroups
from fewest.engine.row_turns import MANY, ManyRows, Turn
from fewest.engine.search import Found, Outcome, solve, strategy_name
from fewest.engine.several_references import BestSoFar, refused
from fewest.engine.smallest_sets import Listing
from fewest.engine.structure import Opaque
from fewest.engine.structure.base import Additive, Ensemble, Rivals
from fewest.errors import UsageError
from fewest.references.base import References
from fewest.results.answers import Answers
from fewest.results.explanation import Status
from fewest.tables.arrays import Bools, Floats, Ints, Ints32
from fewest.tables.closeness import GoalRows

REJECTIONS = 12  # after this many sets that the model does not confirm, the model's own scores are searched instead
OWN_ROUNDS = 64
TOGETHER = 64  # references that are searched at once
FEW = 64  # up to this many cases are searched before the model is asked: about them and their answers, in one call


class PointGoals:
    """References that are points: a case is searched on the hypercubes between it and them."""

    reach = None

    def __init__(self, chosen: Choices, reader: ModelReader, engine: Engine) -> None:
        if chosen.plus and (chosen.references.score >= chosen.decision.cut).any():
            raise UsageError("SEV+ needs references the model accepts; one of these is decided positive", do="drop it")
        self._chosen, self._reader, self._engine = chosen, reader, engine
        self._units = MoveGroups.build(chosen.references.schema, chosen.constraints)
        self._many = ManyRows()

    @cached_property
    def _goal_rows(self) -> GoalRows:
        return GoalRows(self._chosen.references.schema, self._chosen.references.frame)

    def task(self, frame: pd.DataFrame, deadline: float, alternatives: int) -> Task:
        """What is asked of a table, with what was read of the model."""
        inside, goals = self._reader.look(frame), self._reader.goals()
        return Task(
            self._chosen, self._units, inside, goals, self._goal_rows, self._reader.band, deadline, alternatives,
            self._engine, self._many, self._chosen.credibility,
        )  # fmt: skip

    def prepare(self, frame: pd.DataFrame, deadline: float, alternatives: int) -> TableWork:
        """How parts of this table are answered."""
        task, references = self.task(frame, deadline, alternatives), self._chosen.references
        structure = task.inside.structure
        strategies = ("none", _strategy(task), "levelwise on the model's own scores")
        notes = (structure.reason,) if isinstance(structure, Opaque) else ()
        # References that are compared are searched together, so a case takes as many cells as there are of them.
        count = len(references) if references.assignment == "sparsest" else 1
        cells = max(count, min(count, TOGETHER) * max(len(task.schema), task.inside.width))
        return TableWork(partial(answer, task), cells, strategies, notes)


def _strategy(task: Task) -> str:
    if task.engine.search is not None:
        return task.engine.search
    joint = any(not group.summed for group in task.inside.joint)
    structure = task.inside.structure
    if isinstance(structure, Rivals) and task.chosen.plus:  # a class has to overtake all others at once
        structure = Opaque("vertices are looked at")
    if task.credibility is None or not floored(task.credibility):
        return strategy_name(structure, joint=joint)
    bounded = isinstance(task.credibility.density, GaussianDensity)
    return strategy_name(structure, "bounded" if bounded else "asked", joint)


def answer(task: Task, frame: pd.DataFrame) -> Answers:
    """Verified answers for a part of the table."""
    return or_plain(_answer(task, frame), _answer, task, frame)


def _answer(task: Task, frame: pd.DataFrame, one_call: bool = True) -> Answers:
    """Verified answers, those that are not credible left out.

    ``one_call``: a few cases are scored with theirs, and of several references only the one that is shown is confirmed;
    where the model does not confirm it, its case is answered once more, reference by reference.
    """
    chosen, references = task.chosen, task.chosen.references
    foreseen = _foresee(task, frame) if one_call else None
    verdicts, prepared, inside = foreseen or _score(task, frame)
    answers = Answers.blank(len(frame), len(task.schema))
    answers.score[:] = verdicts.score
    rows = np.flatnonzero(verdicts.positive)
    if len(rows) == 0:
        return answers
    answers.status[rows] = CODE[Status.UNREACHABLE]
    answers.strategy[rows] = 1
    asked, confirmed_later = task, replace(task.engine, confirm=lambda attempt, cubes: cubes[:0])
    several = references.assignment == "sparsest" and len(references) > 1 and not task.alternatives
    at_last = one_call and several and not foreseen and _is_plain(task) and not _is_bounded(task)
    task = replace(task, inside=inside, engine=confirmed_later if foreseen or at_last else task.engine)
    attempts: list[Attempt] = []
    cases = frame.iloc[rows]
    far = task.goal_rows.distances(cases)
    inside.check_part(task.schema, cases, references.frame, far.absent())
    race = BestSoFar.blank(len(rows))
    listing = Listing(task.alternatives, chosen.plus, np.full(len(rows), np.inf))
    if _is_bounded(task):
        known = inside, task.goals, prepared[rows], far, race
        turns = task.many.turns(*known, task.deadline, chosen.n_jobs)
    else:
        candidates = references.candidates(cases, far)
        answers.reference[rows] = candidates[:, 0]
        turns = _in_order(task, candidates, race)
    for case, goal_of, limit, ahead, strict in turns:
        towards = CasePairs(cases, far, case, goal_of)
        attempt = task.engine.set_up(task, towards, limit, prepared[rows[case]])
        length = np.where(ahead, np.nextafter(race.length[case], np.inf), race.length[case])
        if at_last and attempt.problem.is_plain:
            # Where one unit does, another reference is better only by one that leads less far.
            near = (limit > 1)[:, None] | (np.round(attempt.problem.distance, 12) < length[:, None])
            attempt.problem = replace(attempt.problem, movable=attempt.problem.movable & near)
        if at_last or not attempts:
            attempts.append(attempt)
        _search(task, attempt, race.best[case], length)
        if attempt.found.sets is not None:
            listing.note(case, goal_of, attempt.found, attempt.listed())
        length = np.full(len(case), -np.inf) if strict else length  # strict: closer is not enough
        _drop_worse(task, attempt, np.arange(len(case)), race.best[case], length)
        race.enter(case, goal_of, attempt)
        _write(task, answers, rows[case], goal_of, attempt)
    if foreseen and not (attempts and _confirm_all(attempts[0], cases, answers)):
        return _answer(asked, frame, one_call=False)
    _close(answers, rows, race.best, np.maximum(race.lower, _cheapest(task)))
    listing.write(answers, rows, race.best)
    if at_last and attempts:
        again = rows[refused(attempts, rows, answers)]
        if len(again):
            answers.put(again, _answer(asked, frame.iloc[again], one_call=False))
    return answers


def _is_bounded(task: Task) -> bool:
    """Whether the plain question is asked of many references, and of a model that bounds all of them at once."""
    chosen, references = task.chosen, task.chosen.references
    plain = not len(chosen.constraints) and chosen.weights is None and task.credibility is None and not chosen.plus
    every = references.assignment == "sparsest" and not references.flexible_of and len(references) > MANY
    asked = plain and every and not task.alternatives and task.engine.search is None
    return asked and isinstance(task.inside.structure, Additive | Ensemble) and not task.inside.joint


def _in_order(task: Task, candidates: Ints32, race: BestSoFar) -> Iterator[Turn]:
    """Every candidate in its turn, within the cost known by then."""
    for columns, strict in _rounds(task.chosen.references, candidates.shape[1]):
        fewer = strict and not task.alternatives  # with all sets, those as small as the best are listed as well
        most = race.best - _least_step(task, race.best) if fewer else race.best
        limit = np.minimum(task.chosen.constraints.most, most)
        todo = np.flatnonzero(limit >= _cheapest(task))
        if len(todo) == 0:
            return
        case, column = np.repeat(todo, len(columns)), np.tile(columns, len(todo))
        yield Turn(case, candidates[case, column], limit[case], np.zeros(len(case), dtype=bool), strict)


def _rounds(references: References, count: int) -> Iterator[tuple[Ints, bool]]:
    """Candidates that are searched together, and whether they must need fewer features to be preferred.

    First the nearest reference; then, within the cost known by then, all others, up to `TOGETHER` at once; flexible
    twins come last and take no tie.
    """
    equals = count // 2 if references.flexible_of else count
    for first, last, strict in ((0, 1, False), (1, equals, False), (equals, count, True)):
        for begin in range(first, last, TOGETHER):
            yield np.arange(begin, min(begin + TOGETHER, last)), strict


def _drop_worse(task: Task, attempt: Attempt, cubes: Ints, best: Floats, length: Floats) -> None:
    """Forget sets that cost more than the best so far, or as much and lead as far: they need not be confirmed."""
    found = attempt.found
    cheaper = found.cost[cubes] <= best[cubes] - _least_step(task, best[cubes])
    found.known[cubes] &= cheaper | (attempt.steps()[cubes] < length[cubes])


def _least_step(task: Task, best: Floats) -> Floats:
    """How much less a later reference must cost to be preferred however far it leads."""
    if task.chosen.weights is None:
        return np.ones_like(best)
    return 1e-9 * np.where(np.isfinite(best), best, 1.0)


def _cheapest(task: Task) -> float:
    return 1.0 if task.chosen.weights is None else float(task.chosen.weights.min())


def _score(task: Task, frame: pd.DataFrame) -> tuple[Verdicts, Floats, ModelReading]:
    """Verdicts on the cases, their prepared rows, and what was read as it holds for these; transformers run once."""
    if not task.inside.known():
        return task.chosen.decision.verdicts(frame), np.empty((len(frame), 0)), task.inside
    model_input = task.inside.encoding.transform(frame)
    verdicts, prepared = task.inside.verdicts(frame, model_input), task.inside.prepare(model_input)
    inside = task.inside.wide_enough(prepared, task.goals)
    if not inside.blocks:  # those were just scored by the final model itself
        inside.check_decisions(prepared, verdicts.positive)
    return verdicts, prepared, inside


def _is_plain(task: Task) -> bool:
    """Whether nothing but the model's decision about the answers is to be confirmed."""
    return not task.chosen.plus and task.credibility is None and task.engine.confirm is confirm


def _foresee(task: Task, frame: pd.DataFrame) -> tuple[Verdicts, Floats, ModelReading] | None:
    """The same for a few cases that what was read decides against, beyond doubt; their scores are still missing.

    Cases and answers are then scored in one call, so they must be rows of the same types.
    """
    goal = task.chosen.references.frame
    if len(frame) > FEW or not _is_plain(task) or list(frame.dtypes) != list(goal.dtypes):
        return None
    prepared = task.inside.prepared_alone(frame)
    if prepared is None:
        return None
    inside = task.inside.wide_enough(prepared, task.goals)
    assert not isinstance(inside.structure, Opaque)
    reading = inside.structure.reading
    if not (inside.structure.raw(prepared) - reading.cut > reading.tolerance).all():
        return None
    return Verdicts(np.full(len(frame), np.nan), np.ones(len(frame), dtype=bool)), prepared, inside


def _search(task: Task, attempt: Attempt, best: Floats, length: Floats) -> None:
    """Search until the user's own model confirms every answer that beats the best so far; no other is returned."""
    problem, found = attempt.problem, attempt.found
    structure = (attempt.inside or task.inside).structure
    pending = np.arange(problem.n_cubes)
    rejected: dict[int, Bools] = {}
    for turn in range(REJECTIONS + OWN_ROUNDS):
        inside = structure if turn < REJECTIONS else Opaque("the model's own scores decide near ties")
        part = replace(problem, rejected=rejected).take(pending) if turn else problem
        if turn >= REJECTIONS:
            part = replace(part, budget=task.budget(own=True))
            attempt.own[pending] = True
            attempt.inside = None
        blocks = task.inside.blocks and turn < REJECTIONS
        score = partial(attempt.block_score, task.inside.encoding.final) if blocks else attempt.own_score

        def own_score(local: Ints, moved: Bools, score: Any = score, cubes: Ints = pending) -> Floats:
            return np.asarray(score(cubes[local], moved))

        solved = task.engine.solve(inside, part, own_score, task.own_tolerance, task.chosen.n_jobs)
        if turn:
            found.put(pending, solved)
        else:
            found = attempt.found = solved
        if not problem.all_sets:  # with all sets, those as good as the best are listed, so they are confirmed as well
            _drop_worse(task, attempt, pending, best, length)
        refused = task.engine.confirm(attempt, pending)
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


def _forget(found: Found, cubes: Ints) -> None:
    """Drop sets that the model did not confirm."""
    found.known[cubes] = False
    found.moved[cubes] = False
    found.cost[cubes] = np.nan


def confirm(attempt: Attempt, cubes: Ints) -> Ints:
    """Score the sets found with the user's own model; the cubes whose set does not turn it, or is not credible."""
    cubes = cubes[attempt.found.known[cubes]]
    probes, drawn = attempt.probes()
    everywhere, moved = np.concatenate([cubes, probes]), np.concatenate([attempt.found.moved[cubes], drawn])
    if len(everywhere) == 0:
        return cubes
    rows = attempt.vertices.rows(everywhere, attempt.features(everywhere, moved))
    verdicts = attempt.vertices.decision.verdicts(rows) if attempt.inside is None else attempt.inside.verdicts_on(rows)
    good = attempt.vertices.turned(verdicts)
    # A set was found because what was read says that it turns: where the model agrees there is nothing to compare.
    doubtful = np.flatnonzero(np.append(~good[: len(cubes)], np.ones(len(probes), dtype=bool)))
    if attempt.inside is not None and len(doubtful):
        assumed = attempt.problem.vertex_rows(everywhere[doubtful], moved[doubtful])
        attempt.inside.check_decisions(assumed, verdicts.positive[doubtful])
    good = good[: len(cubes)]
    attempt.score_after[cubes] = verdicts.score[: len(cubes)]
    if attempt.credibility is not None:
        attempt.log_density[cubes] = attempt.credibility.log_density(rows.iloc[: len(cubes)])
        good &= attempt.log_density[cubes] >= attempt.credibility.floor
    return np.asarray(cubes[~good])


def _confirm_all(first: Attempt, cases: pd.DataFrame, answers: Answers) -> bool:
    """Score cases, answers and vertices drawn towards the first references in one call; whether all is as foreseen."""
    n, probes, drawn = len(cases), *first.probes()
    assert first.vertices.start_of is not None
    start_of = np.concatenate([np.arange(n), np.arange(n), first.vertices.start_of[probes]])
    goal_of = np.concatenate([answers.reference, answers.reference, first.vertices.goal_of[probes]])
    moved = np.concatenate([np.zeros_like(answers.moved), answers.moved, first.features(probes, drawn)])
    vertices = replace(first.vertices, goal_of=goal_of, start_of=start_of)
    verdicts = vertices.verdicts(np.arange(len(start_of)), moved)
    found, (own, after, tried) = answers.moved.any(axis=1), np.split(verdicts.positive, [n, 2 * n])
    if not own.all() or after[found].any():
        return False
    if first.inside is not None:
        first.inside.check_decisions(first.problem.vertex_rows(probes, drawn), tried)
    answers.score[:] = verdicts.score[:n]
    answers.score_after[found] = verdicts.score[n : 2 * n][found]
    return True


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


def _write(task: Task, answers: Answers, rows: Ints, goal_of: Ints32, attempt: Attempt) -> None:
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


def _close(answers: Answers, rows: Ints, best: Floats, lower: Floats) -> None:
    """Turn costs and bounds into statuses: an answer at its lower bound is proved, whatever else was stopped."""
    reached = np.isfinite(best)
    target = np.where(reached, best, 0.0)
    proved = reached & (lower >= target * (1 - 1e-9))
    answers.lower[rows] = np.where(reached, np.minimum(lower, best), lower)
    answers.proved[rows[proved]] = True
    answers.status[rows[proved]] = CODE[Status.EXPLAINED]
    answers.status[rows[reached & ~proved]] = CODE[Status.BUDGET]
    answers.proved[rows[~reached & (answers.status[rows] == CODE[Status.UNREACHABLE])]] = True


ENGINE = Engine(set_up_cubes, credible_floor, solve, confirm)
