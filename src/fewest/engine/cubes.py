"""The hypercubes between cases and references: what is searched, and what their vertices are as raw rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.credibility.base import Credibility, PointDensity
from fewest.credibility.mixture import GaussianDensity
from fewest.decision import Decision, Verdicts
from fewest.engine.choices import Choices, floored
from fewest.engine.joint_columns import Rows, close, on_cubes
from fewest.engine.model_reading import OTHER_SOURCES, ModelReading
from fewest.engine.move_groups import MoveGroups
from fewest.engine.row_turns import ManyRows
from fewest.engine.search import Budget, Found, Problem
from fewest.engine.search.problem import Floor, MixtureCubes, Score, combined
from fewest.engine.structure import Opaque
from fewest.engine.structure.base import is_smooth
from fewest.errors import DoubtError, UsageError
from fewest.tables.arrays import Bools, Floats, Ints, Ints32
from fewest.tables.closeness import Distances, GoalRows
from fewest.tables.frames import mix
from fewest.tables.schema import Schema

DEFAULT_NODES = 100_000
DEFAULT_OWN_NODES = 20_000


@dataclass(frozen=True)
class Vertices:
    """Raw rows between cases and references; every answer is re-scored on them by the user's own model."""

    # decision, schema: Whose rows these are
    decision: Decision
    schema: Schema
    start: pd.DataFrame  # (k, columns): Where cubes start
    goal: pd.DataFrame  # (m, columns): Where moved features take their values from
    goal_of: npt.NDArray[Any]  # (n,) int: Row of ``goal`` of each cube
    sign: int = 1  # +1 where a turned row is one decided negative (SEV-), -1 where it is one decided positive (SEV+)
    start_of: npt.NDArray[Any] | None = None  # (n,) int: Row of ``start`` of each cube. Default: the rows in order.

    def rows(self, cubes: npt.NDArray[Any], features: Bools) -> pd.DataFrame:
        """Typed raw rows of vertices: cube numbers (v,) and the features (v, p) taken from the goal."""
        take = {column: features[:, j] for column, j in self.schema.feature_of.items()}
        start = cubes if self.start_of is None else self.start_of[cubes]
        return mix(self.start.iloc[start], self.goal, self.goal_of[cubes], take)

    def verdicts(self, cubes: npt.NDArray[Any], features: Bools) -> Verdicts:
        """The model's own decision on vertices, near ties scored alone."""
        return self.decision.verdicts(self.rows(cubes, features))

    def turned(self, verdicts: Verdicts) -> Bools:
        """Which of these decisions are turned."""
        return ~verdicts.positive if self.sign > 0 else verdicts.positive

    def signed(self, cubes: npt.NDArray[Any], features: Bools) -> Floats:
        """Signed scores for the level-wise search: turned means below zero."""
        return np.asarray(self.sign * (self.decision.score(self.rows(cubes, features)) - self.decision.cut))


@dataclass(frozen=True)
class Engine:
    """The steps from cubes to answers; another search, or in a test a broken twin, can take the place of one.

    Examples
    --------
    >>> import fewest as fw
    >>> from fewest.engine.points import ENGINE
    >>> from fewest.engine.search import levelwise
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> reference = fw.references.supplied(decision, {"debt": [20]})
    >>> engine = ENGINE.with_search("every set in turn", levelwise.solve)
    >>> fw.Explainer(decision, reference, engine=engine).explain({"debt": [90]})[0].proof.strategy
    'every set in turn'
    """

    # (task, pairs, limit, prepared) -> Attempt; see `set_up_cubes`
    set_up: Callable[[Task, CasePairs, Floats, Floats], Attempt]
    floor: Callable[[Attempt], Floor | None]  # Attempt -> Floor or None; see `credible_floor`
    solve: Callable[..., Found]  # See `fewest.engine.search.solve`
    # (attempt, cubes) -> the cubes whose set the user's own model does not confirm
    confirm: Callable[[Attempt, Ints], Ints]
    search: str | None = None  # What a search of the user's is called; None: the one that fits the model

    def with_search(self, name: str, search: Callable[[Score, Problem, float], Found]) -> Engine:
        """The same steps with a search of yours, for all models; answers name it as their strategy.

        ``search(score, problem, tolerance)`` gets the `Problem` and gives a `Found`. ``score(cubes, moved)`` has the
        signed scores (v,) of vertices by the model itself: of cube numbers (v,), and the units (v, u) that are moved.
        Below the tolerance a vertex is turned; one that is not credible enough is not. Sets of ``problem.rejected`` are
        not to be returned again. Every set found is scored once more by the model; that none is smaller is what the
        search says: ``Outcome.FOUND`` where it has proved that, else ``STOPPED`` with the bound ``lower`` that it has.
        """
        if not (isinstance(name, str) and name) or not callable(search):
            raise UsageError(
                f"with_search was given {name!r} and {search!r}",
                do="give a name and a function (score, problem, tolerance)",
            )

        def own(structure: object, problem: Problem, score: Score, tolerance: float, n_jobs: int = 1) -> Found:
            found = search(combined(score, problem, tolerance), problem, tolerance)
            if not isinstance(found, Found) or found.moved.shape != problem.movable.shape:
                raise UsageError(
                    f'the search "{name}" gave no Found of this problem', do="begin with Found.blank(problem)"
                )
            return found

        return replace(self, solve=own, search=name)


