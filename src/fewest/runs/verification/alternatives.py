"""The other smallest sets that a run lists: each costs the same, is allowed, and turns the model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.runs.verification.claims import FAR, Claims
from fewest.runs.verification.leaf_entry import entered
from fewest.runs.verification.model_scores import Scorer, replaced
from fewest.runs.verification.report import Report
from fewest.runs.verification.rules import differing
from fewest.tables.arrays import Bools
from fewest.tables.json_cells import moved_cells

Sets = Sequence[Sequence[Mapping[str, Any]]]


def check_alternatives(claims: Claims, scorer: Scorer, report: Report) -> None:
    """Score every listed set again; the one shown is the first of them."""
    listed = claims.table["alternatives"]
    counts = listed.map(len).to_numpy(dtype=np.int64)
    if not counts.any():
        return
    owner = np.repeat(np.arange(len(counts)), counts)
    place = {name: j for j, name in enumerate(claims.schema.names)}
    sets = [changes for row in listed for changes in row]
    moved = np.zeros((len(sets), len(place)), dtype=bool)
    for k, changes in enumerate(sets):
        moved[k, [place[change["feature"]] for change in changes if change["feature"] in place]] = True
    rows, cost = claims.rows[owner], moved @ claims.rules.weights
    shown = claims.moved[owner] @ claims.rules.weights
    report.rows_wrong(rows, np.abs(cost - shown) > FAR * np.maximum(1.0, shown), "an alternative costs more or less")
    first = np.concatenate([[True], owner[1:] != owner[:-1]])
    other = first & (moved != claims.moved[owner]).any(axis=1)
    report.rows_wrong(rows, other, "the first alternative is not the set shown")
    case = claims.frame.iloc[owner]
    report.rows_wrong(rows, _foreign(claims, case, moved, sets), "a value in an alternative is not the case's")
    allowed, turns = _held(claims, owner, case, moved, sets, scorer)
    report.rows_wrong(rows, ~allowed, "an alternative is not allowed, or leads to no reference")
    report.rows_wrong(rows, ~turns, "an alternative does not turn the model")


def _foreign(claims: Claims, case: pd.DataFrame, moved: Bools, sets: Sets) -> Bools:
    """Which sets show a value of the case that it does not have; earlier versions showed none."""
    side = "to" if claims.plus else "from"
    known = iter(json.loads(f"[{','.join(moved_cells(claims.schema, case, moved))}]"))
    names = set(claims.schema.names)
    own = [[(change, next(known)) for change in changes if change["feature"] in names] for changes in sets]
    return np.array([any(change.get(side, value) != value for change, value in pairs) for pairs in own], dtype=bool)


def _held(
    claims: Claims, owner: npt.NDArray[np.int64], case: pd.DataFrame, moved: Bools, sets: Sets, scorer: Scorer
) -> tuple[Bools, Bools]:
    """Which sets the rules allow, and which turn the model: towards a leaf, or one of the references they are like."""
    side, schema, rules = "from" if claims.plus else "to", claims.schema, claims.rules
    stated = [{change["feature"]: change[side] for change in changes if side in change} for changes in sets]
    beside = entered(schema, case if claims.goals.leaves else claims.beside.iloc[owner], stated)
    candidates = claims.goals.candidates(claims.reference[owner]).T
    goals = [] if claims.goals.leaves else [claims.goals.frame.iloc[compared] for compared in candidates]
    allowed, turns = np.zeros(len(owner), dtype=bool), np.zeros(len(owner), dtype=bool)
    for goal in [*goals, beside]:
        like = ~(differing(schema, beside, goal) & moved).any(axis=1)
        if goal is not beside or claims.goals.leaves:
            allowed |= like & rules.allowed(moved, differing(schema, case, goal), rules.permitted(case, goal))
        at = np.flatnonzero(like & ~turns)
        if len(at):
            start, end = (goal, case) if claims.plus else (case, goal)
            scores = scorer.score(replaced(schema, start.iloc[at], end.iloc[at], moved[at]))
            turns[at] = scores >= scorer.decision.cut if claims.plus else scores < scorer.decision.cut
    return allowed, turns
