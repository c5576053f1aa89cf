"""How changes carry the score over the threshold, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.tables.schema import Feature


def score_steps(
    decision: Decision, features: Sequence[Feature], start: pd.DataFrame, end: pd.DataFrame, sign: int
) -> list[tuple[str, float, float]]:
    """Features from one row to another, at each step the one that helps most, with the scores before and after it."""
    left, score, out = list(features), float(decision.verdicts(start).score[0]), []
    while left:
        tried = [start.assign(**{column: end[column] for column in feature.columns}) for feature in left]
        scores = decision.verdicts(pd.concat(tried)).score
        best = int(np.argmin(sign * scores))
        out.append((left.pop(best).name, score, float(scores[best])))
        start, score = tried[best], float(scores[best])
    return out