@dataclass(frozen=True)
class Task:
    """What is the same for all parts of a table: what was chosen, what was read of the model, and what is asked."""

    chosen: Choices
    units: MoveGroups
    inside: ModelReading
    goals: Floats
    goal_rows: GoalRows
    own_tolerance: float
    deadline: float
    alternatives: int
    engine: Engine
    many: ManyRows
    credibility: Credibility | None = None

    @property
    def schema(self) -> Schema:
        """The features spoken of."""
        return self.chosen.references.schema

    def budget(self, own: bool) -> Budget:
        """What a search may spend; ``own``: where it asks the model's own scores."""
        return Budget(self.chosen.max_nodes or (DEFAULT_OWN_NODES if own else DEFAULT_NODES), self.deadline)


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

    def features(self, cubes: Ints, moved: Bools) -> Bools:
        """Features that sets of units change."""
        return self.units.features(moved, self.differs[cubes])

    def listed(self) -> list[Bools]:
        """Features that the sets listed for each cube change."""
        sets = self.found.sets or []
        return [self.features(np.full(len(part), cube), part) for cube, part in enumerate(sets)]

    def steps(self) -> Floats:
        """How far the sets found lead."""
        return np.asarray(np.round(np.where(self.found.moved, self.problem.distance, 0.0).sum(axis=1), 12))

    def probes(self) -> tuple[Ints, Bools]:
        """Vertices drawn to try what was read of the model on, once; none where nothing is believed."""
        count = 0 if self.inside is None or self.tried else self.inside.drawn(self.problem.n_cubes)
        self.tried = True
        if count == 0:
            return np.empty(0, dtype=np.int64), np.empty((0, self.problem.n_units), dtype=bool)
        rng = np.random.default_rng(crc32(self.problem.start[0].tobytes()))  # others for each part, the same each run
        cubes, moved = rng.integers(self.problem.n_cubes, size=count), rng.random((count, self.problem.n_units)) < 0.5
        return cubes, moved & self.problem.movable[cubes]

    def own_score(self, cubes: Ints, moved: Bools) -> Floats:
        """Signed scores of vertices by the user's own model, from raw rows."""
        return self.vertices.signed(cubes, self.features(cubes, moved))

    def block_score(self, final: Any, cubes: Ints, moved: Bools) -> Floats:
        """Signed scores of vertices by the final model alone, from mixed rows of its input."""
        decision, rows = self.vertices.decision, self.problem.vertex_rows(cubes, moved)
        return np.asarray(self.problem.sign * (decision.call(rows, model=final)[0] - decision.cut))


