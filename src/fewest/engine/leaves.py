"""One part of a table towards the leaves of a tree: score, find the leaf, enter it, let the model confirm (SEV-T)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.credibility import Credibility
from fewest.decision import Decision
from fewest.engine.not_credible import floored, show_plain, without_floor
from fewest.errors import ModelError
from fewest.models.trees import Reach
from fewest.results.answers import Answers
from fewest.results.explanation import STATUSES, Status

Rows = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
CODE = {status: np.int8(k) for k, status in enumerate(STATUSES)}


@dataclass(frozen=True)
class LeafTask:
    """What is the same for all parts of a table; ``offered`` are the leaves that are credible."""

    decision: Decision
    reach: Reach
    deadline: float
    alternatives: int
    n_jobs: int
    credibility: Credibility | None = None
    offered: Bools | None = None


def answer(task: LeafTask, frame: pd.DataFrame) -> Answers:
    """Verified answers for a part of the table."""
    if not floored(task.credibility) or task.offered is None:
        return _answer(task, frame)
    answers = _answer(replace(task, reach=task.reach.only(task.offered)), frame)
    none = np.flatnonzero(answers.status == CODE[Status.UNREACHABLE])
    if len(none) == 0:
        return answers
    plain = replace(task, credibility=without_floor(task.credibility), alternatives=0)
    return show_plain(answers, none, _answer(plain, frame.iloc[none]))


def _answer(task: LeafTask, frame: pd.DataFrame) -> Answers:
    """Verified answers, those in leaves that are not offered left out."""
    reach = task.reach
    verdicts = task.decision.verdicts(frame)
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
    leaf, cost = reach.search(codes, task.n_jobs)
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
    task: LeafTask, answers: Answers, rows: Rows, cases: pd.DataFrame, codes: Floats, leaf: npt.NDArray[np.int32],
    cost: Floats,
) -> None:  # fmt: skip
    """Write the answers the model confirms; one it does not confirm is not returned, and nothing is proved of it."""
    reach = task.reach
    after, moved, far = reach.turn(codes, leaf)
    landed = reach.turned(cases, after, moved)
    verdicts = task.decision.verdicts(landed)
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
    task: LeafTask, answers: Answers, rows: Rows, cases: pd.DataFrame, codes: Floats, leaf: npt.NDArray[np.int32],
    cost: Floats,
) -> None:  # fmt: skip
    """All smallest sets that the model confirms, the one shown first; each with the leaf it leads to."""
    reach = task.reach
    case, goal = np.nonzero(np.abs(reach.costs(codes) - cost[:, None]) <= 1e-9 * cost[:, None])
    order = np.lexsort((goal, goal != leaf[case], case))
    case = case[order]
    towards: npt.NDArray[np.int32] = goal[order].astype(np.int32)
    after, moved, _ = reach.turn(codes[case], towards)
    good = ~task.decision.verdicts(reach.turned(cases.iloc[case], after, moved)).positive
    sets: dict[int, dict[bytes, int]] = {}
    for k in np.flatnonzero(good).tolist():
        sets.setdefault(int(case[k]), {}).setdefault(moved[k].tobytes(), k)
    for number, found in sets.items():
        row, kept = int(rows[number]), list(found.values())[: task.alternatives]
        answers.alternatives[row] = moved[kept]
        answers.towards[row] = towards[kept]
        answers.complete[row] = len(found) <= task.alternatives
