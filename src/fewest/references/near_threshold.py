"""References from the cases that were only just accepted: what a refused case is closest to becoming.

The official commentary on Regulation B (12 CFR 1002.9(b)(2), comments 4 and 5) lets a creditor compare a refused
applicant with those whose score was at or slightly above the passing score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fewest.decision import Decision
from fewest.errors import DataError, check_number
from fewest.references._centres import Centre
from fewest.references._grouping import GroupingSettings, Select, grouped
from fewest.references.base import Assignment, References
from fewest.references.training_rows import TrainingRows, warn_where_predict_differs
from fewest.tables.schema import Schema

if TYPE_CHECKING:
    from fewest.references.clustering import Embedding

SHOWN = 3
KIND = "near threshold"


def near_threshold(
    decision: Decision,
    X: Any,
    y: Any = None,
    *,
    width: float = 0.1,
    n_clusters: int | Literal["auto"] = 1,
    centre: Centre = "median",
    embedding: str | Embedding = "identity",
    assignment: Assignment = "sparsest",
    m: float = 2.0,
    select: Select = "silhouette",
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    random_state: int = 0,
    max_rows: int = 20_000,
    min_share: float = 0.02,
) -> References:
    """Typical cases among those the model accepted with a score just below the threshold.

    Such references are close to the cases decided against, and explanations that lead to them turn the decision
    narrowly and change more features: a reference near the line leaves little to spare.

    Parameters
    ----------
    decision : Decision
    X : table
        Training rows.
    y : (n,) labels, optional
        Where given, only rows that do not have the positive label are used. Read as in `single`.
    width : float
        The band of scores below the threshold, in the units of the score.
    n_clusters, centre, embedding, assignment, m, select, schema, groups, random_state, max_rows, min_share
        As in `clusters`; one reference by default.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 4, 5, 6, 8, 9]}); y = [0, 0, 0, 0, 1, 1, 1]
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> near_threshold(decision, X, y, width=0.4).frame["debt"].tolist()
    [4]
    """
    settings = GroupingSettings(n_clusters, centre, embedding, assignment, m, select, random_state, max_rows, min_share)
    check_number("width", width, "use a number above 0, in the units of the score", above=0)
    schema = schema or Schema.infer(X, groups, decision.columns)
    rows = schema.conform(X) if y is None else TrainingRows.read(decision, X, y, schema).accepted
    warn_where_predict_differs(decision, rows)
    score, positive = decision.verdicts(rows)
    band = ~positive & (score >= decision.cut - width)
    if not band.any():
        below = np.unique(score[~positive])[::-1][:SHOWN]
        nearest = f"the nearest below are {', '.join(f'{s:.4g}' for s in below)}" if len(below) else "none is below"
        raise DataError(
            f"no accepted row has a score in [{decision.cut - width:.4g}, {decision.cut:.4g}); {nearest}",
            do="widen the band with width=" if len(below) else "check `positive=` and the threshold",
        )
    accepted = rows if y is not None else rows[~positive]
    provenance = {"kind": KIND, "width": width}
    return grouped(decision, schema, rows[band], settings, provenance, accepted, called=KIND)