@dataclass(frozen=True)
class CasePairs:
    """Pairs of a case and a reference: a cube each."""

    cases: pd.DataFrame  # (k, columns)
    far: Distances  # From the cases to all references
    # case, reference: (n,) int: Row of ``cases`` and number of the reference of each cube
    case: Ints
    reference: Ints32

    def frames(self, references: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Case and reference of each cube as tables, labelled as the cases are."""
        cases = self.cases.iloc[self.case]
        return cases, references.iloc[self.reference].set_index(cases.index)


def set_up_cubes(task: Task, towards: CasePairs, limit: Floats, prepared: Floats) -> Attempt:
    """The hypercubes of cases towards their references."""
    chosen, schema, units = task.chosen, task.schema, task.units
    references, sign = chosen.references.frame, -1 if chosen.plus else 1
    distance = towards.far.between(towards.case, towards.reference)
    differs = distance > 0
    n = len(limit)
    permitted = np.ones_like(differs)
    if len(chosen.constraints):
        permitted = chosen.constraints.permitted(schema, *towards.frames(references))
    if sign > 0:
        start, goal, goal_of = prepared, task.goals, towards.reference
        vertices = Vertices(chosen.decision, schema, towards.cases, references, goal_of, start_of=towards.case)
    else:
        start, goal, goal_of = task.goals[towards.reference], prepared, np.arange(n, dtype=np.int32)
        cases, starts = towards.frames(references)
        vertices = Vertices(chosen.decision, schema, starts, cases, goal_of, sign=-1)
    weighted = chosen.weights is not None or not units.trivial
    weights = np.ones(len(schema)) if chosen.weights is None else chosen.weights
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
        sign=sign,
        rules=units.rules_for(differs),
        all_sets=task.alternatives,
        budget=task.budget(own=isinstance(task.inside.structure, Opaque)),
    )
    inside, problem = _with_joint_columns(task.inside, problem, vertices, units, differs)
    attempt = Attempt(
        problem, vertices, differs, distance, units, Found.blank(problem), np.full(n, np.nan), np.zeros(n, dtype=bool),
        task.credibility, np.full(n, np.nan), inside,
    )  # fmt: skip
    attempt.problem = replace(problem, floor=task.engine.floor(attempt))
    return attempt


def _with_joint_columns(
    inside: ModelReading, problem: Problem, vertices: Vertices, units: MoveGroups, differs: Bools
) -> tuple[ModelReading, Problem]:
    """The cubes with the columns that several features change, and the model as it holds for their values."""
    if not inside.joint and not inside.encoding.probed:
        return inside, problem

    rows = _prepared_vertices(inside, vertices, units, differs)
    goal = problem.goal[problem.goal_of]
    inside.check_ends(problem.start, goal, differs)
    joint, summed = on_cubes(inside.joint, units.unit_of, problem.movable, problem.start, rows)
    problem = replace(problem, joint=joint, summed=summed)
    # Where all that differs is movable, moving everything ends at the goal.
    everywhere = np.flatnonzero((units.movable(differs, np.ones_like(differs)) == problem.movable).all(axis=1))
    ends = problem.vertex_rows(everywhere, problem.movable[everywhere])
    columns = np.concatenate([np.empty(0, dtype=np.int64), *(group.columns for group in inside.joint)])
    if not close(goal[everywhere][:, columns], ends[:, columns]).all():
        raise DoubtError(OTHER_SOURCES)
    if not isinstance(inside.structure, Opaque) and is_smooth(inside.structure):
        widest = np.abs(problem.start).max(axis=0, initial=0.0)
        for part in joint:
            widest[part.columns] = np.abs(part.values).max(axis=(0, 1), initial=0.0)
        if summed is not None:
            widest[summed.columns] += np.abs(summed.steps).sum(axis=1).max(axis=0, initial=0.0)
        if not np.isfinite(widest).all():
            raise DoubtError("rows mixed from cases and references have values that are not finite")
        inside = inside.wide_enough(widest[None], goal)
    return inside, problem


def _prepared_vertices(inside: ModelReading, vertices: Vertices, units: MoveGroups, differs: Bools) -> Rows:
    """Prepared rows of vertices: mixed raw, or behind the transformers where each of their columns is one feature's.

    That it is, was tried when the model was read (`Encoding.agrees`), and answers are scored from raw rows.
    """
    encoding, of_column = inside.encoding, inside.encoding.feature_of
    if encoding.steps is not None and of_column is not None:
        start, goal = (encoding.transform(part) for part in (vertices.start, vertices.goal))
        if all(isinstance(part, np.ndarray) and part.dtype.kind == "f" for part in (start, goal)):

            def mixed(cubes: Ints, moved: Bools) -> Floats:
                from_goal = units.features(moved, differs[cubes])[:, np.maximum(of_column, 0)] & (of_column >= 0)
                begin = cubes if vertices.start_of is None else vertices.start_of[cubes]
                return inside.prepare(np.where(from_goal, goal[vertices.goal_of[cubes]], start[begin]))

            return mixed

    def rows(cubes: Ints, moved: Bools) -> Floats:
        raw = vertices.rows(cubes, units.features(moved, differs[cubes]))
        return inside.prepare(encoding.transform(raw))

    return rows


def credible_floor(attempt: Attempt) -> Floor | None:
    """The condition that vertices are credible, asked of points where the density is defined on them."""
    credibility, vertices, units = attempt.credibility, attempt.vertices, attempt.units
    if credibility is None or not floored(credibility):
        return None
    cubes, density = np.arange(attempt.problem.n_cubes), credibility.density
    if not isinstance(density, PointDensity):

        def of_rows(which: Ints, moved: Bools) -> Floats:
            return credibility.log_density(vertices.rows(which, attempt.features(which, moved)))

        return Floor(credibility.floor, of_rows, cubes)
    start, goal = (
        density.points(credibility.schema.conform(frame, unseen="allow")) for frame in (vertices.start, vertices.goal)
    )
    if vertices.start_of is not None:
        start = start[vertices.start_of]
    unit_of = units.unit_of[density.feature_of]

    def of_points(which: Ints, moved: Bools) -> Floats:
        return density.at(np.where(moved[:, unit_of], goal[vertices.goal_of[which]], start[which]))

    bodies = MixtureCubes(density.mixture, start, goal, unit_of) if isinstance(density, GaussianDensity) else None
    return Floor(credibility.floor, of_points, cubes, bodies)
