"""How much each feature of a set has to do with the turn: what the score gains when it alone is left as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError
from fewest.results.explanation import Change, Explanation
from fewest.tables.schema import Schema
from fewest.tables.values import written

Effects = Mapping[str, float]


def effects(answers: Sequence[Explanation], decision: Decision, schema: Schema) -> list[Effects]:
    """For each answer, feature -> mean share over all its smallest sets; the model is called once.

    Examples
    --------
    >>> import fewest as fw
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100 + rows["late"].to_numpy() / 10)
    >>> refs = fw.references.supplied(decision, {"debt": [10], "late": [0]})
    >>> out = fw.Explainer(decision, refs).explain({"debt": [80], "late": [6]}, alternatives=10)
    >>> {name: round(share, 2) for name, share in effects([out[0]], decision, refs.schema)[0].items()}
    {'debt': 0.54, 'late': 0.46}
    """
    rows = [row for answer in answers for row in _vertices(answer, schema)]
    if not rows:
        return [{} for _ in answers]
    frame = schema.conform(pd.DataFrame(rows, columns=list(schema.columns)), unseen="allow")
    score = decision.verdicts(frame).score
    out: list[Effects] = []
    place = 0
    for answer in answers:
        total: dict[str, float] = {}
        for changes in answer.alternatives:
            shares = _shares(score[place : place + 1 + len(changes)])
            place += 1 + len(changes)
            for change, share in zip(changes, shares.tolist(), strict=True):
                total[change.feature] = total.get(change.feature, 0.0) + share / len(answer.alternatives)
        out.append(total)
    return out


def _shares(score: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Shares of a set's features, from the score of the whole set and of the set without each.

    Rules between features can make a smaller set one that turns the decision as well and is not allowed; its feature
    has no effect then.
    """
    lost = np.maximum(score[1:] - score[0], 0.0)
    whole = lost.sum()
    return lost / whole if whole > 0 else np.full(len(lost), 1.0 / len(lost))


def _vertices(answer: Explanation, schema: Schema) -> list[dict[str, Any]]:
    """For each smallest set: the case turned by it, then by it without each of its features."""
    if len(answer.facts) != len(schema):
        raise DataError(
            f"case {answer.label}: not all its values are known, so reasons cannot be weighed",
            do="keep the cases in the run folder, or leave out the model",
        )
    case: dict[str, Any] = {}
    for feature, fact in zip(schema.features, answer.facts, strict=True):
        case.update(written(schema, feature.name, fact.case))
    rows = []
    for changes in answer.alternatives:
        rows.append(_turned(case, changes, schema))
        rows += [_turned(case, [c for c in changes if c is not left], schema) for left in changes]
    return rows


def _turned(case: Mapping[str, Any], changes: Sequence[Change], schema: Schema) -> dict[str, Any]:
    row = dict(case)
    for change in changes:
        row.update(written(schema, change.feature, change.after))
    return row
