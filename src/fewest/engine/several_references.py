"""Several references for each case: the best of them, searched as far as the best needs, and confirmed alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fewest.engine.cubes import Attempt
from fewest.engine.search import Outcome
from fewest.results.answers import Answers
from fewest.tables.arrays import Floats, Ints, Ints32


@dataclass
class BestSoFar:
    """The best that is known of each case: its cost, how far it leads, the proved bound, and its reference or -1."""

    best: Floats
    length: Floats
    lower: Floats
    reference: Ints32

    @classmethod
    def blank(cls, n: int) -> BestSoFar:
        """Nothing known of n cases."""
        unknown = np.full((3, n), np.inf)
        return cls(unknown[0], unknown[1], unknown[2], np.full(n, -1, dtype=np.int32))

    def enter(self, case: Ints, goal_of: Ints32, attempt: Attempt) -> None:
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
        self.reference[case[kept]] = goal_of[kept]


def refused(attempts: list[Attempt], rows: Ints, answers: Answers) -> Ints:
    """Score the answers of these rows, and vertices drawn towards all references, in one call; those not confirmed."""
    found = np.flatnonzero(answers.moved[rows].any(axis=1))
    start_of, goal_of, moved = [found], [answers.reference[rows[found]]], [answers.moved[rows[found]]]
    drawn = [(attempt, *attempt.probes()) for attempt in attempts]
    for attempt, cubes, sets in drawn:
        assert attempt.vertices.start_of is not None
        start_of.append(attempt.vertices.start_of[cubes])
        goal_of.append(attempt.vertices.goal_of[cubes])
        moved.append(attempt.features(cubes, sets))
    vertices = replace(attempts[0].vertices, start_of=np.concatenate(start_of), goal_of=np.concatenate(goal_of))
    mixed = vertices.rows(np.arange(len(vertices.goal_of)), np.concatenate(moved))
    inside = attempts[0].inside
    verdicts = vertices.decision.verdicts(mixed) if inside is None else inside.verdicts_on(mixed)
    first = len(found)
    for attempt, cubes, sets in drawn:
        if attempt.inside is not None and len(cubes):
            tried = verdicts.positive[first : first + len(cubes)]
            attempt.inside.check_decisions(attempt.problem.vertex_rows(cubes, sets), tried)
        first += len(cubes)
    answers.score_after[rows[found]] = verdicts.score[: len(found)]
    return np.asarray(found[~vertices.turned(verdicts)[: len(found)]])
