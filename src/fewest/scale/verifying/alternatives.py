"""The other smallest sets that a run lists: each costs the same, is allowed, and turns the model."""

from __future__ import annotations

import numpy as np

from fewest.scale.verifying.claims import FAR, Claims
from fewest.scale.verifying.entering import entered
from fewest.scale.verifying.report import Report
from fewest.scale.verifying.rules import differing
from fewest.scale.verifying.scoring import Scorer, replaced


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
    case, leaves = claims.frame.iloc[owner], claims.goals.leaves
    beside = entered(claims.schema, case, sets) if leaves else claims.beside.iloc[owner]
    permitted = claims.rules.permitted(case, beside)
    differs = differing(claims.schema, case, beside) if leaves else claims.differs[owner]
    allowed = claims.rules.allowed(moved, differs, permitted)
    report.rows_wrong(rows, ~allowed, "an alternative is not allowed")
    start, goal = (beside, case) if claims.plus else (case, beside)
    scores = scorer.score(replaced(claims.schema, start, goal, moved))
    cut = scorer.decision.cut
    report.rows_wrong(rows, ~(scores >= cut if claims.plus else scores < cut), "an alternative does not turn the model")
