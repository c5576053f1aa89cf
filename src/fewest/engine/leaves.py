"""One part of a table towards the leaves of a tree: score, find the leaf, enter it, let the model confirm (SEV-T)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from fewest.credibility import Credibility
from fewest.credibility.leaf_support import LeafDensity
from fewest.engine.choices import CODE, Choices, TableWork, floored, or_plain
from fewest.engine.model_reading import SAMPLE
from fewest.errors import ModelError, UsageError
from fewest.models.trees import Reach
from fewest.references import Leaves
from fewest.results.answers import Answers
from fewest.results.explanation import Status
from fewest.tables.arrays import Bools, Floats, Ints, Ints32


class LeafGoals:
    """The negative leaves of the tree that decides: a case enters the one that needs the fewest changes."""

    def __init__(self, chosen: Choices, references: Leaves) -> None:
        if chosen.plus:
            raise UsageError("SEV+ is not defined for the leaves of a tree", do="use references.single with it")
        self._chosen = chosen
        self.reach = references.reach(chosen.constraints, chosen.weights)
        self._offered = self._credible_leaves()

    def _credible_leaves(self) -> Bools | None:
        """Which of the negative leaves are credible; None where all count."""
        credibility = self._chosen.credibility
        if credibility is None:
            return None
        density = credibility.density
        if not isinstance(density, LeafDensity) or density.tree.n_nodes != self.reach.tree.n_nodes:
            raise UsageError(
                "the leaves of a tree are boxes, of which a density of points says nothing",
                do="use credibility.leaf_support of the same decision with references.leaves",
            )
        return np.asarray(density.of_node[self.reach.leaf] >= credibility.floor)

    def prepare(self, frame: pd.DataFrame, deadline: float, alternatives: int) -> TableWork:
        """How parts of this table are answered."""
        chosen = self._chosen
        chosen.decision.check(frame.iloc[:SAMPLE])
        task = LeafTask(chosen, self.reach, deadline, alternatives, chosen.credibility, self._offered)
        return TableWork(partial(answer, task), len(chosen.references.schema), ("none", "all leaves of the tree"))


@dataclass(frozen=True)
class LeafTask:
    """What is the same for all parts of a table; ``offered`` are the leaves that are credible."""

    chosen: Choices
    reach: Reach
    deadline: float
    alternatives: int
    credibility: Credibility | None
    offered: Bools | None


def answer(task: LeafTask, frame: pd.DataFrame) -> Answers:
    """Verified answers for a part of the table."""
    credible = task
    if floored(task.credibility) and task.offered is not None:
        credible = replace(task, reach=task.reach.only(task.offered))
    return or_plain(_answer(credible, frame), _answer, task, frame)


def _answer(task: LeafTask, frame: pd.DataFrame) -> Answers:
    """Verified answers, those in leaves that are not offered left out."""
    reach = task.reach
    verdicts = task.chosen.decision.verdicts(frame)
    answers = Answers.blank(len(frame), len(reach.tree.schema))
    answers.score[:] = verdicts.score
    rows = np.flatnonzero(verdicts.positive)
    answers.strategy[rows] = 1
    if time.monotonic() > task.deadline:
        answers.status[rows] = CODE[Status.BUDGET]
        answers.lower[rows] = reach.weight.min()
        return answers
    if len(rows) == 0:
        return answers
    cases = frame.iloc[rows] if len(rows) < len(frame) else frame
    codes = reach.tree.encode(cases)
    other = ~reach.tree.positive[reach.tree.apply(codes)]
    if other.any():
        raise ModelError(
            f"the tree that was read decides case {cases.index[int(np.argmax(other))]!r} otherwise than the model",
            do="use references.single or clusters: they ask the model itself where it cannot be read",
        )
    leaf, cost = reach.search(codes, task.chosen.n_jobs)
    answers.nodes[rows] = len(reach.leaf)
    answers.lower[rows] = cost
    answers.proved[rows] = True
    inside = (leaf >= 0) & (cost <= reach.max_cost)
    answers.status[rows] = np.where(inside, CODE[Status.EXPLAINED], CODE[Status.UNREACHABLE])
    leaf[~inside] = -1
    if inside.any():
        _enter(task, answers, rows, cases, codes, leaf, cost)
    return answers


def _enter(
    task: LeafTask, answers: Answers, rows: Ints, cases: pd.DataFrame, codes: Floats, leaf: Ints32,
    cost: Floats,
) -> None:  # fmt: skip
    """Write the answers the model confirms; one it does not confirm is not returned, and nothing is proved of it."""
    reach = task.reach
    after, moved, far = reach.turn(codes, leaf)
    landed = reach.turned(cases, after, moved)
    verdicts = task.chosen.decision.verdicts(landed)
    confirmed = ~verdicts.positive
    if task.credibility is not None:
        dense = task.credibility.log_density(landed)
        confirmed &= dense >= task.credibility.floor
        answers.log_density[rows[leaf >= 0]] = dense[leaf >= 0]
    good = (leaf >= 0) & confirmed
    refused = rows[(leaf >= 0) & ~confirmed]
    answers.status[refused] = CODE[Status.BUDGET]
    answers.proved[refused] = False
    answers.lower[refused] = reach.weight.min()
    into = rows[good]
    answers.moved[into] = moved[good]
    answers.reference[into] = leaf[good]
    answers.score_after[into] = verdicts.score[good]
    answers.cost[into] = cost[good]
    answers.l_inf[into] = far[good]
    if task.alternatives:
        _list_alternatives(task, answers, into, cases[good], codes[good], leaf[good], cost[good])


def _list_alternatives(
    task: LeafTask, answers: Answers, rows: Ints, cases: pd.DataFrame, codes: Floats, leaf: Ints32,
    cost: Floats,
) -> None:  # fmt: skip
    """All smallest sets that the model confirms, the one shown first; each with the leaf it leads to."""
    reach = task.reach
    case, goal = np.nonzero(np.abs(reach.costs(codes) - cost[:, None]) <= 1e-9 * cost[:, None])
    order = np.lexsort((goal, goal != leaf[case], case))
    case = case[order]
    towards: Ints32 = goal[order].astype(np.int32)
    after, moved, _ = reach.turn(codes[case], towards)
    good = ~task.chosen.decision.refuses(reach.turned(cases.iloc[case], after, moved))
    sets: dict[int, dict[bytes, int]] = {}
    for k in np.flatnonzero(good).tolist():
        sets.setdefault(int(case[k]), {}).setdefault(moved[k].tobytes(), k)
    for number, found in sets.items():
        row, kept = int(rows[number]), list(found.values())[: task.alternatives]
        answers.alternatives[row] = moved[kept]
        answers.towards[row] = towards[kept]
        answers.complete[row] = len(found) <= task.alternatives
