"""The other smallest sets that a run lists: each costs the same, is allowed, and turns the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.runs.verification.claims import FAR, Claims
from fewest.runs.verification.leaf_entry import entered
from fewest.runs.verification.model_scores import Scorer, replaced
from fewest.runs.verification.report import Report
from fewest.runs.verification.rules import differing


def check_alternatives(claims: Claims, scorer: Scorer, report: Report) -> None:
    """Score every listed set again; the one shown is the first of them."""
    listed = claims.table["alternatives"]
    counts = listed.map(len).to_numpy(dtype=np.int64)
    if not counts.any():
        return
    owner = np.repeat(np.arange(len(counts)), counts)
    place = {name: j for j, name in enumerate(claims.schema.names)}
    sets = [names for row in listed for names in row]
    moved = np.zeros((len(sets), len(place)), dtype=bool)
    for k, names in enumerate(sets):
        moved[k, [place[name] for name in names if name in place]] = True
    rows, cost = claims.rows[owner], moved @ claims.rules.weights
    shown = claims.moved[owner] @ claims.rules.weights
    report.rows_wrong(rows, np.abs(cost - shown) > FAR * np.maximum(1.0, shown), "an alternative costs more or less")
    first = np.concatenate([[True], owner[1:] != owner[:-1]])
    other = first & (moved != claims.moved[owner]).any(axis=1)
    report.rows_wrong(rows, other, "the first alternative is not the set shown")
    case = claims.frame.iloc[owner]
    beside = claims.beside.iloc[owner] if all(isinstance(names, list) for names in sets) else _told(claims, owner, sets)
    allowed = _allowed(claims, owner, case, beside, moved)
    report.rows_wrong(rows, ~allowed, "an alternative is not allowed, or leads to no reference")
    start, goal = (beside, case) if claims.plus else (case, beside)
    scores = scorer.score(replaced(claims.schema, start, goal, moved))
    cut = scorer.decision.cut
    report.rows_wrong(rows, ~(scores >= cut if claims.plus else scores < cut), "an alternative does not turn the model")


def _told(claims: Claims, owner: npt.NDArray[np.int64], sets: Sequence[Any]) -> pd.DataFrame:
    """The values each set leads to: those it brings along (of a leaf, of another reference), else the row's own."""
    stated = np.array([isinstance(names, dict) for names in sets])
    brought = [names if isinstance(names, dict) else {} for names in sets]
    rows = entered(claims.schema, claims.frame.iloc[owner], brought)
    if stated.all():
        return rows
    own = np.broadcast_to(~stated[:, None], (len(sets), len(claims.schema)))
    return replaced(claims.schema, rows, claims.beside.iloc[owner], own)


def _allowed(
    claims: Claims, owner: npt.NDArray[np.int64], case: pd.DataFrame, beside: pd.DataFrame, moved: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Which sets the rules allow towards a leaf, or towards one of the references whose values they have."""
    if claims.goals.leaves:
        return claims.rules.allowed(moved, differing(claims.schema, case, beside), claims.rules.permitted(case, beside))
    allowed = np.zeros(len(owner), dtype=bool)
    for compared in claims.goals.candidates(claims.reference[owner]).T:
        goal = claims.goals.frame.iloc[compared]
        like = ~(differing(claims.schema, beside, goal) & moved).any(axis=1)
        differs, permitted = differing(claims.schema, case, goal), claims.rules.permitted(case, goal)
        allowed |= like & claims.rules.allowed(moved, differs, permitted)
    return allowed
